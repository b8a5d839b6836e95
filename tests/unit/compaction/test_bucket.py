"""A bucket that is to be compacted deletes what it does not need together."""

from collections.abc import Iterable

from builders import create_table, prepare, rows_of
from emberlake.compaction.bucket import Bucket
from emberlake.errors import StorageError
from emberlake.io import MemoryStorage
from table_reads import data_files


class Counting(MemoryStorage):
    def __init__(self) -> None:
        super().__init__()
        self.calls: list[int] = []
        self.is_broken = False

    def delete_all(self, paths: Iterable[str]) -> None:
        paths = [*paths]
        self.calls.append(len(paths))
        if self.is_broken:
            raise StorageError("no answer")
        super().delete_all(paths)


def test_files_that_are_not_committed_are_deleted_with_one_call() -> None:
    storage = Counting()
    table = create_table(storage, options={"target-file-row-num": "1"})
    [message] = prepare(table, rows_of([1, 2, 3]))
    bucket = Bucket(table.store, message.partition, message.bucket, 1, ())
    files = message.written_files

    storage.is_broken = True
    bucket.discard(files)  # garbage, not a problem
    assert len(data_files(table)) == 3
    storage.is_broken = False
    bucket.discard(files)

    assert storage.calls == [3, 3]
    assert not data_files(table)
