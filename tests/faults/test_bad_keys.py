"""Bad input to tables with a primary key: one typed error, and not a byte of the table changes."""

import pickle
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pyarrow as pa
import pytest

from builders import NAME, open_catalog
from emberlake import Schema, SchemaChange, Table
from emberlake.errors import (
    DataMismatch,
    EmberlakeError,
    InvalidInput,
    InvalidOption,
    InvalidSchema,
    Unsupported,
)
from places import new_storage
from table_reads import files_under

COLUMNS = pa.schema(
    [
        pa.field("id", pa.int64(), nullable=False),
        pa.field("day", pa.string()),
        pa.field("n", pa.int32()),
        pa.field("g", pa.int32()),
        pa.field("name", pa.string()),
    ]
)
ROW = {"id": 1, "day": "mon", "n": 1, "g": 1, "name": "a"}


def schema_of(
    options: Mapping[str, str] | None = None,
    primary_keys: Sequence[str] = ("id",),
    partition_keys: Sequence[str] = (),
) -> Schema:
    return Schema.from_pyarrow_schema(
        COLUMNS,
        partition_keys=list(partition_keys),
        primary_keys=list(primary_keys),
        options={"bucket": "2", **(options or {})},
    )


def create(
    options: Mapping[str, str] | None = None,
    primary_keys: Sequence[str] = ("id",),
    partition_keys: Sequence[str] = (),
) -> Table:
    catalog = open_catalog(new_storage())
    catalog.create_database("db")
    catalog.create_table(NAME, schema_of(options, primary_keys, partition_keys))
    table = catalog.get_table(NAME)
    write(table, [ROW, ROW | {"id": 2}])
    return table


def write(table: Table, rows: Sequence[Mapping[str, Any]] | pa.Table, kind: Any = None) -> None:
    builder = table.new_batch_write_builder()
    with builder.new_write() as writing:
        given = rows if isinstance(rows, pa.Table) else pa.Table.from_pylist(list(rows), COLUMNS)
        writing.write_arrow(given, row_kind=kind)
        builder.new_commit().commit(writing.prepare_commit())


def content(storage: Any) -> dict[str, bytes]:
    return {path: storage.read(path) for path in files_under(storage, "/warehouse")}


def with_kinds(*kinds: Any) -> pa.Table:
    rows = pa.Table.from_pylist([ROW | {"id": n} for n in range(len(kinds))], COLUMNS)
    return rows.append_column("_row_kind", pa.array(kinds))


def nullable(**values: Any) -> pa.Table:
    """A row in which any column can be null."""
    return pa.Table.from_pylist([ROW, ROW | values], pa.schema([(f.name, f.type) for f in COLUMNS]))


# --- writes ---------------------------------------------------------------------------------------

PARTIAL = {"merge-engine": "partial-update"}
BY_KIND = {"rowkind.field": "name"}
WRITES: dict[str, tuple[dict[str, Any], Callable[[Table], object], type[EmberlakeError], str]] = {
    "a null key": ({}, lambda t: write(t, nullable(id=None)), DataMismatch, "id"),
    "a null key of dynamic buckets": (
        {"options": {"bucket": "-1"}},
        lambda t: write(t, nullable(id=None)),
        DataMismatch,
        "id",
    ),
    "a null in the partition of the key": (
        {"primary_keys": ("day", "id"), "partition_keys": ("day",)},
        lambda t: write(t, nullable(day=None)),
        DataMismatch,
        "day",
    ),
    "a key that is missing": (
        {}, lambda t: write(t, pa.table({"n": pa.array([1], pa.int32())})), DataMismatch, "id"),
    "a null key to be deleted": (
        {}, lambda t: write(t, nullable(id=None), "-D"), DataMismatch, "id"),
    "a row kind that is none": ({}, lambda t: write(t, [ROW], "+X"), InvalidInput, "+X"),
    "a row kind of another type": ({}, lambda t: write(t, [ROW], 9), InvalidInput, "9"),
    "a row kind that is none, in a column": (
        {}, lambda t: write(t, with_kinds("+I", "insert")), DataMismatch, "insert"),
    "a row kind that is null": (
        {}, lambda t: write(t, with_kinds("+I", None)), DataMismatch, "None"),
    "row kinds that are numbers": (
        {}, lambda t: write(t, with_kinds(0, 1)), InvalidInput, "_row_kind"),
    "row kinds from two places": (
        {}, lambda t: write(t, with_kinds("+I"), "-D"), InvalidInput, "_row_kind"),
    "row kinds next to rowkind.field": (
        {"options": BY_KIND, "first": False},
        lambda t: write(t, [ROW | {"name": "+I"}], "-D"),
        InvalidInput,
        "rowkind.field",
    ),
    "a rowkind.field that holds none": (
        {"options": BY_KIND, "first": False}, lambda t: write(t, [ROW]), DataMismatch, "'a'"),
    "a delete that the engine does not take": (
        {"options": PARTIAL},
        lambda t: write(t, with_kinds("+I", "-D").set_column(0, "id", [[1, 1]])),
        DataMismatch,
        "partial-update",
    ),
    "a delete of a first row": (
        {"options": {"merge-engine": "first-row"}},
        lambda t: write(t, with_kinds("+I", "-D").set_column(0, "id", [[7, 7]])),
        DataMismatch,
        "first-row",
    ),
    "a sum that does not fit": (
        {"options": {"merge-engine": "aggregation", "fields.n.aggregate-function": "sum"}},
        lambda t: write(t, [ROW | {"n": 2**31 - 1}, ROW]),
        DataMismatch,
        "n",
    ),
    "a value that cannot be taken back": (
        {"options": {"merge-engine": "aggregation", "fields.n.aggregate-function": "max"}},
        lambda t: write(t, with_kinds("+I", "-D").set_column(0, "id", [[1, 1]])),
        DataMismatch,
        "n",
    ),
    "another number of buckets": (
        {}, lambda t: t.copy({"bucket": "4"}), InvalidOption, "bucket"),
    "another merge engine": (
        {}, lambda t: t.copy({"merge-engine": "aggregation"}), InvalidOption, "merge-engine"),
    "an unknown sequence field": (
        {},
        lambda t: open_catalog(t.store.storage).alter_table(
            NAME, [SchemaChange.set_option("sequence.field", "nope")]),
        InvalidSchema,
        "nope",
    ),
    "an unknown aggregate for a new option": (
        {"options": {"merge-engine": "aggregation"}},
        lambda t: open_catalog(t.store.storage).alter_table(
            NAME, [SchemaChange.set_option("fields.n.aggregate-function", "magic")]),
        InvalidSchema,
        "magic",
    ),
    "a column of the key that may be null": (
        {},
        lambda t: open_catalog(t.store.storage).alter_table(
            NAME, [SchemaChange.update_column_nullability("id", True)]),
        InvalidSchema,
        "id",
    ),
    "a drop of a key column": (
        {},
        lambda t: open_catalog(t.store.storage).alter_table(NAME, [SchemaChange.drop_column("id")]),
        InvalidSchema,
        "id",
    ),
    "a drop of the sequence field": (
        {"options": {"sequence.field": "n"}},
        lambda t: open_catalog(t.store.storage).alter_table(NAME, [SchemaChange.drop_column("n")]),
        InvalidSchema,
        "n",
    ),
    "a drop of a column of a sequence group": (
        {"options": {**PARTIAL, "fields.g.sequence-group": "n"}},
        lambda t: open_catalog(t.store.storage).alter_table(NAME, [SchemaChange.drop_column("g")]),
        InvalidSchema,
        "g",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", WRITES)
def test_a_wrong_write_is_reported_and_nothing_is_written(name: str) -> None:
    given, action, error, word = WRITES[name]
    given = dict(given)
    has_rows = given.pop("first", True)
    if has_rows:
        table = create(**given)
    else:
        catalog = open_catalog(new_storage())
        catalog.create_database("db")
        catalog.create_table(NAME, schema_of(**given))
        table = catalog.get_table(NAME)
    before = content(table.store.storage)

    with pytest.raises(EmberlakeError) as caught:
        action(table)

    assert isinstance(caught.value, error)
    assert word in str(caught.value)
    assert content(table.store.storage) == before
    assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)


def test_after_a_null_key_the_writer_goes_on() -> None:
    table = create()
    builder = table.new_batch_write_builder()
    with builder.new_write() as writing:
        writing.write_arrow(pa.Table.from_pylist([ROW | {"id": 8}], COLUMNS))
        with pytest.raises(DataMismatch):
            writing.write_arrow(nullable(id=None))
        writing.write_arrow(pa.Table.from_pylist([ROW | {"id": 9}], COLUMNS))
        builder.new_commit().commit(writing.prepare_commit())

    read = table.new_read_builder()
    ids = read.new_read().to_arrow(read.new_scan().plan().splits()).column("id").to_pylist()
    assert sorted(ids) == [1, 2, 8, 9]


# --- tables ---------------------------------------------------------------------------------------

AGGREGATION = {"merge-engine": "aggregation"}
TABLES: dict[str, tuple[dict[str, Any], type[EmberlakeError], str]] = {
    "an unknown merge engine": (
        {"options": {"merge-engine": "magic"}}, InvalidInput, "magic"),
    "an unknown aggregate": (
        {"options": {**AGGREGATION, "fields.n.aggregate-function": "median"}},
        InvalidInput, "median"),
    "an unknown aggregate for all": (
        {"options": {**AGGREGATION, "fields.default-aggregate-function": "median"}},
        InvalidInput, "median"),
    "an aggregate of a column that is not there": (
        {"options": {**AGGREGATION, "fields.nope.aggregate-function": "sum"}},
        InvalidInput, "nope"),
    "an aggregate that does not take the type": (
        {"options": {**AGGREGATION, "fields.name.aggregate-function": "sum"}},
        InvalidInput, "name"),
    "a column in two sequence groups": (
        {"options": {
            **PARTIAL, "fields.g.sequence-group": "n", "fields.name.sequence-group": "n"}},
        InvalidInput, "n"),
    "a column twice in a sequence group": (
        {"options": {**PARTIAL, "fields.g.sequence-group": "n,n"}}, InvalidInput, "n"),
    "a sequence group of unknown columns": (
        {"options": {**PARTIAL, "fields.g.sequence-group": "nope"}}, InvalidInput, "nope"),
    "a sequence group of the key": (
        {"options": {**PARTIAL, "fields.g.sequence-group": "id"}}, InvalidInput, "id"),
    "an aggregate outside of sequence groups": (
        {"options": {**PARTIAL, "fields.n.aggregate-function": "sum"}}, InvalidInput, "n"),
    "a key that moves between partitions but is never deleted": (
        {"options": {"bucket": "-1", "ignore-delete": "true"}, "primary_keys": ("id",),
         "partition_keys": ("day",)},
        Unsupported, "day"),
    "a key of the partition alone": (
        {"primary_keys": ("day",), "partition_keys": ("day",)}, InvalidInput, "partition"),
    "a key twice": ({"primary_keys": ("id", "id")}, InvalidInput, "id"),
    "a key that is no column": ({"primary_keys": ("nope",)}, InvalidInput, "nope"),
    "a bucket key outside of the key": ({"options": {"bucket-key": "n"}}, InvalidInput, "n"),
    "no buckets": ({"options": {"bucket": "0"}}, InvalidInput, "bucket"),
    "a sequence field that is no column": (
        {"options": {"sequence.field": "nope"}}, InvalidInput, "nope"),
    "a sequence field of a first row": (
        {"options": {"merge-engine": "first-row", "sequence.field": "n"}},
        InvalidInput, "sequence.field"),
    "a direction that is none": (
        {"options": {"sequence.field": "n", "sequence.field.sort-order": "sideways"}},
        InvalidInput, "sideways"),
    "a row kind field that is no text": (
        {"options": {"rowkind.field": "n"}}, InvalidInput, "rowkind.field"),
    "a changelog producer that is none": (
        {"options": {"changelog-producer": "magic"}}, InvalidInput, "magic"),
    "deletes that are ignored and remove rows": (
        {"options": {
            **PARTIAL, "ignore-delete": "true", "partial-update.remove-record-on-delete": "true"}},
        InvalidInput, "ignore-delete"),
}  # fmt: skip


@pytest.mark.parametrize("name", TABLES)
def test_a_table_that_cannot_be_is_refused_with_the_reason(name: str) -> None:
    given, error, word = TABLES[name]
    catalog = open_catalog(new_storage())
    catalog.create_database("db")
    before = content(catalog.storage)

    with pytest.raises(EmberlakeError) as caught:
        catalog.create_table(NAME, schema_of(**given))

    assert isinstance(caught.value, error)
    assert word in str(caught.value)
    assert content(catalog.storage) == before
    assert catalog.list_tables("db") == []
