"""Kinds of tables, both ways: partitions, buckets, overwrites, evolved schemas, many commits."""

import datetime as dt
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from canonical import Row, canonical_rows, sorted_rows
from emberlake import AtomicType, CatalogFactory, DataField, Schema, SchemaChange
from emberlake.catalog import Catalog
from emberlake.types import arrow_schema
from interop.judges import JavaJudge, Peer
from interop.samples import ATOMIC, Sample

pytestmark = pytest.mark.interop

# What can decide a bucket; floats too, though nobody should.
BUCKET_KEYS = [s for s in ATOMIC if s.name != "boolean"]
# Null keys of these differ by design: Java reserves room for them in the row, the others do not.
JAVA_ALONE_WITH_NULL = ("decimal30", "decimal38", "timestamp6", "timestamp9")

PARTITIONS: dict[str, tuple[str, list[Any]]] = {
    "string": ("STRING", ["a", "x=1/y", "50% off", "naïve ☃", "", None]),
    "int": ("INT", [1, -2, None]),
    "bigint": ("BIGINT", [2**40, None]),
    "date": ("DATE", [dt.date(2026, 6, 26), dt.date(1969, 1, 1), None]),
    "boolean": ("BOOLEAN", [True, False]),
    "decimal": ("DECIMAL(10, 2)", [Decimal("1.50"), Decimal("-0.01")]),
    "timestamp": ("TIMESTAMP(3)", [dt.datetime(2026, 6, 26, 10, 0), dt.datetime(2000, 1, 1)]),  # noqa: DTZ001
}


@pytest.mark.parametrize("sample", BUCKET_KEYS, ids=str)
def test_our_buckets_are_those_of_java_and_the_others(
    sample: Sample, java: JavaJudge, rust: Peer, pypaimon: Peer, tmp_path: Path
) -> None:
    options = {"bucket": "7", "bucket-key": "c"}
    catalog = a_catalog(tmp_path, {"db.ours": Schema(sample.fields, options=options)})
    write(catalog, "db.ours", sample.data)
    found = java.read(tmp_path, "db.ours")
    ours = {row[1]: bucket for row, bucket in zip(found.rows, found.buckets, strict=True)}
    assert buckets_of(catalog, "db.ours") == ours

    for peer in (pypaimon, rust):
        name = f"db.{peer.engine}"
        catalog.create_table(name, Schema(sample.fields, options=options))
        peer.write(tmp_path, name, sample.data)
        theirs = buckets_of(catalog, name)
        if peer.engine == "pypaimon" and sample.name.startswith("timestamp9"):
            assert theirs != ours, "pypaimon hashed microseconds only; it seems mended"
            continue
        if sample.name.startswith(JAVA_ALONE_WITH_NULL):
            null_id = sample.data.num_rows - 1
            theirs[null_id] = ours[null_id]
        assert theirs == ours, peer.engine


@pytest.mark.parametrize("legacy", ["true", "false"])
@pytest.mark.parametrize("kind", PARTITIONS)
def test_partitions_of_every_type_are_found_by_everybody(
    kind: str, legacy: str, java: JavaJudge, rust: Peer, pypaimon: Peer, tmp_path: Path
) -> None:
    text, values = PARTITIONS[kind]
    fields = [DataField(0, "id", AtomicType("INT")), DataField(1, "p", AtomicType(text))]
    schema = Schema(fields, ["p"], options={"partition.legacy-name": legacy})
    catalog = a_catalog(tmp_path, {"db.t": schema})
    data = pa.table(
        {"id": range(len(values) * 2), "p": values * 2}, schema=arrow_schema(tuple(fields))
    )

    write(catalog, "db.t", data)

    expected = sorted_rows(canonical_rows(data))
    assert our_rows(catalog, "db.t") == expected
    assert java.rows(tmp_path, "db.t") == expected
    assert pypaimon.rows(tmp_path, "db.t") == expected
    assert rust.rows(tmp_path, "db.t") == expected


def test_engines_take_turns_on_one_table(
    java: JavaJudge, rust: Peer, pypaimon: Peer, tmp_path: Path
) -> None:
    fields = [
        DataField(0, "id", AtomicType("BIGINT")),
        DataField(1, "v", AtomicType("STRING")),
        DataField(2, "dt", AtomicType("STRING")),
    ]
    schema = Schema(fields, ["dt"], options={"bucket": "2", "bucket-key": "id"})
    catalog = a_catalog(tmp_path, {"db.t": schema})
    rows: list[pa.Table] = []
    for turn in range(12):
        data = pa.table(
            {
                "id": range(turn * 10, turn * 10 + 10),
                "v": [f"turn {turn}"] * 10,
                "dt": ["a", "b"] * 5,
            },
            schema=arrow_schema(tuple(fields)),
        )
        if turn % 3 == 0:
            write(catalog, "db.t", data)
        else:
            (pypaimon if turn % 3 == 1 else rust).write(tmp_path, "db.t", data)
        rows.append(data)

    expected = sorted_rows(canonical_rows(pa.concat_tables(rows)))
    assert our_rows(catalog, "db.t") == expected
    assert java.rows(tmp_path, "db.t") == expected
    assert pypaimon.rows(tmp_path, "db.t") == expected
    assert rust.rows(tmp_path, "db.t") == expected


def test_others_read_what_we_overwrote_and_merged(
    java: JavaJudge, rust: Peer, pypaimon: Peer, tmp_path: Path
) -> None:
    fields = [DataField(0, "id", AtomicType("INT")), DataField(1, "dt", AtomicType("DATE"))]
    schema = Schema(fields, ["dt"], options={"manifest.merge-min-count": "3"})
    catalog = a_catalog(tmp_path, {"db.t": schema})
    days = [dt.date(2026, 6, 26), dt.date(2026, 6, 27)]
    for turn in range(10):
        data = pa.table({"id": [turn, turn + 100], "dt": days}, schema=arrow_schema(tuple(fields)))
        write(catalog, "db.t", data)
    builder = catalog.get_table("db.t").new_batch_write_builder().overwrite({"dt": "2026-06-27"})
    with builder.new_write() as w, builder.new_commit() as commit:
        w.write_arrow(pa.table({"id": [-1], "dt": days[1:]}, schema=arrow_schema(tuple(fields))))
        commit.commit(w.prepare_commit())

    expected = our_rows(catalog, "db.t")
    assert len(expected) == 11
    assert java.rows(tmp_path, "db.t") == expected
    assert pypaimon.rows(tmp_path, "db.t") == expected
    assert rust.rows(tmp_path, "db.t") == expected


def test_others_read_an_evolved_table_as_we_do(
    java: JavaJudge, rust: Peer, pypaimon: Peer, tmp_path: Path
) -> None:
    fields = [
        DataField(0, "id", AtomicType("INT")),
        DataField(1, "old", AtomicType("STRING")),
        DataField(2, "gone", AtomicType("DOUBLE")),
    ]
    catalog = a_catalog(tmp_path, {"db.t": Schema(fields)})
    write(catalog, "db.t", pa.table({"id": pa.array([1, 2], pa.int32()), "old": ["a", None]}))
    catalog.alter_table(
        "db.t",
        [
            SchemaChange.rename_column("old", "name"),
            SchemaChange.drop_column("gone"),
            SchemaChange.update_column_type("id", AtomicType("BIGINT")),
            SchemaChange.add_column("added", AtomicType("DECIMAL(10, 2)")),
        ],
    )
    write(catalog, "db.t", pa.table({"id": [2**40], "name": ["b"], "added": [Decimal("1.50")]}))

    expected = our_rows(catalog, "db.t")
    assert [row[1:] for row in expected] == [[1, "a", None], [2**40, "b", "1.50"], [2, None, None]]
    assert java.rows(tmp_path, "db.t") == expected
    assert pypaimon.rows(tmp_path, "db.t") == expected
    assert rust.rows(tmp_path, "db.t") == expected


def a_catalog(warehouse: Path, tables: dict[str, Schema]) -> Catalog:
    catalog = CatalogFactory.create({"warehouse": str(warehouse)})
    catalog.create_database("db")
    for name, schema in tables.items():
        catalog.create_table(name, schema)
    return catalog


def write(catalog: Catalog, name: str, data: pa.Table) -> None:
    builder = catalog.get_table(name).new_batch_write_builder()
    with builder.new_write() as w, builder.new_commit() as commit:
        w.write_arrow(data)
        commit.commit(w.prepare_commit())


def buckets_of(catalog: Catalog, name: str) -> dict[int, int]:
    """The bucket of every row, by its id."""
    builder = catalog.get_table(name).new_read_builder().with_projection(["id"])
    return {
        row_id: split.bucket
        for split in builder.new_scan().plan().splits()
        for row_id in builder.new_read().to_arrow([split]).column("id").to_pylist()
    }


def our_rows(catalog: Catalog, name: str) -> list[Row]:
    builder = catalog.get_table(name).new_read_builder()
    return sorted_rows(
        canonical_rows(builder.new_read().to_arrow(builder.new_scan().plan().splits()))
    )
