"""Values are assigned to columns by an ANSI cast, as in Paimon's connector for Spark.

Spark's rules of store assignment do not apply: '8' can be written to an INT, and 8.9 becomes 8. A
cast that is impossible fails when it is computed. A NULL becomes the default of its column.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from pyspark.sql import Column
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql import types as T  # noqa: N812

from emberlake.errors import DataMismatch
from emberlake.spark.bucketing import missing_column
from emberlake.spark.types import nullable_type, paimon_fields, to_spark_type
from emberlake.sql.targets import by_lower_name
from emberlake.types import (
    ArrayType,
    AtomicType,
    DataField,
    DataType,
    MapType,
    RowType,
    TypeRoot,
)


@dataclass(frozen=True)
class Filling:
    """Structs may lack fields: they are as in an old value, or NULL."""

    old: Column | None = None

    def inside(self, name: str) -> "Filling":
        """The same for a field of the struct."""
        return Filling(None if self.old is None else self.old.getField(name))


def given_fields(struct: T.StructType, known: Sequence[DataField]) -> tuple[DataField, ...]:
    """The columns that rows may add to a table; what is NULL for a column that it has adds nothing.

    Raises:
        InvalidSchema: a column has no type of Paimon.
    """
    names = by_lower_name(known)
    typed = (
        column
        for column in struct
        if not (isinstance(column.dataType, T.NullType) and column.name.lower() in names)
    )
    return paimon_fields(T.StructType(list(typed)))


def assigned(
    column: Column,
    field: DataField,
    given: T.DataType,
    *,
    by_name: bool,
    filling: Filling | None = None,
) -> Column:
    """A value in the form that a column of the table takes.

    Args:
        column: The value.
        field: The column of the table.
        given: The type of the value.
        by_name: Whether fields of structs are matched by their names, and not by position.
        filling: What fields are that a struct lacks; by default this is an error.

    Raises:
        DataMismatch: fields are matched by name, and a struct lacks one or has others.
    """
    # Whether parts are null is checked where rows are written: Spark casts no part that may be null
    # to one that is NOT NULL.
    wanted = nullable_type(to_spark_type(field.type))
    if by_name:
        column = _reordered(column, given, wanted, field.name, filling)
    value = _limited(_cast(column, given, wanted), field.type, field.name)
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
    return column if nullable_type(given) == wanted else column.cast(wanted)


def _limited(column: Column, data_type: DataType, name: str) -> Column:
    """CHAR is padded, and excess spaces are cut off, as in Spark; also inside of other types."""
    if not _is_limited(data_type):
        return column
    match data_type:
        case AtomicType(root=TypeRoot.CHAR, length=length):
            return F.rpad(_cut(column, data_type, name), length, " ")
        case ArrayType(element=element):
            return F.transform(column, lambda x: _limited(x, element, name))
        case MapType(key=key, value=value):
            entries = F.map_entries(column)
            return F.map_from_arrays(
                F.transform(entries, lambda x: _limited(x.getField("key"), key, name)),
                F.transform(entries, lambda x: _limited(x.getField("value"), value, name)),
            )
        case RowType(fields=fields):
            inner = (
                _limited(column.getField(f.name), f.type, f"{name}.{f.name}").alias(f.name)
                for f in fields
            )
            return F.when(column.isNotNull(), F.struct(*inner))
        case _:
            return _cut(column, data_type, name)


def _is_limited(data_type: DataType) -> bool:
    """Whether there is a text of limited length in values of a type."""
    match data_type:
        case AtomicType(root=TypeRoot.CHAR):
            return True
        case AtomicType(root=TypeRoot.VARCHAR, length=length):
            return length < _UNLIMITED
        case ArrayType(element=element):
            return _is_limited(element)
        case MapType(key=key, value=value):
            return _is_limited(key) or _is_limited(value)
        case RowType(fields=fields):
            return any(_is_limited(f.type) for f in fields)
        case _:
            return False


_UNLIMITED = 2**31 - 1


def _cut(column: Column, data_type: DataType, name: str) -> Column:
    assert isinstance(data_type, AtomicType)
    fits = F.length(F.rtrim(column)) <= data_type.length
    problem = F.lit(f"[EXCEED_LIMIT_LENGTH] a string is too long for {name} {data_type}")
    return (
        F.when(column.isNull(), F.lit(None).cast("string"))
        .when(fits, F.substring(column, 1, data_type.length))
        .otherwise(F.raise_error(problem).cast("string"))
    )


def _reordered(
    column: Column, given: T.DataType, wanted: T.DataType, name: str, filling: Filling | None
) -> Column:
    """A value whose structs have their fields in the order of the table."""
    part = None if filling is None else Filling()
    match given, wanted:
        case T.StructType(), T.StructType() if given != wanted:
            return _struct(column, given, wanted, name, filling)
        case T.ArrayType(), T.ArrayType() if _has_struct(wanted):
            inner, element = given.elementType, wanted.elementType
            return F.transform(column, lambda x: _reordered(x, inner, element, name, part))
        case T.MapType(), T.MapType() if _has_struct(wanted.valueType):
            inner, value = given.valueType, wanted.valueType
            return F.transform_values(column, lambda _, x: _reordered(x, inner, value, name, part))
        case _:
            return column


def _struct(
    column: Column,
    given: T.StructType,
    wanted: T.StructType,
    name: str,
    filling: Filling | None,
) -> Column:
    known = {field.name.lower(): field for field in given}
    missing = [f.name for f in wanted if f.name.lower() not in known]
    if missing and filling is None:
        raise DataMismatch(f"the struct field {name}.{missing[0]} is missing")
    extra = [f.name for f in given if f.name.lower() not in {w.name.lower() for w in wanted}]
    if extra:
        raise DataMismatch(f"{name} has no struct field {extra[0]}")

    def value(field: T.StructField) -> Column:
        inside = None if filling is None else filling.inside(field.name)
        source = known.get(field.name.lower())
        if source is None:
            old = None if inside is None else inside.old
            return F.lit(None).cast(field.dataType) if old is None else old
        inner = column.getField(source.name)
        path = f"{name}.{field.name}"
        reordered = _reordered(inner, source.dataType, field.dataType, path, inside)
        return _cast(reordered, source.dataType, field.dataType)

    is_there = column.isNotNull()
    if missing and filling is not None and filling.old is not None:
        is_there |= filling.old.isNotNull()
    return F.when(is_there, F.struct(*(value(f).alias(f.name) for f in wanted)))


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
