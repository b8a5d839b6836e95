"""Files, rows and bytes per partition and per bucket, summed one column at a time."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from emberlake.inspect.text import partition_name, partition_values
from emberlake.options import PARTITION_DEFAULT_NAME
from emberlake.scan.files import live_entries
from emberlake.spec.snapshot import Snapshot
from emberlake.store.entries import EMPTY, ManifestEntries
from emberlake.store.table_store import TableStore

_NO_TIME: Final = np.iinfo(np.int64).min


@dataclass(frozen=True, eq=False)
class FileTotals:
    """Sums over groups of files; element i of every array is group i."""

    record_count: npt.NDArray[np.int64]
    file_size_in_bytes: npt.NDArray[np.int64]
    file_count: npt.NDArray[np.int64]
    last_creation_time: pa.Array  # timestamp[ms], the writers' wall clock; null when not recorded
    total_buckets: npt.NDArray[np.int32]

    def take(self, order: npt.NDArray[np.int64]) -> "FileTotals":
        """The same groups in another order, or some of them."""
        return FileTotals(
            self.record_count[order],
            self.file_size_in_bytes[order],
            self.file_count[order],
            self.last_creation_time.take(pa.array(order)),
            self.total_buckets[order],
        )


@dataclass(frozen=True, eq=False)
class PartitionTotals:
    """The partitions of a snapshot, ordered by name."""

    partitions: tuple[bytes, ...]  # serialized rows
    values: tuple[tuple[str, ...], ...]  # readable, in the order of the partition keys
    names: tuple[str, ...]
    files: FileTotals


@dataclass(frozen=True, eq=False)
class BucketTotals:
    """The buckets of a snapshot, ordered by partition name and bucket."""

    names: tuple[str, ...]  # of the bucket's partition
    partitions: tuple[bytes, ...]  # the same as serialized rows
    buckets: npt.NDArray[np.int32]
    files: FileTotals


def load_live_files(store: TableStore, snapshot: Snapshot | None) -> ManifestEntries:
    """The data files of a snapshot; none if the table has no snapshot."""
    return EMPTY if snapshot is None else live_entries(store, snapshot)


def load_partition_totals(store: TableStore, snapshot: Snapshot | None) -> PartitionTotals:
    """What each partition holds. An unpartitioned table with data is one unnamed partition."""
    entries = load_live_files(store, snapshot)
    values, names = describe_partitions(store, entries.partitions)
    order = _name_order(names, entries.partitions)
    totals = _sum_files(entries, entries.partition_codes, len(names))
    return PartitionTotals(
        tuple(entries.partitions[i] for i in order),
        tuple(values[i] for i in order),
        tuple(names[i] for i in order),
        totals.take(np.array(order, np.int64)),
    )


def load_bucket_totals(store: TableStore, snapshot: Snapshot | None) -> BucketTotals:
    """What each bucket of each partition holds."""
    entries = load_live_files(store, snapshot)
    _, names = describe_partitions(store, entries.partitions)
    rank = np.empty(len(names), np.int64)
    rank[_name_order(names, entries.partitions)] = np.arange(len(names))
    keys = np.stack([rank[entries.partition_codes], entries.bucket.astype(np.int64)], axis=1)
    groups, firsts, codes = np.unique(keys, axis=0, return_index=True, return_inverse=True)
    places = entries.partition_codes[firsts].tolist()
    return BucketTotals(
        tuple(names[code] for code in places),
        tuple(entries.partitions[code] for code in places),
        groups[:, 1].astype(np.int32),
        _sum_files(entries, codes.reshape(-1), len(groups)),
    )


def describe_partitions(
    store: TableStore, partitions: Sequence[bytes]
) -> tuple[list[tuple[str, ...]], list[str]]:
    """The readable values and the names of serialized partitions."""
    default_name = store.options.value(PARTITION_DEFAULT_NAME)
    values = partition_values(store.schema.partition_fields, partitions, default_name)
    return values, [partition_name(store.schema.partition_keys, row) for row in values]


def _name_order(names: Sequence[str], partitions: Sequence[bytes]) -> list[int]:
    # Names of different partitions can be the same (null and the text that stands for null).
    return sorted(range(len(names)), key=lambda i: (names[i], partitions[i]))


def _sum_files(
    entries: ManifestEntries, codes: npt.NDArray[np.signedinteger], count: int
) -> FileTotals:
    rows, size = np.zeros(count, np.int64), np.zeros(count, np.int64)
    np.add.at(rows, codes, entries.row_count)
    np.add.at(size, codes, entries.file_size)
    times = np.full(count, _NO_TIME, np.int64)
    np.maximum.at(times, codes, _creation_times(entries))
    # The bucket count is the same in all live files of a partition.
    total_buckets = np.zeros(count, np.int32)
    total_buckets[codes] = entries.total_buckets
    return FileTotals(
        rows,
        size,
        np.bincount(codes, minlength=count).astype(np.int64),
        pa.array(times, mask=times == _NO_TIME).cast(pa.timestamp("ms")),
        total_buckets,
    )


def _creation_times(entries: ManifestEntries) -> npt.NDArray[np.int64]:
    times: npt.NDArray[np.int64] = entries.creation_time.fill_null(_NO_TIME).to_numpy()
    return times
