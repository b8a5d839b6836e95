"""What a writer must know about buckets that already have files."""

from dataclasses import dataclass

import numpy as np

from emberlake.scan.files import live_entries
from emberlake.spec.snapshot import Snapshot
from emberlake.store.table_store import TableStore


@dataclass(frozen=True, slots=True)
class BucketState:
    """The largest sequence number in a bucket, and how many buckets its partition has."""

    max_sequence_number: int
    total_buckets: int


def load_bucket_states(
    store: TableStore, snapshot: Snapshot | None, partition: bytes
) -> dict[int, BucketState]:
    """The state of every bucket of a partition that holds files."""
    if snapshot is None:
        return {}
    entries = live_entries(store, snapshot, partitions=frozenset({partition}))
    states: dict[int, BucketState] = {}
    for bucket in np.unique(entries.bucket).tolist():
        rows = entries.bucket == bucket
        states[bucket] = BucketState(
            max_sequence_number=int(entries.max_sequence_number[rows].max()),
            total_buckets=int(entries.total_buckets[rows][0]),
        )
    return states
