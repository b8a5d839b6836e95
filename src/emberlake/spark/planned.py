"""Reads what was planned before; if files have been deleted since, the error says why.

A DataFrame reads the snapshot that it was planned with. Nothing in the table records that: a read
would have to write a tag or a consumer to keep its files, and nobody could ever remove it, because
Spark does not say when a DataFrame is no longer used.
"""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

import pyarrow as pa

from emberlake.errors import EmberlakeError, FileNotFound, SnapshotNotFound
from emberlake.read.table_reader import TableReader
from emberlake.scan.splits import DataSplit
from emberlake.store.table_store import TableStore


def read_planned(reader: TableReader, splits: Iterable[DataSplit]) -> Iterator[pa.RecordBatch]:
    """The rows of splits, in bounded memory.

    Raises:
        SnapshotNotFound: their snapshot is gone, and files with it.
        FileNotFound: a file of an existing snapshot is gone.
    """
    snapshot_id: int | None = None

    def tracked() -> Iterator[DataSplit]:
        nonlocal snapshot_id
        for split in splits:
            snapshot_id = split.snapshot_id
            yield split

    try:
        yield from reader.read_batches(tracked())
    except FileNotFound as error:
        raise _explained(reader.store, snapshot_id, error) from error


@contextmanager
def planned_files(store: TableStore, snapshot_id: int | None) -> Iterator[None]:
    """If files are gone because the snapshot of a read is gone, say so."""
    try:
        yield
    except FileNotFound as error:
        raise _explained(store, snapshot_id, error) from error


def _explained(store: TableStore, snapshot_id: int | None, error: FileNotFound) -> EmberlakeError:
    if snapshot_id is None or _is_kept(store, snapshot_id):
        return error
    return SnapshotNotFound(
        f"snapshot {snapshot_id} of {store.layout.root} has expired, or was rolled back, and its "
        f"file {error.path} is gone: a DataFrame stays at the snapshot that it was created from; "
        'read the table again with read_paimon(...), or with format("emberlake") and load(...)'
    )


def _is_kept(store: TableStore, snapshot_id: int) -> bool:
    tagged = (snapshot.id for snapshot in store.tags.list().values())
    return store.snapshots.exists(snapshot_id) or snapshot_id in tagged
