"""The base class of storages that wrap another one: every call is passed on as it is."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass

from emberlake.errors import StorageError
from emberlake.io.storage import FileInfo, Output, Standing, Storage, StorageTraits, Upload


@dataclass(frozen=True)
class WrappedStorage:
    """Does what ``storage`` does; subclasses change some of it."""

    storage: Storage

    @property
    def traits(self) -> StorageTraits:
        return self.storage.traits

    def read(self, path: str) -> bytes:
        return self.storage.read(path)

    def read_range(self, path: str, offset: int, length: int) -> bytes:
        return self.storage.read_range(path, offset, length)

    def read_marked(self, path: str) -> tuple[bytes, str | None]:
        return self.storage.read_marked(path)

    def read_many(self, paths: Sequence[str]) -> Iterator[bytes]:
        return self.storage.read_many(paths)

    def open_input(self, path: str, size: int | None = None) -> AbstractContextManager[object]:
        return self.storage.open_input(path, size)

    def local_file(self, path: str) -> str | None:
        return self.storage.local_file(path)

    def open_output(self, path: str, target: int | None = None) -> Output:
        return self.storage.open_output(path, target)

    def create(self, path: str, data: bytes) -> None:
        self.storage.create(path, data)

    def create_all(self, files: Sequence[tuple[str, bytes]]) -> None:
        self.storage.create_all(files)

    def put_if_absent(self, path: str, data: bytes, after: Sequence[str] = ()) -> bool:
        return self.storage.put_if_absent(path, data, after)

    def put_each_if_absent(
        self, files: Sequence[tuple[str, bytes]]
    ) -> Sequence[bool | StorageError]:
        return self.storage.put_each_if_absent(files)

    def put_or_read(self, path: str, data: bytes, after: Sequence[str] = ()) -> Standing:
        return self.storage.put_or_read(path, data, after)

    def put(self, path: str, data: bytes) -> None:
        self.storage.put(path, data)

    def put_hint(self, path: str, data: bytes) -> None:
        self.storage.put_hint(path, data)

    def exists(self, path: str) -> bool:
        return self.storage.exists(path)

    def size(self, path: str) -> int:
        return self.storage.size(path)

    def list(self, path: str) -> Iterator[FileInfo]:
        return self.storage.list(path)

    def list_all(self, path: str) -> Iterator[FileInfo]:
        return self.storage.list_all(path)

    def make_folder(self, path: str) -> None:
        self.storage.make_folder(path)

    def delete(self, path: str) -> None:
        self.storage.delete(path)

    def delete_all(self, paths: Iterable[str]) -> None:
        self.storage.delete_all(paths)

    def delete_folder(self, path: str) -> None:
        self.storage.delete_folder(path)

    def delete_empty_folder(self, path: str) -> None:
        self.storage.delete_empty_folder(path)

    def move_folder(self, source: str, target: str) -> None:
        self.storage.move_folder(source, target)

    def unfinished_uploads(self, path: str) -> Iterator[Upload]:
        return self.storage.unfinished_uploads(path)

    def end_uploads(self, uploads: Iterable[Upload]) -> None:
        self.storage.end_uploads(uploads)


class WrappedOutput(Output):
    """Writes to another output; subclasses do more when it ends."""

    def __init__(self, output: Output) -> None:
        super().__init__(output.path)
        self._output = output

    def _append(self, data: memoryview) -> None:
        self._output.write(data)

    def _finish(self) -> None:
        self._output.close()

    def _drop(self) -> None:
        self._output.abort()
