"""What a writer must know about buckets that already have files."""

from dataclasses import dataclass

import numpy as np

from emberlake.scan.files import live_entries
from emberlake.spec.snapshot import Snapshot
from emberlake.store.table_store import TableStore


@dataclass(frozen=True, slots=True)
class BucketState:
    """The largest sequence number in a bucket, how many buckets its partition has, and its records.

    ``record_count`` is without deletes; a key that was written several times counts as often until
    it is compacted.
    """

    max_sequence_number: int
    total_buckets: int
    record_count: int = 0


def load_bucket_states(
    store: TableStore, snapshot: Snapshot | None, partition: bytes
) -> dict[int, BucketState]:
    """The state of every bucket of a partition that holds files."""
    if snapshot is None:
        return {}
    entries = live_entries(store, snapshot, partitions=frozenset({partition}))
    deletes = entries.delete_row_count.fill_null(0).to_numpy()
    states: dict[int, BucketState] = {}
    for bucket in np.unique(entries.bucket).tolist():
        rows = entries.bucket == bucket
        states[bucket] = BucketState(
            max_sequence_number=int(entries.max_sequence_number[rows].max()),
            total_buckets=int(entries.total_buckets[rows][0]),
            record_count=int((entries.row_count[rows] - deletes[rows]).sum()),
        )
    return states
