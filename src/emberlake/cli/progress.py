"""Progress of long work: shown on stderr, only on terminals, and removed when the work is done."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager

from rich.progress import (
    BarColumn,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
)
from rich.progress import Progress as Bar

from emberlake.base.texts import count_text, size_text
from emberlake.cli.screen import console_for


class Progress:
    """Receives the progress of long work; pass ``advance`` as a ``progress`` argument."""

    def __init__(self, bar: Bar | None = None, task: TaskID | None = None) -> None:
        self._bar = bar
        self._task = task

    def advance(self, done: int, total: int | None) -> None:
        """Report ``done`` of ``total``."""
        if self._bar is not None and self._task is not None:
            count = f"{done:,}" if total is None else f"{done:,}/{total:,}"
            self._bar.update(self._task, completed=done, total=total, detail=count)

    def advance_bytes(self, done: int, total: int | None, rows: int | None = None) -> None:
        """Report bytes of a source; with a number of rows, where that is known."""
        if self._bar is not None and self._task is not None:
            shown = size_text(done) if total is None else f"{size_text(done)}/{size_text(total)}"
            counted = "" if rows is None else f", {count_text(rows, 'row')}"
            self._bar.update(self._task, completed=done, total=total, detail=shown + counted)

    def say(self, detail: str) -> None:
        """Report progress in words, if the total is unknown."""
        if self._bar is not None and self._task is not None:
            self._bar.update(self._task, detail=detail)

    def name(self, stage: str) -> None:
        """Begin a new stage."""
        if self._bar is not None and self._task is not None:
            self._bar.update(self._task, description=stage, completed=0, total=None, detail="")


@contextmanager
def progress(stage: str) -> Iterator[Progress]:
    """Show a bar while the work runs; show nothing if stderr is not a terminal."""
    console = console_for(sys.stderr)
    if not console.is_terminal:
        yield Progress()
        return
    bar = Bar(
        TextColumn("{task.description}"),
        BarColumn(bar_width=24),
        TextColumn("{task.fields[detail]}"),
        TimeElapsedColumn(),
        console=console,
        transient=True,
    )
    with bar:
        yield Progress(bar, bar.add_task(stage, total=None, detail=""))
