"""The type contract: Paimon columns as Spark columns, both ways, and the Arrow types between them.

In reads, TIMESTAMP is ``timestamp_ntz`` and TIMESTAMP_LTZ ``timestamp``; Spark counts microseconds,
so TIMESTAMP(7..9) is rounded down to the microsecond. CHAR(n) and VARCHAR(n) are ``string``,
BINARY(n) and VARBINARY(n) ``binary``: Spark has no length limits, so writes check them. MULTISET is
a map from element to count. ``docs/types.md`` has the full table.

Rows cross between the JVM and Python as Arrow, in the same schema in both directions
(``arrow_input_schema``).
"""

import re
from typing import Final, TypeVar

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import types as spark

from emberlake.errors import DataMismatch, EmberlakeError, InvalidSchema, Unsupported
from emberlake.formats.nested import map_leaves
from emberlake.spec.field_ids import assign_field_ids
from emberlake.types import (
    ArrayType,
    AtomicType,
    DataField,
    DataType,
    MapType,
    MultisetType,
    RowType,
    TypeRoot,
)
from emberlake.types.data_types import MAX_DECIMAL_PRECISION
from emberlake.write.row_kinds import ROW_KIND_COLUMN

# Spark stores times more precisely than the format, but declares at most this many digits.
MAX_TIME_PRECISION: Final = 6
_MAX_TIMESTAMP_PRECISION: Final = 6  # Spark counts microseconds

_Rows = TypeVar("_Rows", pa.RecordBatch, pa.Table)

_PLAIN: Final[tuple[tuple[TypeRoot, spark.DataType, pa.DataType], ...]] = (
    (TypeRoot.BOOLEAN, spark.BooleanType(), pa.bool_()),
    (TypeRoot.TINYINT, spark.ByteType(), pa.int8()),
    (TypeRoot.SMALLINT, spark.ShortType(), pa.int16()),
    (TypeRoot.INT, spark.IntegerType(), pa.int32()),
    (TypeRoot.BIGINT, spark.LongType(), pa.int64()),
    (TypeRoot.FLOAT, spark.FloatType(), pa.float32()),
    (TypeRoot.DOUBLE, spark.DoubleType(), pa.float64()),
    (TypeRoot.VARCHAR, spark.StringType(), pa.string()),
    (TypeRoot.VARBINARY, spark.BinaryType(), pa.binary()),
    (TypeRoot.DATE, spark.DateType(), pa.date32()),
    (TypeRoot.TIMESTAMP, spark.TimestampNTZType(), pa.timestamp("us")),
    (TypeRoot.TIMESTAMP_LTZ, spark.TimestampType(), pa.timestamp("us", tz="UTC")),
)
_SPARK_OF_ROOT: Final = {root: kind for root, kind, _ in _PLAIN} | {
    TypeRoot.CHAR: spark.StringType(),
    TypeRoot.BINARY: spark.BinaryType(),
}
_ROOT_OF_SPARK: Final = {type(kind): root for root, kind, _ in _PLAIN}
_ARROW_OF_SPARK: Final = {type(kind): arrow for _, kind, arrow in _PLAIN} | {
    spark.CharType: pa.string(),
    spark.VarcharType: pa.string(),
    spark.TimeType: pa.time64("ns"),
    spark.NullType: pa.null(),
}
_TEXT_OF_ROOT: Final = {
    TypeRoot.VARCHAR: "STRING",
    TypeRoot.VARBINARY: "BYTES",
    TypeRoot.TIMESTAMP: "TIMESTAMP(6)",
    TypeRoot.TIMESTAMP_LTZ: "TIMESTAMP_LTZ(6)",
}
# Types that the format also has, but emberlake neither reads nor writes.
_NOT_YET: Final = frozenset({"variant", "geometry", "geography"})


# --- from Paimon to Spark -------------------------------------------------------------------------


def to_spark_type(data_type: DataType) -> spark.DataType:
    """The Spark type of a column in reads.

    Raises:
        Unsupported: emberlake does not read columns of that type.
    """
    match data_type:
        case AtomicType(root=TypeRoot.DECIMAL, precision=precision, scale=scale):
            return spark.DecimalType(precision, scale)
        case AtomicType(root=TypeRoot.TIME, precision=precision):
            return spark.TimeType(min(precision, MAX_TIME_PRECISION))
        case AtomicType(root=root) if root in _SPARK_OF_ROOT:
            return _SPARK_OF_ROOT[root]
        case ArrayType(element=element):
            return spark.ArrayType(to_spark_type(element), element.nullable)
        case MapType(key=key, value=value):
            return spark.MapType(to_spark_type(key), to_spark_type(value), value.nullable)
        case MultisetType(element=element):
            return spark.MapType(to_spark_type(element), spark.IntegerType(), False)
        case RowType(fields=fields):
            return spark_schema(fields)
        case _:
            raise Unsupported(f"columns of type {data_type} cannot be read yet")


def is_same_in_spark(data_type: DataType) -> bool:
    """Whether Spark represents and compares the values of an atomic type exactly.

    It truncates timestamps to microseconds, and accepts TIME literals only if a setting allows it.
    """
    if not isinstance(data_type, AtomicType):
        return False
    if data_type.root.is_timestamp:
        return data_type.precision <= _MAX_TIMESTAMP_PRECISION
    return data_type.root is TypeRoot.DECIMAL or data_type.root in _SPARK_OF_ROOT


def spark_schema(fields: tuple[DataField, ...]) -> spark.StructType:
    """The schema of the DataFrame that reads these columns; descriptions become comments."""
    return spark.StructType(
        [
            spark.StructField(
                f.name,
                to_spark_type(f.type),
                f.type.nullable,
                {} if f.description is None else {"comment": f.description},
            )
            for f in fields
        ]
    )


def nullable_fields(struct: spark.StructType) -> spark.StructType:
    """The same columns, all of them nullable, at every depth.

    Spark trusts a NOT NULL and skips checks, even if another engine has violated it. Its own
    Parquet reader has only nullable columns, and the schema must not depend on the reader.
    """
    return spark.StructType(
        [
            spark.StructField(f.name, nullable_type(f.dataType), True, f.metadata)
            for f in struct.fields
        ]
    )


def nullable_type(spark_type: spark.DataType) -> spark.DataType:
    """The same type, whose parts are nullable at every depth."""
    match spark_type:
        case spark.StructType():
            return nullable_fields(spark_type)
        case spark.ArrayType():
            return spark.ArrayType(nullable_type(spark_type.elementType), True)
        case spark.MapType():
            key, value = nullable_type(spark_type.keyType), nullable_type(spark_type.valueType)
            return spark.MapType(key, value, True)
        case _:
            return spark_type


# --- from Spark to Paimon -------------------------------------------------------------------------


def to_paimon_type(spark_type: spark.DataType, nullable: bool = True) -> DataType:  # noqa: FBT001, FBT002
    """The column type that holds every value of a Spark type; nested fields get ids from 0 on.

    Raises:
        InvalidSchema: there is none.
        Unsupported: there is one, but emberlake does not write it.
    """
    (field,) = assign_field_ids([DataField(0, "", _paimon_type(spark_type, nullable))], next_id=-1)
    return field.type


def paimon_fields(struct: spark.StructType) -> tuple[DataField, ...]:
    """The columns of a table for a DataFrame; comments become descriptions.

    A string that Spark knows to be ``char(n)`` or ``varchar(n)`` keeps its length.

    Raises:
        InvalidSchema: names every column without a Paimon type.
        Unsupported: names every column that emberlake cannot write.
    """
    fields: list[DataField] = []
    problems: list[tuple[str, EmberlakeError]] = []
    for column in struct:
        try:
            data_type = _paimon_type(_declared_type(column), column.nullable)
        except (InvalidSchema, Unsupported) as problem:
            problems.append((column.name, problem))
            continue
        fields.append(DataField(0, column.name, data_type, _comment(column)))
    if problems:
        is_known = all(isinstance(problem, Unsupported) for _, problem in problems)
        text = "; ".join(f"{name}: {problem}" for name, problem in problems)
        raise (Unsupported if is_known else InvalidSchema)(f"columns without a Paimon type: {text}")
    return assign_field_ids(fields, next_id=0)


def new_table_fields(struct: spark.StructType) -> tuple[DataField, ...]:
    """The columns of a table that is created from a DataFrame, or that gains its columns.

    All of them can be null, and so can everything inside of them, as in tables that Spark creates:
    whether a column of a DataFrame is nullable depends on how it was computed. Row kinds do not
    become a column, and neither does a column of untyped nulls.
    """
    columns = [
        column
        for column in struct.toNullable()
        if column.name != ROW_KIND_COLUMN and not isinstance(column.dataType, spark.NullType)
    ]
    return paimon_fields(spark.StructType(columns))


def _paimon_type(spark_type: spark.DataType, nullable: bool) -> DataType:  # noqa: FBT001
    match spark_type:
        case spark.StringType() if not spark_type.isUTF8BinaryCollation():
            raise InvalidSchema(
                f"{spark_type.simpleString()}: tables have no collations, strings compare by their "
                "bytes; cast it to string first"
            )
        case spark.CharType() | spark.VarcharType():
            return AtomicType(spark_type.simpleString().upper(), nullable)
        case spark.DecimalType():
            return _decimal_type(spark_type, nullable)
        case spark.TimeType():
            return AtomicType(f"TIME({spark_type.precision})", nullable)
        case spark.ArrayType():
            element = _paimon_type(spark_type.elementType, spark_type.containsNull)
            return ArrayType(nullable, element)
        case spark.MapType():
            key = _paimon_type(spark_type.keyType, nullable=False)
            value = _paimon_type(spark_type.valueType, spark_type.valueContainsNull)
            return MapType(nullable, key, value)
        case spark.StructType():
            inner = (
                DataField(0, f.name, _paimon_type(f.dataType, f.nullable), _comment(f))
                for f in spark_type
            )
            return RowType(nullable, tuple(inner))
        case _:
            return _plain_type(spark_type, nullable)


def _plain_type(spark_type: spark.DataType, nullable: bool) -> DataType:  # noqa: FBT001
    root = _ROOT_OF_SPARK.get(type(spark_type))
    if root is not None:
        return AtomicType(_TEXT_OF_ROOT.get(root, root), nullable)
    if spark_type.typeName() in _NOT_YET:
        raise Unsupported(f"{type_name(spark_type)} cannot be written yet")
    raise InvalidSchema(f"{type_name(spark_type)} has no Paimon type; cast it to one that has")


def _decimal_type(spark_type: spark.DecimalType, nullable: bool) -> DataType:  # noqa: FBT001
    precision, scale = spark_type.precision, spark_type.scale
    if not 0 <= scale <= precision <= MAX_DECIMAL_PRECISION:
        raise InvalidSchema(f"{type_name(spark_type)} does not fit DECIMAL(p <= 38, 0 <= s <= p)")
    return AtomicType(f"DECIMAL({precision}, {scale})", nullable)


# Where Spark records the length of a char or varchar column, whose type it shows as string.
_DECLARED: Final = "__CHAR_VARCHAR_TYPE_STRING"
_LIMITED_TEXT: Final = re.compile(r"(var)?char\((\d+)\)")


def _declared_type(column: spark.StructField) -> spark.DataType:
    found = _LIMITED_TEXT.fullmatch(str(column.metadata.get(_DECLARED, "")))
    if found is None or type(column.dataType) is not spark.StringType:
        return column.dataType
    length = int(found.group(2))
    return spark.VarcharType(length) if found.group(1) else spark.CharType(length)


def _comment(column: spark.StructField) -> str | None:
    comment = column.metadata.get("comment")
    return comment if isinstance(comment, str) else None


def type_name(spark_type: spark.DataType) -> str:
    """A Spark type in readable form."""
    if isinstance(spark_type, spark.UserDefinedType):
        return f"the user-defined type {type(spark_type).__name__}"
    return spark_type.simpleString()


# --- Arrow between the JVM and Python -------------------------------------------------------------


def arrow_input_schema(struct: spark.StructType) -> pa.Schema:
    """The Arrow schema in which Spark passes rows to Python workers and gets them back.

    Two settings of the session change the form of incoming values, which makes no difference to
    ``align``: timestamps carry the session's zone instead of UTC, and with
    ``spark.sql.execution.arrow.useLargeVarTypes`` strings and bytes are of the large kind.

    Raises:
        InvalidSchema: a column has a type that no table can hold.
    """
    return pa.schema([_arrow_field(f.name, f.dataType, f.nullable) for f in struct])


def handed_out(fields: tuple[DataField, ...]) -> pa.Schema:
    """The Arrow schema in which these columns of a table are passed to Spark."""
    return arrow_input_schema(spark_schema(fields))


def to_spark_batch(rows: _Rows, schema: pa.Schema) -> _Rows:
    """Convert rows of the engine to the schema that ``handed_out`` returned, by column name.

    Raises:
        DataMismatch: a timestamp is outside the range of Spark.
    """
    if rows.schema.equals(schema):
        return rows
    columns = [_to_spark_column(rows.column(field.name), field) for field in schema]
    return type(rows).from_arrays(columns, schema=schema)


def _arrow_field(name: str, spark_type: spark.DataType, nullable: bool) -> pa.Field:  # noqa: FBT001
    is_void = isinstance(spark_type, spark.NullType)  # in Arrow these must be nullable
    return pa.field(name, _arrow_type(spark_type), nullable=nullable or is_void)


def _arrow_type(spark_type: spark.DataType) -> pa.DataType:
    match spark_type:
        case spark.DecimalType():
            return pa.decimal128(spark_type.precision, spark_type.scale)
        case spark.ArrayType():
            return pa.list_(
                _arrow_field("element", spark_type.elementType, spark_type.containsNull)
            )
        case spark.MapType() if not isinstance(spark_type.keyType, spark.NullType):
            return pa.map_(
                _arrow_field("key", spark_type.keyType, nullable=False),
                _arrow_field("value", spark_type.valueType, spark_type.valueContainsNull),
            )
        case spark.StructType():
            return pa.struct([_arrow_field(f.name, f.dataType, f.nullable) for f in spark_type])
        case _ if type(spark_type) in _ARROW_OF_SPARK:
            return _ARROW_OF_SPARK[type(spark_type)]
        case _:
            raise InvalidSchema(f"no column of a table can have the type {type_name(spark_type)}")


def _to_spark_column(
    column: pa.Array | pa.ChunkedArray, field: pa.Field
) -> pa.Array | pa.ChunkedArray:
    if column.type == field.type:
        return column
    try:
        if isinstance(column, pa.ChunkedArray):
            chunks = [map_leaves(chunk, _to_spark_leaf) for chunk in column.chunks]
            return pa.chunked_array(chunks, type=field.type)
        return map_leaves(column, _to_spark_leaf)
    except pa.ArrowInvalid as error:
        raise DataMismatch(
            f"column {field.name} holds a timestamp outside of Spark's range: {error}"
        ) from error


def _to_spark_leaf(array: pa.Array) -> pa.Array:
    kind = array.type
    if pa.types.is_time(kind):
        return array.cast(pa.time64("ns"))
    if not pa.types.is_timestamp(kind) or kind.unit == "us":
        return array
    micros = pa.timestamp("us", tz=kind.tz)
    return _floor_to_micros(array).cast(micros) if kind.unit == "ns" else array.cast(micros)


def _floor_to_micros(array: pa.Array) -> pa.Array:
    """Whole microseconds, rounded to the past even before 1970, where a cast would truncate."""
    nanos = array.cast(pa.int64())
    cut = pc.divide(nanos, 1000)
    return pc.subtract(cut, pc.less(nanos, pc.multiply(cut, 1000)).cast(pa.int64()))
