"""Roll a table back to an earlier snapshot or tag. Spec: "Rollback, branch, orphan cleaning".

Snapshots are deleted from the newest backwards, so that a rollback that is cut off leaves a whole
table, only at a later snapshot than asked. Data files of the deleted snapshots become orphans.
"""

from emberlake.errors import SnapshotNotFound
from emberlake.spec.snapshot import Snapshot
from emberlake.store.table_store import TableStore


def rollback_to_snapshot(store: TableStore, snapshot_id: int) -> None:
    """Make a snapshot the latest one."""
    _rollback(store, store.snapshots.load(snapshot_id))


def rollback_to_tag(store: TableStore, name: str) -> None:
    """Make a tagged snapshot the latest one, also when the snapshot itself has expired."""
    snapshot = store.tags.load(name)
    if not store.snapshots.exists(snapshot.id):
        store.snapshots.publish(snapshot)
        store.snapshots.write_earliest_hint(snapshot.id)
    _rollback(store, snapshot)


def _rollback(store: TableStore, target: Snapshot) -> None:
    latest = store.snapshots.latest_id()
    if latest is None:
        raise SnapshotNotFound("the table has no snapshot to roll back")
    store.snapshots.write_latest_hint(target.id)
    for snapshot_id in range(latest, target.id, -1):
        store.snapshots.delete(snapshot_id)
    for name, tagged in store.tags.list().items():
        if tagged.id > target.id:
            store.tags.delete(name)
    # A reader may have repaired the hint meanwhile, from a snapshot that is gone now.
    store.snapshots.write_latest_hint(target.id)
