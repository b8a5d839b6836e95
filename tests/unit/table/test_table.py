"""A table as users hold it: what it says of itself, copies, tags, and coming back to a snapshot."""

from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest

from builders import alter, append, create_table, open_catalog, open_table, rows_of
from emberlake import AtomicType, DataField, Schema, SchemaChange
from emberlake.errors import (
    InvalidIdentifier,
    InvalidOption,
    InvalidState,
    SnapshotNotFound,
    TagAlreadyExists,
    TagNotFound,
    Unsupported,
)
from emberlake.options import TableOptions
from emberlake.store.schemas import SchemaStore
from emberlake.table import Table
from emberlake.types import VectorType
from table_reads import read_ids, read_rows


@pytest.fixture
def table() -> Table:
    """Three snapshots, each with one more row."""
    made = create_table(partition_keys=["day"], options={"bucket": "2", "bucket-key": "id"})
    for number in (1, 2, 3):
        append(made, rows_of([number]))
    return made


# --- what it is -----------------------------------------------------------------------------------


def test_a_table_says_what_it_is(table: Table) -> None:
    assert str(table.identifier) == "db.t"
    assert table.table_path == "/warehouse/db.db/t"
    assert table.field_names == ["id", "day"]
    assert [str(field) for field in table.fields] == ["id BIGINT", "day STRING"]
    assert table.primary_keys == []
    assert table.partition_keys == ["day"]
    assert table.is_primary_key_table is False
    assert table.options["bucket"] == "2"
    assert table.table_schema.id == 0
    assert table.comment() is None
    assert table.snapshot_manager().latest_id() == 3


def test_the_repr_of_a_table_reads_like_a_description(table: Table) -> None:
    assert repr(table).split("\n") == [
        "Table db.t at /warehouse/db.db/t",
        "  id BIGINT",
        "  day STRING",
        "  partitioned by day",
        "  bucket = 2",
        "  bucket-key = id",
    ]


def test_a_repr_stays_short() -> None:
    table = create_table(options={f"some.option.{n}": str(n) for n in range(9)})

    assert repr(table).endswith("and 3 more options")


def test_two_handles_of_one_table_are_equal(table: Table) -> None:
    same = open_catalog(table.store.storage).get_table("db.t")

    assert same == table
    assert table.copy({"scan.snapshot-id": 1}) != table


def test_what_a_table_hands_out_cannot_change_it(table: Table) -> None:
    table.fields.clear()
    table.field_names.clear()
    table.partition_keys.append("id")

    assert table.field_names == ["id", "day"]
    assert table.partition_keys == ["day"]


# --- copies ---------------------------------------------------------------------------------------


def test_a_copy_has_options_of_its_own(table: Table) -> None:
    copied = table.copy({"target-file-size": "1 mb", "dynamic-partition-overwrite": False})

    assert copied.options["target-file-size"] == "1 mb"
    assert copied.options["dynamic-partition-overwrite"] == "false"
    assert "target-file-size" not in table.options
    assert "target-file-size" not in copied.copy({"target-file-size": None}).options
    assert open_catalog(table.store.storage).get_table("db.t").options == table.options


@pytest.mark.parametrize(
    "options",
    [
        {"bucket": "4"},
        {"bucket": None},
        {"bucket-key": "day"},
        {"bucket-function.type": "mod"},
        {"merge-engine": "first-row"},
        {"primary-key": "id"},
        {"partition": "id"},
        {"type": "format-table"},
        {"path": "/elsewhere"},
        {"data-file.path-directory": "data"},
        {"row-tracking.enabled": "true"},
        {"target-file-size": "many"},
        {"scan.mode": "latest", "file.format": "parquet", "bucket": "-1"},
    ],
)
def test_a_copy_cannot_change_how_the_rows_are_understood(
    table: Table, options: dict[str, object]
) -> None:
    with pytest.raises(InvalidOption):
        table.copy(options)


def test_saying_what_is_so_anyway_is_no_change(table: Table) -> None:
    assert table.copy({"bucket": 2, "partition": "day", "type": "table"}).options["bucket"] == "2"


def test_a_table_at_another_snapshot_is_not_written_to(table: Table) -> None:
    for options in ({"scan.snapshot-id": 1}, {"incremental-between": "1,2"}):
        then = table.copy(options)

        with pytest.raises(InvalidState, match="write to the table without scan options"):
            then.new_batch_write_builder()
        with pytest.raises(InvalidState):
            then.new_stream_write_builder()
    assert read_ids(table) == [1, 2, 3]


def test_a_table_knows_its_primary_key() -> None:
    catalog = open_catalog(create_table().store.storage)
    columns = pa.schema([pa.field("id", pa.int64(), nullable=False), pa.field("v", pa.int64())])
    catalog.create_table("db.k", Schema.from_pyarrow_schema(columns, primary_keys=["id"]))

    assert catalog.get_table("db.k").is_primary_key_table


# --- tags -----------------------------------------------------------------------------------------


def test_tags_are_created_listed_renamed_and_deleted(table: Table) -> None:
    table.create_tag("latest")
    table.create_tag("early", 1)

    assert table.list_tags() == ["early", "latest"]
    assert sorted(r["id"] for r in read_rows(table.copy({"scan.tag-name": "early"}))) == [1]
    table.rename_tag("early", "first")
    assert table.list_tags() == ["first", "latest"]
    assert table.delete_tag("first") is True
    assert table.delete_tag("first") is False
    assert table.list_tags() == ["latest"]


def test_tags_that_cannot_be_are_refused(table: Table) -> None:
    table.create_tag("taken")

    with pytest.raises(TagAlreadyExists):
        table.create_tag("taken", 1)
    table.create_tag("taken", 1, ignore_if_exists=True)
    assert sorted(r["id"] for r in read_rows(table.copy({"scan.tag-name": "taken"}))) == [1, 2, 3]
    with pytest.raises(SnapshotNotFound):
        table.create_tag("future", 99)
    with pytest.raises(TagNotFound):
        table.rename_tag("nothing", "something")
    for name in ("", " ", "../evil", "a/b"):
        with pytest.raises(InvalidIdentifier):
            table.create_tag(name)
    with pytest.raises(SnapshotNotFound):
        create_table().create_tag("empty")
    assert table.list_tags() == ["taken"]


def test_a_tag_may_look_like_a_snapshot_id(table: Table) -> None:
    table.create_tag("17", 1)

    assert table.list_tags() == ["17"]
    assert table.to_arrow(tag="17").num_rows == table.to_arrow(snapshot=1).num_rows


# --- rollback -------------------------------------------------------------------------------------


@pytest.mark.parametrize("target", [1, "one"])
def test_a_rollback_makes_an_earlier_snapshot_the_latest(table: Table, target: int | str) -> None:
    table.create_tag("one", 1)
    table.create_tag("three", 3)

    table.rollback_to(target)

    assert read_ids(table) == [1]
    assert table.list_tags() == ["one"]
    append(table, rows_of([9]))
    assert read_ids(table) == [1, 9]
    latest = table.latest_snapshot()
    assert latest is not None
    assert latest.id == 2


def test_a_rollback_to_nowhere_changes_nothing(table: Table) -> None:
    with pytest.raises(SnapshotNotFound):
        table.rollback_to(7)
    with pytest.raises(TagNotFound):
        table.rollback_to("nothing")

    assert read_ids(table) == [1, 2, 3]


def test_a_schema_that_came_later_stays_after_a_rollback(table: Table) -> None:
    altered = alter(table, SchemaChange.add_column("v", AtomicType("INT")))

    altered.rollback_to(1)

    assert read_rows(altered) == [{"id": 1, "day": "mon", "v": None}]


# --- tables of others -----------------------------------------------------------------------------


def as_others_made_it(table: Table, **changes: Any) -> Table:
    """The table with a schema that only another engine would have given it."""
    schema = replace(table.table_schema, id=table.table_schema.id + 1, **changes)
    assert SchemaStore(table.store.storage, table.store.layout).create(schema)
    return open_table(table.store.storage)


def test_columns_of_types_that_are_not_implemented_are_described_and_refused_by_name() -> None:
    types = {
        "v": AtomicType("VARIANT"),
        "b": AtomicType("BLOB"),
        "e": VectorType(True, AtomicType("FLOAT"), 3),
    }
    table = create_table()
    append(table, [{"id": 1, "day": "mon"}])
    new = (DataField(10 + i, name, kind) for i, (name, kind) in enumerate(types.items()))
    table = as_others_made_it(table, fields=(*table.fields, *new))

    assert "v VARIANT\n  b BLOB\n  e VECTOR<FLOAT, 3>" in repr(table)
    assert read_rows(table, columns=["day"]) == [{"day": "mon"}]
    for name, kind in types.items():
        with pytest.raises(Unsupported, match=f"cannot be read yet: {name} {kind}"):
            table.new_read_builder().with_projection(["day", name]).new_read()
    with pytest.raises(Unsupported, match=r"cannot be read yet: v VARIANT, b BLOB, e VECTOR"):
        table.new_read_builder().new_read()
    with pytest.raises(Unsupported, match=r"cannot be read yet: v VARIANT, b BLOB, e VECTOR"):
        table.new_stream_read_builder().new_read()
    with pytest.raises(Unsupported, match=r"cannot be written yet: v VARIANT, b BLOB, e VECTOR"):
        table.new_batch_write_builder().new_write()


def test_options_that_are_not_implemented_are_described_and_refused_when_used() -> None:
    table = create_table()
    options = TableOptions({**table.options, "scan.fallback-branch": "b"})
    table = as_others_made_it(table, options=options)

    assert "scan.fallback-branch = b" in repr(table)
    with pytest.raises(Unsupported, match="cannot be read: scan"):
        table.new_read_builder().new_scan()
    with pytest.raises(Unsupported, match="cannot be written: scan"):
        table.new_batch_write_builder().new_write()
