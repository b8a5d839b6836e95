"""Expressions as they were written: names, literals and calls, not yet tied to any table."""

from dataclasses import dataclass
from typing import TypeAlias

from emberlake.types import AtomicType


@dataclass(frozen=True)
class Name:
    """A column, or a field of a ROW column, perhaps with the alias of its table in front."""

    parts: tuple[str, ...]
    position: int  # in the text, from 1

    @property
    def text(self) -> str:
        return ".".join(self.parts)


@dataclass(frozen=True)
class Written:
    """A literal in the form that the lexer returns."""

    value: object


@dataclass(frozen=True)
class Call:
    """An operator, a function or a keyword construct, with its arguments.

    Operators go by their symbols (``+``, ``<=``), constructs by their keywords: ``AND``, ``OR``,
    ``NOT``, ``IS NULL``, ``BETWEEN``, ``IN``, ``LIKE``, ``ILIKE``, ``CASE``. The arguments of
    ``CASE`` are condition and value in turn; the last one is the value of all other rows.
    """

    function: str
    args: tuple["Node", ...]
    position: int


@dataclass(frozen=True)
class CastTo:
    """``CAST(inner AS type)``."""

    inner: "Node"
    type: AtomicType
    position: int


Node: TypeAlias = Name | Written | Call | CastTo


@dataclass(frozen=True)
class Lit:
    """A value that stands for itself; text alone would be an expression."""

    value: object


def lit(value: object) -> Lit:
    """A value for ``update`` and ``merge``: ``lit("rome")`` is the text, not a column."""
    return Lit(value)
