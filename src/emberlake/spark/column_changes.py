"""Delete and update rows with Spark's own expressions: Spark evaluates conditions and values."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import reduce

import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as sql

from emberlake.base.names import backquoted, listed
from emberlake.errors import InvalidExpression, InvalidInput
from emberlake.expressions import Lit
from emberlake.expressions.assignments import check_once, combined, find_target
from emberlake.predicates import Predicate, bind_filter
from emberlake.rowops.result import RowChangeResult
from emberlake.rowops.row_actions import ACTION, DELETE, UPDATE, RowActions
from emberlake.session.write_session import WriteSession
from emberlake.spark.changes import change_rows
from emberlake.spark.filters import to_literal
from emberlake.spark.located import PLACE, LocatedRows
from emberlake.spark.numbering import check_exact
from emberlake.spark.types import nullable_fields, spark_schema
from emberlake.spec.literals import cast_literal
from emberlake.types import (
    ArrayType,
    AtomicType,
    DataField,
    DataType,
    MapType,
    RowType,
    TypeRoot,
)


def uses_columns(given: Iterable[object]) -> bool:
    """Whether Spark is to evaluate an operation: one of its expressions is a Column."""
    return any(isinstance(value, Column) for value in given)


def change_by_columns(
    session: WriteSession,
    spark: SparkSession,
    where: Predicate | str | Column | None,
    values: Mapping[str, object] | None,
) -> RowChangeResult:
    """Delete the rows that match (no values), or set columns of them, in one commit."""
    schema = session.store.schema
    predicate = None
    if not isinstance(where, Column | str):
        predicate, where = bind_filter(where, schema), None  # also prunes
    given = values or {}
    sets = dict.fromkeys(find_target(name, schema.fields).column.name for name in given)
    actions = RowActions(tuple(sets), deletes=values is None)
    actions.check(schema)

    def decide(located: LocatedRows) -> DataFrame:
        rows = located.rows if where is None else located.rows.filter(condition(where))
        made = new_values(given, located.store.schema.fields, _own_column)
        new = [value.alias(name) for name, value in made.items()]
        action = DELETE if values is None else UPDATE
        return rows.select(PLACE, sql.lit(action).alias(ACTION), *new)

    return change_rows(session, spark, decide, actions, predicate=predicate)


def _own_column(name: str) -> Column:
    return sql.col(backquoted(name))


def condition(given: object) -> Column:
    """A condition as a Column; text is Spark's SQL.

    Raises:
        InvalidInput: it is not a condition.
    """
    if isinstance(given, Column):
        return given
    if isinstance(given, str):
        return sql.expr(given)
    raise InvalidInput(f"a condition is a Column or text, not {given!r}")


def new_values(
    given: Mapping[str, object], fields: Sequence[DataField], old: Callable[[str], Column]
) -> dict[str, Column]:
    """The new values of columns, by name, from what columns and their fields are set to.

    Args:
        given: By name, a Column, Spark's SQL, or a value.
        fields: The columns of the table.
        old: Makes the value that a column of the table has.

    Raises:
        ColumnNotFound: there is no such column or field.
        InvalidExpression: a value does not fit, or something is set twice.
    """
    found = {name: find_target(name, fields) for name in given}
    check_once(list(found.values()))
    targets = [(found[name], value_of(value, found[name].field)) for name, value in given.items()]

    def old_field(column: DataField, path: Sequence[str], _: DataType) -> Column:
        return reduce(Column.getField, path, old(column.name))

    return combined(targets, old_field, struct_of)


def struct_of(kind: RowType, parts: Sequence[Column]) -> Column:
    """A struct with the fields of a ROW."""
    named = zip(parts, kind.fields, strict=True)
    return sql.struct(*(part.alias(field.name) for part, field in named))


def value_of(given: object, field: DataField) -> Column:
    """The new value of a column as a Column; text is Spark's SQL, anything else a value.

    Raises:
        InvalidExpression: it does not fit the column.
        Unsupported: Spark has no such value.
    """
    if isinstance(given, Column):
        return given
    if isinstance(given, str):
        return sql.expr(given)
    value = given.value if isinstance(given, Lit) else given
    if isinstance(value, pa.Scalar):
        value = value.as_py()
    if value is None:
        return sql.lit(None)
    check_exact((field,))
    try:
        return _literal(field.type, value)
    except InvalidInput as error:
        raise InvalidExpression(f"{value!r:.80} does not fit {field}: {error}") from error


def _literal(kind: DataType, value: object) -> Column:
    """A value of any type as a Spark literal; nested values are built from their parts."""
    (whole,) = nullable_fields(spark_schema((DataField(0, "", kind),))).fields
    match kind:
        case _ if value is None:
            return sql.lit(None).cast(whole.dataType)
        case RowType() if isinstance(value, Mapping):
            unknown = sorted(set(value) - {f.name for f in kind.fields})
            if unknown:
                raise InvalidInput(f"there are no fields {listed(unknown)}")
            parts = (_literal(f.type, value.get(f.name)).alias(f.name) for f in kind.fields)
            return sql.struct(*parts).cast(whole.dataType)
        case ArrayType() if isinstance(value, Sequence) and not isinstance(value, str | bytes):
            return sql.array(*(_literal(kind.element, item) for item in value)).cast(whole.dataType)
        case MapType() if isinstance(value, Mapping):
            both = (
                _literal(side, item)
                for pair in value.items()
                for side, item in zip((kind.key, kind.value), pair, strict=True)
            )
            return sql.create_map(*both).cast(whole.dataType)
        case AtomicType() if not kind.root.is_opaque:
            plain = cast_literal(kind, value)
            return sql.lit(value) if kind.root is TypeRoot.TIME else to_literal(kind, plain)
        case _:
            return sql.lit(value)
