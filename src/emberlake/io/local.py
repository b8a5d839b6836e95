"""Storage on the local disk, or on a network disk that is mounted like one.

A file is published by writing it under a hidden temporary name, flushing it, and hard-linking it to
its name. The link fails if the name is taken, so exactly one of several writers wins, and no reader
ever sees half a file.
"""

import errno
import io
import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa

from emberlake.errors import AlreadyExists, FileNotFound, InvalidInput, StorageError
from emberlake.io.local_files import (
    Draft,
    create_at,
    draft,
    flush_folder,
    flush_handles,
    link_to,
    temporary_of,
)
from emberlake.io.storage import FileInfo, OneByOne, Output, Storage, StorageTraits

_TRAITS: Final = StorageTraits(
    is_shared=True,
    spark_reads=True,
    moves_folders=True,
    flushes_late=True,
    others_overwrite=False,
)
_FLUSHED_AT_ONCE: Final = 64  # files that are open together


@dataclass(frozen=True, slots=True)
class LocalStorage(OneByOne):
    """Files of this machine. Paths are absolute, plain or with the scheme ``file:``."""

    @property
    def traits(self) -> StorageTraits:
        return _TRAITS

    def read(self, path: str) -> bytes:
        with _failures_of("read", path), open(local_path(path), "rb", buffering=0) as file:
            return file.readall()

    def read_range(self, path: str, offset: int, length: int) -> bytes:
        with _failures_of("read", path), open(local_path(path), "rb", buffering=0) as file:
            return os.pread(file.fileno(), length, offset)

    def open_input(self, path: str, size: int | None = None) -> AbstractContextManager[object]:
        del size  # the disk knows it
        with _failures_of("open", path):
            opened: AbstractContextManager[object] = pa.OSFile(local_path(path), "rb")
            return opened

    def local_file(self, path: str) -> str | None:
        return local_path(path)

    def open_output(self, path: str, target: int | None = None) -> Output:
        del target
        return _LocalOutput(path)

    def create(self, path: str, data: bytes) -> None:
        with _failures_of("create", path):
            _write_new(local_path(path), data)

    def put_if_absent(self, path: str, data: bytes, after: Sequence[str] = ()) -> bool:
        target = local_path(path)
        temporary = temporary_of(target)
        with _failures_of("publish", path):
            try:
                with _failures_of("publish", path, had_no_effect=True):
                    needed = [local_path(name) for name in after]
                    # First, since writing would bring back the folder of a dropped table.
                    _check_present(needed)
                    if needed:
                        _write_new(temporary, data)
                        _flush([*needed, temporary])
                    else:
                        _write_new(temporary, data, flush=True)
                is_ours = link_to(temporary, target)
            finally:
                with suppress(FileNotFoundError):
                    os.unlink(temporary)
            if is_ours:
                flush_folder(os.path.dirname(target))
            return is_ours

    def put_each_if_absent(
        self, files: Sequence[tuple[str, bytes]]
    ) -> Sequence[bool | StorageError]:
        parts = (files[at : at + _FLUSHED_AT_ONCE] for at in range(0, len(files), _FLUSHED_AT_ONCE))
        return [outcome for part in parts for outcome in _put_together(part)]

    def put(self, path: str, data: bytes) -> None:
        with _failures_of("write", path):
            _replace(local_path(path), data)

    def put_hint(self, path: str, data: bytes) -> None:
        target = local_path(path)
        with _failures_of("write", path):
            try:
                if _change_one_byte(target, data):
                    return
                with create_at(
                    target, lambda path: io.BufferedWriter(io.FileIO(path, "wb"))
                ) as sink:
                    sink.write(data)
            except PermissionError:  # of another user, in a folder that we share
                _replace(target, data)

    def exists(self, path: str) -> bool:
        with _failures_of("look at", path):
            try:
                os.stat(local_path(path))
            except (FileNotFoundError, NotADirectoryError):
                return False
            return True

    def size(self, path: str) -> int:
        with _failures_of("look at", path):
            return os.stat(local_path(path)).st_size

    def list(self, path: str) -> Iterator[FileInfo]:
        with _failures_of("list", path):
            try:
                with os.scandir(local_path(path)) as items:
                    found = [info for item in items if (info := _file_info(path, item))]
            except FileNotFoundError:
                return iter(())
        return iter(sorted(found, key=lambda info: info.name))

    def list_all(self, path: str) -> Iterator[FileInfo]:
        folders = [path]
        while folders:
            for info in self.list(folders.pop()):
                if info.is_folder:
                    folders.append(info.path)
                else:
                    yield info

    def make_folder(self, path: str) -> None:
        with _failures_of("create", path):
            os.makedirs(local_path(path), exist_ok=True)

    def delete(self, path: str) -> None:
        with _failures_of("delete", path), suppress(FileNotFoundError):
            os.unlink(local_path(path))

    def delete_folder(self, path: str) -> None:
        with _failures_of("delete", path), suppress(FileNotFoundError):
            shutil.rmtree(local_path(path))

    def delete_empty_folder(self, path: str) -> None:
        with _failures_of("delete", path):
            for folder, _, _ in os.walk(local_path(path), topdown=False):
                try:
                    os.rmdir(folder)
                except FileNotFoundError:
                    pass
                except OSError as error:
                    if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
                        raise

    def move_folder(self, source: str, target: str) -> None:
        new = local_path(target)
        # A rename would silently replace an empty folder.
        if os.path.lexists(new):
            raise AlreadyExists(f"{target} exists; move {source} to another name")
        with _failures_of("move", source):
            old = local_path(source)
            if not os.path.isdir(old):
                raise FileNotFound(source)
            os.makedirs(os.path.dirname(new), exist_ok=True)
            os.rename(old, new)


class _LocalOutput(Output):
    """A file that is on the disk once it is closed.

    The folder is not flushed. Journaling file systems keep the name of a new file together with it,
    and the first thing that refers to the file is a snapshot, whose folder is flushed.
    """

    def __init__(self, path: str) -> None:
        super().__init__(path)
        self._target = local_path(path)
        with _failures_of("create", path):
            self._sink = create_at(self._target, _new_file)

    def _append(self, data: memoryview) -> None:
        with _failures_of("write", self.path):
            self._sink.write(data)

    def _finish(self) -> None:
        with _failures_of("write", self.path):
            self._sink.flush()
            os.fsync(self._sink.fileno())
            self._sink.close()

    def _drop(self) -> None:
        with suppress(OSError):
            self._sink.close()
        with suppress(OSError):
            os.unlink(self._target)


def _new_file(target: str) -> "io.BufferedWriter[Any]":
    # Exclusive: new files have unique names, so a name that is taken is a bug that must surface.
    return io.BufferedWriter(io.FileIO(target, "xb"))


def open_storage(path: str, options: Mapping[str, object]) -> tuple[Storage, str]:
    """The local disk, and the path of a folder on it in its normal form."""
    del options  # there are none
    # Absolute, because workers that open the same table may run in another folder. Links are not
    # followed, so the user recognizes the path.
    return LocalStorage(), os.path.abspath(os.path.expanduser(local_path(path)))


def local_path(path: str) -> str:
    """The path without the scheme ``file:``; its text is taken as it is, never percent-decoded."""
    if "\0" in path or not _is_encodable(path):
        raise InvalidInput(f"{path!r} cannot be a path: it holds characters that no file name has")
    if not path.startswith("file:"):
        return path
    rest = path.removeprefix("file:")
    return "/" + rest.lstrip("/") if rest.startswith("/") else rest


def _is_encodable(path: str) -> bool:
    try:
        os.fsencode(path)
    except UnicodeEncodeError:
        return False
    return True


@contextmanager
def _failures_of(action: str, path: str, *, had_no_effect: bool = False) -> Iterator[None]:
    try:
        yield
    except FileNotFoundError as error:
        raise FileNotFound(path) from error
    except OSError as error:
        problem = f"cannot {action} {path}: {error.strerror or error}"
        raise StorageError(problem, had_no_effect=had_no_effect) from error


@contextmanager
def _noted(
    outcomes: list[bool | StorageError], place: int, path: str, *, had_no_effect: bool = False
) -> Iterator[None]:
    """Note a failure as the outcome of one file of many."""
    try:
        with _failures_of("publish", path, had_no_effect=had_no_effect):
            yield
    except StorageError as error:
        outcomes[place] = error


def _put_together(files: Sequence[tuple[str, bytes]]) -> Sequence[bool | StorageError]:
    """Publish files together, step by step: after the first wait for the disk, few follow."""
    outcomes: list[bool | StorageError] = [False] * len(files)
    targets = [local_path(path) for path, _ in files]
    with ExitStack() as opened:
        drafts: dict[int, Draft] = {}
        for place, (path, data) in enumerate(files):
            with _noted(outcomes, place, path, had_no_effect=True):
                drafts[place] = opened.enter_context(draft(targets[place], data))
        try:
            flush_handles([written.handle for written in drafts.values()])
        except OSError as error:
            problem = f"cannot publish files: {error}"
            return [StorageError(problem, had_no_effect=True) for _ in files]
        for place, written in drafts.items():
            with _noted(outcomes, place, files[place][0]):
                outcomes[place] = written.link(targets[place])
    for place in drafts:
        if outcomes[place] is True:
            with _noted(outcomes, place, files[place][0]):
                flush_folder(os.path.dirname(targets[place]))
    return outcomes


def _write_new(target: str, data: bytes, *, flush: bool = False) -> None:
    sink = create_at(target, _new_file)
    try:
        with sink:
            sink.write(data)
            if flush:
                sink.flush()
                os.fsync(sink.fileno())
    except BaseException:
        os.unlink(target)
        raise


def _replace(target: str, data: bytes) -> None:
    temporary = temporary_of(target)
    try:
        _write_new(temporary, data, flush=True)
        os.replace(temporary, target)
    except BaseException:
        with suppress(FileNotFoundError):
            os.unlink(temporary)
        raise
    flush_folder(os.path.dirname(target))


def _change_one_byte(target: str, data: bytes) -> bool:
    """Turn a file into these bytes if it differs in one byte only; otherwise do nothing.

    Readers see either the old byte or the new one. Most hints differ in their last digit. Emptying
    the file instead would make the writer wait for the disk, or for whoever wrote it before.
    """
    try:
        handle = os.open(target, os.O_RDWR)
    except FileNotFoundError:
        return False
    try:
        found = os.read(handle, len(data) + 1)
        if len(found) != len(data):
            return False
        places = [place for place, byte in enumerate(data) if found[place] != byte]
        if len(places) == 1:
            os.pwrite(handle, data[places[0] : places[0] + 1], places[0])
        return len(places) < 2
    finally:
        os.close(handle)


def _check_present(paths: Sequence[str]) -> None:
    for path in paths:
        with _failures_of("look at", path, had_no_effect=True):
            os.stat(path)


def _flush(paths: Sequence[str]) -> None:
    """Wait until files are on the disk."""
    for start in range(0, len(paths), _FLUSHED_AT_ONCE):
        _flush_together(paths[start : start + _FLUSHED_AT_ONCE])


def _flush_together(paths: Sequence[str]) -> None:
    with ExitStack() as opened:
        handles: list[int] = []
        for path in paths:
            with _failures_of("open", path, had_no_effect=True):
                handles.append(os.open(path, os.O_RDWR))
            opened.callback(os.close, handles[-1])
        flush_handles(handles)


def _file_info(folder: str, item: "os.DirEntry[str]") -> FileInfo | None:
    try:
        status = item.stat()
    except FileNotFoundError:  # deleted since it was listed
        return None
    is_folder = item.is_dir()
    return FileInfo(
        path=f"{folder.rstrip('/')}/{item.name}",
        name=item.name,
        size=0 if is_folder else status.st_size,
        is_folder=is_folder,
        modified_ms=status.st_mtime_ns // 1_000_000,
    )
