"""Which rows and columns of its tables a query needs, so that other files are not planned.

Everything here is optional: what is not understood is read, and the engine filters anyway. A
condition is used only if it means the same in Spark and in our filters: a comparison of a column
with a literal of the same kind, in WHERE, and never true for NULL. Then it holds for tables on
either side of any join: without a skipped row, an outer join could only give NULLs, which WHERE
drops.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from emberlake.errors import EmberlakeError
from emberlake.predicates import Predicate, PredicateBuilder, and_all
from emberlake.spec.schema import TableSchema
from emberlake.sql.references import Form, Found
from emberlake.types import AtomicType, DataField, TypeRoot

_DAY: Final = re.compile(r"\d{4}-\d{2}-\d{2}", re.ASCII)
_INTEGERS: Final = frozenset(
    {TypeRoot.TINYINT, TypeRoot.SMALLINT, TypeRoot.INT, TypeRoot.BIGINT, TypeRoot.DECIMAL}
)
# Words that give a query columns that it does not name.
_UNNAMED: Final = frozenset({"natural", "pivot", "unpivot"})
_COMPARISONS: Final[Mapping[type[exp.Expr], tuple[str, str]]] = {
    exp.EQ: ("equal", "equal"),
    exp.LT: ("less_than", "greater_than"),
    exp.LTE: ("less_or_equal", "greater_or_equal"),
    exp.GT: ("greater_than", "less_than"),
    exp.GTE: ("greater_or_equal", "less_or_equal"),
}


def needed_columns(found: Found, schema: TableSchema) -> list[str] | None:
    """The columns of a table that a query names; None: it may need all.

    Every word of the query counts as a column, so none is missing.
    """
    is_open = (
        bool(found.stars)
        or "|>" in found.text
        or "select" not in found.words
        or bool(_UNNAMED & found.words)
        or any(reference.form is Form.TABLE for reference in found.references)
    )
    if is_open:
        return None
    return [name for name in schema.field_names if name.lower() in found.words]


def predicates_in(
    text: str, tables: Mapping[int, TableSchema], args: Mapping[str, Any]
) -> dict[int, Predicate]:
    """Conditions that rows of tables must meet to matter for a query.

    Args:
        text: The query.
        tables: The tables, by the places where the query names them.
        args: The values of parameters.
    """
    # A sample is taken before rows are filtered. Parsers disagree about escapes and pipes.
    if not tables or "tablesample" in text.lower() or "\\" in text or "|>" in text:
        return {}
    try:
        tree = sqlglot.parse_one(text, dialect="spark")
    except (SqlglotError, RecursionError):
        return {}
    found: dict[int, Predicate] = {}
    for select in tree.find_all(exp.Select):
        sources = list(_sources(select, tables))
        for source in sources:
            alone = len(sources) == 1 and _has_one_source(select)
            predicate = _predicate(select, source, args, is_alone=alone)
            if predicate is not None:
                found[source.place] = predicate
    return found


@dataclass(frozen=True)
class _Source:
    place: int
    name: str  # which qualifies its columns, in lower case
    schema: TableSchema


def _sources(select: exp.Select, tables: Mapping[int, TableSchema]) -> Iterator[_Source]:
    """The tables of the FROM clause of a query that are to be pruned."""
    clauses = [select.args.get("from_") or select.args.get("from"), *select.args.get("joins", ())]
    for clause in clauses:
        table = None if clause is None else clause.this
        if not isinstance(table, exp.Table) or not table.parts:
            continue
        place = table.parts[0].meta.get("start")
        if isinstance(place, int) and place in tables:
            yield _Source(place, table.alias_or_name.lower(), tables[place])


def _has_one_source(select: exp.Select) -> bool:
    """Whether a column without a qualifier can only be one of the table, or of a query around."""
    return not select.args.get("joins") and not select.args.get("laterals")


def _predicate(
    select: exp.Select, source: _Source, args: Mapping[str, Any], *, is_alone: bool
) -> Predicate | None:
    where = select.args.get("where")
    if where is None:
        return None
    conjuncts = where.this.flatten() if isinstance(where.this, exp.And) else [where.this]
    binder = _Binder(source, args, is_alone=is_alone)
    return and_all([binder.bind(conjunct) for conjunct in conjuncts])


class _Binder:
    def __init__(self, source: _Source, args: Mapping[str, Any], *, is_alone: bool) -> None:
        self._source = source
        self._args = args
        self._is_alone = is_alone
        self._fields = {f.name.lower(): f for f in source.schema.fields}
        self._builder = PredicateBuilder(list(source.schema.fields))

    def bind(self, condition: exp.Expr) -> Predicate | None:
        """The condition as one of our filters; None if there is no such filter."""
        try:
            return self._bind(condition.unnest())
        except EmberlakeError:
            return None

    def _bind(self, condition: exp.Expr) -> Predicate | None:
        comparison = _COMPARISONS.get(type(condition))
        if comparison is not None:
            plain, turned = comparison
            return self._compared(plain, condition.this, condition.expression) or self._compared(
                turned, condition.expression, condition.this
            )
        if isinstance(condition, exp.Between) and not condition.args.get("symmetric"):
            low = self._compared("greater_or_equal", condition.this, condition.args["low"])
            return and_all(
                [low, self._compared("less_or_equal", condition.this, condition.args["high"])]
            )
        if isinstance(condition, exp.In) and condition.expressions:
            return self._listed(condition)
        return None

    def _compared(self, method: str, column: exp.Expr, value: exp.Expr) -> Predicate | None:
        field = self._field(column)
        literal = None if field is None else self._literal(field, value)
        if field is None or literal is None:
            return None
        predicate: Predicate = getattr(self._builder, method)(field.name, literal)
        return predicate

    def _listed(self, condition: exp.In) -> Predicate | None:
        field = self._field(condition.this)
        if field is None:
            return None
        values = [self._literal(field, value) for value in condition.expressions]
        if any(value is None for value in values):
            return None
        return self._builder.is_in(field.name, values)

    def _field(self, column: exp.Expr) -> DataField | None:
        if not isinstance(column, exp.Column) or not isinstance(column.this, exp.Identifier):
            return None
        is_mine = column.table.lower() == self._source.name if column.table else self._is_alone
        return self._fields.get(column.name.lower()) if is_mine and not column.db else None

    def _literal(self, field: DataField, value: exp.Expr) -> object | None:
        """The value of a literal of the same kind as the column; None if it is another."""
        if not isinstance(field.type, AtomicType):
            return None
        root, given = field.type.root, self._value(value)
        if root in _INTEGERS:
            is_number = isinstance(given, str) and value.is_number and "e" not in given.lower()
            return given if is_number or type(given) is int else None
        if not isinstance(given, str) or value.is_number:
            return None
        if root is TypeRoot.DATE:
            return given if _DAY.fullmatch(given) else None
        is_text = root is TypeRoot.VARCHAR and not isinstance(value, exp.Cast)
        return given if is_text else None

    def _value(self, value: exp.Expr) -> object | None:
        if isinstance(value, exp.Literal):
            return value.name
        if isinstance(value, exp.Neg) and isinstance(value.this, exp.Literal) and value.is_number:
            return f"-{value.this.name}"
        if isinstance(value, exp.Placeholder) and isinstance(value.this, str):
            return self._args.get(value.this)
        is_date = isinstance(value, exp.Cast) and value.to.is_type(exp.DataType.Type.DATE)
        if is_date and isinstance(value.this, exp.Literal) and value.this.is_string:
            return str(value.this.name)
        return None
