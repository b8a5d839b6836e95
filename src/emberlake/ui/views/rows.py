"""The first rows of a table, as text."""

from dataclasses import dataclass
from typing import Final

LONGEST: Final = 300  # characters of a cell; the rest is cut


@dataclass(frozen=True)
class RowsView:
    """Rows under a header, or why they cannot be read."""

    columns: tuple[tuple[str, str], ...] = ()  # name and type
    is_number: tuple[bool, ...] = ()
    rows: tuple[tuple[str | None, ...], ...] = ()
    has_more: bool = False
    problem: str | None = None


def shortened(cell: str | None) -> str | None:
    """A cell that fits a page."""
    return cell if cell is None or len(cell) <= LONGEST else f"{cell[:LONGEST]}…"
