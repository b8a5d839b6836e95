"""Which columns come out of a read, under which names, and what is read for them."""

from dataclasses import replace

import pyarrow as pa
import pytest

from builders import append, create_key_table, create_table, upsert
from emberlake.errors import ColumnNotFound, InvalidInput
from emberlake.predicates import parse_predicate
from emberlake.read.file_read import FileRead
from emberlake.read.projection import project, project_all
from emberlake.table import Table
from emberlake.types import AtomicType, DataField, RowType, arrow_schema
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
        "no such columns: nope, s.town, id.x; the table has id, s, s.x, s_city, s.city, s.place: "
        "did you mean id?"
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


# --- other names, and read types ------------------------------------------------------------------


def test_a_mapping_says_what_columns_are_called(table: Table) -> None:
    builder = table.new_read_builder().with_projection({"town": "s.city", "number": "id"})

    rows = builder.new_read().to_arrow(builder.new_scan().plan().splits()).to_pylist()

    assert rows[0] == {"town": "rome", "number": 1}


@pytest.mark.parametrize(
    "where",
    [
        "s_place_lat = 1.5",
        "s.place.lat = 1.5",
    ],
)
def test_a_filter_may_say_what_a_projected_field_is_called(table: Table, where: str) -> None:
    builder = table.new_read_builder().with_projection(["s.place.lat", "id"])
    builder.with_filter(where)

    rows = builder.new_read().to_arrow(builder.new_scan().plan().splits()).to_pylist()

    assert rows == [{"s_place_lat": 1.5, "id": 1}]


def test_predicates_know_projected_fields_by_both_names(table: Table) -> None:
    builder = table.new_read_builder().with_projection(["s.place.lat"])
    predicates = builder.new_predicate_builder()

    assert predicates.equal("s_place_lat", 1.5) == predicates.equal("s.place.lat", 1.5)


def test_a_column_of_the_table_goes_before_what_is_projected(table: Table) -> None:
    builder = table.new_read_builder().with_projection(["s.city"])  # comes out as s_city

    assert builder.new_predicate_builder().equal("s_city", 20).column.name == "s_city"


def test_names_of_projected_fields_are_known_from_the_projection_on(table: Table) -> None:
    with pytest.raises(ColumnNotFound, match="s_place_lat"):
        table.new_read_builder().with_filter("s_place_lat = 1.5")


NOPE = DataField(9, "nope", AtomicType("INT"))


def read_as(table: Table, read_type: list[DataField], where: str | None = None) -> pa.Table:
    builder = table.new_read_builder().with_read_type(read_type).with_filter(where)
    return builder.new_read().to_arrow(builder.new_scan().plan().splits())


def test_a_read_type_is_some_of_the_columns(table: Table) -> None:
    by_name = {field.name: field for field in table.fields}

    assert read_as(table, [by_name["s.x"], by_name["id"]]).to_pylist()[0] == {"s.x": 10, "id": 1}


def test_a_read_type_may_leave_out_fields_of_a_row(table: Table) -> None:
    address = table.fields[1]
    place = address.type.field("place")
    lon = replace(place, type=RowType(True, (place.type.field("lon"),)))
    asked = replace(address, type=RowType(True, (lon, address.type.field("city"))))

    found = read_as(table, [asked], "s.place.lat < 2")

    assert found.to_pylist() == [{"s": {"place": {"lon": 2.5}, "city": "rome"}}]
    assert read_as(table, [asked]).column("s").to_pylist() == [
        {"place": {"lon": 2.5}, "city": "rome"},
        {"place": None, "city": None},
        None,
    ]


def test_a_read_type_of_a_key_table_is_read_from_what_is_merged() -> None:
    columns = pa.schema([pa.field("id", pa.int64(), nullable=False), ("s", ADDRESS)])
    table = create_key_table(columns)
    for city in ("rome", "oslo"):
        upsert(table, [{"id": 1, "s": {"city": city, "place": None}}])
    address = table.fields[1]
    asked = replace(address, type=RowType(True, (address.type.field("city"),)))

    assert read_as(table, [asked]).to_pylist() == [{"s": {"city": "oslo"}}]


@pytest.mark.parametrize(
    ("field", "error"),
    [
        (NOPE, ColumnNotFound),
        (DataField(0, "id", AtomicType("STRING")), InvalidInput),
        (
            DataField(1, "s", RowType(True, (DataField(5, "nope", AtomicType("INT")),))),
            ColumnNotFound,
        ),
        (DataField(1, "s", RowType(True, ())), InvalidInput),
    ],
)
def test_a_read_type_that_the_table_has_not_is_refused(
    table: Table, field: DataField, error: type[Exception]
) -> None:
    with pytest.raises(error, match=field.name):
        table.new_read_builder().with_read_type([field])


def test_a_read_says_what_comes_out_of_it(table: Table) -> None:
    read = table.new_read_builder().with_projection(["id"]).with_limit(1).new_read()

    assert [field.name for field in read.read_type] == ["id"]
    assert (read.limit, read.predicate, read.include_row_kind) == (1, None, False)


@pytest.mark.parametrize("parallelism", [1, 2, 8])
def test_any_number_of_threads_reads_the_same_rows(table: Table, parallelism: int) -> None:
    for _ in range(3):
        append(table, pa.Table.from_pylist(ROWS, COLUMNS))
    builder = table.new_read_builder()
    read, splits = builder.new_read(), builder.new_scan().plan().splits()

    expected = read.to_arrow(splits)

    assert read.to_arrow(splits, parallelism) == expected
    assert read.to_arrow(splits, parallelism=parallelism, blob_parallelism=2) == expected
    assert read.to_arrow_batch_reader(splits, parallelism=parallelism).read_all() == expected
    assert len(read.to_pandas(splits, parallelism=parallelism)) == 12


def test_one_thread_is_one_thread(table: Table, monkeypatch: pytest.MonkeyPatch) -> None:
    builder = table.new_read_builder()
    asked: list[bool] = []
    plain = FileRead.table

    def watched(self: FileRead, *, use_threads: bool) -> pa.Table:
        asked.append(use_threads)
        return plain(self, use_threads=use_threads)

    monkeypatch.setattr(FileRead, "table", watched)
    for parallelism in (None, 1):
        builder.new_read().to_arrow(builder.new_scan().plan().splits(), parallelism)

    assert asked == [True, False]


def test_no_threads_are_refused(table: Table) -> None:
    read = table.new_read_builder().new_read()

    with pytest.raises(InvalidInput, match="parallelism"):
        read.to_arrow([], parallelism=0)
    with pytest.raises(InvalidInput, match="blob_parallelism"):
        read.to_arrow_batch_reader([], blob_parallelism=-1)
