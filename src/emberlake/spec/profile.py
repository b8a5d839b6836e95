"""The profile of a table, derived once from its schema: its kind, its buckets, what reads see.

All parts of the engine ask the profile; none of them derives this from options itself.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum, auto

from emberlake.options import (
    BUCKET,
    CHANGELOG_PRODUCER,
    DATA_EVOLUTION,
    DELETION_VECTORS,
    FORCE_LOOKUP,
    MERGE_ENGINE,
    MERGE_ON_READ,
    NUM_LEVELS,
    POSTPONE_BUCKET,
    ROW_TRACKING,
    RUN_TRIGGER,
    WRITE_ONLY,
    ChangelogProducer,
    MergeEngine,
    TableOptions,
)


class TableKind(Enum):
    """Whether rows have an identity."""

    APPEND = auto()  # rows are added
    KEY = auto()  # rows of one primary key are merged


class BucketMode(Enum):
    """How a row gets its bucket. Spec: "Buckets"."""

    UNAWARE = auto()  # an append table without buckets: all files are in bucket 0
    FIXED = auto()  # by a hash of the bucket key
    DYNAMIC = auto()  # by an index of keys
    CROSS_PARTITION = auto()  # where the key is now, in whatever partition; a new key: with room
    POSTPONED = auto()  # compaction assigns it


@dataclass(frozen=True, slots=True, kw_only=True)
class TableProfile:
    """The traits of a table that the engine depends on."""

    kind: TableKind
    bucket_mode: BucketMode
    bucket_count: int | None  # of fixed buckets
    is_partitioned: bool
    merge_engine: MergeEngine
    changelog_producer: ChangelogProducer
    num_levels: int  # of a bucket; a full compaction writes to the last one
    has_deletion_vectors: bool
    # A record that leaves level 0 is merged with the row of its key on the levels above, wherever
    # that is. So the record of a key on the lowest level above 0 stands for all above it.
    looks_up: bool
    # Compaction leaves one record per key above level 0. Records that are not compacted yet may be
    # outdated, or outdate others.
    keeps_levels_apart: bool
    # Batch reads see only what was compacted.
    hides_level_0: bool
    # Writers compact what they write before they commit it, since reads, or readers of changes,
    # would not see it otherwise.
    compacts_on_write: bool
    # Rows have ids, which they keep.
    tracks_rows: bool = False
    # Files may lie side by side: the same rows, each file with some of the columns.
    evolves_data: bool = False

    @property
    def has_keys(self) -> bool:
        return self.kind is TableKind.KEY

    @property
    def has_buckets(self) -> bool:
        """Whether buckets have an identity, such as one index file of deletion vectors each."""
        return self.bucket_mode is not BucketMode.UNAWARE

    @property
    def keeps_key_index(self) -> bool:
        """Whether an index tells which bucket a key is in."""
        return self.bucket_mode is BucketMode.DYNAMIC

    @property
    def looks_up_only(self) -> bool:
        """Whether rows on higher levels stay after records that stand for them have come below."""
        return self.looks_up and not self.keeps_levels_apart

    @property
    def crosses_partitions(self) -> bool:
        """Whether a key that lacks partition columns is unique in the table: its row may move."""
        return self.bucket_mode is BucketMode.CROSS_PARTITION

    @property
    def moves_rows(self) -> bool:
        """Whether a record of another partition moves the row of its key there."""
        return self.crosses_partitions and self.merge_engine is MergeEngine.DEDUPLICATE

    @property
    def has_changelog(self) -> bool:
        """Whether changes are kept in separate files."""
        return self.has_keys and self.changelog_producer is not ChangelogProducer.NONE


def profile_of(
    primary_keys: Sequence[str], partition_keys: Sequence[str], options: TableOptions
) -> TableProfile:
    """The profile of a table with these keys and options."""
    has_keys = bool(primary_keys)
    is_whole = set(partition_keys) <= set(primary_keys)
    count = options.value(BUCKET)
    engine = options.value(MERGE_ENGINE)
    has_vectors = options.value(DELETION_VECTORS)
    keeps_apart = has_keys and (has_vectors or engine is MergeEngine.FIRST_ROW)
    producer = options.value(CHANGELOG_PRODUCER)
    finds_changes = has_keys and producer is ChangelogProducer.LOOKUP
    evolves = options.value(DATA_EVOLUTION)
    merges_on_read = has_vectors and options.value(MERGE_ON_READ)
    return TableProfile(
        kind=TableKind.KEY if has_keys else TableKind.APPEND,
        bucket_mode=_bucket_mode(count, has_keys=has_keys, is_whole=is_whole),
        bucket_count=count if count > 0 else None,
        is_partitioned=bool(partition_keys),
        merge_engine=engine,
        changelog_producer=producer,
        num_levels=_level_count(options),
        has_deletion_vectors=has_vectors,
        looks_up=keeps_apart or finds_changes or (has_keys and options.value(FORCE_LOOKUP)),
        keeps_levels_apart=keeps_apart,
        hides_level_0=keeps_apart and not merges_on_read,
        compacts_on_write=(keeps_apart or finds_changes) and not options.value(WRITE_ONLY),
        tracks_rows=not has_keys and (options.value(ROW_TRACKING) or evolves),
        evolves_data=not has_keys and evolves,
    )


def _level_count(options: TableOptions) -> int:
    levels = options.value(NUM_LEVELS)
    return max(2, options.value(RUN_TRIGGER) + 1 if levels is None else levels)


def _bucket_mode(count: int, *, has_keys: bool, is_whole: bool) -> BucketMode:
    if count > 0:
        return BucketMode.FIXED
    if count == POSTPONE_BUCKET:
        return BucketMode.POSTPONED
    if not has_keys:
        return BucketMode.UNAWARE
    return BucketMode.DYNAMIC if is_whole else BucketMode.CROSS_PARTITION
