"""Buckets that are assigned as keys arrive: the hash index of dynamic-bucket tables.

Spec: "Dynamic bucket index". Every partition remembers the bucket of each key hash. A new hash goes
to the first bucket with room; if none has any, a new bucket is opened. Every bucket that changed
gets a new index file. The message names the index file that it replaces, so a commit notices when
another writer has changed the same bucket.

Several assigners can work for one commit, each with its own keys. A known key goes to its bucket, a
new one to a bucket of its assigner, so every index file has one author.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from emberlake.errors import CorruptFile
from emberlake.options import DYNAMIC_BUCKET_MAX, DYNAMIC_BUCKET_ROWS
from emberlake.spec.key_value import key_fields
from emberlake.spec.manifest import HASH_INDEX, IndexFile
from emberlake.spec.row_columns import hash_rows
from emberlake.store.table_store import TableStore
from emberlake.write.bucket_rooms import SINGLE_ASSIGNER, Assigner, BucketRooms, Buckets
from emberlake.write.route import Group, split_rows

Hashes = npt.NDArray[np.int32]

_HASH_BYTES: Final = 4
_STORED: Final = np.dtype(">i4")


@dataclass(frozen=True, slots=True)
class IndexChange:
    """The new index file of a bucket, and the one that it replaces."""

    new: IndexFile
    old: IndexFile | None


class DynamicBuckets:
    """Gives the rows of a table their buckets, and keeps the hash index.

    Args:
        store: The table.
        ignore_previous: Whether an overwrite replaces all existing files, with the index.
        assigner: Which of the writers of one commit this is.
    """

    def __init__(
        self, store: TableStore, *, ignore_previous: bool, assigner: Assigner = SINGLE_ASSIGNER
    ) -> None:
        self._store = store
        self._assigner = assigner
        self._ignore_previous = ignore_previous
        self._indexes: dict[bytes, PartitionIndex] = {}
        self._writer_id = store.env.new_id()
        self._number = 0
        self._written: list[str] = []  # paths of index files that were not handed over

    def assign(self, rows: pa.Table, partitions: list[Group]) -> Iterator[Group]:
        """Split groups of rows by partition further, by bucket."""
        keys = key_fields(self._store.schema)
        hashes = hash_rows([f.type for f in keys], [rows.column(f.name) for f in keys])
        for group in partitions:
            own = hashes if group.rows is None else hashes[group.rows]
            buckets = self._index(group.partition).assign(own)
            yield from split_rows(group, buckets)

    def write_changes(self) -> dict[tuple[bytes, int], IndexChange]:
        """Write the index of every bucket that has changed since the last call."""
        changes = {}
        for partition, index in self._indexes.items():
            for bucket in index.changed:
                new = self._write(partition, bucket, index.hashes_of(bucket))
                changes[partition, bucket] = IndexChange(new, index.files.get(bucket))
        for (partition, bucket), change in changes.items():
            self._indexes[partition].files[bucket] = change.new
        for index in self._indexes.values():
            index.changed.clear()
        return changes

    def hand_over(self) -> None:
        """The index files written so far belong to messages now."""
        self._written.clear()

    def abort(self) -> None:
        """Delete every index file that was not handed over; if that fails, it can be repeated."""
        while self._written:
            self._store.storage.delete(self._written[-1])
            self._written.pop()

    def _index(self, partition: bytes) -> "PartitionIndex":
        if partition not in self._indexes:
            files = {} if self._ignore_previous else _load_files(self._store, partition)
            self._indexes[partition] = PartitionIndex.of(
                {b: _read(self._store, partition, b, file) for b, file in files.items()},
                files,
                bucket_rows=self._store.options.value(DYNAMIC_BUCKET_ROWS),
                max_buckets=self._store.options.value(DYNAMIC_BUCKET_MAX),
                assigner=self._assigner,
            )
        return self._indexes[partition]

    def _write(self, partition: bytes, bucket: int, hashes: Hashes) -> IndexFile:
        name = f"index-{self._writer_id}-{self._number}"
        self._number += 1
        raw = hashes.astype(_STORED).tobytes()
        file = IndexFile(
            index_type=HASH_INDEX, file_name=name, file_size=len(raw), row_count=len(hashes)
        )
        file = self._store.placed_index(partition, bucket, file)
        path = self._store.index_file_path(partition, bucket, file)
        self._written.append(path)
        self._store.storage.put_if_absent(path, raw)
        return file


@dataclass
class PartitionIndex:
    """The bucket of every key hash of one partition; ``hashes`` are sorted and distinct."""

    hashes: Hashes
    buckets: Buckets
    rooms: BucketRooms
    files: dict[int, IndexFile] = field(default_factory=dict)
    changed: set[int] = field(default_factory=set)

    @staticmethod
    def of(
        known: dict[int, Hashes],
        files: dict[int, IndexFile],
        *,
        bucket_rows: int,
        max_buckets: int,
        assigner: Assigner = SINGLE_ASSIGNER,
    ) -> "PartitionIndex":
        """The index of a partition whose buckets hold these hashes."""
        hashes = np.concatenate([*known.values(), np.zeros(0, np.int32)])
        sizes = [len(own) for own in known.values()]
        buckets = np.repeat(np.array(list(known), np.int32), sizes)
        hashes, first = np.unique(hashes, return_index=True)
        counts = {bucket: len(known[bucket]) for bucket in sorted(known)}
        rooms = BucketRooms(counts, bucket_rows, max_buckets, assigner)
        return PartitionIndex(hashes, buckets[first], rooms, dict(files))

    def assign(self, hashes: Hashes) -> Buckets:
        """The bucket of every hash; new hashes are remembered."""
        self._add(self._unknown(hashes))
        counts = self.rooms.counts
        if len(counts) == 1:
            return np.full(len(hashes), next(iter(counts)), np.int32)
        buckets: Buckets = self.buckets[np.searchsorted(self.hashes, hashes)]
        return buckets

    def hashes_of(self, bucket: int) -> Hashes:
        """All hashes of a bucket."""
        hashes: Hashes = self.hashes[self.buckets == bucket]
        return hashes

    def _unknown(self, hashes: Hashes) -> Hashes:
        distinct = np.unique(hashes)
        if not len(self.hashes):
            return distinct
        places = np.searchsorted(self.hashes, distinct)
        places[places == len(self.hashes)] = 0
        unknown: Hashes = distinct[self.hashes[places] != distinct]
        return unknown

    def _add(self, new: Hashes) -> None:
        if not len(new):
            return
        buckets = self.rooms.assign(len(new))
        self.changed.update(np.unique(buckets).tolist())
        places = np.searchsorted(self.hashes, new)
        self.hashes = np.insert(self.hashes, places, new)
        self.buckets = np.insert(self.buckets, places, buckets)


def _load_files(store: TableStore, partition: bytes) -> dict[int, IndexFile]:
    snapshot = store.snapshots.latest()
    if snapshot is None or snapshot.index_manifest is None:
        return {}
    return {
        entry.bucket: entry.index_file
        for entry in store.manifests.read_index(snapshot.index_manifest)
        if entry.partition == partition and entry.index_file.index_type == HASH_INDEX
    }


def _read(store: TableStore, partition: bytes, bucket: int, file: IndexFile) -> Hashes:
    path = store.index_file_path(partition, bucket, file)
    raw = store.storage.read(path)
    if len(raw) % _HASH_BYTES:
        raise CorruptFile(path, f"a hash index of {len(raw)} bytes is not made of whole hashes")
    return np.frombuffer(raw, _STORED).astype(np.int32)
