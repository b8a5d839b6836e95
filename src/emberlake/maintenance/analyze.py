"""Count the rows of a table, compute statistics of its columns, and commit them.

The statistics are a file of their own, which the new snapshot and its successors name as long as
the schema stays the same. No row changes.
"""

from collections.abc import Sequence
from contextlib import suppress

from emberlake.commit.change import NOTHING_COMMITTED, Change, CommitResult
from emberlake.commit.committer import Committer
from emberlake.errors import CommitUnknown, StorageError
from emberlake.expressions.query_auth import seeing_all
from emberlake.maintenance.column_statistics import ColumnCounter
from emberlake.read.projection import project
from emberlake.read.table_reader import TableReader
from emberlake.scan.files import live_entries
from emberlake.scan.plan import plan_target
from emberlake.spec.snapshot import CommitKind, Snapshot
from emberlake.spec.statistics import TableStatistics
from emberlake.store.table_store import TableStore


def analyze_table(store: TableStore, commit_user: str, columns: Sequence[str]) -> CommitResult:
    """Commit statistics of the latest snapshot: its rows, and some of its columns.

    Raises:
        Unsupported: a column has a type that has no statistics.
    """
    store = seeing_all(store, "analyzed")
    snapshot = store.snapshots.latest()
    if snapshot is None:
        return NOTHING_COMMITTED
    with store.decoding_rows():
        found = _statistics(store, snapshot, columns)
    name = f"stat-{store.env.new_id()}-0"
    path = store.layout.statistics(name)
    store.storage.put(path, found.to_bytes())
    change = Change(kind=CommitKind.ANALYZE, statistics=name)
    try:
        return Committer(store, commit_user).commit(change)
    except CommitUnknown:
        raise  # a snapshot may name the file
    except BaseException:
        with suppress(StorageError):
            store.storage.delete(path)
        raise


def _statistics(store: TableStore, snapshot: Snapshot, columns: Sequence[str]) -> TableStatistics:
    by_name = store.schema.field_by_name
    counters = {name: ColumnCounter(by_name[name]) for name in columns}
    read = list(columns) or [store.schema.fields[0].name]
    reader = TableReader(store, project(store.schema.fields, read))
    rows = 0
    for batch in reader.read_batches(plan_target(store, snapshot, None, None).splits):
        rows += batch.num_rows
        for name, counter in counters.items():
            counter.add(batch.column(name))
    entries = live_entries(store, snapshot)
    stored = int(entries.row_count.sum())
    size = round(int(entries.file_size.sum()) * rows / stored) if stored else 0
    return TableStatistics(
        snapshot.id,
        snapshot.schema_id,
        rows,
        size,
        {name: counter.result().to_json() for name, counter in counters.items()},
    )
