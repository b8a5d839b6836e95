"""Expressions that are tied to columns and have types: what is evaluated.

Binding makes them. Every implicit cast is a ``CAST`` of its own, so a back end that evaluates them
(on Arrow, or with the functions of another engine) knows the types of all arguments.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, TypeAlias

import pyarrow as pa

from emberlake.predicates import Leaf
from emberlake.types import AtomicType, DataField, DataType

BOOLEAN: Final = AtomicType("BOOLEAN")


@dataclass(frozen=True)
class Column:
    """A column of one of the sources, or the field of a ROW column that ``path`` leads to."""

    source: int
    field: DataField
    path: tuple[str, ...]
    type: DataType


@dataclass(frozen=True)
class Constant:
    """One value for all rows; ``type`` is None for a NULL that has no type yet."""

    scalar: pa.Scalar
    type: DataType | None

    @property
    def is_null(self) -> bool:
        return not self.scalar.is_valid


@dataclass(frozen=True)
class Test:
    """A comparison of a column with literals: the same one that filters make."""

    source: int
    leaf: Leaf
    type: AtomicType = BOOLEAN


@dataclass(frozen=True)
class Apply:
    """A function of values; its name is that of the call in the text."""

    function: str
    args: tuple["Typed", ...]
    type: DataType


Typed: TypeAlias = Column | Constant | Test | Apply

UNTYPED_NULL: Final = Constant(pa.NULL, None)


def parts_of(expression: Typed) -> Iterator[Typed]:
    """An expression and everything inside it."""
    yield expression
    if isinstance(expression, Apply):
        for arg in expression.args:
            yield from parts_of(arg)


def columns_used(expression: Typed, source: int) -> frozenset[str]:
    """The names of the top-level columns of a source that an expression reads."""
    names = set()
    for part in parts_of(expression):
        if isinstance(part, Column) and part.source == source:
            names.add(part.field.name)
        elif isinstance(part, Test) and part.source == source:
            names.add(part.leaf.column.name)
    return frozenset(names)


def sources_used(expression: Typed) -> frozenset[int]:
    """The numbers of the sources that an expression reads."""
    return frozenset(p.source for p in parts_of(expression) if isinstance(p, Column | Test))


def conjuncts(expression: Typed | None) -> list[Typed]:
    """Expressions whose AND is the given one; none for None, which is always true."""
    if expression is None:
        return []
    if isinstance(expression, Apply) and expression.function == "AND":
        return [part for arg in expression.args for part in conjuncts(arg)]
    return [expression]


def conjunction(parts: list[Typed]) -> Typed | None:
    """The AND of expressions; None, which is always true, if there are none."""
    if not parts:
        return None
    return parts[0] if len(parts) == 1 else Apply("AND", tuple(parts), BOOLEAN)
