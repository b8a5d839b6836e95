"""The storage protocol: everything that emberlake asks of a disk or an object store.

Paths are text with ``/``. Publishing is put-if-absent; nothing is built on rename, which object
stores lack and which overwrites silently on disks.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Final, Protocol, Self, runtime_checkable

from emberlake.base.option_texts import MEBIBYTE
from emberlake.errors import InvalidState, StorageError

SMALL_BYTES: Final = 4 * MEBIBYTE  # if requests take long, files up to this size are fetched whole


@dataclass(frozen=True, slots=True)
class FileInfo:
    """One file or folder of a listing."""

    path: str
    name: str
    size: int
    is_folder: bool
    modified_ms: int
    etag: str | None = None  # a mark of the bytes, equal for equal bytes; not all storages have it


@dataclass(frozen=True, slots=True)
class Upload:
    """A file that somebody has begun to write, in parts that no listing shows."""

    path: str
    id: str  # a file may have more than one upload
    begun_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class StorageTraits:
    """How a storage differs from others, for the code that must act accordingly."""

    is_shared: bool  # other processes, such as Spark's workers, reach the same files
    spark_reads: bool  # Spark may open the paths by itself, if its session knows how to
    moves_folders: bool  # `move_folder` is one step: a folder is seen under one name or the other
    flushes_late: bool  # created files are durable only once a file is put after them
    others_overwrite: bool  # other engines publish here by writes that replace what is there
    requests_at_once: int = 1  # more requests would wait for one another and gain nothing

    @property
    def is_remote(self) -> bool:
        """Whether requests take long, so as many as possible should be made at once."""
        return self.requests_at_once > 1


Range = tuple[int, int]  # the bytes from one offset up to another
Part = Sequence[Range]  # of a file, which a reader needs together


class PartedInput(Protocol):
    """An input that can fetch given parts of a file ahead."""

    def each_part(self, parts: Sequence[Part]) -> Iterator[int]:
        """The numbers of the parts, in order. When a number comes, its ranges have been fetched.

        The parts that follow are fetched meanwhile.
        """


def as_parted(source: Any) -> PartedInput | None:
    """The input, if it can fetch parts ahead; otherwise None."""
    parted: PartedInput | None = source if hasattr(source, "each_part") else None
    return parted


@dataclass(frozen=True, slots=True)
class Standing:
    """The file that has the name after an attempt to create it."""

    data: bytes
    etag: str | None
    is_ours: bool


class Output(ABC):
    """A new file that is being written.

    It is whole and durable once it is closed, and gone once it is aborted. As a context manager it
    is closed at the end of the block, or aborted when the block fails.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        self.position = 0  # how many bytes were written
        self._is_open = True

    def write(self, data: object) -> int:
        """Append bytes, or anything with a buffer of bytes; returns how many there were.

        Read-only memory may be kept until the file is whole, so it must not change.
        """
        view = memoryview(data)  # type: ignore[arg-type]
        self.check_open()
        self._append(view)
        self.position += view.nbytes
        return view.nbytes

    def close(self) -> int:
        """Make the file whole and durable; returns its size. A failure leaves no file."""
        self.check_open()
        self._is_open = False
        try:
            self._finish()
        except BaseException:
            with suppress(OSError, StorageError):
                self._drop()
            raise
        return self.position

    def abort(self) -> None:
        """Leave no file; does nothing if the file was closed or aborted before."""
        if self._is_open:
            self._is_open = False
            self._drop()

    def check_open(self) -> None:
        """Refuse a file that was closed or aborted."""
        if not self._is_open:
            raise InvalidState(f"{self.path} was closed or aborted; open another file to write")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if kind is not None:
            self.abort()
        elif self._is_open:
            self.close()

    @abstractmethod
    def _append(self, data: memoryview) -> None: ...

    @abstractmethod
    def _finish(self) -> None: ...

    @abstractmethod
    def _drop(self) -> None: ...


@runtime_checkable
class Storage(Protocol):
    """Reads, writes and lists files. Implementations are thread-safe and picklable.

    A missing file is ``FileNotFound``; any other failure is ``StorageError``, after which the
    effect of a write is unknown.
    """

    @property
    def traits(self) -> StorageTraits:
        """What sets this storage apart."""

    def read(self, path: str) -> bytes:
        """All bytes of a file."""

    def read_range(self, path: str, offset: int, length: int) -> bytes:
        """``length`` bytes from ``offset`` (fewer at the end of the file)."""

    def read_marked(self, path: str) -> tuple[bytes, str | None]:
        """All bytes of a file, and the etag that a listing shows for them (``FileInfo.etag``)."""

    def read_many(self, paths: Sequence[str]) -> Iterator[bytes]:
        """All bytes of some small files, in order; a missing one fails when its turn comes.

        All of them may be in memory together, so ask for many large ones a few at a time.
        """

    def open_input(self, path: str, size: int | None = None) -> "AbstractContextManager[object]":
        """A seekable Arrow input (``pyarrow.NativeFile``) for readers of data files.

        Args:
            path: the file.
            size: its size, if it is known, which saves a request. The input shows the file as it
                is: a caller that relies on the size must ask the input for it.
        """

    def local_file(self, path: str) -> str | None:
        """The name by which programs on this machine open the file; None if there is none."""

    def open_output(self, path: str, target: int | None = None) -> Output:
        """A new file with a unique name, to be written piece by piece.

        Args:
            path: the file.
            target: its expected size in bytes, if that is known. If the storage limits the size of
                files, a file that grows to several times its target may be refused.
        """

    def create(self, path: str, data: bytes) -> None:
        """Create a file with a unique name. It is durable once a file is put ``after`` it.

        A call that fails leaves no file behind.
        """

    def create_all(self, files: Sequence[tuple[str, bytes]]) -> None:
        """Create small files with unique names, as ``create`` does; a failure may leave some."""

    def put_if_absent(self, path: str, data: bytes, after: Sequence[str] = ()) -> bool:
        """Create the file with all its bytes, atomically and durably; False if it exists.

        The files that ``after`` names are durable before this one appears, so its readers can rely
        on them. If one of them is missing, nothing is created.
        """

    def put_each_if_absent(
        self, files: Sequence[tuple[str, bytes]]
    ) -> Sequence[bool | StorageError]:
        """Create several files, each as ``put_if_absent`` does; each has an outcome of its own."""

    def put_or_read(self, path: str, data: bytes, after: Sequence[str] = ()) -> Standing:
        """Create the file as ``put_if_absent`` does, or read the one that is there.

        Raises:
            FileNotFound: the file existed, but was deleted before it could be read.
        """

    def put(self, path: str, data: bytes) -> None:
        """Create or replace a small file atomically and durably (tags, consumers)."""

    def put_hint(self, path: str, data: bytes) -> None:
        """Create or replace a small file on which nobody relies: part or all of it may be lost."""

    def exists(self, path: str) -> bool:
        """Whether there is a file or a folder."""

    def size(self, path: str) -> int:
        """The size of a file in bytes."""

    def list(self, path: str) -> Iterator[FileInfo]:
        """The files and folders directly inside a folder; nothing if there is no such folder."""

    def list_all(self, path: str) -> Iterator[FileInfo]:
        """The files inside a folder at any depth, in no particular order."""

    def make_folder(self, path: str) -> None:
        """Create a folder and its parents; no error if it exists."""

    def delete(self, path: str) -> None:
        """Delete a file; no error if there is none."""

    def delete_all(self, paths: Iterable[str]) -> None:
        """Delete many files; no error for missing ones."""

    def delete_folder(self, path: str) -> None:
        """Delete a folder and everything in it; no error if there is none."""

    def delete_empty_folder(self, path: str) -> None:
        """Delete a folder and the folders in it, except those that hold files.

        Does nothing on storages where a folder exists only while something is in it.
        """

    def move_folder(self, source: str, target: str) -> None:
        """Give a folder another name (renaming a table). The target must not exist.

        This is one step only if ``traits.moves_folders`` is true.
        """

    def unfinished_uploads(self, path: str) -> Iterator[Upload]:
        """The uploads into a folder, at any depth, that are under way or were left unfinished.

        Yields nothing on storages where unfinished files are files, or end by themselves.

        Raises:
            Unsupported: there may be some, but they cannot be listed here.
        """

    def end_uploads(self, uploads: Iterable[Upload]) -> None:
        """Give up uploads, with all their parts; no error for uploads that have ended."""


class OneByOne:
    """Methods for storages that have no etags or uploads, and do one thing after another."""

    __slots__ = ()

    def read_marked(self: Storage, path: str) -> tuple[bytes, str | None]:
        return self.read(path), None

    def read_many(self: Storage, paths: Sequence[str]) -> Iterator[bytes]:
        return map(self.read, paths)

    def create_all(self: Storage, files: Sequence[tuple[str, bytes]]) -> None:
        for path, data in files:
            self.create(path, data)

    def put_each_if_absent(
        self: Storage, files: Sequence[tuple[str, bytes]]
    ) -> Sequence[bool | StorageError]:
        return [_outcome_of(self, path, data) for path, data in files]

    def put_or_read(self: Storage, path: str, data: bytes, after: Sequence[str] = ()) -> Standing:
        if self.put_if_absent(path, data, after):
            return Standing(data, None, is_ours=True)
        return Standing(self.read(path), None, is_ours=False)

    def delete_all(self: Storage, paths: Iterable[str]) -> None:
        for path in paths:
            self.delete(path)

    def unfinished_uploads(self, path: str) -> Iterator[Upload]:
        del path
        return iter(())

    def end_uploads(self, uploads: Iterable[Upload]) -> None:
        """Nothing to do: there are none."""


def _outcome_of(storage: Storage, path: str, data: bytes) -> bool | StorageError:
    try:
        return storage.put_if_absent(path, data)
    except StorageError as error:
        return error
