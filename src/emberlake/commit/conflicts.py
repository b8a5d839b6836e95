"""Is a change still right on top of what others committed meanwhile? Pure decisions.

Spec: "Conflict detection". A change that only adds files needs few checks: writers that append only
race for the snapshot id.
"""

from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from itertools import accumulate, pairwise
from operator import itemgetter
from typing import TypeAlias

from emberlake.errors import AlreadyCommitted, CommitConflict, ConflictReason
from emberlake.merge.order import KeyBound
from emberlake.spec.manifest import (
    DELETION_VECTORS_INDEX,
    HASH_INDEX,
    BucketKey,
    DataFile,
    FileIdentity,
    FileKind,
    IndexManifestEntry,
    ManifestEntry,
)
from emberlake.spec.snapshot import CommitKind, Snapshot

Claims = Mapping[BucketKey, Sequence[DataFile]]
_KeyRange: TypeAlias = tuple[KeyBound, KeyBound, str]  # least and greatest key of a file, its name


def check_change_itself(entries: Sequence[ManifestEntry]) -> CommitConflict | None:
    """A change must not add a file twice, or add and delete the same file."""
    seen = Counter(entry.identity for entry in entries)
    twice = next((identity for identity, count in seen.items() if count > 1), None)
    if twice is None:
        return None
    kinds = [entry.kind for entry in entries if entry.identity == twice]
    if set(kinds) == {FileKind.DELETE}:
        return CommitConflict(
            ConflictReason.FILE_DELETED_ELSEWHERE,
            f"several messages rewrite {twice[3]}",
            "change all rows of a file in one call, or cut the table into shards",
        )
    return CommitConflict(
        ConflictReason.FILE_ADDED_TWICE,
        f"{twice[3]} is in the messages more than once",
        "commit each message once",
    )


def check_deleted_files(
    deleted: Sequence[ManifestEntry], live: Sequence[ManifestEntry], *, snapshot_id: int
) -> CommitConflict | None:
    """Every file to delete must still be there, with the same rows."""
    alive = {(entry.identity, _rows_of(entry.file)) for entry in live}
    gone = next((e for e in deleted if (e.identity, _rows_of(e.file)) not in alive), None)
    if gone is None:
        return None
    return CommitConflict(
        ConflictReason.FILE_DELETED_ELSEWHERE,
        f"{gone.file.file_name} is not in snapshot {snapshot_id}",
        "another writer rewrote this file; read the table again and redo the operation",
    )


def _rows_of(file: DataFile) -> tuple[int | None, int]:
    # Rows can be given other ids without renaming their file.
    return file.first_row_id, file.row_count


def check_bucket_counts(
    ours: Sequence[ManifestEntry], theirs: Sequence[ManifestEntry], *, snapshot_id: int
) -> CommitConflict | None:
    """A partition has one number of buckets; another writer may have changed it."""
    counts = {entry.partition: entry.total_buckets for entry in ours if entry.total_buckets > 0}
    for entry in theirs:
        count = counts.get(entry.partition)
        is_counted = entry.kind is FileKind.ADD and entry.bucket >= 0  # postponed rows are in none
        if is_counted and count is not None and count != entry.total_buckets:
            return CommitConflict(
                ConflictReason.BUCKET_COUNT_CHANGED,
                f"snapshot {snapshot_id} gave a partition {entry.total_buckets} buckets, "
                f"these files were written for {count}",
                "write the data again with a new writer",
            )
    return None


def claims_on(added: Iterable[ManifestEntry]) -> dict[BucketKey, tuple[DataFile, ...]]:
    """The files of every bucket whose rows must be newer than all others with their keys.

    A writer numbers the rows of a bucket from what it finds there. Two writers that do not know of
    each other use the same numbers, and of two rows with one key the larger number wins, whoever
    committed last. Postponed rows (in buckets below 0) are ordered by other means.
    """
    claims: dict[BucketKey, tuple[DataFile, ...]] = {}
    for entry in added:
        if entry.file.level == 0 and entry.bucket >= 0:
            place = entry.partition, entry.bucket
            claims[place] = (*claims.get(place, ()), entry.file)
    return claims


def reaches_claimed_numbers(claims: Claims, entry: ManifestEntry) -> bool:
    """Whether the file of an entry may hold rows as new as some of the new ones, or newer."""
    return any(_reaches(entry.file, file) for file in _claimed(claims, entry))


def check_sequence_numbers(
    claims: Claims,
    theirs: Iterable[ManifestEntry],
    bound_of: Callable[[bytes], KeyBound],
    *,
    were_read: bool = False,
) -> CommitConflict | None:
    """The new rows must be newer than the rows that others wrote for their keys meanwhile.

    Args:
        claims: The new rows.
        theirs: What others added and deleted since, in order, or everything that is live: files
            from before have lower numbers. A file that was deleted again is harmless.
        bound_of: Gives the comparable form of a serialized key.
        were_read: Whether the new rows were computed from rows of the table. Then a file that was
            deleted again counts, too: a compaction that drops a deleted row leaves no other trace.
    """
    standing: dict[FileIdentity, ManifestEntry] = {}
    for entry in theirs:
        if entry.kind is FileKind.DELETE:
            if not were_read:
                standing.pop(entry.identity, None)
        elif reaches_claimed_numbers(claims, entry):
            standing[entry.identity] = entry
    for entry in standing.values():
        for ours in _claimed(claims, entry):
            if _reaches(entry.file, ours) and _share_keys(entry.file, ours, bound_of):
                return CommitConflict(
                    ConflictReason.SEQUENCE_NUMBERS_TAKEN,
                    f"{entry.file.file_name} in bucket {entry.bucket} goes up to "
                    f"{entry.file.max_sequence_number}, {ours.file_name} begins with "
                    f"{ours.min_sequence_number}",
                    "another writer changed the same keys; write the data again with a new writer, "
                    "or set sequence.field so that the rows themselves say which is newer",
                )
    return None


def _claimed(claims: Claims, entry: ManifestEntry) -> Sequence[DataFile]:
    return claims.get((entry.partition, entry.bucket), ())


def _reaches(theirs: DataFile, ours: DataFile) -> bool:
    return theirs.max_sequence_number >= ours.min_sequence_number


def _share_keys(one: DataFile, other: DataFile, bound_of: Callable[[bytes], KeyBound]) -> bool:
    """Whether the key ranges of files overlap."""
    is_before = bound_of(one.max_key) < bound_of(other.min_key)
    is_after = bound_of(other.max_key) < bound_of(one.min_key)
    return not (is_before or is_after)


def check_key_places(
    ours: Sequence[ManifestEntry],
    theirs: Iterable[ManifestEntry],
    bound_of: Callable[[bytes], KeyBound],
    columns_of: Callable[[bytes], Hashable],
) -> CommitConflict | None:
    """Where keys are unique over all partitions, others may not have written one of ours since.

    Their row may be in another partition, so the key would be in the table twice.

    Args:
        ours: What we add.
        theirs: What others added since, and what they took away from places that we write to: a
            record of ours may count on a row that was there.
        bound_of: Gives the comparable form of a serialized key.
        columns_of: The columns of a partition that are in the primary key, as one value.
    """
    ranges: dict[Hashable, list[_KeyRange]] = defaultdict(list)
    for own in ours:
        file = own.file
        key_range = bound_of(file.min_key), bound_of(file.max_key), file.file_name
        ranges[columns_of(own.partition)].append(key_range)
    # Of our files up to each one, the one that goes up furthest: it overlaps if any of them does.
    furthest: dict[Hashable, list[_KeyRange]] = {}
    for columns, some in ranges.items():
        some.sort(key=itemgetter(0))
        furthest[columns] = list(accumulate(some, _further))
    for entry in theirs:
        columns = columns_of(entry.partition)
        begin, end = bound_of(entry.file.min_key), bound_of(entry.file.max_key)
        before = bisect_right(ranges.get(columns, ()), end, key=itemgetter(0))
        if before and begin <= furthest[columns][before - 1][1]:
            was = "wrote" if entry.kind is FileKind.ADD else "removed"
            return CommitConflict(
                ConflictReason.KEY_INDEX_CHANGED,
                f"another writer {was} {entry.file.file_name}, whose keys overlap those of "
                f"{furthest[columns][before - 1][2]}; a key is unique over all partitions",
                "write the data again with a new writer",
            )
    return None


def _further(one: _KeyRange, other: _KeyRange) -> _KeyRange:
    return other if other[1] > one[1] else one


def check_counted_on(missing: Collection[str]) -> CommitConflict | None:
    """Files that the writers counted on, before they were committed, must have been committed.

    Otherwise the rows are still where they were before those files.
    """
    if not missing:
        return None
    return CommitConflict(
        ConflictReason.KEY_INDEX_CHANGED,
        f"the writer put rows where {min(missing)} of an earlier prepare has moved them, but that "
        "is not in the table",
        "commit what was prepared in its order; if an earlier commit was refused or aborted, write "
        "the data again with a new writer",
    )


def check_read_rows(stale_after: Collection[CommitKind], theirs: Snapshot) -> CommitConflict | None:
    """A change that depends on rows that were read must not miss what others did to them."""
    if theirs.commit_kind not in stale_after:
        return None
    return _rows_changed(f"snapshot {theirs.id} came between")


def check_seen_all(stale_after: Collection[CommitKind]) -> CommitConflict | None:
    """Nobody can tell what expired snapshots did to the rows that a change depends on."""
    if not stale_after:
        return None
    return _rows_changed("snapshots that came between have expired")


def _rows_changed(detail: str) -> CommitConflict:
    remedy = "read the table again and redo the operation"
    return CommitConflict(ConflictReason.ROWS_CHANGED_ELSEWHERE, detail, remedy)


def check_levels(
    buckets: Collection[tuple[bytes, int]], theirs: Iterable[ManifestEntry]
) -> CommitConflict | None:
    """Where levels depend on each other's rows, only one writer at a time may compact a bucket.

    A compaction drops new rows, or marks older ones as deleted, because of the levels above. Once
    those have changed, or an overwrite has removed them, it must be done again.

    Args:
        buckets: Partition and bucket of everything we compacted.
        theirs: What others added and deleted since.
    """
    for entry in theirs:
        is_ours = (entry.partition, entry.bucket) in buckets
        if is_ours and entry.file.level > 0:
            was = "added" if entry.kind is FileKind.ADD else "removed"
            return CommitConflict(
                ConflictReason.BUCKET_COMPACTED_ELSEWHERE,
                f"{entry.file.file_name} on level {entry.file.level} of bucket {entry.bucket} was "
                f"{was}",
                "another writer compacted or replaced this bucket; compact again",
            )
    return None


def check_key_ranges(
    added: Sequence[ManifestEntry],
    kept: Sequence[ManifestEntry],
    bound_of: Callable[[bytes], KeyBound],
) -> CommitConflict | None:
    """From level 1 on, the files of a level of a bucket are one sorted run.

    Args:
        added: The files to add.
        kept: The live files of the same partitions that stay.
        bound_of: Gives the comparable form of a serialized key.
    """
    touched = {_run_of(entry) for entry in added if entry.file.level > 0}
    runs: dict[tuple[bytes, int, int], list[tuple[KeyBound, KeyBound, str]]] = defaultdict(list)
    for entry in (*kept, *added):
        if _run_of(entry) in touched:
            f = entry.file
            key_range = bound_of(f.min_key), bound_of(f.max_key), f.file_name
            runs[_run_of(entry)].append(key_range)
    for (_, bucket, level), files in runs.items():
        files.sort(key=itemgetter(0, 1))
        for before, after in pairwise(files):
            if after[0] <= before[1]:
                return CommitConflict(
                    ConflictReason.KEY_RANGES_OVERLAP,
                    f"{before[2]} and {after[2]} on level {level} of bucket {bucket}",
                    "another writer compacted this bucket; compact again",
                )
    return None


def _run_of(entry: ManifestEntry) -> tuple[bytes, int, int]:
    return entry.partition, entry.bucket, entry.file.level


def check_indexes(
    added: Sequence[IndexManifestEntry],
    deleted: Sequence[IndexManifestEntry],
    before: Sequence[IndexManifestEntry],
    *,
    has_buckets: bool = True,
) -> CommitConflict | None:
    """An index file may only be replaced by a writer that has seen it.

    Args:
        added: The index files to add.
        deleted: The index files to delete, as the writer saw them.
        before: The index files of the latest snapshot, without those of replaced partitions.
        has_buckets: Whether a bucket has one file of deletion vectors; otherwise it can have many.
    """
    present = {entry.identity for entry in before}
    expected = {entry.identity for entry in deleted}
    gone = next((entry for entry in deleted if entry.identity not in present), None)
    if gone is not None:
        return _index_conflict(gone)
    # Otherwise the keys or deletions that another writer added to the index would be lost.
    single = (HASH_INDEX, DELETION_VECTORS_INDEX) if has_buckets else (HASH_INDEX,)
    replaced = {e.slot for e in added if e.index_file.index_type in single}
    for entry in before:
        if entry.slot in replaced and entry.identity not in expected:
            return _index_conflict(entry)
    return None


def check_vector_files(
    added: Sequence[IndexManifestEntry], live: Sequence[ManifestEntry], *, snapshot_id: int
) -> CommitConflict | None:
    """Deletion vectors must be for live files: a rewritten one may still hold the deleted rows."""
    alive = {(entry.partition, entry.bucket, entry.file.file_name) for entry in live}
    for entry in added:
        for vector in entry.index_file.deletion_vectors or ():
            if (entry.partition, entry.bucket, vector.data_file_name) not in alive:
                return CommitConflict(
                    ConflictReason.FILE_DELETED_ELSEWHERE,
                    f"{vector.data_file_name}, whose rows are to be deleted, is not in snapshot "
                    f"{snapshot_id}",
                    "another writer rewrote this file; read the table again and redo the operation",
                )
    return None


def check_rewritten_vectors(
    rewritten: Sequence[ManifestEntry],
    deleted: Sequence[IndexManifestEntry],
    before: Sequence[IndexManifestEntry],
) -> CommitConflict | None:
    """A writer that rewrites a file must know which of its rows are deleted, or they come back.

    Args:
        rewritten: The data files that leave the table.
        deleted: The index files to delete, as the writer saw them.
        before: The index files of the latest snapshot.
    """
    names = {(entry.partition, entry.bucket, entry.file.file_name) for entry in rewritten}
    known = {entry.identity for entry in deleted}
    for entry in before:
        vectors = entry.index_file.deletion_vectors or ()
        is_hit = any((entry.partition, entry.bucket, v.data_file_name) in names for v in vectors)
        if is_hit and entry.identity not in known:
            return _index_conflict(entry)
    return None


def _index_conflict(entry: IndexManifestEntry) -> CommitConflict:
    is_vector = entry.index_file.index_type == DELETION_VECTORS_INDEX
    return CommitConflict(
        ConflictReason.DELETION_VECTOR_CHANGED if is_vector else ConflictReason.KEY_INDEX_CHANGED,
        f"index file {entry.index_file.file_name} of bucket {entry.bucket} is not what was read",
        "another writer changed the same bucket; write the data again with a new writer",
    )


def check_already_committed(
    names: Collection[str], theirs: Sequence[ManifestEntry], *, snapshot_id: int
) -> CommitConflict | None:
    """A snapshot that names one of our files shows that these messages were committed before.

    An entry that deletes the file shows it too; the one that added it may have expired.
    """
    found = next((entry for entry in theirs if entry.file.file_name in names), None)
    if found is None:
        return None
    return AlreadyCommitted(
        ConflictReason.ALREADY_COMMITTED,
        f"snapshot {snapshot_id} knows {found.file.file_name}",
        "nothing to do: the messages took effect once and must not do so again",
    )
