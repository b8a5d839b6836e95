"""Delete and update rows with Spark's own expressions: Spark evaluates conditions and values."""

from collections.abc import Iterable, Mapping, Sequence

import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as sql

from emberlake.base.names import listed
from emberlake.errors import InvalidExpression, InvalidInput
from emberlake.expressions import Lit
from emberlake.predicates import Predicate, bind_filter
from emberlake.rowops.result import RowChangeResult
from emberlake.rowops.row_actions import ACTION, DELETE, UPDATE, RowActions
from emberlake.session.write_session import WriteSession
from emberlake.spark.changes import change_rows
from emberlake.spark.filters import to_literal
from emberlake.spark.key_rows import check_exact
from emberlake.spark.located import PLACE, LocatedRows
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
    actions = RowActions(deletes=True) if values is None else RowActions(tuple(values))
    actions.check(schema)

    def decide(located: LocatedRows) -> DataFrame:
        rows = located.rows if where is None else located.rows.filter(condition(where))
        known = located.store.schema.field_by_name
        new = [value_of(v, known[n]).alias(n) for n, v in (values or {}).items()]
        action = DELETE if values is None else UPDATE
        return rows.select(PLACE, sql.lit(action).alias(ACTION), *new)

    return change_rows(session, spark, decide, actions, predicate=predicate)


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
