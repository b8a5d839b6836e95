"""Values are assigned to columns by an ANSI cast, as in Paimon's connector for Spark.

Spark's rules of store assignment do not apply: '8' can be written to an INT, and 8.9 becomes 8. A
cast that is impossible fails when it is computed. A NULL becomes the default of its column.
"""

from pyspark.sql import Column
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql import types as T  # noqa: N812

from emberlake.errors import DataMismatch
from emberlake.spark.bucketing import missing_column
from emberlake.spark.types import to_spark_type
from emberlake.types import AtomicType, DataField, TypeRoot


def assigned(column: Column, field: DataField, given: T.DataType, *, by_name: bool) -> Column:
    """A value in the form that a column of the table takes.

    Args:
        column: The value.
        field: The column of the table.
        given: The type of the value.
        by_name: Whether fields of structs are matched by their names, and not by position.

    Raises:
        DataMismatch: fields are matched by name, and a struct lacks one or has others.
    """
    wanted = to_spark_type(field.type)
    if by_name:
        column = _reordered(column, given, wanted, field.name)
    value = _limited(_cast(column, given, wanted), field)
    if field.default_value is not None:
        value = F.coalesce(value, default_of(field))
    return value.alias(field.name)


def lacking(field: DataField) -> Column:
    """The value of a column that a statement leaves out: its default, or NULL.

    Raises:
        DataMismatch: the column is NOT NULL, and has no default.
    """
    if field.default_value is None and not field.type.nullable:
        raise DataMismatch(
            f"[NOT_NULL_ASSERT_VIOLATION] {field.name} is NOT NULL and has no default: give it a "
            "value"
        )
    return default_of(field).alias(field.name)


def default_of(field: DataField) -> Column:
    """The default of a column; NULL if it has none."""
    if field.default_value is not None and not isinstance(field.type, AtomicType):
        return F.expr(field.default_value).cast(to_spark_type(field.type))
    return missing_column(field).cast(to_spark_type(field.type))


def _cast(column: Column, given: T.DataType, wanted: T.DataType) -> Column:
    return column if given == wanted else column.cast(wanted)


def _limited(column: Column, field: DataField) -> Column:
    """CHAR is padded, and excess spaces are cut off, as in Spark."""
    match field.type:
        case AtomicType(root=TypeRoot.CHAR, length=length):
            return F.rpad(_cut(column, length, field), length, " ")
        case AtomicType(root=TypeRoot.VARCHAR, length=length) if length < _UNLIMITED:
            return _cut(column, length, field)
        case _:
            return column


_UNLIMITED = 2**31 - 1


def _cut(column: Column, length: int, field: DataField) -> Column:
    fits = F.length(F.rtrim(column)) <= length
    problem = F.lit(f"[EXCEED_LIMIT_LENGTH] a string is too long for {field.name} {field.type}")
    return (
        F.when(column.isNull(), F.lit(None).cast("string"))
        .when(fits, F.substring(column, 1, length))
        .otherwise(F.raise_error(problem).cast("string"))
    )


def _reordered(column: Column, given: T.DataType, wanted: T.DataType, name: str) -> Column:
    """A value whose structs have their fields in the order of the table."""
    match given, wanted:
        case T.StructType(), T.StructType() if given != wanted:
            return _struct(column, given, wanted, name)
        case T.ArrayType(), T.ArrayType() if _has_struct(wanted):
            inner, element = given.elementType, wanted.elementType
            return F.transform(column, lambda x: _reordered(x, inner, element, name))
        case T.MapType(), T.MapType() if _has_struct(wanted.valueType):
            inner, value = given.valueType, wanted.valueType
            return F.transform_values(column, lambda _, x: _reordered(x, inner, value, name))
        case _:
            return column


def _struct(column: Column, given: T.StructType, wanted: T.StructType, name: str) -> Column:
    known = {field.name.lower(): field for field in given}
    missing = [f.name for f in wanted if f.name.lower() not in known]
    if missing:
        raise DataMismatch(f"the struct field {name}.{missing[0]} is missing")
    if len(known) > len(wanted):
        names = {f.name.lower() for f in wanted}
        extra = next(field.name for field in given if field.name.lower() not in names)
        raise DataMismatch(f"{name} has no struct field {extra}")
    fields = [
        _cast(
            _reordered(
                column.getField(known[f.name.lower()].name),
                known[f.name.lower()].dataType,
                f.dataType,
                f"{name}.{f.name}",
            ),
            known[f.name.lower()].dataType,
            f.dataType,
        ).alias(f.name)
        for f in wanted
    ]
    return F.when(column.isNotNull(), F.struct(*fields))


def _has_struct(data_type: T.DataType) -> bool:
    match data_type:
        case T.StructType():
            return True
        case T.ArrayType():
            return _has_struct(data_type.elementType)
        case T.MapType():
            return _has_struct(data_type.valueType)
        case _:
            return False
