"""Fits a grid into a width: which columns are shown, and how wide each one is. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from emberlake.cli.report import Grid

GAP: Final = 2  # spaces between columns
NULL: Final = "null"
_CONTROL: Final = {code: chr(0x2400 + code) for code in range(32)} | {0x7F: "\u2421"}


@dataclass(frozen=True)
class Layout:
    """The columns to show, by position, with their widths; the others are left out."""

    shown: tuple[int, ...]
    widths: tuple[int, ...]
    hidden: tuple[str, ...]


def plan_layout(grid: Grid, widths: Sequence[int], room: int | None) -> Layout:
    """Fit a grid into a width.

    Columns that may be truncated shrink first, the widest ones most. If that is not enough,
    columns are left out from the right. The first column is always shown.

    Args:
        grid: What to show.
        widths: The width that each column needs for its full text.
        room: The width of the terminal; None if there is no limit.
    """
    count = len(grid.columns)
    if room is None:
        return Layout(tuple(range(count)), tuple(widths), ())
    least = [
        width if column.min_width is None else min(width, max(column.min_width, len(column.name)))
        for column, width in zip(grid.columns, widths, strict=True)
    ]
    kept = count
    while kept > 1 and sum(least[:kept]) + GAP * (kept - 1) > room:
        kept -= 1
    room -= GAP * (kept - 1)
    hidden = tuple(column.name for column in grid.columns[kept:])
    fitted = _shrink(list(widths[:kept]), least[:kept], room)
    return Layout(tuple(range(kept)), tuple(fitted), hidden)


def _shrink(widths: list[int], least: Sequence[int], room: int) -> list[int]:
    """Shrink the widest column that can shrink, one character at a time, until all fit."""
    while sum(widths) > room:
        shrinkable = [i for i, width in enumerate(widths) if width > least[i]]
        if not shrinkable:
            # Only the first column is left, and it is wider than the terminal.
            return [min(width, max(room, 1)) for width in widths]
        widest = max(shrinkable, key=lambda i: widths[i])
        widths[widest] -= 1
    return widths


def plain_text(cell: str | None) -> str:
    """A cell as one printable line, so that a value cannot move the cursor or break the grid."""
    if cell is None:
        return NULL
    return cell if cell.isprintable() else _printable(cell)


def _printable(cell: str) -> str:
    shown = cell.translate(_CONTROL)
    return "".join(char if char.isprintable() or char == " " else "\ufffd" for char in shown)
