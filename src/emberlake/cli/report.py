"""The output of a command: one document for programs, and blocks for people.

Blocks hold finished text; ``screen`` decides how it fits a terminal.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from emberlake.cli.failures import ExitCode

Cell: TypeAlias = str | None  # None is shown as null


@dataclass(frozen=True)
class Column:
    """A column of a grid; the most important columns come first."""

    name: str
    align: Literal["left", "right"] = "left"
    # Below this width a cell is useless, so the column is left out. None: never truncate.
    min_width: int | None = None


@dataclass(frozen=True)
class Grid:
    """Rows under a header. Columns that do not fit are left out from the right, and named.

    Rows may be a stream: they are shown as they arrive. ``note`` is called after the last one.
    """

    columns: Sequence[Column]
    rows: Iterable[Sequence[Cell]]
    empty: str = "nothing to show"
    hidden_hint: str = "--json shows them"
    note: Callable[[], str | None] | None = None


@dataclass(frozen=True)
class Facts:
    """Names and their values."""

    pairs: Sequence[tuple[str, str]]


@dataclass(frozen=True)
class Note:
    """A sentence about what is shown; it goes to stderr, so that pipes carry only data."""

    text: str


@dataclass(frozen=True)
class Done:
    """A sentence about what was done."""

    text: str


Block: TypeAlias = Grid | Facts | Note | Done


@dataclass(frozen=True)
class Report:
    """The outcome of a command; the document is None if its output was already written."""

    document: Mapping[str, Any] | None
    blocks: Sequence[Block] = field(default_factory=tuple)
    code: ExitCode = ExitCode.DONE


def numbers(name: str) -> Column:
    """A column of numbers."""
    return Column(name, "right")


def words(name: str, min_width: int = 12) -> Column:
    """A column of text that may be truncated if space is short."""
    return Column(name, "left", min_width)
