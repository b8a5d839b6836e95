"""Which files a compaction would merge, picked as the engine picks them; no file is written."""

from collections.abc import Iterator
from dataclasses import dataclass

from emberlake.compaction.append_compact import pick_bins
from emberlake.compaction.bucket import Bucket, load_buckets
from emberlake.compaction.group_compact import pick_group_bins
from emberlake.compaction.key_compact import pick_files
from emberlake.compaction.postpone_compact import load_postponed
from emberlake.expressions.query_auth import seeing_all
from emberlake.predicates import Predicate
from emberlake.spec.manifest import DataFile
from emberlake.spec.profile import BucketMode
from emberlake.spec.snapshot import Snapshot
from emberlake.spec.support import check_compactable
from emberlake.store.table_store import TableStore


@dataclass(frozen=True)
class Picked:
    """The files of a bucket that would be compacted."""

    partition: bytes
    bucket: int
    files: tuple[DataFile, ...]

    @property
    def file_size(self) -> int:
        return sum(file.file_size for file in self.files)


def iter_picked(
    store: TableStore, snapshot: Snapshot | None, where: Predicate | None, *, full: bool
) -> Iterator[Picked]:
    """What would be compacted, by bucket; all postponed rows would get their buckets.

    Raises:
        Unsupported: the table cannot be compacted.
    """
    store = seeing_all(store, "compacted")
    check_compactable(store.schema)
    if store.schema.profile.bucket_mode is BucketMode.POSTPONED:
        for waiting in load_postponed(store, snapshot, where):
            yield Picked(waiting.partition, waiting.number, waiting.files)
    pick = _pick_of_keys if store.schema.profile.has_keys else _pick_of_appends
    for bucket in load_buckets(store, snapshot, where):
        files = pick(bucket, full=full)
        if files:
            yield Picked(bucket.partition, bucket.number, files)


def _pick_of_keys(bucket: Bucket, *, full: bool) -> tuple[DataFile, ...]:
    pick = pick_files(bucket, full=full)
    return () if pick is None else pick.files


def _pick_of_appends(bucket: Bucket, *, full: bool) -> tuple[DataFile, ...]:
    if bucket.store.schema.profile.evolves_data:
        bins = pick_group_bins(bucket, full=full)
        return tuple(file for groups in bins for group in groups for file in group.files)
    return tuple(file for files in pick_bins(bucket, full=full) for file in files)
