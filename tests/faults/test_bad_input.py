"""Bad input of every kind: one typed error that says what, and not a byte of the table changes."""

import pickle
from collections.abc import Callable
from decimal import Decimal

import pyarrow as pa
import pytest

from builders import NAME, append, create_table, open_catalog, overwrite, rows_of
from emberlake import AtomicType, Schema, SchemaChange
from emberlake.errors import (
    ColumnNotFound,
    DataMismatch,
    EmberlakeError,
    InvalidIdentifier,
    InvalidInput,
    InvalidOption,
    InvalidPredicate,
    InvalidSchema,
    SnapshotNotFound,
    TableNotFound,
    TagNotFound,
)
from emberlake.table import Table
from table_reads import files_under, read_rows

COLUMNS = pa.schema(
    [
        pa.field("id", pa.int64(), nullable=False),
        pa.field("n", pa.int32()),
        pa.field("price", pa.decimal128(6, 2)),
        pa.field("at", pa.timestamp("ms")),
        pa.field("name", pa.string()),
        pa.field("day", pa.date32()),
    ]
)


def a_table() -> Table:
    table = create_table(columns=COLUMNS, partition_keys=["day"])
    append(table, pa.Table.from_pylist([{"id": 1}, {"id": 2}], COLUMNS))
    return table


def write(table: Table, **columns: pa.Array) -> None:
    append(table, pa.table(columns))


def commit(table: Table):
    return table.new_batch_write_builder().new_commit()


def catalog_of(table: Table):
    return open_catalog(table.store.storage)


def column(kind: pa.DataType, *values: object) -> pa.Array:
    return pa.array(values, kind)


IDS = column(pa.int64(), 7)

BAD: dict[str, tuple[Callable[[Table], object], type[EmberlakeError], str]] = {
    # --- reads
    "an unknown column in a projection": (
        lambda t: read_rows(t, columns=["id", "nope"]), ColumnNotFound, "nope"),
    "an unknown column in a filter": (
        lambda t: read_rows(t, "nope = 1"), ColumnNotFound, "nope"),
    "an unknown column in the predicate builder": (
        lambda t: t.new_read_builder().new_predicate_builder().equal("nope", 1),
        ColumnNotFound, "nope"),
    "a filter that is no filter": (lambda t: read_rows(t, "id >< 1"), InvalidPredicate, "id"),
    "a literal that is no number": (lambda t: read_rows(t, "id = 'x'"), InvalidPredicate, "'x'"),
    "a literal that is no date": (
        lambda t: read_rows(t, "day = DATE '2026-13-01'"), InvalidPredicate, "2026-13-01"),
    "a pattern on a number": (lambda t: read_rows(t, "id LIKE '1%'"), InvalidPredicate, "id"),
    "a snapshot that is not there": (
        lambda t: t.copy({"scan.snapshot-id": 99}), SnapshotNotFound, "99"),
    "a tag that is not there": (lambda t: t.copy({"scan.tag-name": "x"}), TagNotFound, "x"),
    "an option that cannot be read": (
        lambda t: t.copy({"source.split.target-size": "much"}), InvalidOption, "much"),
    "a limit below zero": (lambda t: read_rows(t, limit=-1), InvalidInput, "-1"),
    # --- writes
    "an unknown column in the data": (
        lambda t: write(t, id=IDS, nope=IDS), DataMismatch, "nope"),
    "a number that does not fit": (
        lambda t: write(t, id=IDS, n=column(pa.int64(), 2**40)), DataMismatch, "n"),
    "a fraction for a whole number": (
        lambda t: write(t, id=IDS, n=column(pa.float64(), 1.5)), DataMismatch, "n"),
    "too many digits": (
        lambda t: write(t, id=IDS, price=column(pa.decimal128(10, 3), Decimal("1.005"))),
        DataMismatch, "price"),
    "a time that would be cut": (
        lambda t: write(t, id=IDS, at=column(pa.timestamp("us"), 1)), DataMismatch, "at"),
    "text for a number": (
        lambda t: write(t, id=IDS, n=column(pa.string(), "x")), DataMismatch, "n"),
    "a null where none may be": (
        lambda t: write(t, id=column(pa.int64(), None)), DataMismatch, "id"),
    "a column missing where none may be null": (
        lambda t: write(t, n=column(pa.int32(), 1)), DataMismatch, "id"),
    # --- partitions
    "a partition literal of the wrong type": (
        lambda t: commit(t).truncate_partitions([{"day": "someday"}]), InvalidInput, "someday"),
    "a partition column that is none": (
        lambda t: commit(t).truncate_partitions([{"name": "x"}]), EmberlakeError, "name"),
    "a static partition of the wrong type": (
        lambda t: overwrite(t, [], {"day": 1.5}), InvalidInput, "1.5"),
    "a partition to drop that is none": (
        lambda t: catalog_of(t).drop_partitions(NAME, [{"id": "1"}]), EmberlakeError, "id"),
    # --- the catalog
    "a name without a database": (
        lambda t: catalog_of(t).get_table("t"), InvalidIdentifier, "t"),
    "a name that leads elsewhere": (
        lambda t: catalog_of(t).get_table("db.../../t"), InvalidIdentifier, "../../t"),
    "a table that is not there": (
        lambda t: catalog_of(t).get_table("db.other"), TableNotFound, "db.other"),
    "a table that cannot be": (
        lambda t: catalog_of(t).create_table(
            "db.new", Schema.from_pyarrow_schema(COLUMNS, partition_keys=["nope"])),
        InvalidSchema, "nope"),
    "a narrower type": (
        lambda t: catalog_of(t).alter_table(
            NAME, [SchemaChange.update_column_type("id", AtomicType("INT"))]),
        InvalidSchema, "id"),
    "a drop of a partition column": (
        lambda t: catalog_of(t).alter_table(NAME, [SchemaChange.drop_column("day")]),
        InvalidSchema, "day"),
    "a change of a column that is not there": (
        lambda t: catalog_of(t).alter_table(NAME, [SchemaChange.rename_column("nope", "x")]),
        ColumnNotFound, "nope"),
    "a rollback to nowhere": (lambda t: t.rollback_to(9), SnapshotNotFound, "9"),
    "a tag without a name": (lambda t: t.create_tag(" "), InvalidIdentifier, "tag"),
}  # fmt: skip


def content(table: Table) -> dict[str, bytes]:
    storage = table.store.storage
    return {path: storage.read(path) for path in files_under(storage, "/warehouse")}


@pytest.mark.parametrize("name", BAD)
def test_bad_input_is_one_typed_error_and_the_table_stays_as_it_is(name: str) -> None:
    action, error, word = BAD[name]
    table = a_table()
    before = content(table)

    with pytest.raises(EmberlakeError) as caught:
        action(table)

    assert isinstance(caught.value, error)
    assert word in str(caught.value)
    assert content(table) == before
    assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)


def test_all_that_is_wrong_with_data_is_in_one_error() -> None:
    table = a_table()

    with pytest.raises(DataMismatch) as caught:
        write(
            table,
            n=column(pa.int64(), 2**40),
            price=column(pa.string(), "x"),
            other=IDS,
            another=IDS,
        )

    for name in ("id", "n", "price", "other", "another"):
        assert name in str(caught.value)
    assert read_rows(table, columns=["id"]) == [{"id": 1}, {"id": 2}]


def test_after_bad_input_good_input_goes_on_working() -> None:
    table = create_table()
    for where in ("nope = 1", "id ="):
        with pytest.raises(EmberlakeError):
            read_rows(table, where)
    with pytest.raises(DataMismatch):
        append(table, pa.table({"id": ["x"]}))

    append(table, rows_of([1]))

    assert read_rows(table) == rows_of([1])
