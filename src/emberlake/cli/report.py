"""What a command has to say: one document for programs, and blocks for people.

Blocks hold text that is ready to be read; how it fits a terminal is decided by ``screen``.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from emberlake.cli.failures import ExitCode

Cell: TypeAlias = str | None  # None is shown as null


@dataclass(frozen=True)
class Column:
    """A column of a grid; the first columns of a grid are those that matter most."""

    name: str
    align: Literal["left", "right"] = "left"
    # Narrower than this a cell says nothing: the column is left out instead. None: never cut.
    min_width: int | None = None


@dataclass(frozen=True)
class Grid:
    """Rows under a header. Columns that do not fit are left out from the right, and named.

    Rows may be a stream: they are shown as they come. ``note`` is asked after the last of them.
    """

    columns: Sequence[Column]
    rows: Iterable[Sequence[Cell]]
    empty: str = "nothing to show"
    hidden_hint: str = "--json shows them"
    note: Callable[[], str | None] | None = None


@dataclass(frozen=True)
class Facts:
    """Names and what they are."""

    pairs: Sequence[tuple[str, str]]


@dataclass(frozen=True)
class Note:
    """A sentence about what is shown; it goes to stderr, so that pipes carry data alone."""

    text: str


@dataclass(frozen=True)
class Done:
    """A sentence about what was done."""

    text: str


Block: TypeAlias = Grid | Facts | Note | Done


@dataclass(frozen=True)
class Report:
    """The outcome of a command; None as document: its output has been written already."""

    document: Mapping[str, Any] | None
    blocks: Sequence[Block] = field(default_factory=tuple)
    code: ExitCode = ExitCode.DONE


def numbers(name: str) -> Column:
    """A column of numbers."""
    return Column(name, "right")


def words(name: str, min_width: int = 12) -> Column:
    """A column of texts that may be cut at the end when room is short."""
    return Column(name, "left", min_width)
