"""How a grid fits a width: which columns are shown, and how wide each one is. Pure."""

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

    The texts that may be cut give way first, the longest ones most; when that is not enough,
    columns are left out from the right. The first column always stays.

    Args:
        grid: What to show.
        widths: What each column needs to be shown whole.
        room: The columns of the terminal; None when nothing limits the width.
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
    """Take from the widest column that can give, a column at a time, until all fit."""
    while sum(widths) > room:
        givers = [i for i, width in enumerate(widths) if width > least[i]]
        if not givers:
            # Only the first column is left, and it is wider than the terminal.
            return [min(width, max(room, 1)) for width in widths]
        widest = max(givers, key=lambda i: widths[i])
        widths[widest] -= 1
    return widths


def plain_text(cell: str | None) -> str:
    """A cell as one line: what a value holds cannot move the cursor or break the grid."""
    if cell is None:
        return NULL
    return cell if cell.isprintable() else _printable(cell)


def _printable(cell: str) -> str:
    shown = cell.translate(_CONTROL)
    return "".join(char if char.isprintable() or char == " " else "\ufffd" for char in shown)
