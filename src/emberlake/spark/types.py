"""The type contract: Paimon columns as Spark columns, both ways, and the Arrow types between them.

What a table hands out: TIMESTAMP is ``timestamp_ntz`` and TIMESTAMP_LTZ ``timestamp``; Spark counts
microseconds, so that TIMESTAMP(7..9) is cut to the microsecond before it. CHAR(n) and VARCHAR(n)
are ``string``, BINARY(n) and VARBINARY(n) ``binary``: Spark has no limits of length, writes check
them. MULTISET is a map from element to count. ``docs/types.md`` has the table.

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

# Spark counts time in finer steps than the format does, but declares at most these digits.
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
# Types that the format has as well, though emberlake neither reads nor writes them.
_NOT_YET: Final = frozenset({"variant", "geometry", "geography"})


# --- from Paimon to Spark -------------------------------------------------------------------------


def to_spark_type(data_type: DataType) -> spark.DataType:
    """The Spark type in which a column is handed out.

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
    """Whether Spark has the values of an atomic type as they are, and compares them.

    It cuts timestamps to microseconds, and takes literals of TIME only where a setting allows that.
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
    """The same columns, all of which may be null, at every depth.

    Spark believes a NOT NULL and skips checks, also where another engine has not kept to it; its
    own Parquet reader knows no columns without nulls, and how rows are read must not show.
    """
    return spark.StructType(
        [spark.StructField(f.name, _nullable(f.dataType), True, f.metadata) for f in struct.fields]
    )


def _nullable(spark_type: spark.DataType) -> spark.DataType:
    match spark_type:
        case spark.StructType():
            return nullable_fields(spark_type)
        case spark.ArrayType():
            return spark.ArrayType(_nullable(spark_type.elementType), True)
        case spark.MapType():
            key, value = _nullable(spark_type.keyType), _nullable(spark_type.valueType)
            return spark.MapType(key, value, True)
        case _:
            return spark_type


# --- from Spark to Paimon -------------------------------------------------------------------------


def to_paimon_type(spark_type: spark.DataType, nullable: bool = True) -> DataType:  # noqa: FBT001, FBT002
    """The column type that keeps every value of a Spark type; nested fields get ids from 0 on.

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
        InvalidSchema: naming every column without a Paimon type.
        Unsupported: naming every column that emberlake cannot write.
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


def _paimon_type(spark_type: spark.DataType, nullable: bool) -> DataType:  # noqa: FBT001
    match spark_type:
        case spark.StringType() if not spark_type.isUTF8BinaryCollation():
            raise InvalidSchema(
                f"{spark_type.simpleString()}: tables keep no collation, texts compare by their "
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


# Where Spark notes the length of a char or varchar column, whose type it shows as string.
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
    """A Spark type as people read it."""
    if isinstance(spark_type, spark.UserDefinedType):
        return f"the user-defined type {type(spark_type).__name__}"
    return spark_type.simpleString()


# --- Arrow between the JVM and Python -------------------------------------------------------------


def arrow_input_schema(struct: spark.StructType) -> pa.Schema:
    """The Arrow schema in which Spark hands rows to Python workers and takes them back.

    Two settings of the session change how the same values come in, which makes no difference to
    ``align``: timestamps carry the session's zone instead of UTC, and texts and bytes are of the
    large kind with ``spark.sql.execution.arrow.useLargeVarTypes``.

    Raises:
        InvalidSchema: a column of a type that no table holds.
    """
    return pa.schema([_arrow_field(f.name, f.dataType, f.nullable) for f in struct])


def handed_out(fields: tuple[DataField, ...]) -> pa.Schema:
    """The Arrow schema in which these columns of a table go to Spark."""
    return arrow_input_schema(spark_schema(fields))


def to_spark_batch(rows: _Rows, schema: pa.Schema) -> _Rows:
    """Rows as the engine reads them, in the schema that ``handed_out`` gave; columns by name.

    Raises:
        DataMismatch: a timestamp beyond the years that Spark can count.
    """
    if rows.schema.equals(schema):
        return rows
    columns = [_to_spark_column(rows.column(field.name), field) for field in schema]
    return type(rows).from_arrays(columns, schema=schema)


def _arrow_field(name: str, spark_type: spark.DataType, nullable: bool) -> pa.Field:  # noqa: FBT001
    is_void = isinstance(spark_type, spark.NullType)  # Arrow has it that these are all null
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
            raise InvalidSchema(f"{type_name(spark_type)} is the type of no column of a table")


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
            f"column {field.name} holds a timestamp that Spark's microseconds do not reach: {error}"
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
    """Whole microseconds, those before 1970 rounded to the past as well: a cast would cut."""
    nanos = array.cast(pa.int64())
    cut = pc.divide(nanos, 1000)
    return pc.subtract(cut, pc.less(nanos, pc.multiply(cut, 1000)).cast(pa.int64()))
