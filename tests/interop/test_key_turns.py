"""One primary-key table for all: written in turn, and histories that every engine reads alike."""

from collections.abc import Callable, Sequence
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pytest

from canonical import Row, canonical_rows, sorted_rows
from emberlake import AtomicType, CatalogFactory, DataField, Schema, Table
from emberlake.types import arrow_schema
from interop.judges import java_judge, known_gap, peer
from key_histories import NAME, History, Shape

pytestmark = pytest.mark.interop

COLUMNS = {"id": "BIGINT", "day": "STRING", "n": "INT", "at": "TIMESTAMP(6)", "name": "STRING"}


def ours(warehouse: Path) -> list[Row]:
    builder = table_in(warehouse).new_read_builder()
    rows = builder.new_read().to_arrow(builder.new_scan().plan().splits())
    return sorted_rows(canonical_rows(rows))


def _as_inserts(rows: list[Row]) -> list[Row]:
    """A row that is there may be an insert or, to Java, what came of an update."""
    assert {row[0] for row in rows} <= {"+I", "+U"}
    return sorted_rows(["+I", *row[1:]] for row in rows)


READERS: dict[str, Callable[[Path], list[Row]]] = {
    "emberlake": ours,
    "java": lambda warehouse: _as_inserts(java_judge().rows(warehouse, NAME)),
    "pypaimon": lambda warehouse: peer("pypaimon").rows(warehouse, NAME),
    "rust": lambda warehouse: peer("rust").rows(warehouse, NAME),
}


def table_in(warehouse: Path) -> Table:
    return CatalogFactory.create({"warehouse": str(warehouse)}).get_table(NAME)


def write_ours(warehouse: Path, rows: pa.Table, row_kind: str | None = None) -> None:
    builder = table_in(warehouse).new_batch_write_builder()
    with builder.new_write() as writing, builder.new_commit() as commit:
        writing.write_arrow(rows, row_kind=row_kind)
        commit.commit(writing.prepare_commit())


WRITERS: dict[str, Callable[[Path, pa.Table], None]] = {
    "emberlake": write_ours,
    "pypaimon": lambda warehouse, rows: peer("pypaimon").write(warehouse, NAME, rows),
    "rust": lambda warehouse, rows: peer("rust").write(warehouse, NAME, rows),
}

# --- in turn --------------------------------------------------------------------------------------

SHAPES: dict[str, tuple[Sequence[str], Sequence[str], dict[str, str]]] = {
    "one bucket": (["id"], [], {"bucket": "1"}),
    "four buckets": (["id"], [], {"bucket": "4"}),
    "two key columns": (["name", "id"], [], {"bucket": "3"}),
    "partitioned": (["day", "id"], ["day"], {"bucket": "2"}),
    "dynamic buckets": (["id"], [], {"bucket": "-1"}),
    "dynamic buckets, partitioned": (["day", "id"], ["day"], {"bucket": "-1"}),
}


@pytest.mark.parametrize("seed", [1, 2])
@pytest.mark.parametrize("shape", SHAPES)
def test_a_table_that_is_written_in_turn_is_one_table(
    shape: str, seed: int, tmp_path: Path
) -> None:
    keys, partition_keys, options = SHAPES[shape]
    catalog = CatalogFactory.create({"warehouse": str(tmp_path)})
    catalog.create_database("db", True)
    fields = [DataField(i, n, AtomicType(t)) for i, (n, t) in enumerate(COLUMNS.items())]
    catalog.create_table(NAME, Schema(fields, partition_keys, keys, options), False)
    places = [list(COLUMNS).index(key) for key in keys]
    chance = Random(seed)
    model: dict[tuple[Any, ...], list[Any]] = {}

    writers = [*WRITERS] * 3
    chance.shuffle(writers)
    for number, writer in enumerate(writers):
        # Others may not order several records of one key in one write, so each comes once.
        rows = list({tuple(row[p] for p in places): row for row in some(chance, number)}.items())
        data = as_arrow([row for _, row in rows])
        is_delete = writer == "emberlake" and chance.random() < 0.4
        if is_delete:
            write_ours(tmp_path, data, "-D")
        else:
            WRITERS[writer](tmp_path, data)
        for key, row in rows:
            model[key] = row
            if is_delete:
                del model[key]

    expected = sorted_rows(canonical_rows(as_arrow(list(model.values()))))
    for reader, read in READERS.items():
        assert read(tmp_path) == expected, (reader, writers)
    table_in(tmp_path).compact(full=True)
    for reader, read in READERS.items():
        assert read(tmp_path) == expected, (reader, writers, "compacted")
    WRITERS["rust"](tmp_path, as_arrow([[1, "mon", 0, None, "one"]]))
    WRITERS["pypaimon"](tmp_path, as_arrow([[2, "mon", 0, None, "two"]]))
    again = READERS["java"](tmp_path)
    assert all(read(tmp_path) == again for read in READERS.values())


def some(chance: Random, number: int) -> list[list[Any]]:
    return [
        [
            chance.randint(0, 12),
            chance.choice(["mon", "tue"]),
            chance.choice([None, number]),
            chance.choice([None, 1_700_000_000_123_456 + number]),
            chance.choice(["", "short", "a longer name ☃"]),
        ]
        for _ in range(chance.randint(1, 8))
    ]


def as_arrow(rows: Sequence[Sequence[Any]]) -> pa.Table:
    fields = tuple(DataField(i, n, AtomicType(t)) for i, (n, t) in enumerate(COLUMNS.items()))
    schema = pa.schema([(f.name, f.type) for f in arrow_schema(fields)])
    columns = zip(*rows, strict=True) if rows else [[] for _ in schema]
    arrays = [pa.array(c, f.type) for c, f in zip(columns, schema, strict=True)]
    return pa.Table.from_arrays(arrays, schema=schema)


# --- histories ------------------------------------------------------------------------------------

HISTORIES: dict[str, Shape] = {
    "integers": Shape(keys=("INT",), value="DOUBLE", bucket="1"),
    "texts": Shape(keys=("STRING", "BIGINT"), value="DECIMAL(38, 3)", bucket="3"),
    "decimals": Shape(keys=("DECIMAL(38, 3)",), value="BYTES", bucket="2"),
    "nanoseconds": Shape(keys=("TIMESTAMP(9)",), value="TIMESTAMP(9)", bucket="2"),
    "dates": Shape(keys=("DATE",), value="TIMESTAMP(6)", bucket="2", partitioned=True),
    "bytes": Shape(keys=("BYTES",), value="STRING", bucket="2"),
    "dynamic": Shape(keys=("BIGINT",), bucket="-1", options={"dynamic-bucket.target-row-num": "2"}),
    "thin": Shape(keys=("STRING",), value="DATE", options={"data-file.thin-mode": "true"}),
    "sequence": Shape(keys=("INT",), value="STRING", options={"sequence.field": "n"}),
    "partial-update": Shape("partial-update", keys=("INT",), value="DECIMAL(9, 2)"),
    "aggregation": Shape("aggregation", keys=("STRING",), value="DATE"),
    "first-row": Shape("first-row", keys=("INT",), value="BIGINT"),
    "deletion vectors": Shape(
        keys=("INT",), value="STRING", options={"deletion-vectors.enabled": "true"}
    ),
}
# What others do not do, or do not do right.
EXCEPTIONS = {
    ("nanoseconds", "pypaimon"): "pypaimon cuts nanoseconds off when it merges",
    ("partial-update", "pypaimon"): "pypaimon does not know partial-update.remove-record-on-delete",
    ("aggregation", "pypaimon"): "pypaimon does not take values back",
}
STEPS = 8


@pytest.mark.parametrize("reader", [name for name in READERS if name != "emberlake"])
@pytest.mark.parametrize("seed", [11, 12])
@pytest.mark.parametrize("name", HISTORIES)
def test_others_read_what_a_history_left(
    request: pytest.FixtureRequest, name: str, seed: int, reader: str, tmp_path: Path
) -> None:
    # The history of seed 12 does not run into it.
    if (name, reader) in EXCEPTIONS and (name, seed) != ("nanoseconds", 12):
        known_gap(request, EXCEPTIONS[name, reader])
    catalog = CatalogFactory.create({"warehouse": str(tmp_path)})
    catalog.create_database("db", True)
    history = History(catalog, HISTORIES[name], Random(seed))

    for _ in range(STEPS):
        history.step()

    assert READERS[reader](tmp_path) == history.expected(), history.done
