"""Branches: create one from a tag or empty, and fast-forward a table to the history of a branch.

Spec: "Rollback, branch, orphan cleaning".
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from emberlake.base.names import choices
from emberlake.errors import InvalidInput, SnapshotNotFound, TagNotFound
from emberlake.spec.layout import TableLayout
from emberlake.spec.snapshot import Snapshot
from emberlake.store.branches import branch_exists
from emberlake.store.schemas import SchemaStore
from emberlake.store.table_store import TableStore
from emberlake.store.tags import TagStore


def create_branch(
    store: TableStore, name: str, tag_name: str | None, *, ignore_if_exists: bool
) -> None:
    """Create a branch that starts with the snapshot of a tag, or an empty one.

    Raises:
        BranchAlreadyExists: the name is taken, unless that is to be ignored.
        TagNotFound: there is no such tag.
        InvalidIdentifier: the name cannot be that of a branch.
    """
    is_there = store.branches.exists(name)
    if is_there and ignore_if_exists:
        return
    if tag_name is not None and not store.tags.exists(tag_name):
        known = choices(tag_name, store.tags.list(), "the tags are:")
        raise TagNotFound(f"tag {tag_name!r} does not exist; {known}", tag=tag_name)
    if store.branches.server is not None:
        if is_there:
            raise branch_exists(name)
        store.branches.server.create(name, tag_name)
        return
    if tag_name is None:
        store.branches.create(name, _schema_files(store))
        return
    tagged = store.tags.load(tag_name)
    # The branch gets the tag too: its first snapshot can expire there and stay readable.
    files = _files(store, [store.layout.tag(tag_name)])
    files |= _schema_files(store, up_to=tagged.schema_id)
    store.branches.create(name, files, [tagged])


def _schema_files(store: TableStore, up_to: int | None = None) -> dict[str, bytes]:
    return _files(
        store,
        [
            store.layout.schema(schema_id)
            for schema_id in store.schemas.list_ids()
            if up_to is None or schema_id <= up_to
        ],
    )


def _files(store: TableStore, paths: Sequence[str]) -> dict[str, bytes]:
    """Files of a branch by their paths inside its folder."""
    root = f"{store.layout.metadata_root}/"
    return {path.removeprefix(root): store.storage.read(path) for path in paths}


def fast_forward(store: TableStore, name: str) -> None:
    """Give a table the history of a branch, from the first snapshot of the branch on.

    The table's own snapshots from there on are deleted. The table is rolled back first and then
    follows the branch one snapshot at a time. If that is interrupted, the table is whole, and the
    next attempt does the rest.

    Raises:
        BranchNotFound: there is no such branch.
        SnapshotNotFound: the branch has no snapshot.
        InvalidState: somebody committed to the table meanwhile.
    """
    if name == store.layout.branch:
        raise InvalidInput(
            f"the table is branch {name!r} already; open another branch, or the main"
        )
    store.branches.check_exists(name)
    if store.branches.server is not None:
        _check_not_empty(store, name)
        store.branches.server.forward(name)
        return
    branch = _load_history(store, store.layout.for_branch(name))
    first = branch.snapshots[0]
    _roll_back(store, first, keep_tags=branch.tags)
    _replace_schemas(store, branch, from_id=first.schema_id)
    store.snapshots.follow(branch.snapshots)
    for tag_name, data in branch.tags.items():
        store.storage.put(store.layout.tag(tag_name), data)


@dataclass(frozen=True, slots=True)
class _History:
    schemas: dict[int, bytes]
    snapshots: tuple[Snapshot, ...]
    tags: dict[str, bytes]


def _load_history(store: TableStore, layout: TableLayout) -> _History:
    snapshots = store.snapshots_of(layout)
    loaded = tuple(snapshots.load(snapshot_id) for snapshot_id in snapshots.list_ids())
    if not loaded:
        raise _nothing_there(layout.branch)
    ids = SchemaStore(store.storage, layout).list_ids()
    return _History(
        {schema_id: store.storage.read(layout.schema(schema_id)) for schema_id in ids},
        loaded,
        {
            name: store.storage.read(layout.tag(name))
            for name in TagStore(store.storage, layout).names()
        },
    )


def _check_not_empty(store: TableStore, name: str) -> None:
    if store.snapshots_of(store.layout.for_branch(name)).latest() is None:
        raise _nothing_there(name)


def _nothing_there(branch: str) -> SnapshotNotFound:
    return SnapshotNotFound(
        f"branch {branch!r} has no snapshot, so there is nothing to go forward to"
    )


def _roll_back(store: TableStore, target: Snapshot, keep_tags: Collection[str]) -> None:
    latest = store.snapshots.latest_id()
    if latest is not None and latest >= target.id:
        store.snapshots.roll_back_to(target)
    for tag_name, tagged in store.tags.list().items():
        if tagged.id >= target.id and tag_name not in keep_tags:
            store.tags.delete(tag_name)


def _replace_schemas(store: TableStore, branch: _History, from_id: int) -> None:
    for schema_id in reversed(store.schemas.list_ids()):
        if schema_id >= from_id and schema_id not in branch.schemas:
            store.storage.delete(store.layout.schema(schema_id))
    for schema_id, data in branch.schemas.items():
        if schema_id >= from_id:
            store.storage.put(store.layout.schema(schema_id), data)
