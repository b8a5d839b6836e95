"""Filters as frozen values: comparisons of one column with literals, joined by AND and OR.

What such comparisons cannot say (two columns, functions, ILIKE) is a ``Computed`` condition: rows
are tested with it, but it skips no file.

There is no NOT: every comparison has its complement, so that a filter says what it keeps and null
needs no special case. A row is kept when the filter is true for it, not when it is false or
unknown (SQL's null). ``str(predicate)`` is SQL text that ``parse_predicate`` reads back.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, Protocol, TypeAlias

import pyarrow as pa

from emberlake.errors import InvalidPredicate
from emberlake.predicates.like import escape_like
from emberlake.spec.values import Value, format_value
from emberlake.types import AtomicType, DataField, DataType, RowType, TypeRoot


class Op(StrEnum):
    """The test that a leaf makes; comparisons follow IEEE for floats, bytes for texts."""

    EQUAL = "equal"
    NOT_EQUAL = "notEqual"
    LESS_THAN = "lessThan"
    LESS_OR_EQUAL = "lessOrEqual"
    GREATER_THAN = "greaterThan"
    GREATER_OR_EQUAL = "greaterOrEqual"
    BETWEEN = "between"  # two literals, both included
    NOT_BETWEEN = "notBetween"  # the complement: true for NaN too
    IN = "in"  # without literals: never true
    NOT_IN = "notIn"  # without literals: always true, even for null
    IS_NULL = "isNull"
    IS_NOT_NULL = "isNotNull"
    STARTS_WITH = "startsWith"
    ENDS_WITH = "endsWith"
    CONTAINS = "contains"
    LIKE = "like"  # % any text, _ any character, \ takes the next character as it is
    NOT_LIKE = "notLike"

    @property
    def is_text_only(self) -> bool:
        return self in _TEXT_ONLY


_TEXT_ONLY: Final = frozenset(
    {Op.STARTS_WITH, Op.ENDS_WITH, Op.CONTAINS, Op.LIKE, Op.NOT_LIKE},
)


@dataclass(frozen=True)
class Leaf:
    """One comparison: of a column, or of the field of a ROW column that ``path`` leads to."""

    column: DataField
    op: Op
    literals: tuple[Value, ...] = ()
    path: tuple[str, ...] = ()

    @property
    def method(self) -> str:
        """The name of the test: ``equal``, ``isNull`` and so on."""
        return self.op.value

    @property
    def field(self) -> str:
        """The name of what is compared, with dots for a field of a ROW."""
        return ".".join((self.column.name, *self.path))

    @property
    def type(self) -> DataType:
        """The type of what is compared."""
        data_type = self.column.type
        for name in self.path:
            inner = data_type.field(name) if isinstance(data_type, RowType) else None
            if inner is None:
                raise InvalidPredicate(f"{self.column} has no field {'.'.join(self.path)}")
            data_type = inner.type
        return data_type

    def __str__(self) -> str:
        return _format_leaf(self)


@dataclass(frozen=True)
class _Compound:
    """A predicate made up of others."""

    children: tuple["Predicate", ...]

    @property
    def field(self) -> None:
        """None: only the children have columns."""
        return None

    @property
    def literals(self) -> tuple["Predicate", ...]:
        """The children, under the name that pypaimon uses."""
        return self.children


@dataclass(frozen=True)
class And(_Compound):
    """True if every child is; always true without children."""

    @property
    def method(self) -> str:
        return "and"

    def __str__(self) -> str:
        return " AND ".join(f"({c})" if isinstance(c, Or) else str(c) for c in self.children)


@dataclass(frozen=True)
class Or(_Compound):
    """True if any child is; never true without children."""

    @property
    def method(self) -> str:
        return "or"

    def __str__(self) -> str:
        return " OR ".join(f"({c})" if isinstance(c, And) else str(c) for c in self.children)


class RowCondition(Protocol):
    """A condition on rows; it pickles, and its text can be parsed."""

    def matches(self, rows: pa.RecordBatch | pa.Table) -> pa.Array:
        """True, false or null for every row."""


@dataclass(frozen=True)
class Computed:
    """A condition that only rows can answer, and the columns that it needs."""

    columns: tuple[DataField, ...]
    condition: RowCondition

    @property
    def method(self) -> str:
        return "computed"

    @property
    def field(self) -> None:
        """None: there may be several columns."""
        return None

    @property
    def literals(self) -> tuple[Value, ...]:
        return ()

    def __str__(self) -> str:
        return str(self.condition)


Predicate: TypeAlias = Leaf | And | Or | Computed


def never(column: DataField, path: tuple[str, ...] = ()) -> Leaf:
    """A leaf that no row satisfies."""
    return Leaf(column, Op.IN, (), path)


def columns_of(predicate: Predicate) -> frozenset[str]:
    """The names of the top-level columns that a filter reads."""
    tested = (leaf.column for leaf in leaves_of(predicate))
    computed = (column for part in computed_of(predicate) for column in part.columns)
    return frozenset(column.name for column in (*tested, *computed))


def leaves_of(predicate: Predicate) -> list[Leaf]:
    """All comparisons with literals of a filter, from left to right."""
    return [part for part in _ends(predicate) if isinstance(part, Leaf)]


def computed_of(predicate: Predicate) -> list[Computed]:
    """All computed conditions of a filter, from left to right."""
    return [part for part in _ends(predicate) if isinstance(part, Computed)]


def _ends(predicate: Predicate) -> list[Leaf | Computed]:
    if isinstance(predicate, Leaf | Computed):
        return [predicate]
    return [end for child in predicate.children for end in _ends(child)]


def split_conjuncts(predicate: Predicate | None) -> list[Predicate]:
    """Filters whose AND is the given filter; an empty list for None."""
    if predicate is None:
        return []
    if isinstance(predicate, And):
        return [part for child in predicate.children for part in split_conjuncts(child)]
    return [predicate]


def and_all(predicates: Iterable[Predicate | None]) -> Predicate | None:
    """The AND of filters, flattened; None, which keeps every row, if there are none."""
    parts = [part for predicate in predicates for part in split_conjuncts(predicate)]
    return And(tuple(parts)) if len(parts) > 1 else next(iter(parts), None)


def or_all(predicates: Iterable[Predicate]) -> Predicate | None:
    """The OR of filters, flattened; None if there are none."""
    parts: list[Predicate] = []
    for predicate in predicates:
        parts.extend(predicate.children if isinstance(predicate, Or) else [predicate])
    return Or(tuple(parts)) if len(parts) > 1 else next(iter(parts), None)


# --- Text form ---

_SYMBOLS: Final = {
    Op.EQUAL: "=",
    Op.NOT_EQUAL: "<>",
    Op.LESS_THAN: "<",
    Op.LESS_OR_EQUAL: "<=",
    Op.GREATER_THAN: ">",
    Op.GREATER_OR_EQUAL: ">=",
    Op.LIKE: "LIKE",
    Op.NOT_LIKE: "NOT LIKE",
}
_TYPED_TEXT: Final = {
    TypeRoot.DATE: "DATE ",
    TypeRoot.TIME: "TIME ",
    TypeRoot.TIMESTAMP: "TIMESTAMP ",
    TypeRoot.TIMESTAMP_LTZ: "TIMESTAMP ",
}


def _format_leaf(leaf: Leaf) -> str:
    name = ".".join(quote_name(part) for part in (leaf.column.name, *leaf.path))
    literals = [format_literal(leaf.type, value) for value in leaf.literals]
    match leaf.op:
        case Op.IS_NULL:
            return f"{name} IS NULL"
        case Op.IS_NOT_NULL:
            return f"{name} IS NOT NULL"
        case Op.BETWEEN:
            return f"{name} BETWEEN {literals[0]} AND {literals[1]}"
        case Op.NOT_BETWEEN:
            return f"{name} NOT BETWEEN {literals[0]} AND {literals[1]}"
        case Op.IN:
            return f"{name} IN ({', '.join(literals)})"
        case Op.NOT_IN:
            return f"{name} NOT IN ({', '.join(literals)})"
        case Op.STARTS_WITH | Op.ENDS_WITH | Op.CONTAINS:
            return f"{name} LIKE {_format_text(_like_pattern(leaf))}"
        case _:
            return f"{name} {_SYMBOLS[leaf.op]} {literals[0]}"


def _like_pattern(leaf: Leaf) -> str:
    text = escape_like(str(leaf.literals[0]))
    start = "" if leaf.op is Op.STARTS_WITH else "%"
    end = "" if leaf.op is Op.ENDS_WITH else "%"
    return f"{start}{text}{end}"


RESERVED_WORDS: Final = frozenset(
    {"AND", "OR", "NOT", "IN", "LIKE", "BETWEEN", "IS", "NULL", "TRUE", "FALSE"}
)
_PLAIN_NAME: Final = re.compile(r"[^\W\d]\w*")


def quote_name(name: str) -> str:
    """A name as SQL text, in quotes if it needs them."""
    if _PLAIN_NAME.fullmatch(name) and name.upper() not in RESERVED_WORDS:
        return name
    escaped = name.replace('"', '""')
    return f'"{escaped}"'


def format_literal(data_type: DataType, value: Value) -> str:
    """A value as SQL text."""
    root = data_type.root if isinstance(data_type, AtomicType) else None
    if value is None:
        return "NULL"
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    if isinstance(value, bytes):
        return f"X'{value.hex()}'"
    text = format_value(data_type, value)
    is_number = root is not None and root.is_number
    if is_number and text[-1].isdigit():  # the others are NaN and the infinities
        return text
    return f"{_TYPED_TEXT.get(root, '') if root else ''}{_format_text(text)}"


def _format_text(text: str) -> str:
    escaped = text.replace("'", "''")
    return f"'{escaped}'"
