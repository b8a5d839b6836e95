"""Which columns come out of a read, under which names, and what is read for them."""

import pyarrow as pa
import pytest

from append_tables import append, create_table
from emberlake.errors import ColumnNotFound, InvalidInput
from emberlake.predicates import parse_predicate
from emberlake.read.projection import project, project_all
from emberlake.table import Table
from emberlake.types import RowType, arrow_schema
from table_reads import read_rows

ADDRESS = pa.struct(
    [
        ("city", pa.string()),
        ("place", pa.struct([("lat", pa.float64()), ("lon", pa.float64())])),
    ]
)
COLUMNS = pa.schema(
    [("id", pa.int64()), ("s", ADDRESS), ("s.x", pa.int64()), ("s_city", pa.int64())]
)
ROWS = [
    {"id": 1, "s": {"city": "rome", "place": {"lat": 1.5, "lon": 2.5}}, "s.x": 10, "s_city": 20},
    {"id": 2, "s": {"city": None, "place": None}, "s.x": 11, "s_city": 21},
    {"id": 3, "s": None, "s.x": 12, "s_city": 22},
]


@pytest.fixture(params=["parquet", "orc"])
def table(request: pytest.FixtureRequest) -> Table:
    made = create_table(columns=COLUMNS, options={"file.format": request.param})
    append(made, pa.Table.from_pylist(ROWS, COLUMNS))
    return made


def test_columns_come_out_in_the_order_in_which_they_are_asked_for(table: Table) -> None:
    assert read_rows(table, columns=["s_city", "id"])[0] == {"s_city": 20, "id": 1}
    assert list(read_rows(table, columns=["s_city", "id"])[0]) == ["s_city", "id"]


def test_fields_of_rows_come_out_flat_under_the_joined_name(table: Table) -> None:
    rows = read_rows(table, columns=["s.place.lat", "s.city"])

    assert rows == [
        {"s_place_lat": 1.5, "s_city": "rome"},
        {"s_place_lat": None, "s_city": None},
        {"s_place_lat": None, "s_city": None},
    ]


def test_fields_of_rows_come_out_of_avro_files_too() -> None:
    columns = pa.schema([("id", pa.int64()), ("s", ADDRESS)])
    table = create_table(columns=columns, options={"file.format": "avro"})
    append(table, pa.Table.from_pylist([{"id": r["id"], "s": r["s"]} for r in ROWS], columns))

    assert read_rows(table, "s.city = 'rome'", ["s.place.lon"]) == [{"s_place_lon": 2.5}]


def test_a_row_inside_a_row_may_be_asked_for_as_a_whole(table: Table) -> None:
    rows = read_rows(table, columns=["s.place"])

    assert rows == [{"s_place": {"lat": 1.5, "lon": 2.5}}, {"s_place": None}, {"s_place": None}]


def test_a_column_whose_name_has_a_dot_goes_before_a_path(table: Table) -> None:
    assert read_rows(table, columns=["s.x"])[0] == {"s.x": 10}


def test_names_that_collide_are_numbered(table: Table) -> None:
    assert read_rows(table, columns=["s_city", "s.city", "s_city"])[0] == {
        "s_city": 20,
        "s_city_$0": "rome",
        "s_city_$1": 20,
    }


def test_a_row_and_its_field_may_be_asked_for_together(table: Table) -> None:
    (first, *_) = read_rows(table, columns=["s", "s.city"])

    assert first == {"s": ROWS[0]["s"], "s_city": "rome"}


def test_every_unknown_column_is_listed_with_the_choices(table: Table) -> None:
    builder = table.new_read_builder()

    with pytest.raises(ColumnNotFound) as caught:
        builder.with_projection(["id", "nope", "s.town", "id.x"])

    assert str(caught.value) == (
        "no such columns: nope, s.town, id.x; the table has id, s, s.x, s_city"
    )


@pytest.mark.parametrize("names", [[], "id"])
def test_a_projection_must_be_a_list_of_names(table: Table, names: object) -> None:
    with pytest.raises(InvalidInput):
        table.new_read_builder().with_projection(names)  # type: ignore[arg-type]


def test_a_projection_can_be_taken_back(table: Table) -> None:
    builder = table.new_read_builder().with_projection(["id"]).with_projection(None)

    assert [f.name for f in builder.read_type()] == COLUMNS.names


def test_the_type_of_what_comes_out_is_known_before(table: Table) -> None:
    builder = table.new_read_builder().with_projection(["s.place.lat", "id"])

    assert [str(f) for f in builder.read_type()] == ["s_place_lat DOUBLE", "id BIGINT"]
    assert builder.new_read().to_arrow([]).schema == pa.schema(
        [("s_place_lat", pa.float64()), ("id", pa.int64())]
    )


def test_a_field_is_nullable_when_the_row_around_it_is() -> None:
    inner = pa.field("x", pa.int64(), nullable=False)
    columns = pa.schema(
        [pa.field("s", pa.struct([inner])), pa.field("t", pa.struct([inner]), False)]
    )
    table = create_table(columns=columns)

    builder = table.new_read_builder().with_projection(["s.x", "t.x"])

    assert [f.type.nullable for f in builder.read_type()] == [True, False]


def test_only_what_is_needed_is_read(table: Table) -> None:
    fields = tuple(table.fields)
    where = parse_predicate("s.place.lon > 1 AND s_city = 20", fields)

    read = project(fields, ["id", "s.city"]).read_fields(fields, where)

    assert [str(f) for f in read] == [
        "id BIGINT",
        "s ROW<city STRING, place ROW<lon DOUBLE>>",
        "s_city BIGINT",
    ]
    whole = project(fields, ["s.city"]).read_fields(fields, parse_predicate("s IS NULL", fields))
    assert isinstance(whole[0].type, RowType)
    assert len(whole[0].type.fields) == 2


def test_all_columns_as_they_are(table: Table) -> None:
    fields = tuple(table.fields)

    projection = project_all(fields)

    assert projection.arrow_schema == arrow_schema(fields)
    assert projection.read_fields(fields, None) == fields
