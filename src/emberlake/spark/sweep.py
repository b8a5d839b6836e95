"""Deletes useless files of a write job: those of failed, repeated and speculative attempts.

Every file of a write job has the job's id in its name. Only the messages that Spark returned are
committed; a file of the job that none of them names belongs to nobody, if its task has reported.
"""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Final

from emberlake.base.parallel import parallel_map
from emberlake.errors import IncompleteJob
from emberlake.io.storage import FileInfo
from emberlake.options import DATA_FILE_DIRECTORY
from emberlake.spark.job_files import author_of
from emberlake.spark.reports import incomplete
from emberlake.store.table_store import TableStore
from emberlake.wire import CommitMessage

# A task that Spark is killing may still finish a file: look again until there are no new ones.
_ROUNDS: Final = 10
_PAUSE_MS: Final = 200.0
_BUCKET_PREFIX: Final = "bucket-"


@contextmanager
def swept_unless_done(store: TableStore, job_id: str) -> Iterator[None]:
    """Delete the files of a job that fails inside, unless a task may not have reported."""
    try:
        yield
    except IncompleteJob:
        raise
    except BaseException:
        sweep_failed(store, job_id)
        raise


def sweep_failed(store: TableStore, job_id: str) -> int:
    """Delete every file of a job that will not be committed; returns how many there were."""
    total = 0
    for _ in range(_ROUNDS):
        found = _delete(store, _files(store, job_id, _all_folders(store)))
        total += found
        store.env.sleep_ms(_PAUSE_MS)
        if not found:
            break
    return total + _delete(store, _files(store, job_id, _all_folders(store)))


def sweep_repeated(
    store: TableStore, job_id: str, messages: Iterable[CommitMessage], tasks: int | None = None
) -> int:
    """Delete the files of a successful job that no message names; returns how many there were.

    A repeated attempt writes the same rows as the one that counts, so it is enough to look into the
    buckets that the messages name.

    Args:
        store: The table.
        job_id: The job.
        messages: All messages that its tasks reported.
        tasks: How many tasks have reported, if file names show the number of their task.

    Raises:
        IncompleteJob: a file belongs to a task that has not reported; nothing is deleted.
    """
    messages = list(messages)
    keep = frozenset(_names(messages))
    folders = {folder for m in messages for folder in _bucket_folders(store, m)}
    if any(m.new_index_files or m.compact_new_index_files for m in messages):
        folders.update(store.index_folders())
    unnamed = [info for info in _files(store, job_id, folders) if info.name not in keep]
    if tasks is not None:
        _check_authors(unnamed, job_id, tasks)
    return _delete(store, unnamed)


def _check_authors(files: Iterable[FileInfo], job_id: str, tasks: int) -> None:
    for info in files:
        author = author_of(info.name, job_id)
        if author is not None and author >= tasks:
            problem = f"{info.name} belongs to task {author}, but only {tasks} tasks reported"
            raise incomplete(job_id, problem)


def _names(messages: Iterable[CommitMessage]) -> Iterator[str]:
    for message in messages:
        yield from (file.file_name for file in message.written_files)
        # Compacting what was just written makes some files useless; the compaction deletes them.
        yield from (file.file_name for file in message.compact_before)
        yield from (file.file_name for file in message.new_index_files)
        yield from (file.file_name for file in message.compact_new_index_files)


def _files(store: TableStore, job_id: str, folders: Iterable[str]) -> list[FileInfo]:
    def mine(folder: str) -> list[FileInfo]:
        # At any depth: a bucket outside of the table may have folders of its own.
        return [info for info in store.storage.list_all(folder) if job_id in info.name]

    return [info for found in parallel_map(mine, folders) for info in found]


def _delete(store: TableStore, files: Sequence[FileInfo]) -> int:
    store.storage.delete_all([info.path for info in files])
    return len(files)


def _bucket_folders(store: TableStore, message: CommitMessage) -> Iterator[str]:
    """The folders of a bucket: its own, and those outside of the table."""
    relative = store.relative_bucket(message.partition, message.bucket)
    return (f"{root}/{relative}" for root in store.data_roots())


def _all_folders(store: TableStore) -> Iterator[str]:
    """Every folder that a task may write to: the buckets of all partitions, and the indexes."""
    yield from store.index_folders()
    directory = store.options.value(DATA_FILE_DIRECTORY).strip("/")
    folders = [f"{root}/{directory}" if directory else root for root in store.data_roots()]
    for _ in store.schema.partition_keys:
        nested = parallel_map(lambda folder: _folders(store, folder), folders)
        folders = [info.path for found in nested for info in found if "=" in info.name]
    for found in parallel_map(lambda folder: _folders(store, folder), folders):
        yield from (info.path for info in found if info.name.startswith(_BUCKET_PREFIX))


def _folders(store: TableStore, folder: str) -> list[FileInfo]:
    return [info for info in store.storage.list(folder) if info.is_folder]
