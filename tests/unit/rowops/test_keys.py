"""Rows are put and deleted by their primary key, in one commit."""

import polars as pl
import pyarrow as pa
import pytest

from builders import NUMBERED, create_key_table, create_table, numbered
from emberlake.errors import DataMismatch, InvalidInput, Unsupported


def keys_of(table):
    return sorted(table.to_arrow(["id"]).column("id").to_pylist())


def test_an_upsert_puts_rows_in_the_place_of_those_with_their_keys():
    table = create_key_table(NUMBERED)
    table.upsert(pa.Table.from_pylist(numbered([1, 2], "a")))

    result = table.upsert(pa.Table.from_pylist(numbered([2, 3], "b")), on=["id"])

    assert result.snapshot_id == 2
    assert dict(table.to_arrow(["id", "v"]).to_pandas().values) == {1: "a1", 2: "b2", 3: "b3"}


def test_an_upsert_needs_a_key_and_no_other():
    with pytest.raises(Unsupported, match=r"append\(\) adds rows"):
        create_table().upsert(pa.table({"id": [1]}))
    with pytest.raises(InvalidInput, match="primary key id, not by v"):
        create_key_table(NUMBERED).upsert(pa.table({"id": [1]}), on=["v"])


@pytest.mark.parametrize(
    "keys",
    [
        pa.table({"id": [2, 7]}),
        pa.table({"v": ["x", "y"], "id": [2, 7], "unknown": [1, 1]}),
        pa.table({"id": [2, 7]}).to_pandas(),
        pl.DataFrame({"id": [2, 7], "n": [1, 2]}),
    ],
    ids=["keys", "whole rows", "pandas", "polars"],
)
def test_rows_are_deleted_by_their_keys(keys):
    table = create_key_table(NUMBERED)
    table.append(pa.Table.from_pylist(numbered([1, 2, 3])))

    result = table.delete_keys(keys)

    assert result.snapshot_id == 2
    assert keys_of(table) == [1, 3]


def test_keys_are_deleted_in_tables_that_have_some():
    with pytest.raises(Unsupported, match="primary key"):
        create_table().delete_keys(pa.table({"id": [1]}))
    with pytest.raises(DataMismatch, match="id"):
        create_key_table(NUMBERED).delete_keys(pa.table({"v": ["a"]}))


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"ignore-delete": "true"}, "ignores deletes"),
        ({"merge-engine": "aggregation", "fields.n.aggregate-function": "sum"}, "does not remove"),
        ({"merge-engine": "first-row", "ignore-delete": "true"}, "ignores deletes"),
        ({"rowkind.field": "v"}, "tells what a row does"),
    ],
)
def test_keys_are_not_deleted_where_a_delete_would_remove_nothing(options, why):
    with pytest.raises(Unsupported, match=why):
        create_key_table(NUMBERED, **options).delete_keys(pa.table({"id": [1]}))


def test_keys_are_deleted_in_the_order_that_the_table_has():
    table = create_key_table(NUMBERED, **{"sequence.field": "n"})
    table.append(pa.Table.from_pylist(numbered([1, 2], number=5)))

    with pytest.raises(DataMismatch, match="n: left out, and says which record is newer"):
        table.delete_keys(pa.table({"id": [1]}))
    table.delete_keys(pa.table({"id": [1, 2], "n": [9, 1]}))

    assert keys_of(table) == [2]


def test_a_first_row_is_not_upserted():
    table = create_key_table(NUMBERED, **{"merge-engine": "first-row"})

    with pytest.raises(Unsupported, match="keeps the row that it has"):
        table.upsert(pa.Table.from_pylist(numbered([1])))
