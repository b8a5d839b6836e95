"""Snapshots, tags, branches and schemas of a table, for users.

These are the metadata stores, with the method names of pypaimon.
"""

from collections.abc import Sequence
from datetime import timedelta

from emberlake.base.option_texts import parse_duration
from emberlake.base.parallel import parallel_map
from emberlake.base.times import wall_clock
from emberlake.errors import InvalidInput, SchemaNotFound
from emberlake.maintenance.branches import create_branch, fast_forward
from emberlake.spec.layout import MAIN_BRANCH, TableLayout
from emberlake.spec.schema import TableSchema
from emberlake.spec.snapshot import Snapshot
from emberlake.spec.tag import Tag
from emberlake.store.publishing import PublishedSnapshots
from emberlake.store.schemas import SchemaStore
from emberlake.store.table_store import TableStore
from emberlake.store.tags import TagStore


class SnapshotManager(PublishedSnapshots):
    """The snapshots of one branch of a table."""

    def __init__(self, store: TableStore, layout: TableLayout | None = None) -> None:
        super().__init__(layout or store.layout)
        self._store = store
        self._snapshots = store.snapshots_of(self._layout)

    def find(self, snapshot_id: int) -> Snapshot | None:
        """The snapshot of that id; None if it was never written or has expired."""
        return self._snapshots.find(snapshot_id)

    def exists(self, snapshot_id: int) -> bool:
        """Whether there is a snapshot of that id."""
        return self._snapshots.exists(snapshot_id)

    def latest(self) -> Snapshot | None:
        """The newest snapshot; None if nothing was committed yet."""
        return self._snapshots.latest()

    def latest_id(self) -> int | None:
        """The id of the newest snapshot; None if nothing was committed yet."""
        return self._snapshots.latest_id()

    def earliest_id(self) -> int | None:
        """The id of the oldest snapshot; None if nothing was committed yet."""
        return self._snapshots.earliest_id()

    def list_ids(self) -> tuple[int, ...]:
        """The ids of all snapshots, ascending."""
        return self._snapshots.list_ids()

    @property
    def branch(self) -> str:
        return self._layout.branch

    @property
    def snapshot_dir(self) -> str:
        return self._layout.snapshot_folder

    @property
    def latest_file(self) -> str:
        return self._layout.latest_hint

    def get_latest_snapshot(self) -> Snapshot | None:
        """The same as ``latest``."""
        return self.latest()

    def get_snapshot_by_id(self, snapshot_id: int) -> Snapshot | None:
        """The same as ``find``."""
        return self.find(snapshot_id)

    def try_get_earliest_snapshot(self, stop_snapshot_id: int | None = None) -> Snapshot | None:
        """The oldest snapshot, unless it is later than the one with the given id."""
        earliest = self.earliest()
        is_later = stop_snapshot_id is not None and earliest and earliest.id > stop_snapshot_id
        return None if is_later else earliest

    def earlier_or_equal_time_mills(self, timestamp: int) -> Snapshot | None:
        """The same as ``at_or_before``."""
        return self.at_or_before(timestamp)

    def later_or_equal_watermark(self, watermark: int) -> Snapshot | None:
        """The same as ``at_watermark``."""
        return self.at_watermark(watermark)

    def list_snapshots(self) -> list[Snapshot]:
        """All snapshots, oldest first."""
        found = parallel_map(self.find, self.list_ids())
        return [snapshot for snapshot in found if snapshot is not None]

    def get_snapshots_batch(
        self, snapshot_ids: Sequence[int], max_workers: int = 4
    ) -> dict[int, Snapshot | None]:
        """Several snapshots by their ids; None for those that do not exist."""
        found = parallel_map(self.find, snapshot_ids, workers=max_workers)
        return dict(zip(snapshot_ids, found, strict=True))

    def get_snapshot_path(self, snapshot_id: int) -> str:
        """The path of a snapshot."""
        return self._layout.snapshot(snapshot_id)

    def copy_with_branch(self, branch_name: str) -> "SnapshotManager":
        """The snapshots of another branch."""
        return SnapshotManager(self._store, self._layout.for_branch(branch_name))


class TagManager(TagStore):
    """The tags of one branch of a table."""

    def __init__(self, store: TableStore) -> None:
        super().__init__(store.storage, store.layout)
        self._env = store.env

    @property
    def branch(self) -> str:
        return self._layout.branch

    def get(self, tag_name: str) -> Tag | None:
        """A tag; None if there is none of that name."""
        return self.load_tag(tag_name) if self.exists(tag_name) else None

    def get_or_throw(self, tag_name: str) -> Tag:
        """The same as ``load_tag``."""
        return self.load_tag(tag_name)

    def tag_exists(self, tag_name: str) -> bool:
        """The same as ``exists``."""
        return self.exists(tag_name)

    def list_tags(self) -> list[str]:
        """The same as ``names``, as a list."""
        return list(self.names())

    def create_tag(
        self,
        snapshot: Snapshot,
        tag_name: str,
        ignore_if_exists: bool = False,  # noqa: FBT001, FBT002
        time_retained: str | timedelta | None = None,
    ) -> None:
        """Keep a snapshot under a name, permanently or for a time such as ``1 d``."""
        tag = self._tag_of(snapshot, time_retained)
        self.create(tag_name, tag, ignore_if_exists=ignore_if_exists)

    def replace_tag(
        self,
        snapshot: Snapshot,
        tag_name: str,
        time_retained: str | timedelta | None = None,
    ) -> None:
        """Make a tag keep another snapshot."""
        self.replace(tag_name, self._tag_of(snapshot, time_retained))

    def delete_tag(self, tag_name: str) -> bool:
        """Delete a tag; False if there is none of that name."""
        is_there = self.exists(tag_name)
        self.delete(tag_name)
        return is_there

    def rename_tag(self, old_name: str, new_name: str) -> None:
        """The same as ``rename``."""
        self.rename(old_name, new_name)

    def tag_path(self, tag_name: str) -> str:
        """The path of a tag."""
        return self._layout.tag(tag_name)

    def tag_directory(self) -> str:
        """The folder of all tags."""
        return self._layout.tag_folder

    def _tag_of(self, snapshot: Snapshot, time_retained: str | timedelta | None) -> Tag:
        retained = time_retained
        if isinstance(retained, str):
            try:
                retained = parse_duration(retained)
            except ValueError as error:
                raise InvalidInput(f"time_retained={retained!r}: {error}") from error
        if retained is not None and retained < timedelta(0):
            raise InvalidInput(f"time_retained={retained}: a tag cannot be kept for less than 0")
        return Tag.from_snapshot_and_tag_ttl(snapshot, retained, wall_clock(self._env.now_ms()))


class BranchManager:
    """The branches of a table."""

    def __init__(self, store: TableStore) -> None:
        self._store = store
        self._branches = store.branches

    @property
    def current_branch(self) -> str:
        return self._store.layout.branch

    def branches(self) -> list[str]:
        """The names of all branches but the main one, sorted."""
        return self._branches.list()

    def branch_exists(self, branch_name: str) -> bool:
        """Whether there is such a branch; the main one always exists."""
        return branch_name == MAIN_BRANCH or branch_name in self.branches()

    def create_branch(
        self,
        branch_name: str,
        tag_name: str | None = None,
        ignore_if_exists: bool = False,  # noqa: FBT001, FBT002
    ) -> None:
        """Create a branch: a separate history that starts with a tag, or empty."""
        create_branch(self._store, branch_name, tag_name, ignore_if_exists=ignore_if_exists)

    def drop_branch(self, branch_name: str) -> None:
        """Delete a branch."""
        self._branches.delete(branch_name)

    def rename_branch(self, from_branch: str, to_branch: str) -> None:
        """Rename a branch."""
        self._branches.rename(from_branch, to_branch)

    def fast_forward(self, branch_name: str) -> None:
        """Give the table the history of a branch, from the branch's first snapshot on."""
        fast_forward(self._store, branch_name)

    def branch_path(self, branch_name: str) -> str:
        """The folder of a branch's metadata."""
        return self._store.layout.for_branch(branch_name).metadata_root


class SchemaManager(SchemaStore):
    """The schemas of one branch of a table."""

    def get_schema(self, schema_id: int) -> TableSchema | None:
        """The schema of that id; None if there is none."""
        try:
            return self.load(schema_id)
        except SchemaNotFound:
            return None

    def list_all(self) -> list[TableSchema]:
        """All schemas, oldest first."""
        return [self.load(schema_id) for schema_id in self.list_ids()]

    def copy_with_branch(self, branch_name: str) -> "SchemaManager":
        """The schemas of another branch."""
        return SchemaManager(self._storage, self._layout.for_branch(branch_name))
