"""Filters of reads from text: comparisons that prune files, and conditions that rows must meet.

There is one language. What ``predicates/text`` knows becomes comparisons of a column with literals.
The rest (two columns, functions, arithmetic, CASE, ILIKE) is bound to columns and types as in
``update`` and ``merge``; its parts that are comparisons still prune.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa

from emberlake.errors import ColumnNotFound, InvalidExpression, InvalidPredicate
from emberlake.expressions.binding import Expression, bind_condition
from emberlake.expressions.evaluate import Frame, evaluate
from emberlake.expressions.scope import Scope, Source
from emberlake.expressions.text_form import sql_text
from emberlake.expressions.typed import Apply, Column, Constant, Test, Typed, parts_of
from emberlake.predicates import And, Computed, Or, Predicate, bind_filter
from emberlake.predicates.expressions import and_all, or_all
from emberlake.predicates.text import NoSimpleFilter, parse_simple
from emberlake.spec.row_tracking import readable_fields
from emberlake.spec.schema import TableSchema
from emberlake.types import DataField

Aliases = Mapping[str, tuple[str, ...]]


def bind_row_filter(
    given: Predicate | str | None,
    schema: TableSchema,
    now_ms: Callable[[], int],
    aliases: Aliases | None = None,
) -> Predicate | None:
    """Bind a filter of rows that a user gives; in text, ``aliases`` are more names for columns.

    Raises:
        InvalidPredicate: it is not a filter, or a predicate on columns of another table.
        ColumnNotFound: there is no such column.
    """
    if not isinstance(given, str):
        return bind_filter(given, schema, aliases)
    return parse_filter(given, readable_fields(schema), now_ms, aliases)


def parse_filter(
    text: str,
    fields: Sequence[DataField],
    now_ms: Callable[[], int],
    aliases: Aliases | None = None,
) -> Predicate:
    """A filter on the given columns; ``now_ms`` gives the value of CURRENT_TIMESTAMP."""
    try:
        return parse_simple(text, fields, aliases)
    except NoSimpleFilter as error:
        refused = error
    try:
        bound = bind_condition(text, _Names((Source("", tuple(fields)),), aliases=aliases or {}))
    except ColumnNotFound as error:
        raise _with_hint(error, text) from error
    except InvalidExpression as error:
        # If the text is not a condition at all, the smaller language explains it better.
        reason = refused if _is_syntax(error) else error
        raise InvalidPredicate(str(reason)) from error
    return _predicate(bound.typed, now_ms())


@dataclass(frozen=True)
class ComputedCondition:
    """A typed condition on one source, at one moment."""

    typed: Typed
    now_ms: int

    def matches(self, rows: pa.RecordBatch | pa.Table) -> pa.Array:
        """True, false or null for every row."""
        frame = Frame(rows.num_rows, {0: rows}, self.now_ms)
        return evaluate(Expression(self.typed, str(self)), frame)

    def __str__(self) -> str:
        return sql_text(self.typed)


@dataclass(frozen=True)
class _Names(Scope):
    """The columns of a table, and other names for some of them."""

    aliases: Aliases | None = None

    def resolve(self, parts: tuple[str, ...]) -> Column:
        path = (self.aliases or {}).get(parts[0])
        names = {field.name for field in self.sources[0].fields}
        if path is None or parts[0] in names:
            return super().resolve(parts)
        return super().resolve((*path, *parts[1:]))


def _predicate(typed: Typed, now_ms: int) -> Predicate:
    match typed:
        case Test(_, leaf):
            return leaf
        case Constant(scalar):
            return And(()) if scalar.as_py() else Or(())
        case Apply("AND" | "OR" as function, args):
            parts = [_predicate(arg, now_ms) for arg in args]
            if function == "AND":
                return and_all(parts) or And(())
            return or_all(parts) or Or(())
        case _:
            return Computed(_columns(typed), ComputedCondition(typed, now_ms))


def _columns(typed: Typed) -> tuple[DataField, ...]:
    found: dict[str, DataField] = {}
    for part in parts_of(typed):
        match part:
            case Column(field=field):
                found[field.name] = field
            case Test(leaf=leaf):
                found[leaf.column.name] = leaf.column
            case _:
                pass
    return tuple(found.values())


def _with_hint(error: ColumnNotFound, text: str) -> ColumnNotFound:
    name = error.column
    if name and f'"{name}"' in text:
        return ColumnNotFound(
            f"{error}; if it is text, write '{name}': double quotes are for names", column=name
        )
    return error


def _is_syntax(error: InvalidExpression) -> bool:
    return str(error).startswith("expected ")
