"""Would a change still be right on top of what others committed meanwhile? Pure decisions.

Spec: "Conflict detection". A change that only adds files needs few checks: appenders race for the
snapshot id alone.
"""

from collections import Counter
from collections.abc import Collection, Sequence

from emberlake.errors import AlreadyCommitted, CommitConflict, ConflictReason
from emberlake.spec.manifest import FileKind, ManifestEntry


def check_change_itself(entries: Sequence[ManifestEntry]) -> CommitConflict | None:
    """A change must not add a file twice, nor add and delete the same file."""
    seen = Counter(entry.identity for entry in entries)
    twice = next((identity for identity, count in seen.items() if count > 1), None)
    if twice is None:
        return None
    return CommitConflict(
        ConflictReason.FILE_ADDED_TWICE,
        f"{twice[3]} is in the messages more than once",
        "commit each message once",
    )


def check_deleted_files(
    deleted: Sequence[ManifestEntry], live: Sequence[ManifestEntry], *, snapshot_id: int
) -> CommitConflict | None:
    """Every file to delete must still be there."""
    alive = {entry.identity for entry in live}
    gone = next((entry for entry in deleted if entry.identity not in alive), None)
    if gone is None:
        return None
    return CommitConflict(
        ConflictReason.FILE_DELETED_ELSEWHERE,
        f"{gone.file.file_name} is not in snapshot {snapshot_id}",
        "another writer rewrote this file; read the table again and redo the operation",
    )


def check_bucket_counts(
    ours: Sequence[ManifestEntry], theirs: Sequence[ManifestEntry], *, snapshot_id: int
) -> CommitConflict | None:
    """A partition has one number of buckets; another writer may have changed it."""
    counts = {entry.partition: entry.total_buckets for entry in ours if entry.total_buckets > 0}
    for entry in theirs:
        count = counts.get(entry.partition)
        if entry.kind is FileKind.ADD and count is not None and count != entry.total_buckets:
            return CommitConflict(
                ConflictReason.BUCKET_COUNT_CHANGED,
                f"snapshot {snapshot_id} gave a partition {entry.total_buckets} buckets, "
                f"these files were written for {count}",
                "write the data again with a new writer",
            )
    return None


def check_already_committed(
    names: Collection[str], theirs: Sequence[ManifestEntry], *, snapshot_id: int
) -> CommitConflict | None:
    """Whether a snapshot speaks of files of ours: then these messages were committed before.

    An entry that deletes a file tells the same as the one that added it, which may have expired.
    """
    found = next((entry for entry in theirs if entry.file.file_name in names), None)
    if found is None:
        return None
    return AlreadyCommitted(
        ConflictReason.ALREADY_COMMITTED,
        f"snapshot {snapshot_id} knows {found.file.file_name}",
        "nothing to do: the messages took effect once and must not do so again",
    )
