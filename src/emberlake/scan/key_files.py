"""Which files of a primary-key table a read needs, and how they are packed into splits.

Files whose keys overlap are read together. A filter on the key prunes any file; a filter on values
prunes only where no other record of the same key could change the result. Spec: "Pruning
pipeline", "Level filtering", "When a split can be read without merging".
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np

from emberlake.options import SPLIT_OPEN_FILE_COST, SPLIT_TARGET_SIZE
from emberlake.predicates import Predicate
from emberlake.scan.files import FilePlan, Mask, load_files, test_keys, test_statistics
from emberlake.scan.runs import Section, find_sections, is_raw_bucket, key_ranges
from emberlake.scan.splits import DataSplit, DeletionFile, deletions_of, pack
from emberlake.spec.column_buffers import I64
from emberlake.spec.key_value import key_fields
from emberlake.spec.manifest import ManifestFile
from emberlake.spec.profile import TableProfile
from emberlake.spec.schema import TableSchema
from emberlake.store.entries import ManifestEntries
from emberlake.store.table_store import TableStore

DeletionFiles: TypeAlias = Mapping[tuple[bytes, int, str], DeletionFile]
Visibility: TypeAlias = Callable[[ManifestEntries], Mask]


@dataclass(frozen=True)
class KeyBucket:
    """The files of one bucket: positions in the entries of a plan."""

    files: I64
    sections: tuple[Section, ...]  # of positions in ``files``


@dataclass(frozen=True)
class KeyFilePlan:
    """The files to read, bucket by bucket."""

    plan: FilePlan
    buckets: tuple[KeyBucket, ...]


def batch_visibility(profile: TableProfile) -> Visibility:
    """Which files a batch read sees: none of a postponed bucket, and not always those of level 0.

    Tables whose compaction removes replaced records show a record only once it is compacted.
    """
    hides_new = profile.hides_level_0
    return lambda entries: (entries.bucket >= 0) & ((entries.level > 0) | (not hides_new))


def last_level_visibility(profile: TableProfile) -> Visibility:
    """Only the files of the last level, whose rows need no merging."""
    last = profile.num_levels - 1
    return lambda entries: (entries.bucket >= 0) & (entries.level >= last)


def plan_key_files(
    store: TableStore,
    manifests: Sequence[ManifestFile],
    predicate: Predicate | None,
    is_visible: Visibility,
) -> KeyFilePlan:
    """The live files of some manifests that a read must merge to find the matching rows."""
    entries, funnel = load_files(store, manifests, predicate)
    entries = entries.take(is_visible(entries))
    entries = entries.take(test_keys(store, entries, predicate))
    may, exact = test_statistics(store, entries, predicate)
    buckets = tuple(
        pruned
        for bucket in _find_buckets(store, entries)
        if (pruned := _prune(store.schema.profile, entries, bucket, may)) is not None
    )
    kept = sum(len(run) for bucket in buckets for section in bucket.sections for run in section)
    funnel = replace(funnel, after_statistics=kept)
    return KeyFilePlan(FilePlan(entries, exact, funnel), buckets)


def plan_key_changes(
    store: TableStore, manifests: Sequence[ManifestFile], predicate: Predicate | None
) -> FilePlan:
    """The files of changes that can hold matching rows; no change depends on another."""
    entries, funnel = load_files(store, manifests, predicate)
    may, exact = test_statistics(store, entries, predicate)
    may &= test_keys(store, entries, predicate)
    entries, exact = entries.take(may), exact[may]
    return FilePlan(entries, exact, replace(funnel, after_statistics=len(entries)))


def _find_buckets(store: TableStore, entries: ManifestEntries) -> Iterator[KeyBucket]:
    types = [f.type for f in key_fields(store.schema)]
    ranges = key_ranges(types, entries.min_key, entries.max_key) if len(entries) else []
    for files in bucket_files(entries):
        yield KeyBucket(files, tuple(find_sections([ranges[file] for file in files.tolist()])))


def bucket_files(entries: ManifestEntries) -> list[I64]:
    """The positions of the files of every bucket, in the order of partitions and buckets."""
    if not len(entries):
        return []
    codes, buckets = entries.partition_codes, entries.bucket
    order = np.lexsort((buckets, codes))
    codes, buckets = codes[order], buckets[order]
    is_first = (codes[1:] != codes[:-1]) | (buckets[1:] != buckets[:-1])
    return np.split(order, np.flatnonzero(is_first) + 1)


def _prune(
    profile: TableProfile, entries: ManifestEntries, bucket: KeyBucket, may: Mask
) -> KeyBucket | None:
    """The sections that can hold a matching row.

    In a single run every key has one record, which is the row, so files are pruned one by one. The
    same is true if compaction leaves one record per key and nothing of level 0 is read. Where runs
    overlap otherwise, a matching record may be replaced by one that does not match, and vice versa.
    Such a section is left out only as a whole, and only if every row is one of its records.
    """
    is_kept = may[bucket.files]
    if is_kept.all():
        return bucket
    is_single = profile.keeps_levels_apart and bool((entries.level[bucket.files] > 0).all())
    # If an engine builds rows, a row may match although no record does.
    builds_rows = profile.merge_engine.builds_rows
    sections: list[Section] = []
    for section in bucket.sections:
        if is_single or len(section) == 1:
            runs = (tuple(file for file in run if is_kept[file]) for run in section)
            kept = tuple(run for run in runs if run)
            sections += [kept] if kept else []
        elif builds_rows or any(is_kept[file] for run in section for file in run):
            sections.append(section)
    return KeyBucket(bucket.files, tuple(sections)) if sections else None


# --- splits ---------------------------------------------------------------------------------------


def pack_key_splits(
    found: KeyFilePlan,
    snapshot_id: int,
    schema: TableSchema,
    *,
    predicate: Predicate | None,
    deletion_files: DeletionFiles,
) -> list[DataSplit]:
    """The files of a plan, packed into splits; files whose keys overlap stay together."""
    splits = []
    for bucket in found.buckets:
        for files, is_raw in _pack_bucket(found.plan.entries, bucket, schema):
            splits.append(
                split_of(
                    found.plan,
                    files,
                    snapshot_id,
                    predicate=predicate,
                    deletion_files=deletion_files,
                    raw_convertible=is_raw,
                )
            )
    return splits


def pack_change_splits(
    plan: FilePlan, snapshot_id: int, *, predicate: Predicate | None
) -> list[DataSplit]:
    """One split for the changes of a bucket, in the order in which they were committed."""
    # Sequence numbers do not show it: an overwrite starts over, and postponed rows have none.
    return [
        replace(
            split_of(plan, files, snapshot_id, predicate=predicate, deletion_files={}),
            is_changes=True,
        )
        for files in bucket_files(plan.entries)
    ]


def split_of(
    plan: FilePlan,
    files: I64,
    snapshot_id: int,
    *,
    predicate: Predicate | None,
    deletion_files: DeletionFiles,
    raw_convertible: bool = True,
) -> DataSplit:
    """A split of files of one bucket, by their positions in a plan."""
    part = plan.entries.take(files)
    partition, bucket = plan.entries.partitions[plan.entries.partition_codes[files[0]]], part.bucket
    return DataSplit(
        snapshot_id,
        partition,
        int(bucket[0]),
        part,
        predicate,
        tuple(plan.is_exact[files].tolist()),
        deletions_of(deletion_files, partition, int(bucket[0]), part) if deletion_files else {},
        raw_convertible,
    )


def _pack_bucket(
    entries: ManifestEntries, bucket: KeyBucket, schema: TableSchema
) -> Iterator[tuple[I64, bool]]:
    """Files that are read together, and whether they can be read without merging."""
    options = schema.options
    sections = [np.array([bucket.files[i] for run in s for i in run]) for s in bucket.sections]
    deletes = entries.delete_row_count.fill_null(0).to_numpy()
    files = np.concatenate(sections)
    is_raw = is_raw_bucket(
        entries.level[files].tolist(),
        deletes[files].tolist(),
        levels_are_disjoint=schema.profile.keeps_levels_apart,
    )
    if is_raw:
        sections = [np.array([file]) for file in files]
    sizes = np.array([entries.file_size[section].sum() for section in sections], np.int64)
    weights = np.maximum(sizes, options.value(SPLIT_OPEN_FILE_COST))
    ends = np.array([len(sections)])
    for start, stop in pack(weights, ends, options.value(SPLIT_TARGET_SIZE)):
        packed = np.concatenate(sections[start:stop])
        # Not every writer counts the deletes of files that it flushes.
        is_counted = len(packed) == 1 and bool(entries.level[packed[0]] > 0)
        yield packed, is_raw or (is_counted and not deletes[packed[0]])
