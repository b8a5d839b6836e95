"""Filters from Python: ``builder.equal("city", "paris")``.

Literals are checked and cast to the type of the column. A literal that the column cannot hold (1.5
on INT, 300 on TINYINT, half a second on TIMESTAMP(0)) is still compared exactly:
``less_than("i", 1.5)`` becomes ``i <= 1``, ``equal("i", 1.5)`` a filter that no row satisfies,
``not_equal("i", 1.5)`` one that every non-null row satisfies. FLOAT and DOUBLE take the nearest
value that they can hold. A null literal makes a comparison unknown, as in SQL, so no row satisfies
it.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from emberlake.base.names import choices
from emberlake.errors import ColumnNotFound, InvalidInput, InvalidPredicate
from emberlake.predicates.expressions import (
    Leaf,
    Op,
    Predicate,
    and_all,
    never,
    or_all,
)
from emberlake.predicates.like import LikeToken, Wildcard, parse_like
from emberlake.spec.literals import Placement, place_literal
from emberlake.spec.values import Value
from emberlake.types import AtomicType, DataField, DataType, RowType, TypeRoot

COMPLEMENT: Final = {
    Op.EQUAL: Op.NOT_EQUAL,
    Op.NOT_EQUAL: Op.EQUAL,
    Op.LESS_THAN: Op.GREATER_OR_EQUAL,
    Op.LESS_OR_EQUAL: Op.GREATER_THAN,
    Op.GREATER_THAN: Op.LESS_OR_EQUAL,
    Op.GREATER_OR_EQUAL: Op.LESS_THAN,
}


class PredicateBuilder:
    """Makes filters on the given columns.

    A name with dots addresses the field of a ROW column (``"address.city"``), unless a column has
    literally that name. ``aliases`` gives columns and fields other names; a column that has such a
    name takes precedence. The result pickles.

    Example:
        >>> from emberlake.types import AtomicType, DataField
        >>> builder = PredicateBuilder([DataField(0, "price", AtomicType("INT"))])
        >>> str(builder.between("price", 1, 5.5))
        'price BETWEEN 1 AND 5'
    """

    def __init__(
        self,
        row_field: Sequence[DataField],
        aliases: Mapping[str, tuple[str, ...]] | None = None,
    ) -> None:
        self._fields = tuple(row_field)
        self._aliases = dict(aliases or {})

    @property
    def field_names(self) -> list[str]:
        return [field.name for field in self._fields]

    def equal(self, field: str, literal: object) -> Predicate:
        """Rows whose value is the literal."""
        return self._compare(field, Op.EQUAL, literal)

    def not_equal(self, field: str, literal: object) -> Predicate:
        """Rows whose value is neither null nor the literal."""
        return self._compare(field, Op.NOT_EQUAL, literal)

    def less_than(self, field: str, literal: object) -> Predicate:
        """Rows whose value is below the literal."""
        return self._compare(field, Op.LESS_THAN, literal)

    def less_or_equal(self, field: str, literal: object) -> Predicate:
        """Rows whose value is not above the literal."""
        return self._compare(field, Op.LESS_OR_EQUAL, literal)

    def greater_than(self, field: str, literal: object) -> Predicate:
        """Rows whose value is above the literal."""
        return self._compare(field, Op.GREATER_THAN, literal)

    def greater_or_equal(self, field: str, literal: object) -> Predicate:
        """Rows whose value is not below the literal."""
        return self._compare(field, Op.GREATER_OR_EQUAL, literal)

    def between(
        self, field: str, included_lower_bound: object, included_upper_bound: object
    ) -> Predicate:
        """Rows whose value lies between the bounds, both included."""
        target = self.resolve(tuple(field.split(".")))
        return target.between(included_lower_bound, included_upper_bound)

    def not_between(
        self, field: str, included_lower_bound: object, included_upper_bound: object
    ) -> Predicate:
        """Rows whose value lies outside the bounds."""
        target = self.resolve(tuple(field.split(".")))
        return target.not_between(included_lower_bound, included_upper_bound)

    def is_null(self, field: str) -> Predicate:
        """Rows without a value."""
        return self.resolve(tuple(field.split("."))).leaf(Op.IS_NULL)

    def is_not_null(self, field: str) -> Predicate:
        """Rows with a value."""
        return self.resolve(tuple(field.split("."))).leaf(Op.IS_NOT_NULL)

    def startswith(self, field: str, pattern_literal: object) -> Predicate:
        """Rows whose text starts with the literal."""
        return self._match(field, Op.STARTS_WITH, pattern_literal)

    def endswith(self, field: str, pattern_literal: object) -> Predicate:
        """Rows whose text ends with the literal."""
        return self._match(field, Op.ENDS_WITH, pattern_literal)

    def contains(self, field: str, pattern_literal: object) -> Predicate:
        """Rows whose text contains the literal."""
        return self._match(field, Op.CONTAINS, pattern_literal)

    def like(self, field: str, pattern_literal: object) -> Predicate:
        r"""Rows whose text matches: ``%`` is any text, ``_`` any character, ``\`` escapes."""
        return self.resolve(tuple(field.split("."))).like(pattern_literal)

    def is_in(self, field: str, literals: Iterable[object]) -> Predicate:
        """Rows whose value is one of the literals; no rows without literals."""
        return self.resolve(tuple(field.split("."))).is_in(literals)

    def is_not_in(self, field: str, literals: Iterable[object]) -> Predicate:
        """Rows whose value is none of the literals; all rows without literals, none with a null."""
        return self.resolve(tuple(field.split("."))).is_not_in(literals)

    @staticmethod
    def and_predicates(predicates: Sequence[Predicate]) -> Predicate | None:
        """Rows that satisfy all filters; None for no filters."""
        return and_all(predicates)

    @staticmethod
    def or_predicates(predicates: Sequence[Predicate]) -> Predicate | None:
        """Rows that satisfy any filter; None for no filters."""
        return or_all(predicates)

    def resolve(self, parts: tuple[str, ...]) -> "Target":
        """The column, or the field of a ROW, that the parts of a name lead to.

        Raises:
            ColumnNotFound: There is no such column; the message lists the choices.
        """
        found = find_path(self._fields, parts)
        if found is None and (path := self._aliases.get(".".join(parts))):
            found = find_path(self._fields, path)
        if found is None:
            raise ColumnNotFound(
                f"there is no column {'.'.join(parts)!r} to filter on; "
                + choices(".".join(parts), names_for(self._fields, parts), "choose one of")
            )
        column, *inner = found
        return Target(column, tuple(field.name for field in inner), found[-1].type)

    def _compare(self, field: str, op: Op, literal: object) -> Predicate:
        return self.resolve(tuple(field.split("."))).compare(op, literal)

    def _match(self, field: str, op: Op, literal: object) -> Predicate:
        return self.resolve(tuple(field.split("."))).match_text(op, literal)


@dataclass(frozen=True)
class Target:
    """The column or field that a comparison tests; makes the leaves."""

    column: DataField
    path: tuple[str, ...]
    type: DataType

    @property
    def name(self) -> str:
        return ".".join((self.column.name, *self.path))

    def leaf(self, op: Op, *literals: Value) -> Leaf:
        """A leaf on this column with literals that are already values."""
        return Leaf(self.column, op, literals, self.path)

    def compare(self, op: Op, literal: object) -> Predicate:
        """One of the six comparisons with a literal."""
        placed = self._place(literal)
        if placed is None:
            return self._never
        if placed.is_exact:
            return self.leaf(op, placed.below)
        match op:
            case Op.EQUAL:
                return self._never
            case Op.NOT_EQUAL:
                return self.leaf(Op.IS_NOT_NULL)
            case Op.LESS_THAN | Op.LESS_OR_EQUAL:
                return self._bounded(Op.LESS_OR_EQUAL, placed.below)
            case _:
                return self._bounded(Op.GREATER_OR_EQUAL, placed.above)

    def not_compare(self, op: Op, literal: object) -> Predicate:
        """The complement of a comparison; for <, <=, > and >= on floats it is true for NaN."""
        placed = self._place(literal)
        if placed is None or op in (Op.EQUAL, Op.NOT_EQUAL):
            return self.compare(COMPLEMENT[op], literal)
        if placed.is_nan:
            return self.leaf(Op.IS_NOT_NULL)
        if not self._is_float:
            return self.compare(COMPLEMENT[op], literal)
        is_below = op in (Op.LESS_THAN, Op.LESS_OR_EQUAL)
        bound = placed.below if is_below else placed.above
        end = -math.inf if is_below else math.inf
        if placed.is_exact and op in (Op.LESS_THAN, Op.GREATER_THAN):
            if bound == end:  # there is nothing beyond it
                return self.leaf(Op.IS_NOT_NULL)
            bound = self._next_float(bound, end)
        return self.leaf(Op.NOT_BETWEEN, *((end, bound) if is_below else (bound, end)))

    def between(self, low: object, high: object) -> Predicate:
        """Between two literals, both included."""
        lower, upper = self._place(low), self._place(high)
        if lower is None or upper is None or lower.above is None or upper.below is None:
            return self._never
        return self.leaf(Op.BETWEEN, lower.above, upper.below)

    def not_between(self, low: object, high: object) -> Predicate:
        """Outside two literals; if one is null, the other decides."""
        lower, upper = self._place(low), self._place(high)
        if lower is None:
            return self.not_compare(Op.LESS_OR_EQUAL, high)
        if upper is None:
            return self.not_compare(Op.GREATER_OR_EQUAL, low)
        if lower.above is None or upper.below is None:
            return self.leaf(Op.IS_NOT_NULL)
        return self.leaf(Op.NOT_BETWEEN, lower.above, upper.below)

    def is_in(self, literals: Iterable[object]) -> Predicate:
        """One of the literals; those that the column cannot hold, and nulls, match nothing."""
        placed = [self._place(literal) for literal in _listed(self.name, literals)]
        return self.leaf(Op.IN, *_distinct(p.below for p in placed if p and p.is_exact))

    def is_not_in(self, literals: Iterable[object]) -> Predicate:
        """None of the literals; unknown for every row if one of them is null."""
        placed = [self._place(literal) for literal in _listed(self.name, literals)]
        if None in placed:
            return self._never
        values = _distinct(p.below for p in placed if p and p.is_exact)
        if placed and not values:
            return self.leaf(Op.IS_NOT_NULL)
        return self.leaf(Op.NOT_IN, *values)

    def match_text(self, op: Op, literal: object) -> Predicate:
        """One of the text tests."""
        if not (isinstance(self.type, AtomicType) and self.type.root.is_text):
            raise InvalidPredicate(f"{self.name} is {self.type}: only texts can be matched ({op})")
        placed = self._place(literal)
        return self._never if placed is None else self.leaf(op, placed.below)

    def like(self, pattern: object) -> Predicate:
        """A SQL pattern, as the simplest equivalent test."""
        leaf = self.match_text(Op.LIKE, pattern)
        if not isinstance(leaf, Leaf) or leaf.op is not Op.LIKE:
            return leaf
        op, text = _simplify_like(parse_like(str(leaf.literals[0])))
        return leaf if op is Op.LIKE else self.leaf(op, text)

    def not_like(self, pattern: object) -> Predicate:
        """The complement of a SQL pattern."""
        leaf = self.match_text(Op.NOT_LIKE, pattern)
        if isinstance(leaf, Leaf) and leaf.literals:
            parse_like(str(leaf.literals[0]))  # refuses an invalid pattern
        return leaf

    def _place(self, literal: object) -> Placement | None:
        if not isinstance(self.type, AtomicType):
            raise InvalidPredicate(
                f"{self.name} is {self.type}: it can be tested for null, not compared"
            )
        try:
            return place_literal(self.type, literal)
        except InvalidInput as error:
            raise InvalidPredicate(f"{self.name}: {error}") from error

    def _bounded(self, op: Op, value: Value) -> Leaf:
        return self._never if value is None else self.leaf(op, value)

    @property
    def _never(self) -> Leaf:
        return never(self.column, self.path)

    @property
    def _is_float(self) -> bool:
        return isinstance(self.type, AtomicType) and self.type.root in (
            TypeRoot.FLOAT,
            TypeRoot.DOUBLE,
        )

    def _next_float(self, value: Value, towards: float) -> float:
        assert isinstance(value, float)
        assert isinstance(self.type, AtomicType)
        if self.type.root is TypeRoot.DOUBLE:
            return math.nextafter(value, towards)
        with np.errstate(all="ignore"):  # a step to infinity is intended
            return float(np.nextafter(np.float32(value), np.float32(towards)))


def find_path(fields: Sequence[DataField], parts: tuple[str, ...]) -> list[DataField] | None:
    """The chain of fields that a name leads to; an exact name comes before a nested one."""
    for length in range(len(parts), 0, -1):
        name = ".".join(parts[:length])
        field = next((f for f in fields if f.name == name), None)
        if field is None:
            continue
        if length == len(parts):
            return [field]
        inner = field.type.fields if isinstance(field.type, RowType) else ()
        rest = find_path(inner, parts[length:])
        if rest is not None:
            return [field, *rest]
    return None


def names_for(fields: Sequence[DataField], parts: tuple[str, ...]) -> list[str]:
    """What could be meant: the columns, and the fields of the ROW that a name leads to."""
    names = [field.name for field in fields]
    for length in range(len(parts) - 1, 0, -1):
        found = find_path(fields, parts[:length])
        if found is not None and isinstance(found[-1].type, RowType):
            inner = found[-1].type.fields
            return [*names, *(".".join((*parts[:length], field.name)) for field in inner)]
    return names


def _simplify_like(tokens: list[LikeToken]) -> tuple[Op, str]:
    """The simplest test that is equivalent to a pattern, with its text."""
    starts = tokens[:1] == [Wildcard.ANY_TEXT]
    ends = len(tokens) > starts and tokens[-1] is Wildcard.ANY_TEXT
    middle = tokens[starts : len(tokens) - ends]
    texts = [token for token in middle if isinstance(token, str)]
    if len(texts) < len(middle):
        return Op.LIKE, ""
    if tokens == [Wildcard.ANY_TEXT] or (starts and ends):
        return Op.CONTAINS, "".join(texts)
    op = Op.ENDS_WITH if starts else Op.STARTS_WITH if ends else Op.EQUAL
    return op, "".join(texts)


def _listed(name: str, literals: Iterable[object]) -> list[object]:
    if isinstance(literals, str | bytes) or not isinstance(literals, Iterable):
        raise InvalidPredicate(f"{name}: give a list of literals, not {literals!r}")
    return list(literals)


def _distinct(values: Iterable[Value]) -> list[Value]:
    return list(dict.fromkeys(values))
