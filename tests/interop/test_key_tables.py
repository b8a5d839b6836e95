"""Primary-key tables that emberlake writes, read by the others, row for row."""

import datetime as dt
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from canonical import Row, canonical_rows, sorted_rows
from emberlake import AtomicType, CatalogFactory, DataField, Schema, Table
from emberlake.types import arrow_schema
from interop.judges import java_judge, known_gap, peer
from interop.samples import ATOMIC, Sample

pytestmark = pytest.mark.interop

NAME = "db.t"
READERS: dict[str, Callable[[Path], list[Row]]] = {
    "java": lambda warehouse: java_judge().rows(warehouse, NAME),
    "pypaimon": lambda warehouse: peer("pypaimon").rows(warehouse, NAME),
    "rust": lambda warehouse: peer("rust").rows(warehouse, NAME),
}
COLUMNS = {
    "id": "BIGINT",
    "day": "STRING",
    "n": "INT",
    "price": "DECIMAL(38, 4)",
    "at": "TIMESTAMP(6)",
    "name": "STRING",
}
FIRST = [
    (1, "mon", 1, Decimal("1.5000"), dt.datetime(2026, 6, 26, 1, 2, 3, 456789), "one"),  # noqa: DTZ001
    (2, "mon", 2, None, None, ""),
    (3, "tue", None, Decimal("-" + "9" * 34 + ".9999"), None, "three ☃" * 30),
    (4, "tue", 4, Decimal(0), dt.datetime(1969, 12, 31, 23, 59, 59), None),  # noqa: DTZ001
    (2**63 - 1, "mon", 5, None, None, "last"),
]
SECOND = [
    (2, "mon", 22, Decimal("2.0000"), None, "again"),
    (5, "tue", 5, None, None, "new"),
    (4, "tue", None, None, None, "four"),
    (2, "mon", 23, None, None, "and again"),
]


def create(
    warehouse: Path,
    columns: Mapping[str, str] = COLUMNS,
    primary_keys: Sequence[str] = ("id",),
    partition_keys: Sequence[str] = (),
    **options: str,
) -> Table:
    catalog = CatalogFactory.create({"warehouse": str(warehouse)})
    catalog.create_database("db", True)
    fields = [DataField(i, n, AtomicType(t)) for i, (n, t) in enumerate(columns.items())]
    catalog.create_table(NAME, Schema(fields, partition_keys, primary_keys, options), False)
    return catalog.get_table(NAME)


def rows_of(table: Table, rows: Sequence[Sequence[Any]]) -> pa.Table:
    schema = arrow_schema(tuple(table.fields))
    columns = zip(*rows, strict=True)
    arrays = [pa.array(c, f.type) for c, f in zip(columns, schema, strict=True)]
    return pa.Table.from_arrays(arrays, schema=schema)


def write(table: Table, rows: Sequence[Sequence[Any]] | pa.Table, row_kind: str = "+I") -> None:
    builder = table.new_batch_write_builder()
    data = rows if isinstance(rows, pa.Table) else rows_of(table, rows)
    with builder.new_write() as writer, builder.new_commit() as commit:
        writer.write_arrow(data, row_kind=row_kind)
        commit.commit(writer.prepare_commit())


def expected(table: Table, rows: Sequence[Sequence[Any]]) -> list[Row]:
    return sorted_rows(canonical_rows(rows_of(table, rows)))


SHAPES: dict[str, dict[str, Any]] = {
    "one bucket": {"bucket": "1"},
    "four buckets": {"bucket": "4"},
    "bucket key": {"bucket": "3", "primary_keys": ("id", "name"), "bucket-key": "id"},
    "partitioned": {"bucket": "2", "primary_keys": ("day", "id"), "partition_keys": ("day",)},
    "partition beside the key": {"bucket": "2", "partition_keys": ("day",)},
    "dynamic buckets": {"bucket": "-1"},
    "dynamic buckets, partitioned": {
        "bucket": "-1",
        "primary_keys": ("id", "day"),
        "partition_keys": ("day",),
        "dynamic-bucket.target-row-num": "2",
    },
    "several buffers": {"bucket": "2", "write-buffer-size": "1 b"},
    "thin files": {"bucket": "2", "data-file.thin-mode": "true"},
    "orc": {"bucket": "2", "file.format": "orc"},
    "avro": {"bucket": "2", "file.format": "avro"},
    "small files": {"bucket": "1", "target-file-row-num": "2"},
}
NOT_NULL_NAMES = [(*row[:-1], row[-1] or "") for row in FIRST]


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("shape", SHAPES)
def test_others_merge_what_we_write(shape: str, reader: str, tmp_path: Path) -> None:
    table = create(tmp_path, **SHAPES[shape])
    identity = {*table.partition_keys, *table.primary_keys}
    keys = [list(COLUMNS).index(key) for key in identity]
    first = NOT_NULL_NAMES if "name" in table.primary_keys else FIRST
    write(table, first)
    write(table, SECOND)
    write(table, [first[0], first[4]], row_kind="-D")

    merged = {tuple(row[key] for key in keys): row for row in (*first, *SECOND)}
    for row in (first[0], first[4]):
        del merged[tuple(row[key] for key in keys)]

    assert READERS[reader](tmp_path) == expected(table, list(merged.values()))


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("sample", ATOMIC, ids=str)
def test_keys_of_every_type_are_found_again(
    request: pytest.FixtureRequest, sample: Sample, reader: str, tmp_path: Path
) -> None:
    if reader == "pypaimon" and sample.name.startswith("timestamp9"):
        known_gap(request, "pypaimon cuts nanoseconds off when it merges")
    columns = {"c": f"{sample.type}", "v": "INT"}
    table = create(tmp_path, columns, ["c"], bucket="2")
    schema = arrow_schema(tuple(table.fields))
    keys = sample.data.column("c").drop_null()
    if pa.types.is_floating(keys.type):  # to Java and pypaimon a NaN is equal to every key
        keys = keys.filter(pc.invert(pc.is_nan(keys)))

    def rows(start: int, values: pa.ChunkedArray) -> pa.Table:
        numbers = pa.array(range(start, start + len(values)), pa.int32())
        return pa.Table.from_arrays([values, numbers], schema=schema)

    write(table, rows(0, keys))
    write(table, rows(10, keys.slice(1)))
    write(table, rows(0, keys.slice(0, 1)), row_kind="-D")

    assert READERS[reader](tmp_path) == sorted_rows(canonical_rows(rows(10, keys.slice(1))))


ENGINE_COLUMNS = {"id": "INT", "a": "INT", "b": "STRING", "g": "INT", "s": "BIGINT"}
ENGINES: dict[str, tuple[dict[str, str], list[tuple[Any, ...]]]] = {
    "deduplicate": ({}, [(1, None, "y", 1, 5), (2, 20, "z", 2, 6)]),
    "descending sequence": (
        {"sequence.field": "g", "sequence.field.sort-order": "descending"},
        [(1, None, "y", 1, 5), (2, 2, "b", 1, 7)],
    ),
    "sequence": (
        {"sequence.field": "g,s"},
        [(1, 1, "x", 3, 9), (2, 20, "z", 2, 6)],
    ),
    "partial-update": (
        {"merge-engine": "partial-update"},
        [(1, 1, "y", 1, 5), (2, 20, "z", 2, 6)],
    ),
    "sequence group": (
        {"merge-engine": "partial-update", "fields.g.sequence-group": "a,b"},
        [(1, 1, "x", 3, 5), (2, 20, "z", 2, 6)],
    ),
    "aggregation": (
        {
            "merge-engine": "aggregation",
            "fields.a.aggregate-function": "sum",
            "fields.b.aggregate-function": "listagg",
            "fields.g.aggregate-function": "max",
            "fields.s.aggregate-function": "min",
        },
        [(1, 1, "w,x,y", 3, 4), (2, 22, "b,z", 2, 6)],
    ),
}


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("engine", ENGINES)
def test_others_merge_with_every_engine(
    request: pytest.FixtureRequest, engine: str, reader: str, tmp_path: Path
) -> None:
    if (engine, reader) == ("sequence group", "pypaimon"):
        known_gap(request, "pypaimon has no sequence groups")
    options, merged = ENGINES[engine]
    table = create(tmp_path, ENGINE_COLUMNS, bucket="1", **options)
    # Two records of key 1 are folded before they are written, the third by the reader.
    write(table, [(1, None, "w", 2, 4), (1, 1, "x", 3, 9), (2, 2, "b", 1, 7)])
    write(table, [(1, None, "y", 1, 5), (2, 20, "z", 2, 6)])

    assert READERS[reader](tmp_path) == expected(table, merged)


@pytest.mark.parametrize("reader", READERS)
def test_an_overwrite_starts_over(reader: str, tmp_path: Path) -> None:
    table = create(tmp_path, bucket="-1")
    write(table, FIRST)
    write(table, SECOND)
    builder = table.new_batch_write_builder().overwrite()
    with builder.new_write() as writer, builder.new_commit() as commit:
        writer.write_arrow(rows_of(table, SECOND[:1]))
        commit.commit(writer.prepare_commit())
    write(table, [FIRST[0]])

    assert READERS[reader](tmp_path) == expected(table, [FIRST[0], SECOND[0]])


@pytest.mark.parametrize("writer", ["pypaimon", "rust"])
@pytest.mark.parametrize("bucket", ["2", "-1"])
def test_tables_are_written_in_turn(bucket: str, writer: str, tmp_path: Path) -> None:
    table = create(tmp_path, bucket=bucket)
    other = peer(writer)
    write(table, FIRST)
    other.write(tmp_path, NAME, rows_of(table, SECOND[1:]))
    write(table, [(5, "wed", 55, None, None, "ours"), FIRST[0]])
    other.write(tmp_path, NAME, rows_of(table, [(5, "wed", 56, None, None, "theirs")]))
    write(table, [FIRST[2]], row_kind="-D")

    rows = [FIRST[0], SECOND[3], SECOND[2], FIRST[4], (5, "wed", 56, None, None, "theirs")]
    for reader in READERS.values():
        assert reader(tmp_path) == expected(table, rows)


def test_java_reads_the_changelog_that_we_wrote(tmp_path: Path) -> None:
    table = create(tmp_path, ENGINE_COLUMNS, bucket="1", **{"changelog-producer": "input"})
    write(table, [(1, 1, "a", 1, 1), (1, 2, "b", 1, 1)])
    write(table, [(1, 2, "b", 1, 1)], row_kind="-D")

    options = {"incremental-between": "0,2", "incremental-between-scan-mode": "changelog"}
    found = java_judge().read(tmp_path, NAME, options).rows

    assert sorted(found) == [
        ["+I", 1, 1, "a", 1, 1],
        ["+I", 1, 2, "b", 1, 1],
        ["-D", 1, 2, "b", 1, 1],
    ]
