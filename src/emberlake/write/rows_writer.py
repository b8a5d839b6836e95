"""What takes rows and hands over messages: the engine itself, and everything that wraps it.

``TableWriter`` writes. ``FixedBucketWriter`` divides rows among several of them, ``RowBuffer``
collects single rows, and ``CompactingWriter`` compacts what was written.
"""

from collections.abc import Iterable
from typing import Protocol

from emberlake.wire import CommitMessage


class RowsWriter(Protocol):
    """Takes rows and reports files; ``TableWriter`` describes each method."""

    @property
    def write_columns(self) -> tuple[str, ...] | None: ...

    @property
    def has_rows(self) -> bool: ...

    def set_write_columns(self, columns: Iterable[str]) -> None: ...

    def write(self, data: object, row_kind: str | None = None) -> None: ...

    def prepare(self) -> list[CommitMessage]: ...

    def abort(self) -> None: ...

    def close(self) -> None: ...
