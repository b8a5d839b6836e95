"""Columns with values inside of values are set as a whole: fields are known by their names."""

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

from builders import create_key_table, create_table
from emberlake.errors import DataMismatch, InvalidExpression
from emberlake.io import MemoryStorage
from emberlake.table import Table
from emberlake.types import arrow_schema
from tracked_tables import EVOLVING, VECTORS
from watched_storage import WatchedStorage

GEO = pa.struct([("lat", pa.float64()), ("height", pa.int32())])
PLACE = pa.struct([("geo", GEO), ("city", pa.string())])
COLUMNS = pa.schema(
    [
        ("id", pa.int64()),
        ("place", PLACE),
        ("stops", pa.list_(PLACE)),
        ("seen", pa.map_(pa.string(), PLACE)),
    ]
)
ROME = {"geo": {"lat": 41.9, "height": 21}, "city": "Rome"}
OSLO = {"geo": {"lat": 59.9, "height": None}, "city": "Oslo"}
KINDS: dict[str, Callable[[], Table]] = {
    "rewrite": lambda: create_table(columns=COLUMNS),
    "vectors": lambda: create_table(columns=COLUMNS, options=VECTORS),
    "columns": lambda: create_table(columns=COLUMNS, options=EVOLVING),
    "keys": lambda: create_key_table(COLUMNS),
}
every_kind = pytest.mark.parametrize("kind", KINDS)


def row_of(number: int, place: dict[str, Any] | None) -> dict[str, Any]:
    return {"id": number, "place": place, "stops": [place], "seen": [("at", place)]}


def filled(kind: str = "rewrite") -> Table:
    table = KINDS[kind]()
    table.append(pa.Table.from_pylist([row_of(1, ROME), row_of(2, None)], COLUMNS))
    return table


def rows_of(table: Table) -> list[dict[str, Any]]:
    return sorted(table.to_arrow().to_pylist(), key=lambda row: row["id"])


@every_kind
@pytest.mark.parametrize("names", [COLUMNS.names, COLUMNS.names[::-1]], ids=["same", "reversed"])
def test_columns_of_the_source_replace_those_of_the_table(kind: str, names: list[str]) -> None:
    table = filled(kind)
    source = pa.Table.from_pylist([row_of(2, OSLO), row_of(3, None)], COLUMNS).select(names)

    merge = table.merge(source, ["id"])
    merge.when_matched_update_all().when_not_matched_insert_all().execute()

    assert rows_of(table) == [row_of(1, ROME), row_of(2, OSLO), row_of(3, None)]


def test_an_upsert_takes_what_an_append_takes() -> None:
    table = filled()
    # As Arrow finds the types: BIGINT for INT, fields in another order, and one of them is lacking.
    source = pa.table(
        {
            "stops": [[{"city": "Bern", "geo": {"height": 540}}]],
            "place": [{"city": "Bern", "geo": {"height": 540, "lat": 46.9}}],
            "id": [2],
            "seen": pa.array([None], COLUMNS.field("seen").type),
        }
    )

    table.upsert(source, on=["id"])

    assert rows_of(table)[1] == {
        "id": 2,
        "place": {"geo": {"lat": 46.9, "height": 540}, "city": "Bern"},
        "stops": [{"geo": {"lat": None, "height": 540}, "city": "Bern"}],
        "seen": None,
    }


def test_a_column_is_set_to_another_one_of_the_same_kind() -> None:
    columns = pa.schema([("id", pa.int64()), ("old", PLACE), ("new", PLACE)])
    table = create_table(columns=columns)
    rows = [{"id": 1, "old": ROME, "new": OSLO}, {"id": 2, "old": OSLO, "new": None}]
    table.append(pa.Table.from_pylist(rows, columns))

    table.update({"old": "new"}, "id = 1")
    table.update({"new": "COALESCE(new, old)", "old": "CASE WHEN id = 1 THEN new END"})

    assert rows_of(table) == [
        {"id": 1, "old": OSLO, "new": OSLO},
        {"id": 2, "old": None, "new": OSLO},
    ]


def test_a_field_is_set_to_a_row_of_the_source() -> None:
    table = filled()
    source = pa.table({"x": [{"height": 7, "lat": 0.5}], "id": [1]})

    table.merge(source, ["id"]).when_matched_update({"place.geo": "s.x"}).execute()

    assert rows_of(table)[0]["place"] == {"geo": {"lat": 0.5, "height": 7}, "city": "Rome"}


@pytest.mark.parametrize(
    ("place", "error", "message"),
    [
        ({"city": "Bern", "zip": 3000}, InvalidExpression, "does not fit place"),
        ({"city": 3}, InvalidExpression, "does not fit place"),
        ({"geo": {"height": 1 << 40}}, DataMismatch, "place: "),
    ],
)
def test_values_that_do_not_fit_are_refused_before_any_file_is_written(
    place: dict[str, Any], error: type[Exception], message: str
) -> None:
    storage = WatchedStorage(MemoryStorage())
    table = create_table(storage, COLUMNS)
    table.append(pa.Table.from_pylist([row_of(1, ROME)], COLUMNS))
    storage.calls.clear()

    merge = table.merge(pa.table({"id": [1], "place": [place]}), ["id"])
    with pytest.raises(error, match=message):
        merge.when_matched_update({"place": "s.place"}).execute()

    assert not [call for call in storage.calls if call.method == "open_output"]


def test_elements_that_must_not_be_null_are_checked() -> None:
    kind = pa.list_(pa.field("element", pa.int32(), nullable=False))
    table = create_table(columns=pa.schema([("id", pa.int64()), ("list", kind)]))
    table.append(pa.table({"id": [1], "list": [[1]]}, schema=arrow_schema(tuple(table.fields))))

    def merged(value: list[int | None]) -> None:
        source = pa.table({"list": [value], "id": [1]})
        table.merge(source, ["id"]).when_matched_update_all().execute()

    with pytest.raises(DataMismatch, match="list: an element is null"):
        merged([2, None])
    merged([2, 3])

    assert rows_of(table) == [{"id": 1, "list": [2, 3]}]
