"""Column types and their Arrow types, both ways.

To Arrow: TIMESTAMP(0) is seconds, (1..3) milliseconds, (4..6) microseconds, (7..9) nanoseconds,
LTZ the same in UTC; every TIME is ``time32[ms]``, the unit in which the format keeps it; BINARY(n)
is variable binary because the format does not pad; MULTISET is a map from element to count.

From Arrow: types that other engines take for a VECTOR, a BLOB or a VARIANT are refused rather than
mapped to something else. Such a table could not be told apart from theirs later.
"""

from typing import Final

import pyarrow as pa

from emberlake.errors import EmberlakeError, InvalidSchema, Unsupported
from emberlake.types.data_types import (
    MAX_DECIMAL_PRECISION,
    ArrayType,
    AtomicType,
    DataField,
    DataType,
    MapType,
    MultisetType,
    RowType,
    TypeRoot,
    VectorType,
)

_PRECISION_OF_UNIT: Final = {"s": 0, "ms": 3, "us": 6, "ns": 9}

_PLAIN: Final = {
    TypeRoot.BOOLEAN: pa.bool_(),
    TypeRoot.TINYINT: pa.int8(),
    TypeRoot.SMALLINT: pa.int16(),
    TypeRoot.INT: pa.int32(),
    TypeRoot.BIGINT: pa.int64(),
    TypeRoot.FLOAT: pa.float32(),
    TypeRoot.DOUBLE: pa.float64(),
    TypeRoot.CHAR: pa.string(),
    TypeRoot.VARCHAR: pa.string(),
    TypeRoot.BINARY: pa.binary(),
    TypeRoot.VARBINARY: pa.binary(),
    TypeRoot.BLOB: pa.large_binary(),
    TypeRoot.GEOMETRY: pa.binary(),
    TypeRoot.GEOGRAPHY: pa.binary(),
    TypeRoot.DATE: pa.date32(),
    TypeRoot.TIME: pa.time32("ms"),
    TypeRoot.VARIANT: pa.struct(
        [
            pa.field("value", pa.binary(), nullable=False),
            pa.field("metadata", pa.binary(), nullable=False),
        ]
    ),
}


def timestamp_unit(precision: int) -> str:
    """The coarsest Arrow unit that keeps a timestamp of that precision."""
    if precision == 0:
        return "s"
    if precision <= 3:
        return "ms"
    return "us" if precision <= 6 else "ns"


def arrow_type(data_type: DataType) -> pa.DataType:
    """The Arrow type of a column's values, in reads and in writes."""
    match data_type:
        case AtomicType(root=TypeRoot.DECIMAL):
            return pa.decimal128(data_type.precision, data_type.scale)
        case AtomicType(root=TypeRoot.TIMESTAMP):
            return pa.timestamp(timestamp_unit(data_type.precision))
        case AtomicType(root=TypeRoot.TIMESTAMP_LTZ):
            return pa.timestamp(timestamp_unit(data_type.precision), tz="UTC")
        case AtomicType(root=root):
            return _PLAIN[root]
        case ArrayType(element=element):
            return pa.list_(_child("element", element))
        case VectorType(element=element, length=length):
            return pa.list_(_child("element", element), length)
        case MultisetType(element=element):
            return pa.map_(
                pa.field("key", arrow_type(element), nullable=False),
                pa.field("value", pa.int32(), nullable=False),
            )
        case MapType(key=key, value=value):
            return pa.map_(pa.field("key", arrow_type(key), nullable=False), _child("value", value))
        case RowType(fields=fields):
            return pa.struct([arrow_field(f) for f in fields])
        case _:
            raise InvalidSchema(f"{data_type!r} is not a type")


def arrow_field(field: DataField) -> pa.Field:
    """The Arrow field of a column."""
    return pa.field(field.name, arrow_type(field.type), nullable=field.type.nullable)


def arrow_schema(fields: tuple[DataField, ...]) -> pa.Schema:
    """The Arrow schema of columns."""
    return pa.schema([arrow_field(f) for f in fields])


def from_arrow_schema(schema: pa.Schema, *, has_blobs: bool = False) -> tuple[DataField, ...]:
    """Columns with new ids. One error names every column that cannot be used.

    Args:
        schema: The Arrow schema.
        has_blobs: Whether ``large_binary`` means BLOB, as it does in tables with data evolution.
            Otherwise it means BYTES, which Polars and DuckDB return as ``large_binary``.

    Raises:
        InvalidSchema: a column has no Paimon type.
        Unsupported: every such column has a Paimon type, but emberlake does not implement it.
    """
    ids = _Ids()
    fields: list[DataField] = []
    problems: list[tuple[str, EmberlakeError]] = []
    for column in schema:
        field_id = ids.take()
        try:
            if has_blobs:
                _refuse_blobs(column.type)
            data_type = _from_arrow(column.type, column.nullable, ids)
        except (InvalidSchema, Unsupported) as problem:
            problems.append((column.name, problem))
            continue
        comment = (column.metadata or {}).get(b"description")
        fields.append(
            DataField(field_id, column.name, data_type, comment.decode() if comment else None)
        )
    if problems:
        text = "; ".join(f"{name}: {problem}" for name, problem in problems)
        if all(isinstance(problem, Unsupported) for _, problem in problems):
            raise Unsupported(f"columns of types that are not implemented: {text}")
        raise InvalidSchema(f"columns without a Paimon type: {text}")
    return tuple(fields)


def from_arrow_type(arrow: pa.DataType, *, nullable: bool = True) -> DataType:
    """The column type of an Arrow type; nested fields get new ids from 0 on."""
    return _from_arrow(arrow, nullable, _Ids())


class _Ids:
    def __init__(self) -> None:
        self._next = 0

    def take(self) -> int:
        self._next += 1
        return self._next - 1


def _child(name: str, data_type: DataType) -> pa.Field:
    return pa.field(name, arrow_type(data_type), nullable=data_type.nullable)


_FROM_PLAIN: Final = {
    pa.bool_(): "BOOLEAN",
    pa.int8(): "TINYINT",
    pa.int16(): "SMALLINT",
    pa.int32(): "INT",
    pa.int64(): "BIGINT",
    pa.float32(): "FLOAT",
    pa.float64(): "DOUBLE",
    pa.string(): "STRING",
    pa.large_string(): "STRING",
    pa.string_view(): "STRING",
    pa.binary(): "BYTES",
    pa.large_binary(): "BYTES",
    pa.binary_view(): "BYTES",
    pa.date32(): "DATE",
}


def _from_arrow(arrow: pa.DataType, nullable: bool, ids: _Ids) -> DataType:  # noqa: C901, FBT001
    if arrow in _FROM_PLAIN:
        return AtomicType(_FROM_PLAIN[arrow], nullable)
    if pa.types.is_dictionary(arrow):
        return _from_arrow(arrow.value_type, nullable, ids)
    if pa.types.is_fixed_size_binary(arrow):
        return AtomicType(f"BINARY({arrow.byte_width})", nullable)
    if pa.types.is_decimal(arrow):
        if not (
            1 <= arrow.precision <= MAX_DECIMAL_PRECISION and 0 <= arrow.scale <= arrow.precision
        ):
            raise InvalidSchema(f"{arrow} does not fit DECIMAL(p <= 38, 0 <= s <= p)")
        return AtomicType(f"DECIMAL({arrow.precision}, {arrow.scale})", nullable)
    if pa.types.is_time(arrow):
        return AtomicType(f"TIME({_PRECISION_OF_UNIT[arrow.unit]})", nullable)
    if pa.types.is_timestamp(arrow):
        name = "TIMESTAMP_LTZ" if arrow.tz else "TIMESTAMP"
        return AtomicType(f"{name}({_PRECISION_OF_UNIT[arrow.unit]})", nullable)
    if _is_vector(arrow):
        plain = pa.list_(arrow.value_type)
        raise Unsupported(f"{arrow} is a VECTOR, which is not implemented; {plain} is an ARRAY")
    if (
        pa.types.is_list(arrow)
        or pa.types.is_large_list(arrow)
        or pa.types.is_fixed_size_list(arrow)
    ):
        element = arrow.value_field
        return ArrayType(nullable, _from_arrow(element.type, element.nullable, ids))
    if pa.types.is_map(arrow):
        key = _from_arrow(arrow.key_type, False, ids)
        return MapType(nullable, key, _from_arrow(arrow.item_type, arrow.item_field.nullable, ids))
    if pa.types.is_struct(arrow):
        if _is_variant(arrow):
            raise Unsupported(
                f"{arrow} is a VARIANT, which is not implemented; with nullable fields it is a ROW"
            )
        return RowType(nullable, tuple(_nested_field(f, ids) for f in arrow))
    raise InvalidSchema(f"the Arrow type {arrow} has no Paimon type")


# The types that the elements of a VECTOR can have.
_VECTOR_ELEMENTS: Final = frozenset(
    {
        pa.bool_(),
        pa.int8(),
        pa.int16(),
        pa.int32(),
        pa.int64(),
        pa.float32(),
        pa.float64(),
    }
)


def _is_vector(arrow: pa.DataType) -> bool:
    return pa.types.is_fixed_size_list(arrow) and arrow.value_type in _VECTOR_ELEMENTS


def _is_variant(arrow: pa.StructType) -> bool:
    """Whether a struct has the form in which engines store a VARIANT."""
    fields = {f.name: f for f in arrow}
    return (
        set(fields)
        == {"value", "metadata"}
        == {f.name for f in fields.values() if f.type == pa.binary() and not f.nullable}
    )


def _refuse_blobs(arrow: pa.DataType) -> None:
    if pa.types.is_large_binary(arrow):
        raise Unsupported(
            f"with data evolution, {arrow} is a BLOB, which is not implemented; binary is BYTES"
        )
    for position in range(arrow.num_fields):
        _refuse_blobs(arrow.field(position).type)


def _nested_field(field: pa.Field, ids: _Ids) -> DataField:
    field_id = ids.take()
    return DataField(field_id, field.name, _from_arrow(field.type, field.nullable, ids))
