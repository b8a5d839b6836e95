"""Which data fits which columns, what it becomes, and how errors describe what does not fit."""

import datetime as dt
from decimal import Decimal

import polars as pl
import pyarrow as pa
import pytest

from emberlake.errors import DataMismatch, InvalidInput
from emberlake.types import (
    ArrayType,
    AtomicType,
    DataField,
    MapType,
    MultisetType,
    RowType,
    arrow_schema,
    arrow_type,
)
from emberlake.write.align import align, as_tables


def fields(**types):
    return tuple(
        DataField(number, name, AtomicType(t) if isinstance(t, str) else t)
        for number, (name, t) in enumerate(types.items())
    )


def fit(array, data_type):
    """One column through ``align``."""
    columns = fields(c=data_type)
    aligned = align(pa.table({"c": array}), columns)
    assert aligned.schema == arrow_schema(columns)
    aligned.validate(full=True)
    return aligned.column("c")


def problem(array, data_type):
    with pytest.raises(DataMismatch) as caught:
        fit(array, data_type)
    return str(caught.value).partition("- c: ")[2]


def array(values, arrow):
    return pa.array(values, arrow)


NOON = dt.datetime.fromisoformat("2026-06-26T12:00:00")
TZ = dt.UTC

VIEWS = pa.DictionaryArray.from_arrays(
    pa.array([1, 0, None]), pa.array(["a", "b"], pa.string_view())
)

ACCEPTED = [
    # what Polars makes of categories
    (VIEWS, "STRING", ["b", "a", None]),
    (
        pa.LargeListArray.from_arrays([0, 3], VIEWS),
        ArrayType(True, AtomicType("STRING")),
        [["b", "a", None]],
    ),
    # integers: any width and sign, when the values fit
    (array([1, None, -128], pa.int8()), "BIGINT", [1, None, -128]),
    (array([1, 127], pa.int64()), "TINYINT", [1, 127]),
    (array([2**31 - 1], pa.int64()), "INT", [2**31 - 1]),
    (array([255], pa.uint8()), "SMALLINT", [255]),
    (array([2**63 - 1], pa.uint64()), "BIGINT", [2**63 - 1]),
    # integers to floats that hold them, and to decimals
    (array([2**53], pa.int64()), "DOUBLE", [float(2**53)]),
    (array([2**24], pa.int32()), "FLOAT", [float(2**24)]),
    (array([12, None], pa.int64()), "DECIMAL(4, 2)", [Decimal("12.00"), None]),
    (array([2**64 - 1], pa.uint64()), "DECIMAL(20, 0)", [Decimal(2**64 - 1)]),
    # floats to wider ones
    (array([1.5, None], pa.float32()), "DOUBLE", [1.5, None]),
    (array([1.5], pa.float16()), "FLOAT", [1.5]),
    # decimals of another shape, when the digits fit
    (array([Decimal("1.50")], pa.decimal128(10, 2)), "DECIMAL(4, 1)", [Decimal("1.5")]),
    (array([Decimal("1.5")], pa.decimal128(3, 1)), "DECIMAL(38, 10)", [Decimal("1.5")]),
    (array([Decimal("9.99")], pa.decimal256(60, 2)), "DECIMAL(3, 2)", [Decimal("9.99")]),
    (array([Decimal("1.5")], pa.decimal64(10, 1)), "DECIMAL(10, 2)", [Decimal("1.50")]),
    # texts and bytes of every variant
    (array(["a", None], pa.large_string()), "STRING", ["a", None]),
    (array(["a", None], pa.string_view()), "STRING", ["a", None]),
    (array(["äöü", ""], pa.string()), "VARCHAR(3)", ["äöü", ""]),
    (array(["abc"], pa.string()), "CHAR(3)", ["abc"]),
    (array([b"a", None], pa.large_binary()), "BYTES", [b"a", None]),
    (array([b"a", None], pa.binary_view()), "BYTES", [b"a", None]),
    (array([b"ab"], pa.binary(2)), "BINARY(2)", [b"ab"]),
    # encodings of what is accepted
    (
        array(["a", "b", "a", None], pa.dictionary(pa.int8(), pa.string())),
        "STRING",
        ["a", "b", "a", None],
    ),
    (array([7, 7], pa.dictionary(pa.int32(), pa.int32())), "BIGINT", [7, 7]),
    (pa.RunEndEncodedArray.from_arrays([2, 3], ["x", "y"]), "STRING", ["x", "x", "y"]),
    (pa.nulls(2), "INT", [None, None]),
    (pa.nulls(2), ArrayType(True, AtomicType("INT")), [None, None]),
    # times: another unit, when nothing is cut off
    (array([dt.date(2026, 6, 26)], pa.date64()), "DATE", [dt.date(2026, 6, 26)]),
    (array([dt.time(1, 2, 3, 4000)], pa.time64("ns")), "TIME(3)", [dt.time(1, 2, 3, 4000)]),
    (array([dt.time(1, 2, 3)], pa.time32("s")), "TIME(0)", [dt.time(1, 2, 3)]),
    (array([NOON], pa.timestamp("ms")), "TIMESTAMP(6)", [NOON]),
    (array([NOON], pa.timestamp("ns")), "TIMESTAMP(0)", [NOON]),
    (array([NOON], pa.timestamp("us")), "TIMESTAMP(3)", [NOON]),
    (
        array([NOON.replace(tzinfo=TZ)], pa.timestamp("us", "Asia/Tokyo")),
        "TIMESTAMP_LTZ(3)",
        [NOON.replace(tzinfo=TZ)],
    ),
    (array([True, None], pa.bool_()), "BOOLEAN", [True, None]),
]

REFUSED = [
    # values that do not fit
    (array([128], pa.int64()), "TINYINT", "would lose data"),
    (array([-1], pa.int64()).cast(pa.uint64(), safe=False), "BIGINT", "would lose data"),
    (array([2**53 + 1], pa.int64()), "DOUBLE", "would lose data"),
    (array([2**24 + 1], pa.int32()), "FLOAT", "would lose data"),
    (array([100], pa.int64()), "DECIMAL(4, 2)", "would lose data"),
    (array([Decimal("1.55")], pa.decimal128(10, 2)), "DECIMAL(10, 1)", "would lose data"),
    (array([Decimal("10.0")], pa.decimal128(10, 1)), "DECIMAL(2, 1)", "would lose data"),
    (array(["abcd"], pa.string()), "VARCHAR(3)", "length 4; VARCHAR(3) takes at most 3"),
    (array(["abcd"], pa.string_view()), "CHAR(3)", "length 4; CHAR(3) takes at most 3"),
    (array([b"abc"], pa.binary()), "BINARY(2)", "length 3; BINARY(2) takes at most 2"),
    (array([b"abc"], pa.binary(3)), "VARBINARY(2)", "length 3; VARBINARY(2) takes at most 2"),
    (array([86_400_001], pa.int64()).cast(pa.date64()), "DATE", "would lose data"),
    (array([1], pa.int64()).cast(pa.time64("us")), "TIME(3)", "would lose data"),
    (array([1], pa.int64()).cast(pa.timestamp("ns")), "TIMESTAMP(6)", "would lose data"),
    (array([1], pa.int64()).cast(pa.timestamp("ms")), "TIMESTAMP(0)", "would lose data"),
    (array([2**62], pa.int64()).cast(pa.timestamp("s")), "TIMESTAMP(9)", "would lose data"),
    # types that do not fit, whatever the values
    (array([1.0], pa.float64()), "FLOAT", "double cannot be written to FLOAT"),
    (array([1.0], pa.float64()), "BIGINT", "double cannot be written to BIGINT"),
    (array([1.0], pa.float64()), "DECIMAL(4, 2)", "double cannot be written to DECIMAL(4, 2)"),
    (array([Decimal(1)], pa.decimal128(3, 0)), "INT", "decimal128(3, 0) cannot be written to INT"),
    (array(["1"], pa.string()), "INT", "string cannot be written to INT"),
    (array([1], pa.int64()), "STRING", "int64 cannot be written to STRING"),
    (array([1], pa.int64()), "BOOLEAN", "int64 cannot be written to BOOLEAN"),
    (array([True], pa.bool_()), "INT", "bool cannot be written to INT"),
    (array(["2026-06-26"], pa.string()), "DATE", "string cannot be written to DATE"),
    (array([b"a"], pa.binary()), "STRING", "binary cannot be written to STRING"),
    (array(["a"], pa.string()), "BYTES", "string cannot be written to BYTES"),
    (array([NOON], pa.timestamp("us")), "DATE", "timestamp[us] cannot be written to DATE"),
    (array([NOON], pa.timestamp("us")), "TIMESTAMP_LTZ(6)", "the column wants a time zone"),
    (array([NOON], pa.timestamp("us", "UTC")), "TIMESTAMP(6)", "the column wants no time zone"),
    (array([1], pa.duration("s")), "BIGINT", "duration[s] cannot be written to BIGINT"),
    (array([[1]], pa.list_(pa.int32())), "INT", "cannot be written to INT"),
    (array([1], pa.int32()), ArrayType(True, AtomicType("INT")), "cannot be written to ARRAY<INT>"),
    # nulls
    (array([1, None, None], pa.int64()), "BIGINT NOT NULL", "holds 2 nulls"),
    (pa.nulls(3), "BIGINT NOT NULL", "holds 3 nulls"),
]


@pytest.mark.parametrize(("given", "data_type", "expected"), ACCEPTED, ids=str)
def test_a_cast_that_loses_nothing_is_made(given, data_type, expected):
    data_type = AtomicType(data_type) if isinstance(data_type, str) else data_type

    assert fit(given, data_type).to_pylist() == expected
    assert fit(pa.chunked_array([given.slice(1), given]), data_type).to_pylist() == (
        expected[1:] + expected
    )


@pytest.mark.parametrize(("given", "data_type", "reason"), REFUSED, ids=str)
def test_a_cast_that_loses_something_is_refused(given, data_type, reason):
    data_type = AtomicType(data_type) if isinstance(data_type, str) else data_type

    assert reason in problem(given, data_type)


# --- nested types ---------------------------------------------------------------------------------

INT, TEXT = AtomicType("INT"), AtomicType("STRING")
POINT = RowType(True, (DataField(1, "x", AtomicType("INT NOT NULL")), DataField(2, "name", TEXT)))


@pytest.mark.parametrize(
    "arrow",
    [
        pa.list_(pa.int64()),
        pa.large_list(pa.int8()),
        pa.list_view(pa.int64()),
        pa.large_list_view(pa.int64()),
        pa.list_(pa.dictionary(pa.int8(), pa.int64())),
    ],
    ids=str,
)
def test_lists_of_every_variant_fit_an_array(arrow):
    values = [[1, None], None, [], [3]]

    fitted = fit(array(values, arrow).slice(1), ArrayType(True, INT))

    assert fitted.to_pylist() == values[1:]


def test_lists_of_one_length_fit_an_array():
    values = [[1, 2], None, [3, None]]

    assert fit(array(values, pa.list_(pa.int64(), 2)), ArrayType(True, INT)).to_pylist() == values


def test_maps_fit_with_their_keys_and_values_cast():
    given = array([[("a", 1)], None, [], [("b", None)]], pa.map_(pa.large_string(), pa.int8()))
    target = MapType(True, TEXT, AtomicType("BIGINT"))

    assert fit(given.slice(1), target).to_pylist() == [None, [], [("b", None)]]


def test_a_multiset_is_a_map_from_element_to_count():
    given = array([[("a", 2)], None], pa.map_(pa.string(), pa.int64()))

    assert fit(given, MultisetType(True, TEXT)).to_pylist() == [[("a", 2)], None]
    counts = array([[("a", None)]], pa.map_(pa.string(), pa.int64()))
    assert "a value is null" in problem(counts, MultisetType(True, TEXT))


def test_structs_fit_by_name_in_any_order_and_may_lack_nullable_fields():
    given = array(
        [{"name": "p", "x": 1}, None], pa.struct([("name", pa.string()), ("x", pa.int64())])
    )
    bare = array([{"x": 1}], pa.struct([("x", pa.int8())]))

    assert fit(given, POINT).to_pylist() == [{"x": 1, "name": "p"}, None]
    assert fit(given.slice(1), POINT).to_pylist() == [None]
    assert fit(bare, POINT).to_pylist() == [{"x": 1, "name": None}]


def test_a_required_field_may_be_null_only_where_its_struct_is():
    children = [array([1, None, 3], pa.int32())]
    masked = pa.StructArray.from_arrays(children, ["x"], mask=pa.array([False, True, False]))

    assert fit(masked, POINT).to_pylist() == [
        {"x": 1, "name": None},
        None,
        {"x": 3, "name": None},
    ]
    assert "x: its value is null" in problem(pa.StructArray.from_arrays(children, ["x"]), POINT)


def test_a_required_field_is_null_with_its_struct_inside_a_map():
    required = [pa.field("x", pa.int32(), nullable=False)]
    points = pa.StructArray.from_arrays(
        [array([1, None], pa.int32())], fields=required, mask=pa.array([False, True])
    )
    given = pa.MapArray.from_arrays(
        array([0, 2], pa.int32()), array(["a", "b"], pa.string()), points
    )

    fitted = fit(given, MapType(True, TEXT, POINT))

    assert fitted.to_pylist() == [[("a", {"x": 1, "name": None}), ("b", None)]]


@pytest.mark.parametrize(
    ("given", "data_type", "reasons"),
    [
        (
            array([{"x": "one", "z": 1}], pa.struct([("x", pa.string()), ("z", pa.int8())])),
            POINT,
            ["z is not in ROW<", "x: string cannot be written to INT NOT NULL"],
        ),
        (array([{"name": "p"}], pa.struct([("name", pa.string())])), POINT, ["x: is missing"]),
        (array([[1, 2**40]], pa.list_(pa.int64())), ArrayType(True, INT), ["would lose data"]),
        (
            array([[1, None]], pa.list_(pa.int32())),
            ArrayType(True, AtomicType("INT NOT NULL")),
            ["an element is null"],
        ),
        (
            array([["abcd"]], pa.list_(pa.string())),
            ArrayType(True, AtomicType("VARCHAR(3)")),
            ["length 4"],
        ),
        (
            array([[("abcd", 1)]], pa.map_(pa.string(), pa.int32())),
            MapType(True, AtomicType("VARCHAR(3)"), INT),
            ["length 4"],
        ),
        (
            array([[("a", None)]], pa.map_(pa.string(), pa.int32())),
            MapType(True, TEXT, AtomicType("INT NOT NULL")),
            ["a value is null"],
        ),
        (
            array([[1]], pa.list_(pa.int32())),
            MapType(True, TEXT, INT),
            ["cannot be written to MAP"],
        ),
        (array([1], pa.int32()), POINT, ["int32 cannot be written to ROW<"]),
        (
            array([[{"x": None}]], pa.list_(pa.struct([("x", pa.int32())]))),
            ArrayType(True, POINT),
            ["x: its value is null"],
        ),
    ],
    ids=str,
)
def test_rules_hold_inside_of_nested_types(given, data_type, reasons):
    message = problem(given, data_type)

    assert [reason for reason in reasons if reason not in message] == []


def test_rules_hold_inside_of_nested_types_when_the_arrow_type_is_equal():
    # Arrow itself lets nulls into fields that are declared without.
    target = arrow_type(POINT)
    wrong = pa.StructArray.from_arrays(
        [array([1, None], pa.int32()), array(["a", "b"], pa.string())], fields=list(target)
    )

    assert "x: its value is null" in problem(wrong, POINT)


# --- columns --------------------------------------------------------------------------------------

ID_AND_NAME = fields(id="BIGINT NOT NULL", name="STRING")


def test_data_that_fits_is_not_copied():
    columns = fields(id="BIGINT", name="STRING")
    data = pa.table({"id": [1], "name": ["a"]})

    assert align(data, columns) is data


def test_columns_are_found_by_name():
    data = pa.table({"name": ["a"], "id": pa.array([1], pa.int8())})

    assert align(data, ID_AND_NAME).to_pylist() == [{"id": 1, "name": "a"}]


def test_missing_nullable_columns_become_null():
    assert align(pa.table({"id": [1, 2]}), ID_AND_NAME).column("name").null_count == 2


def test_missing_columns_get_their_default():
    columns = (
        DataField(0, "id", AtomicType("INT NOT NULL"), default_value="7"),
        DataField(1, "day", AtomicType("DATE"), default_value="2026-06-26"),
        DataField(2, "x", INT),
    )

    assert align(pa.table({"x": [1, 2]}), columns).to_pylist() == [
        {"id": 7, "day": dt.date(2026, 6, 26), "x": n} for n in (1, 2)
    ]


def test_nulls_that_are_given_stay_null_whatever_the_default():
    columns = (DataField(0, "id", INT, default_value="7"),)

    assert align(pa.table({"id": pa.nulls(1)}), columns).to_pylist() == [{"id": None}]


def test_every_problem_is_in_one_error():
    columns = (
        *fields(a="TINYINT", b="DATE", c="INT NOT NULL", d="VARCHAR(2)", e="STRING"),
        DataField(9, "f", INT, default_value="seven"),
    )
    data = pa.Table.from_arrays(
        [array([300], pa.int32()), array(["x"], pa.string()), array(["abc"], pa.string())]
        + [array([1], pa.int32())] * 3,
        names=["a", "b", "d", "who", "e", "e"],
    )

    with pytest.raises(DataMismatch) as caught:
        align(data, columns)

    lines = dict(line[4:].split(": ", 1) for line in str(caught.value).splitlines()[1:])
    assert set(lines) == {"a", "b", "c", "d", "e", "f", "who"}
    assert "would lose data" in lines["a"]
    assert "string cannot be written to DATE" in lines["b"]
    assert "is missing, and the column is NOT NULL" in lines["c"]
    assert "length 3" in lines["d"]
    assert "more than once" in lines["e"]
    assert "default value cannot be used" in lines["f"]
    assert "not a column of the table (it has a, b, c, d, e, f; merge_schema=True" in lines["who"]


def test_a_declared_subset_is_neither_more_nor_less():
    columns = fields(a="INT", b="INT", c="INT NOT NULL")

    def problem_of(data, declared):
        with pytest.raises(DataMismatch) as caught:
            align(data, columns, write_columns=declared)
        return str(caught.value)

    full = pa.table({name: array([1], pa.int32()) for name in "abc"}, schema=arrow_schema(columns))
    assert "b: is not among the columns declared by with_write_type" in problem_of(full, ("a", "c"))
    assert "b: is declared by with_write_type but not given" in problem_of(
        full.select(["a", "c"]), ("a", "b", "c")
    )
    assert "c: is missing, and the column is NOT NULL" in problem_of(full.select(["a"]), ("a",))
    assert align(full.select(["c"]), columns, write_columns=("c",)).to_pylist() == [
        {"a": None, "b": None, "c": 1}
    ]


def test_a_table_without_rows_is_checked_too():
    with pytest.raises(DataMismatch, match="x: is not a column"):
        align(pa.table({"id": pa.array([], pa.int64()), "x": []}), ID_AND_NAME)
    assert align(pa.table({"id": pa.array([], pa.int8())}), ID_AND_NAME).num_rows == 0


# --- streams --------------------------------------------------------------------------------------


def test_a_stream_shows_its_columns_before_its_batches():
    reader = pa.table({"id": [1, 2]}).to_reader(max_chunksize=1)

    tables = list(as_tables(reader))

    assert [t.num_rows for t in tables] == [0, 1, 1]
    assert {t.schema for t in tables} == {reader.schema}


def test_objects_that_do_not_speak_arrow_are_refused():
    with pytest.raises(InvalidInput, match="cannot write dict"):
        list(as_tables({"id": [1]}))


def test_a_column_without_a_type_is_not_said_to_be_addable() -> None:
    with pytest.raises(DataMismatch, match=r"note: .* null has no type; cast it, or leave it out"):
        align(pa.table({"c": [1], "note": pa.nulls(1)}), fields(c="BIGINT"))


@pytest.mark.parametrize(
    ("data", "remedy"),
    [
        ([{"id": 1}], r"pa.Table.from_pylist\(...\) makes one"),
        ({"id": [1]}, r"pa.table\(...\) makes one"),
        (pl.LazyFrame({"id": [1]}), r"such as .collect\(\) returns"),
        (None, "a pandas or Polars DataFrame$"),
    ],
    ids=["rows", "columns", "query", "nothing"],
)
def test_what_is_no_data_is_refused_with_the_way_to_make_it_data(data: object, remedy: str) -> None:
    with pytest.raises(InvalidInput, match=remedy):
        list(as_tables(data))
