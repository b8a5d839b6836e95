"""The storage protocol: everything that emberlake asks of a disk or an object store.

Paths are text with ``/``. Publishing is put-if-absent; nothing is built on rename, which object
stores lack and which overwrites silently on disks.
"""

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import BinaryIO, Protocol, runtime_checkable


@dataclass(frozen=True, slots=True)
class FileInfo:
    """One file or folder of a listing."""

    path: str
    name: str
    size: int
    is_folder: bool
    modified_ms: int


@runtime_checkable
class Storage(Protocol):
    """Reads, writes and lists files. Implementations are thread-safe and picklable.

    A missing file is ``FileNotFound``; any other failure is ``StorageError``, after which the
    effect of a write is unknown.
    """

    def read(self, path: str) -> bytes:
        """All bytes of a file."""

    def read_range(self, path: str, offset: int, length: int) -> bytes:
        """``length`` bytes from ``offset`` (fewer at the end of the file)."""

    def open_input(self, path: str) -> "AbstractContextManager[object]":
        """A seekable Arrow input (``pyarrow.NativeFile``) for readers of data files."""

    def open_output(self, path: str) -> AbstractContextManager[BinaryIO]:
        """A sink for a new file with a unique name; the file is whole and durable after it closes.

        Leaving the context by an exception leaves no file behind.
        """

    def create(self, path: str, data: bytes) -> None:
        """Create a file with a unique name. It is durable once a file was put ``after`` it.

        A call that fails leaves no file behind.
        """

    def put_if_absent(self, path: str, data: bytes, after: Sequence[str] = ()) -> bool:
        """Create the file with all its bytes, atomically and durably; False when it exists.

        Whoever sees it can rely on the files that ``after`` names: they are durable before. When
        one of them is missing, nothing is created.
        """

    def put(self, path: str, data: bytes) -> None:
        """Create or replace a small file atomically and durably (tags, consumers)."""

    def put_hint(self, path: str, data: bytes) -> None:
        """Create or replace a small file that nobody trusts: it may be seen half, or be lost."""

    def exists(self, path: str) -> bool:
        """Whether there is a file or a folder."""

    def size(self, path: str) -> int:
        """The size of a file in bytes."""

    def list(self, path: str) -> Iterator[FileInfo]:
        """The files and folders directly inside a folder; nothing when there is no such folder."""

    def make_folder(self, path: str) -> None:
        """Create a folder and its parents; no error when it exists."""

    def delete(self, path: str) -> None:
        """Delete a file; no error when there is none."""

    def delete_folder(self, path: str) -> None:
        """Delete a folder and all that is in it; no error when there is none."""

    def move_folder(self, source: str, target: str) -> None:
        """Give a folder another name (renaming a table). The target must not exist."""
