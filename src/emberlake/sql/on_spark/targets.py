"""The values that UPDATE and MERGE give to columns, as columns of Spark."""

from collections.abc import Sequence
from functools import reduce

from pyspark.sql import Column
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql import types as T  # noqa: N812

from emberlake.expressions.assignments import field_at, with_fields
from emberlake.spark.column_changes import struct_of
from emberlake.sql.on_spark.assignment import Filling, assigned, default_of
from emberlake.sql.targets import Target
from emberlake.types import DataField, DataType, RowType


def assigned_values(
    targets: Sequence[Target],
    schema: T.StructType,
    old: dict[str, Column],
    *,
    keeps_old: bool = False,
) -> list[Column]:
    """New values of columns, from the values of a query by their numbers.

    Args:
        targets: The columns that are set.
        schema: The columns of the query.
        old: The values that some columns have.
        keeps_old: Whether NULL leaves a value as it is.
    """
    given = {field.name: field.dataType for field in schema}
    found: dict[str, Column] = {}
    fields = {target.field.name: target.field for target in targets}
    for number, target in enumerate(targets):
        name = target.field.name
        value, kind = F.col(f"_{number}"), given[f"_{number}"]
        if not target.path:
            found[name] = value_of(target.field, value, kind, is_default=target.is_default)
        else:
            before = found.get(name, old[name])
            found[name] = with_field(before, target.field.type, target.path, value, kind)
    if keeps_old:
        found = {name: F.coalesce(value, old[name]) for name, value in found.items()}
    return [found[name].alias(name) for name in fields]


def value_of(
    field: DataField,
    value: Column,
    kind: T.DataType,
    *,
    is_default: bool,
    by_name: bool = True,
    filling: Filling | None = None,
) -> Column:
    """A value that is set; NULL stays NULL unless the column has a default."""
    if is_default:
        return default_of(field)
    return assigned(value, field, kind, by_name=by_name, filling=filling)


def with_field(
    struct: Column, data_type: object, path: Sequence[str], value: Column, kind: T.DataType
) -> Column:
    """The struct with another value in a field; if it is NULL, its other fields are NULL."""
    assert isinstance(data_type, RowType)
    field = field_at(data_type, path)
    new = assigned(value, field, kind, by_name=True)

    def old(at: Sequence[str], _: DataType) -> Column:
        return reduce(Column.getField, at, struct)

    return with_fields(data_type, {tuple(path): new}, old, struct_of)
