"""Data files give back the rows that went in, and pruning never loses one, whatever they hold."""

from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from effort import examples
from emberlake.errors import CorruptFile, StorageError, Unsupported
from emberlake.formats import open_reader, open_writer
from emberlake.formats.conform import decimal_from_bytes
from emberlake.formats.parquet_writer import plan_column_groups
from emberlake.formats.thrift import decode_struct, encode_struct
from emberlake.io import MemoryStorage
from emberlake.options import TableOptions
from emberlake.predicates.evaluate import filter_rows
from emberlake.predicates.expressions import Leaf, Op
from emberlake.spec.values import from_arrow_array, to_arrow_array
from emberlake.types import (
    ArrayType,
    AtomicType,
    DataField,
    DataType,
    MapType,
    MultisetType,
    RowType,
    TypeRoot,
    arrow_schema,
)

FORMATS = ("parquet", "orc", "avro", "lance")
often = examples(100)
sometimes = examples(25)

_STEPS = {0: 10**9, 3: 10**6, 6: 10**3, 9: 1}
_PLAIN: dict[TypeRoot, st.SearchStrategy[Any]] = {
    TypeRoot.BOOLEAN: st.booleans(),
    TypeRoot.TINYINT: st.integers(-(2**7), 2**7 - 1),
    TypeRoot.SMALLINT: st.integers(-(2**15), 2**15 - 1),
    TypeRoot.INT: st.integers(-(2**31), 2**31 - 1),
    TypeRoot.BIGINT: st.integers(-(2**63), 2**63 - 1),
    TypeRoot.FLOAT: st.floats(width=32, allow_nan=False),
    TypeRoot.DOUBLE: st.floats(allow_nan=False),
    TypeRoot.VARCHAR: st.text(st.characters(codec="utf-8"), max_size=20),
    TypeRoot.VARBINARY: st.binary(max_size=20),
    TypeRoot.DATE: st.integers(-700_000, 2_900_000),
    TypeRoot.TIME: st.integers(0, 86_399_999),
}
_NAMES = {TypeRoot.VARCHAR: "STRING", TypeRoot.VARBINARY: "BYTES"}


@st.composite
def atomic_types(draw: st.DrawFn, digits: int) -> AtomicType:
    root = draw(st.sampled_from([*_PLAIN, TypeRoot.DECIMAL, TypeRoot.TIMESTAMP]))
    nullable = draw(st.booleans())
    if root is TypeRoot.DECIMAL:
        precision = draw(st.integers(1, 38))
        return AtomicType(f"DECIMAL({precision}, {draw(st.integers(0, precision))})", nullable)
    if root is TypeRoot.TIMESTAMP:
        zone = draw(st.sampled_from(["", " WITH LOCAL TIME ZONE"]))
        precision = draw(st.sampled_from([p for p in _STEPS if p <= digits]))
        return AtomicType(f"TIMESTAMP({precision}){zone}", nullable)
    return AtomicType(_NAMES.get(root, root.value), nullable)


def _nested(inner: st.SearchStrategy[DataType]) -> st.SearchStrategy[DataType]:
    fields = st.lists(inner, min_size=1, max_size=3).map(
        lambda types: tuple(DataField(i, f"f{i}", t) for i, t in enumerate(types))
    )
    return st.one_of(
        inner.map(lambda t: ArrayType(True, t)),
        inner.map(lambda t: MultisetType(True, t)),
        st.tuples(inner, inner).map(lambda p: MapType(True, p[0], p[1])),
        fields.map(lambda f: RowType(True, f)),
    )


def types(digits: int = 9) -> st.SearchStrategy[DataType]:
    return st.recursive(atomic_types(digits), _nested, max_leaves=5)


def values_of(data_type: DataType) -> st.SearchStrategy[Any]:
    present = _present_values_of(data_type)
    return st.one_of(st.none(), present) if data_type.nullable else present


def _present_values_of(data_type: DataType) -> st.SearchStrategy[Any]:
    match data_type:
        case AtomicType(root=TypeRoot.DECIMAL, precision=precision, scale=scale):
            limit = 10**precision - 1
            return st.integers(-limit, limit).map(
                lambda n: Decimal((int(n < 0), tuple(map(int, str(abs(n)))), -scale))
            )
        case AtomicType() if data_type.root.is_timestamp:
            step = _STEPS[data_type.precision]
            # Whole seconds before 1970: of others, Arrow's ORC writer makes no good files.
            limit = 9_000_000_000 * 10**9
            old = st.integers(-limit // 10**9, 0).map(lambda n: n * 10**9)
            return st.one_of(old, st.integers(0, limit // step).map(lambda n: n * step))
        case AtomicType(root=root):
            return _PLAIN[root]
        case ArrayType(element=element):
            return st.lists(values_of(element), max_size=3)
        case MultisetType(element=element):
            return _pairs(element, st.integers(1, 9))
        case MapType(key=key, value=value):
            return _pairs(key, values_of(value))
        case RowType(fields=fields):
            return st.tuples(*(values_of(f.type) for f in fields))
        case _:
            raise AssertionError(data_type)


def _pairs(key: DataType, values: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    pair = st.tuples(_present_values_of(key), values)
    return st.lists(pair, max_size=3, unique_by=lambda p: repr(p[0]))


@st.composite
def tables(draw: st.DrawFn, digits: int = 9) -> tuple[tuple[DataField, ...], pa.Table]:
    column_types = draw(st.lists(types(digits), min_size=1, max_size=4))
    fields = tuple(DataField(i, f"c{i}", t) for i, t in enumerate(column_types))
    rows = draw(st.lists(st.tuples(*(values_of(t) for t in column_types)), max_size=12))
    columns = [to_arrow_array(f.type, [row[i] for row in rows]) for i, f in enumerate(fields)]
    return fields, pa.Table.from_arrays(columns, schema=arrow_schema(fields))


def write(format_name: str, fields, *parts: pa.Table) -> MemoryStorage:
    storage = MemoryStorage()
    writer = open_writer(storage, "/f", fields, TableOptions(), format_name)
    for part in parts:
        writer.write(part)
    assert writer.close() == storage.size("/f")
    return storage


@pytest.mark.parametrize("format_name", FORMATS)
def test_slices_of_nested_rows_that_are_null_come_back(format_name: str) -> None:
    inner = RowType(True, (DataField(0, "x", AtomicType("BOOLEAN NOT NULL")),))
    fields = (DataField(0, "c", RowType(True, (DataField(1, "f", inner),))),)
    nulls = pa.array([None, None], arrow_schema(fields).field(0).type)
    table = pa.Table.from_arrays([nulls], schema=arrow_schema(fields))

    storage = write(format_name, fields, table.slice(1))

    with open_reader(storage, "/f", fields, format_name) as reader:
        assert reader.read_table(fields) == table.slice(1)


@pytest.mark.parametrize("format_name", FORMATS)
@sometimes
@given(data=st.data())
def test_rows_come_back(format_name: str, data: st.DataObject) -> None:
    fields, table = data.draw(tables(6 if format_name == "avro" else 9))
    cut = data.draw(st.integers(0, table.num_rows))
    batch_rows = data.draw(st.integers(1, 5))

    storage = write(format_name, fields, table.slice(0, cut), table.slice(cut))
    with open_reader(storage, "/f", fields, format_name) as reader:
        whole = reader.read_table(fields)
        batches = list(reader.read(fields, batch_rows=batch_rows))

    whole.validate(full=True)
    assert whole.schema.equals(arrow_schema(fields), check_metadata=True)
    assert whole.equals(table)
    assert reader.num_rows == table.num_rows
    for start, batch in batches:
        assert batch.num_rows <= batch_rows
        assert pa.table(batch).equals(table.slice(start, batch.num_rows))
    assert sum(batch.num_rows for _, batch in batches) == table.num_rows


@st.composite
def pruned(draw: st.DrawFn, data_type: DataType) -> DataType:
    """The type with some fields of its rows left out."""
    match data_type:
        case RowType(nullable=nullable, fields=fields):
            kept = draw(st.lists(st.sampled_from(fields), min_size=1, unique_by=lambda f: f.id))
            return RowType(
                nullable, tuple(DataField(f.id, f.name, draw(pruned(f.type))) for f in kept)
            )
        case ArrayType(nullable=nullable, element=element):
            return ArrayType(nullable, draw(pruned(element)))
        case MapType(nullable=nullable, key=key, value=value):
            return MapType(nullable, key, draw(pruned(value)))
        case _:
            return data_type


def _taken(array: pa.Array, data_type: DataType, asked: DataType) -> Any:
    return [_part(value, data_type, asked) for value in array.to_pylist()]


def _part(value: Any, data_type: DataType, asked: DataType) -> Any:
    if value is None:
        return None
    match data_type, asked:
        case RowType() as row, RowType(fields=fields):
            inner = {f.name: f.type for f in row.fields}
            return {f.name: _part(value[f.name], inner[f.name], f.type) for f in fields}
        case ArrayType(element=element), ArrayType(element=wanted):
            return [_part(item, element, wanted) for item in value]
        case MapType(value=element), MapType(value=wanted):
            return [(key, _part(item, element, wanted)) for key, item in value]
        case _:
            return value


@pytest.mark.parametrize("format_name", FORMATS)
@sometimes
@given(data=st.data())
def test_parts_of_nested_columns_can_be_read_alone(format_name: str, data: st.DataObject) -> None:
    fields, table = data.draw(tables(6))
    chosen = data.draw(st.lists(st.sampled_from(fields), unique_by=lambda f: f.id))
    asked = tuple(DataField(f.id, f.name, data.draw(pruned(f.type))) for f in chosen)

    storage = write(format_name, fields, table)
    with open_reader(storage, "/f", fields, format_name) as reader:
        result = reader.read_table(asked)

    result.validate(full=True)
    assert result.num_rows == table.num_rows
    if asked:
        assert result.schema.equals(arrow_schema(asked))
    for field, part in zip(chosen, asked, strict=True):
        expected = _taken(table.column(field.name), field.type, part.type)
        assert result.column(part.name).to_pylist() == expected


@often
@given(st.data())
def test_pruning_row_groups_never_loses_a_row(data: st.DataObject) -> None:
    column_type = data.draw(atomic_types(9))
    field = DataField(0, "c", column_type)
    values = values_of(column_type)
    if column_type.root in (TypeRoot.FLOAT, TypeRoot.DOUBLE):
        values = st.one_of(values, st.just(float("nan")))
    schema = arrow_schema((field,))
    parts = [
        pa.Table.from_arrays([to_arrow_array(column_type, rows)], schema=schema)
        for rows in data.draw(st.lists(st.lists(values, max_size=4), max_size=4))
    ]
    op = data.draw(st.sampled_from([Op.EQUAL, Op.NOT_EQUAL, Op.LESS_THAN, Op.GREATER_OR_EQUAL]))
    literals = _present_values_of(column_type)
    known = [v for part in parts for v in from_arrow_array(column_type, part["c"]) if v is not None]
    literal = data.draw(st.one_of(st.sampled_from(known), literals) if known else literals)
    assume(literal == literal)  # NaN literals are folded before they come here
    predicate = Leaf(field, op, (literal,))

    storage = write("parquet", (field,), *parts)
    with open_reader(storage, "/f", (field,), "parquet") as reader:
        kept = reader.read_table((field,), predicate)

    expected = filter_rows(predicate, pa.concat_tables([schema.empty_table(), *parts]))
    assert filter_rows(predicate, kept).num_rows == expected.num_rows
    assert reader.row_groups_read <= reader.row_group_count


@pytest.mark.parametrize("format_name", FORMATS)
@sometimes
@given(data=st.data())
def test_damaged_files_give_rows_or_a_typed_error(format_name: str, data: st.DataObject) -> None:
    fields = (DataField(0, "a", AtomicType("INT")), DataField(1, "b", AtomicType("STRING")))
    table = pa.Table.from_arrays(
        [pa.array(range(50), pa.int32()), pa.array(["x" * (i % 7) for i in range(50)])],
        schema=arrow_schema(fields),
    )
    raw = bytearray(write(format_name, fields, table).read("/f"))
    for _ in range(data.draw(st.integers(1, 3))):
        raw[data.draw(st.integers(0, len(raw) - 1))] ^= data.draw(st.integers(1, 255))
    storage = MemoryStorage()
    storage.put("/f", bytes(raw[: data.draw(st.integers(0, len(raw)))]))

    try:
        with open_reader(storage, "/f", fields, format_name) as reader:
            result = reader.read_table(fields)
    except (CorruptFile, StorageError, Unsupported):
        pass
    else:
        assert result.schema.equals(arrow_schema(fields))


_scalars = st.one_of(
    st.tuples(st.sampled_from([4, 5, 6]), st.integers(-(2**63), 2**63 - 1)),
    st.tuples(st.just(8), st.binary(max_size=20)),
    st.tuples(st.just(1), st.booleans()),
    st.tuples(st.just(3), st.integers(0, 255)),
    st.tuples(st.just(7), st.floats(allow_nan=False)),
)
_structs = st.recursive(
    st.dictionaries(st.integers(1, 400), _scalars, max_size=5),
    lambda inner: st.dictionaries(
        st.integers(1, 400),
        st.one_of(
            _scalars,
            st.tuples(st.just(12), inner),
            st.tuples(st.just(9), st.tuples(st.just(12), st.lists(inner, max_size=20))),
            st.tuples(st.just(9), st.tuples(st.just(6), st.lists(st.integers(-9, 9), max_size=20))),
        ),
        max_size=5,
    ),
    max_leaves=5,
)


@often
@given(_structs)
def test_thrift_structs_come_back(value: dict) -> None:
    back = decode_struct(encode_struct(value))

    assert _without_bool_types(back) == _without_bool_types(value)


def _without_bool_types(value: Any) -> Any:
    # true and false of a struct are two types on the wire
    if isinstance(value, dict):
        return {
            key: (min(kind, 1) if kind <= 2 else kind, _without_bool_types(inner))
            for key, (kind, inner) in value.items()
        }
    if isinstance(value, tuple):
        return (value[0], [_without_bool_types(item) for item in value[1]])
    return value


@often
@given(st.lists(st.one_of(st.none(), st.integers(-(10**38) + 1, 10**38 - 1)), max_size=10))
def test_decimals_of_any_number_of_bytes_are_understood(numbers: list[int | None]) -> None:
    raw = [
        None
        if n is None
        else n.to_bytes(max(1, (n.bit_length() + 8) // 8) + i % 4, "big", signed=True)
        for i, n in enumerate(numbers)
    ]
    expected = [None if n is None else Decimal(n) for n in numbers]

    array = decimal_from_bytes(pa.array([b"", *raw], pa.binary()).slice(1), pa.decimal128(38, 0))

    assert array.to_pylist() == expected


@often
@given(st.lists(st.integers(0, 10**9), max_size=20), st.integers(1, 8))
def test_column_groups_hold_every_column_once(sizes: list[int], count: int) -> None:
    groups = plan_column_groups(sizes, count)

    assert sorted(at for group in groups for at in group) == list(range(len(sizes)))
    assert len(groups) <= count
    assert all(groups)
