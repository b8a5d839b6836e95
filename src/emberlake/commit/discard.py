"""The files of messages: where they are, and how to delete those that no snapshot refers to."""

from collections.abc import Iterable, Iterator
from contextlib import suppress

from emberlake.errors import StorageError
from emberlake.store.table_store import TableStore
from emberlake.wire import CommitMessage


def written_paths(store: TableStore, messages: Iterable[CommitMessage]) -> Iterator[str]:
    """The paths of all files that were written for messages."""
    for message in messages:
        place = message.partition, message.bucket
        for file in message.written_files:
            yield store.data_file_path(*place, file)
        for index in (*message.new_index_files, *message.compact_new_index_files):
            yield store.index_file_path(*place, index)


def discard(store: TableStore, messages: Iterable[CommitMessage]) -> None:
    """Delete the files of messages that were not committed and will not be.

    A file that cannot be deleted is garbage, not a problem: it must not hide why it is discarded.
    """
    for path in written_paths(store, messages):
        with suppress(StorageError):
            store.storage.delete(path)
