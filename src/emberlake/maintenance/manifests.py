"""Merge the manifests of a table into as few as possible, without deleted files."""

from emberlake.commit.change import NOTHING_COMMITTED, Change, CommitResult
from emberlake.commit.committer import Committer
from emberlake.scan.files import manifests_of
from emberlake.spec.snapshot import CommitKind
from emberlake.store.table_store import TableStore


def compact_manifests(store: TableStore, commit_user: str) -> CommitResult:
    """Merge all manifests in one commit; nothing happens if there is nothing to merge."""
    snapshot = store.snapshots.latest()
    if snapshot is None:
        return NOTHING_COMMITTED
    manifests = manifests_of(store, snapshot)
    if len(manifests) < 2 and not any(m.num_deleted_files for m in manifests):
        return NOTHING_COMMITTED
    change = Change(kind=CommitKind.COMPACT, merges_manifests=True)
    return Committer(store, commit_user).commit(change)
