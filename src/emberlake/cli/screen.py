"""Shows reports: grids that fit the terminal for people, one JSON document for programs.

Colours are used only on a terminal, and not if NO_COLOR is set. Piped output is as wide as it
needs to be and is never truncated. Progress, questions, notes and errors go to stderr.
"""

import itertools
import json
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, TextIO

from rich.cells import cell_len, set_cell_size
from rich.console import Console
from rich.text import Text

from emberlake.cli.failures import PipeClosed, document_of, message_of
from emberlake.cli.layout import GAP, plain_text, plan_layout
from emberlake.cli.report import Block, Cell, Done, Facts, Grid, Note, Report

_DOTS: Final = "\u2026"
_RULE: Final = "\u2500"
_MEASURED_ROWS: Final = 1000


class _Console(Console):
    def on_broken_pipe(self) -> None:
        raise PipeClosed


def console_for(stream: TextIO) -> Console:
    """A console that uses colours only on terminals; its width is the terminal's."""
    # Bold and dim are not colours, but NO_COLOR asks for plain text.
    return _Console(
        file=stream,
        # FORCE_COLOR and the like would make a pipe look like a terminal, and truncate its lines.
        force_terminal=stream.isatty(),
        highlight=False,
        markup=False,
        emoji=False,
        soft_wrap=True,
        color_system=None if os.environ.get("NO_COLOR") else "auto",
    )


def show(report: Report, *, as_json: bool) -> None:
    """Write a report to stdout."""
    if as_json:
        if report.document is not None:
            write_json(report.document)
        return
    out, err = console_for(sys.stdout), console_for(sys.stderr)
    for number, block in enumerate(report.blocks):
        if number and isinstance(block, Grid | Facts):
            out.print()
        _show_block(out, err, block)


def write_json(document: Any, stream: TextIO | None = None) -> None:
    """Write one JSON document, indented if it goes to a terminal."""
    stream = stream or sys.stdout
    indent = 2 if stream.isatty() else None
    stream.write(json.dumps(document, indent=indent, ensure_ascii=False) + "\n")


def show_error(error: BaseException, *, as_json: bool) -> None:
    """Write an error to stderr, as one line or as one JSON document."""
    if as_json:
        write_json(document_of(error), sys.stderr)
        return
    is_interrupt = isinstance(error, KeyboardInterrupt)
    prefix = "" if is_interrupt else "error: "
    text = Text.assemble((prefix, "bold red"), message_of(error))
    console_for(sys.stderr).print(text)


def show_note(text: str) -> None:
    """Write a note to stderr."""
    console_for(sys.stderr).print(Text(text, style="dim"))


def _show_block(out: Console, err: Console, block: Block) -> None:
    match block:
        case Grid():
            _show_grid(out, err, block)
        case Facts():
            _show_facts(out, block)
        case Note(text=text):
            err.print(Text(text, style="dim"))
        case Done(text=text):
            out.print(Text(text))


def _show_grid(out: Console, err: Console, grid: Grid) -> None:
    rows = iter(grid.rows)
    # The first rows decide how wide the columns are; later rows are not held in memory.
    head = list(itertools.islice(rows, _MEASURED_ROWS))
    if not head:
        err.print(Text(grid.empty, style="dim"))
        return
    room = room_of(out)
    lines = _lone_lines(head)
    if lines:  # all of a statement is wanted
        head, room = [(text,) for text in lines], None
    names = [column.name for column in grid.columns]
    widths = [
        max(cell_len(name), *(cell_len(plain_text(row[i])) for row in head))
        for i, name in enumerate(names)
    ]
    layout = plan_layout(grid, widths, room)
    line = _Line(
        layout.widths,
        tuple(grid.columns[i].align == "right" for i in layout.shown),
        is_cut=room is not None,
    )
    out.print(line.of(names, "bold"))
    out.print(line.of([_RULE * width for width in layout.widths], "dim"))
    for row in itertools.chain(head, rows):
        if out.is_terminal:
            out.print(line.of(row))
        else:  # many times faster, and a pipe may carry millions of rows
            out.file.write(line.plain(row))
    note = grid.note() if grid.note else None
    if layout.hidden:
        hidden = f"not shown: {', '.join(layout.hidden)}; {grid.hidden_hint}"
        err.print(Text(hidden, style="dim"))
    if note:
        err.print(Text(note, style="dim"))


def _lone_lines(rows: Sequence[Sequence[Cell]]) -> list[str]:
    """The lines of a text, if it has several and nothing else is shown."""
    if len(rows) != 1 or len(rows[0]) != 1:
        return []
    lines = (rows[0][0] or "").splitlines()
    return lines if len(lines) > 1 else []


@dataclass(frozen=True)
class _Line:
    """How the cells of a row are laid out in a line."""

    widths: tuple[int, ...]
    is_right: tuple[bool, ...]
    is_cut: bool  # False in a pipe: a cell that is wider than its column is not truncated

    def of(self, cells: Sequence[Cell], style: str = "") -> Text:
        line = Text()
        for i, width in enumerate(self.widths):
            line.append(" " * GAP if i else "")
            text = self._fitted(plain_text(cells[i]), width, i)
            line.append(text, style="dim" if cells[i] is None else style)
        line.rstrip()  # no trailing spaces in a pipe
        return line

    def plain(self, cells: Sequence[Cell]) -> str:
        texts = [self._fitted(plain_text(cells[i]), w, i) for i, w in enumerate(self.widths)]
        return (" " * GAP).join(texts).rstrip() + "\n"

    def _fitted(self, text: str, width: int, column: int) -> str:
        length = cell_len(text)
        if length > width and self.is_cut:
            return set_cell_size(text, width - 1) + _DOTS
        space = " " * (width - length)
        return space + text if self.is_right[column] else text + space


def _show_facts(out: Console, facts: Facts) -> None:
    width = max((cell_len(name) for name, _ in facts.pairs), default=0)
    room = room_of(out)
    for name, value in facts.pairs:
        indent = width + GAP
        shown = Text(plain_text(value))
        lines = [shown] if room is None else list(shown.wrap(out, max(room - indent, 16)))
        for number, line in enumerate(lines or [Text()]):
            line.rstrip()
            label = Text(name.ljust(width + GAP) if number == 0 else " " * indent, style="dim")
            out.print(Text.assemble(label, line))


def room_of(console: Console) -> int | None:
    """How wide a line may be; None in a pipe, where there is no limit."""
    return console.width if console.is_terminal else None
