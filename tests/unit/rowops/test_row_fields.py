"""Fields of ROW columns are set: by updates and by merges, in every kind of table."""

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

from builders import create_key_table, create_table
from emberlake.errors import ColumnNotFound, DataMismatch, EmberlakeError, InvalidExpression
from emberlake.table import Table
from tracked_tables import EVOLVING, TRACKED, VECTORS

GEO = pa.struct([("lat", pa.float64()), ("lon", pa.float64())])
ADDRESS = pa.struct([("city", pa.string()), ("zip", pa.int32()), ("geo", GEO)])
COLUMNS = pa.schema([("id", pa.int64()), ("address", ADDRESS), ("n", pa.int32())])
ROWS: list[dict[str, Any]] = [
    {"id": 1, "address": {"city": "a", "zip": 1, "geo": {"lat": 1.0, "lon": 2.0}}, "n": 1},
    {"id": 2, "address": None, "n": 2},
    {"id": 3, "address": {"city": "c", "zip": None, "geo": None}, "n": 3},
]
KINDS: dict[str, Callable[[], Table]] = {
    "rewrite": lambda: create_table(columns=COLUMNS),
    "vectors": lambda: create_table(columns=COLUMNS, options=VECTORS),
    "tracked": lambda: create_table(columns=COLUMNS, options={**TRACKED, **VECTORS}),
    "columns": lambda: create_table(columns=COLUMNS, options=EVOLVING),
    "keys": lambda: create_key_table(COLUMNS),
}
every_kind = pytest.mark.parametrize("kind", KINDS)


def filled(kind: str = "rewrite") -> Table:
    table = KINDS[kind]()
    table.append(pa.Table.from_pylist(ROWS, COLUMNS))
    return table


def addresses(table: Table) -> list[dict[str, Any] | None]:
    rows = sorted(table.to_arrow().to_pylist(), key=lambda row: row["id"])
    return [row["address"] for row in rows]


@every_kind
def test_an_update_sets_a_field_and_keeps_the_others(kind: str) -> None:
    table = filled(kind)

    result = table.update({"address.city": "'Rome'", "n": "n + 1"}, "id <> 3")

    assert result.rows_updated == 2
    assert addresses(table) == [
        {**ROWS[0]["address"], "city": "Rome"},
        {"city": "Rome", "zip": None, "geo": None},  # it was null
        ROWS[2]["address"],
    ]
    assert sorted(table.to_arrow().column("n").to_pylist()) == [2, 3, 3]


def test_fields_are_set_together_at_any_depth() -> None:
    table = filled()

    table.update({"address.geo.lat": 0.5, "address.zip": "address.zip + id", "address.city": None})

    assert addresses(table) == [
        {"city": None, "zip": 2, "geo": {"lat": 0.5, "lon": 2.0}},
        {"city": None, "zip": None, "geo": {"lat": 0.5, "lon": None}},
        {"city": None, "zip": None, "geo": {"lat": 0.5, "lon": None}},
    ]


def test_all_fields_can_be_set_to_constants() -> None:
    table = filled()

    table.update({"address.geo.lat": 1, "address.geo.lon": "2 + 2"}, "id = 2")

    assert addresses(table)[1] == {"city": None, "zip": None, "geo": {"lat": 1.0, "lon": 4.0}}


def test_a_field_that_is_a_row_is_set_as_a_whole() -> None:
    table = filled()

    table.update({"address.geo": {"lat": 9.0, "lon": None}}, "id = 1")

    assert addresses(table)[0] == {**ROWS[0]["address"], "geo": {"lat": 9.0, "lon": None}}


@every_kind
def test_a_merge_sets_fields(kind: str) -> None:
    table = filled(kind)
    source = pa.table({"id": [1, 2], "zip": pa.array([10, 20], pa.int32())})

    merge = table.merge(source, ["id"])
    merge.when_matched_update({"address.zip": "COALESCE(t.address.zip, 0) + s.zip"})
    merge.when_not_matched_by_source_update({"address.geo.lon": 7.0}).execute()

    assert addresses(table) == [
        {**ROWS[0]["address"], "zip": 11},
        {"city": None, "zip": 20, "geo": None},
        {"city": "c", "zip": None, "geo": {"lat": None, "lon": 7.0}},
    ]


def test_a_column_with_dots_in_its_name_comes_first() -> None:
    columns = COLUMNS.append(pa.field("address.city", pa.string()))
    table = create_table(columns=columns)
    table.append(pa.Table.from_pylist(ROWS, columns))

    table.update({"address.city": "'column'", "address.zip": 5}, "id = 1")

    row = table.to_arrow(filter="id = 1").to_pylist()[0]
    assert row["address.city"] == "column"
    assert row["address"] == {**ROWS[0]["address"], "zip": 5}


def test_fields_may_have_dots_in_their_names() -> None:
    columns = pa.schema([("a.b", pa.struct([("c.d", pa.int32()), ("e", pa.int32())]))])
    table = create_table(columns=columns)
    table.append(pa.Table.from_pylist([{"a.b": {"c.d": 1, "e": 2}}], columns))

    table.update({"a.b.c.d": 9})

    assert table.to_arrow().to_pylist() == [{"a.b": {"c.d": 9, "e": 2}}]


@pytest.mark.parametrize(
    ("values", "error", "message"),
    [
        ({"address.cty": "1"}, ColumnNotFound, "no 'address.cty' to set; .* did you mean city"),
        ({"address.geo.x": "1"}, ColumnNotFound, "address.geo has lat, lon"),
        ({"n.x": "1"}, ColumnNotFound, "no 'n.x' to set: n is INT, which has no fields"),
        ({"adress.city": "1"}, ColumnNotFound, "did you mean address.city"),
        ({"address.zip": "'x'"}, InvalidExpression, "does not fit address.zip INT"),
        ({"address.geo": None, "address.geo.lat": 1}, InvalidExpression, "at the same time"),
        ({"address": None, "address.zip": 1}, InvalidExpression, "address and address.zip are set"),
        ({"address.zip": "id * 10000000000"}, DataMismatch, "does not fit INT"),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_refused(
    values: dict[str, object], error: type[EmberlakeError], message: str
) -> None:
    table = filled()

    with pytest.raises(error, match=message):
        table.update(values)

    assert addresses(table) == [row["address"] for row in ROWS]


def test_a_field_that_must_not_be_null_needs_a_row_around_it() -> None:
    row = pa.struct([pa.field("x", pa.int32(), nullable=False), ("y", pa.string())])
    columns = pa.schema([("id", pa.int64()), ("r", row)])
    table = create_table(columns=columns)
    table.append(pa.Table.from_pylist([{"id": 1, "r": None}, {"id": 2, "r": {"x": 1}}], columns))

    with pytest.raises(InvalidExpression, match=r"r\.x is NOT NULL"):
        table.update({"r.x": None})
    with pytest.raises(DataMismatch, match="x: its value is null"):
        table.update({"r.y": "'y'"})
    table.update({"r.y": "'y'", "r.x": 5})

    assert table.to_arrow().column("r").to_pylist() == [{"x": 5, "y": "y"}] * 2


def test_new_rows_take_whole_columns() -> None:
    merge = filled().merge(pa.table({"id": [9]}), ["id"])

    merge.when_not_matched_insert({"id": "s.id", "address.zip": 1})

    with pytest.raises(InvalidExpression, match="give a value for all of address"):
        merge.execute()
