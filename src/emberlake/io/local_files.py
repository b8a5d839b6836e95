"""The steps that create a file on a local disk: write it, flush it, link it to its name."""

import errno
import os
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Final, TypeVar

_MODE: Final = 0o666  # as far as the process allows it
_HAS_UNNAMED: Final = hasattr(os, "O_TMPFILE") and os.path.isdir("/proc/self/fd")
# Errors of disks that do not support files without names. Some take the folder for the file.
_NO_UNNAMED: Final = frozenset({errno.EOPNOTSUPP, errno.EISDIR, errno.EINVAL})
_Opened = TypeVar("_Opened")


@dataclass(frozen=True, slots=True)
class Draft:
    """An open file that nobody sees yet."""

    handle: int
    temporary: str | None  # its name, if the disk requires one

    def link(self, target: str) -> bool:
        """Give the file its name; False if another file has it."""
        if self.temporary is not None:
            return link_to(self.temporary, target)
        try:
            # The path is absolute, but only with src_dir_fd does os.link follow the symbolic link.
            os.link(f"/proc/self/fd/{self.handle}", target, src_dir_fd=self.handle)
        except FileExistsError:
            return False
        return True


@contextmanager
def draft(target: str, data: bytes) -> Iterator[Draft]:
    """A new file next to a path. It has no name if the disk allows that, which is cheaper."""
    made = create_at(target, _open_draft)
    try:
        _write(made.handle, data)
        yield made
    finally:
        os.close(made.handle)
        if made.temporary is not None:
            with suppress(FileNotFoundError):
                os.unlink(made.temporary)


def _open_draft(target: str) -> Draft:
    if _HAS_UNNAMED:
        try:
            flags = os.O_TMPFILE | os.O_WRONLY | os.O_CLOEXEC
            return Draft(os.open(os.path.dirname(target), flags, _MODE), None)
        except OSError as error:
            if error.errno not in _NO_UNNAMED:
                raise
    temporary = temporary_of(target)
    flags = os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC
    return Draft(os.open(temporary, flags, _MODE), temporary)


def _write(handle: int, data: bytes) -> None:
    left = memoryview(data)
    while left:
        left = left[os.write(handle, left) :]


def create_at(target: str, open_new: Callable[[str], _Opened]) -> _Opened:
    """Open a new file, and make its folder if there is none."""
    try:
        return open_new(target)
    except FileNotFoundError:
        os.makedirs(os.path.dirname(target), exist_ok=True)
        return open_new(target)


def temporary_of(target: str) -> str:
    """A hidden name next to a path."""
    folder, name = os.path.split(target)
    return f"{folder}/.{name}.{uuid.uuid4()}.tmp"


def link_to(temporary: str, target: str) -> bool:
    """Give a file its name; False if another file has it."""
    try:
        os.link(temporary, target)
    except FileExistsError:
        # A network disk may repeat a link whose answer got lost. Two names mean that it succeeded.
        return os.stat(temporary).st_nlink == 2
    return True


def flush_handles(handles: Sequence[int]) -> None:
    """Wait until open files are on the disk."""
    # This makes the disk start with all files at once, so only the first fsync waits for long.
    if len(handles) > 1 and hasattr(os, "posix_fadvise"):
        with suppress(OSError):  # it is advice
            for handle in handles:
                os.posix_fadvise(handle, 0, 0, os.POSIX_FADV_DONTNEED)
    for handle in handles:
        os.fsync(handle)


def flush_folder(folder: str) -> None:
    """Wait until the names in a folder are on the disk."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
