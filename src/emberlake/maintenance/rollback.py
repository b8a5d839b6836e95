"""Roll a table back to an earlier snapshot or tag. Spec: "Rollback, branch, orphan cleaning".

Tags of later snapshots are deleted after them. Data files of deleted snapshots become orphans.
"""

from emberlake.scan.levels import check_one_level, reads_levels_alike
from emberlake.spec.snapshot import Snapshot
from emberlake.store.table_store import TableStore


def rollback_to_snapshot(store: TableStore, snapshot_id: int) -> None:
    """Make a snapshot the latest one."""
    _rollback(store, store.snapshots.load(snapshot_id))


def rollback_to_tag(store: TableStore, name: str) -> None:
    """Make a tagged snapshot the latest one, even if the snapshot itself has expired."""
    _rollback(store, store.tags.load(name), name)


def _rollback(store: TableStore, target: Snapshot, tag_name: str | None = None) -> None:
    if not reads_levels_alike(store.schemas.load(target.schema_id), store.schema):
        check_one_level(store, target)
    store.snapshots.roll_back_to(target, tag_name)
    for name, tagged in store.tags.list().items():
        if tagged.id > target.id:
            store.tags.delete(name)
