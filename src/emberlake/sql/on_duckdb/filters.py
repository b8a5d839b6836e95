"""Translates predicates of DuckDB's scans to ours, where both mean exactly the same.

DuckDB puts NaN above all numbers, and compares structs; so floating point numbers and nested
columns are left to it.
"""

from collections.abc import Sequence
from typing import Any, Final

from duckdb._sources.nodes import Binary, Col, In, Lit, Node, Postfix

from emberlake.errors import EmberlakeError
from emberlake.predicates import Predicate, PredicateBuilder
from emberlake.types import AtomicType, DataField, TypeRoot

_COMPARISONS: Final = {
    "=": "equal",
    "!=": "not_equal",
    "<": "less_than",
    "<=": "less_or_equal",
    ">": "greater_than",
    ">=": "greater_or_equal",
}
_EXACT: Final = frozenset(
    {
        TypeRoot.TINYINT,
        TypeRoot.SMALLINT,
        TypeRoot.INT,
        TypeRoot.BIGINT,
        TypeRoot.DECIMAL,
        TypeRoot.VARCHAR,
        TypeRoot.DATE,
        TypeRoot.TIMESTAMP,
    }
)


def to_predicate(node: Node, fields: Sequence[DataField]) -> Predicate | None:
    """The same predicate on columns of a table; None if we have no such predicate."""
    try:
        return _translate(node, PredicateBuilder(fields), {f.name: f for f in fields})
    except EmberlakeError:  # a literal that does not fit the column
        return None


def _translate(
    node: Node, build: PredicateBuilder, by_name: dict[str, DataField]
) -> Predicate | None:
    match node:
        case Binary(op="AND" | "OR" as op, left=left, right=right):
            parts = [_translate(part, build, by_name) for part in (left, right)]
            both = [part for part in parts if part is not None]
            if len(both) < len(parts):
                return None
            join = (
                PredicateBuilder.and_predicates if op == "AND" else PredicateBuilder.or_predicates
            )
            return join(both)
        case Binary(op=op, left=Col(parts=(name,)), right=Lit() as literal) if op in _COMPARISONS:
            if not _is_exact(by_name[name], literal.value):
                return None
            made: Predicate = getattr(build, _COMPARISONS[op])(name, literal.value)
            return made
        case In(operand=Col(parts=(name,)), values=values):
            found = [value.value for value in values if isinstance(value, Lit)]
            if len(found) < len(values) or not all(_is_exact(by_name[name], v) for v in found):
                return None
            return build.is_in(name, found)
        case Postfix(op="IS NULL", operand=Col(parts=(name,))):
            return build.is_null(name)
        case Postfix(op="IS NOT NULL", operand=Col(parts=(name,))):
            return build.is_not_null(name)
        case _:
            return None


def _is_exact(field: DataField, value: Any) -> bool:
    return (
        isinstance(field.type, AtomicType)
        and field.type.root in _EXACT
        and value is not None
        and not (field.type.root is TypeRoot.TIMESTAMP and field.type.precision > 6)
    )
