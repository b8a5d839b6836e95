"""Writes in one call whose rows do not all fit."""

import json

import pyarrow as pa
import pytest

from emberlake import CatalogFactory, DataMismatch, InvalidInput, Table

COLUMNS = pa.schema([pa.field("id", pa.int32(), nullable=False), ("price", pa.float64())])
# Text that is no number, a null where none may be, a number that is too large.
MIXED = pa.table({"id": [1, 2, None, 1 << 40], "price": ["9.5", "cheap", "1", "2"]})


@pytest.fixture
def catalog(tmp_path):
    catalog = CatalogFactory.create({"warehouse": str(tmp_path)})
    catalog.create_database("db")
    catalog.create_table("db.t", COLUMNS)
    catalog.create_table("db.keyed", COLUMNS, primary_keys=["id"], options={"bucket": "1"})
    return catalog


@pytest.mark.parametrize(
    ("name", "write", "arguments"),
    [
        ("db.t", "append", {}),
        ("db.t", "overwrite", {}),
        ("db.t", "upsert", {"on": ["id"]}),
        ("db.keyed", "append", {}),
        ("db.keyed", "upsert", {}),
    ],
)
def test_rows_that_do_not_fit_go_to_a_table_with_the_reason(catalog, name, write, arguments):
    table = catalog.get_table(name)

    done = getattr(table, write)(MIXED, on_bad_rows="ops.bad", **arguments)

    assert (done.rows_added, done.rows_rejected) == (1, 3)
    assert table.to_arrow().to_pylist() == [{"id": 1, "price": 9.5}]
    kept = catalog.get_table("ops.bad").to_arrow().to_pylist()
    assert [json.loads(row["row"])["id"] for row in kept] == [2, None, 1 << 40]
    assert [row["reason"] for row in kept] == [
        "price: 'cheap' is not a DOUBLE",
        f"id: is null, and is {'in the primary key' if name == 'db.keyed' else 'NOT NULL'}",
        "id: 1099511627776 does not fit INT",
    ]
    assert {row["table_name"] for row in kept} == {name}


def test_rows_that_do_not_fit_are_skipped_or_fail_the_write(catalog):
    table = catalog.get_table("db.t")

    with pytest.raises(DataMismatch):
        table.append(MIXED)
    done = table.append(MIXED.to_reader(), on_bad_rows="skip")

    assert (done.rows_added, done.rows_rejected, table.count()) == (1, 3, 1)
    assert catalog.list_databases() == ["db"]


def test_a_table_can_be_given_itself_which_needs_no_catalog(catalog):
    catalog.get_table("db.t").append(MIXED, on_bad_rows="ops.bad")
    kept = catalog.get_table("ops.bad")
    table = Table.from_path(catalog.get_table("db.t").table_path)

    done = table.append(MIXED, on_bad_rows=kept)

    assert (done.rows_rejected, kept.count()) == (3, 6)
    with pytest.raises(InvalidInput, match="opened without a catalog"):
        table.append(MIXED, on_bad_rows="ops.bad")
    with pytest.raises(DataMismatch, match="cannot keep bad rows"):
        table.append(MIXED, on_bad_rows=catalog.get_table("db.t"))


def test_new_columns_come_with_the_rows_that_fit(catalog):
    table = catalog.get_table("db.t")
    wide = MIXED.append_column("note", pa.array(["a", "b", "c", "d"]))

    done = table.append(wide.drop_columns(["price"]), merge_schema=True, on_bad_rows="skip")

    assert (done.rows_added, done.rows_rejected) == (3, 1)  # and BIGINT holds the large number
    assert table.field_names == ["id", "price", "note"]


def test_what_is_wrong_with_all_rows_is_no_matter_of_rows(catalog):
    with pytest.raises(DataMismatch, match="is not a column of the table"):
        catalog.get_table("db.t").append(pa.table({"id": [1], "x": [1]}), on_bad_rows="skip")
