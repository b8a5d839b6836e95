"""The storage of a table, together with the storages of its files that live elsewhere.

A data file can lie outside of the table's folder, on another storage ("External paths"). Every call
goes to the storage of its path: the table's own, or one that the registry opens when a path first
needs it. For ordinary tables this costs the comparison of one prefix.
"""

import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from functools import cached_property
from itertools import groupby
from typing import Final

from emberlake.errors import StorageError, Unsupported
from emberlake.io.registry import open_storage, scheme_of
from emberlake.io.storage import FileInfo, Output, Standing, Storage, Upload
from emberlake.io.wrapped import WrappedStorage

_AUTHORITY: Final = re.compile(r"^[^:/]+://([^/]*)")


def place_of(path: str) -> str:
    """The scheme of a path and its authority: what all paths of one storage have in common."""
    scheme = scheme_of(path)
    found = _AUTHORITY.match(path)
    return scheme if scheme == "file" or found is None else f"{scheme}://{found.group(1)}"


@dataclass(frozen=True)
class RoutedStorage(WrappedStorage):
    """Sends every path to the storage of its scheme and authority.

    ``storage`` serves all paths with the scheme and authority of ``root``. Every process opens the
    other storages for itself, with the options of the catalog (``options``).
    """

    root: str
    options: Mapping[str, object] = field(default_factory=dict, repr=False, compare=False)
    _opened: dict[str, Storage] = field(default_factory=dict, init=False, repr=False, compare=False)

    def storage_of(self, path: str) -> Storage:
        """The storage that a path lives on.

        Raises:
            Unsupported: there is none for its scheme.
        """
        if path.startswith(self._prefix):
            return self.storage
        place = place_of(path)
        if place == self._place:
            return self.storage
        found = self._opened.get(place)
        if found is None:
            # If two threads open one at the same time, both use the same one.
            found = self._opened.setdefault(place, open_storage(path, self.options)[0])
        return found

    def read(self, path: str) -> bytes:
        return self.storage_of(path).read(path)

    def read_range(self, path: str, offset: int, length: int) -> bytes:
        return self.storage_of(path).read_range(path, offset, length)

    def read_marked(self, path: str) -> tuple[bytes, str | None]:
        return self.storage_of(path).read_marked(path)

    def read_many(self, paths: Sequence[str]) -> Iterator[bytes]:
        # Files that are read together are metadata, which all lives in one place.
        for storage, group in groupby(paths, self.storage_of):
            yield from storage.read_many([*group])

    def open_input(self, path: str, size: int | None = None) -> AbstractContextManager[object]:
        return self.storage_of(path).open_input(path, size)

    def local_file(self, path: str) -> str | None:
        return self.storage_of(path).local_file(path)

    def open_output(self, path: str, target: int | None = None) -> Output:
        return self.storage_of(path).open_output(path, target)

    def create(self, path: str, data: bytes) -> None:
        target = self.storage_of(path)
        if target is self.storage or not target.traits.flushes_late:
            target.create(path, data)
            return
        # No file is ever put ``after`` this one on that storage, so it must be durable now.
        with target.open_output(path) as output:
            output.write(data)

    def create_all(self, files: Sequence[tuple[str, bytes]]) -> None:
        if all(self.storage_of(path) is self.storage for path, _ in files):
            self.storage.create_all(files)
            return
        for path, data in files:
            self.create(path, data)

    def put_if_absent(self, path: str, data: bytes, after: Sequence[str] = ()) -> bool:
        target = self.storage_of(path)
        return target.put_if_absent(path, data, self._to_wait_for(target, after))

    def put_each_if_absent(
        self, files: Sequence[tuple[str, bytes]]
    ) -> Sequence[bool | StorageError]:
        groups = groupby(files, lambda file: self.storage_of(file[0]))
        return [done for storage, group in groups for done in storage.put_each_if_absent([*group])]

    def put_or_read(self, path: str, data: bytes, after: Sequence[str] = ()) -> Standing:
        target = self.storage_of(path)
        return target.put_or_read(path, data, self._to_wait_for(target, after))

    def put(self, path: str, data: bytes) -> None:
        self.storage_of(path).put(path, data)

    def put_hint(self, path: str, data: bytes) -> None:
        self.storage_of(path).put_hint(path, data)

    def exists(self, path: str) -> bool:
        return self.storage_of(path).exists(path)

    def size(self, path: str) -> int:
        return self.storage_of(path).size(path)

    def list(self, path: str) -> Iterator[FileInfo]:
        return self.storage_of(path).list(path)

    def list_all(self, path: str) -> Iterator[FileInfo]:
        return self.storage_of(path).list_all(path)

    def make_folder(self, path: str) -> None:
        self.storage_of(path).make_folder(path)

    def delete(self, path: str) -> None:
        self.storage_of(path).delete(path)

    def delete_all(self, paths: Iterable[str]) -> None:
        by_place: dict[int, tuple[Storage, list[str]]] = {}
        for path in paths:
            storage = self.storage_of(path)
            by_place.setdefault(id(storage), (storage, []))[1].append(path)
        for storage, together in by_place.values():
            storage.delete_all(together)

    def delete_folder(self, path: str) -> None:
        self.storage_of(path).delete_folder(path)

    def delete_empty_folder(self, path: str) -> None:
        self.storage_of(path).delete_empty_folder(path)

    def move_folder(self, source: str, target: str) -> None:
        storage = self.storage_of(source)
        if self.storage_of(target) is not storage:
            raise Unsupported(
                f"{source} cannot be moved to {target}, which is on another storage; "
                "copy its files instead"
            )
        storage.move_folder(source, target)

    def unfinished_uploads(self, path: str) -> Iterator[Upload]:
        return self.storage_of(path).unfinished_uploads(path)

    def end_uploads(self, uploads: Iterable[Upload]) -> None:
        for storage, group in groupby(uploads, lambda upload: self.storage_of(upload.path)):
            storage.end_uploads([*group])

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self.storage, self.root, dict(self.options))

    def _to_wait_for(self, target: Storage, after: Sequence[str]) -> Sequence[str]:
        """The files on the same storage. Files elsewhere are durable, but they must exist."""
        same = [needed for needed in after if self.storage_of(needed) is target]
        for needed in set(after).difference(same):
            self.storage_of(needed).size(needed)
        return same

    @cached_property
    def _prefix(self) -> str:
        return f"{self.root.rstrip('/')}/"

    @cached_property
    def _place(self) -> str:
        return place_of(self.root)


def routed(storage: Storage, root: str, options: Mapping[str, object]) -> RoutedStorage:
    """The storage of tables below ``root``, routed to all others unless it already is."""
    if isinstance(storage, RoutedStorage):
        return storage
    return RoutedStorage(storage, root, options)


def own_storage(storage: Storage) -> Storage:
    """The storage of a table's own folder, where all of its metadata is."""
    return storage.storage if isinstance(storage, RoutedStorage) else storage


def is_same_folder(storage: Storage, one: str, other: str) -> bool:
    """Whether two paths of a table's own storage lead to the same folder, also by links."""
    own = own_storage(storage)
    found = [own.local_file(path) for path in (one, other)]
    if None in found:
        return one == other
    return len({os.path.realpath(path) for path in found if path is not None}) == 1
