"""A storage whose files are durable as soon as they are written.

Usually the files of a commit are made durable together with the snapshot that refers to them, by
the writer of the snapshot. If a server writes it, the writer of the files cannot rely on that.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from emberlake.io.storage import Storage, StorageTraits
from emberlake.io.wrapped import WrappedStorage


@dataclass(frozen=True)
class DurableStorage(WrappedStorage):
    """Does what ``storage`` does, and waits for the disk after every file."""

    @property
    def traits(self) -> StorageTraits:
        return replace(self.storage.traits, flushes_late=False)

    def create(self, path: str, data: bytes) -> None:
        with self.storage.open_output(path) as output:
            output.write(data)

    def create_all(self, files: Sequence[tuple[str, bytes]]) -> None:
        for path, data in files:
            self.create(path, data)


def durable(storage: Storage) -> Storage:
    """The storage, wrapped if necessary so that every write is durable immediately."""
    return DurableStorage(storage) if storage.traits.flushes_late else storage
