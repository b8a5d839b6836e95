"""The versions of a table: its snapshots, tags and branches."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from emberlake import maintenance
from emberlake.base.times import to_millis
from emberlake.errors import InvalidInput, InvalidState, SnapshotNotFound
from emberlake.maintenance.expire_tags import expire_tags
from emberlake.maintenance.rollback import rollback_to_snapshot, rollback_to_tag
from emberlake.options import TAG_RETAINED
from emberlake.scan.travel import is_incremental, is_travelling
from emberlake.spec.identifier import Identifier
from emberlake.spec.snapshot import Snapshot
from emberlake.store.consumers import ConsumerStore
from emberlake.store.table_store import TableStore
from emberlake.table.managers import BranchManager, SnapshotManager, TagManager


@dataclass(frozen=True, repr=False)
class VersionedTable:
    """A table with its snapshots, tags and branches."""

    store: TableStore

    @property
    def identifier(self) -> Identifier:
        return self.store.identity.identifier

    def snapshot_manager(self) -> SnapshotManager:
        """The snapshots of the table."""
        return SnapshotManager(self.store)

    def tag_manager(self) -> TagManager:
        """The tags of the table."""
        return TagManager(self.store)

    def branch_manager(self) -> BranchManager:
        """The branches of the table."""
        return BranchManager(self.store)

    def consumer_manager(self) -> ConsumerStore:
        """How far the readers of the table's changes have got."""
        return ConsumerStore(self.store.storage, self.store.layout)

    def mark_partitions_done(self, partitions: Sequence[Mapping[str, str]]) -> None:
        """Mark partitions as complete, by a file ``_SUCCESS`` in their folders.

        Args:
            partitions: For each, the text of every partition column.

        Raises:
            Unsupported: the table asks for other marks (``partition.mark-done-action``).
        """
        maintenance.partition_done.mark_done(self.store, partitions)

    def latest_snapshot(self) -> Snapshot | None:
        """The newest snapshot, or None if nothing was ever committed."""
        return self.store.snapshots.latest()

    def create_tag(
        self,
        tag_name: str,
        snapshot_id: int | None = None,
        ignore_if_exists: bool = False,  # noqa: FBT001, FBT002
        time_retained: str | timedelta | None = None,
    ) -> None:
        """Keep a snapshot, the latest by default, under a name.

        Args:
            tag_name: The name.
            snapshot_id: The snapshot.
            ignore_if_exists: Whether to keep a tag of that name as it is, instead of failing.
            time_retained: How long the tag is kept, such as ``"7 d"``; after that ``expire_tags``
                deletes it. The default is the table's option ``tag.default-time-retained``;
                without that, the tag is kept permanently.

        Raises:
            TagAlreadyExists: the name is taken, unless that is to be ignored.
            SnapshotNotFound: there is no such snapshot, or none at all.
        """
        retained = (
            self.store.options.value(TAG_RETAINED) if time_retained is None else time_retained
        )
        snapshot = self._snapshot_to_tag(snapshot_id)
        self.tag_manager().create_tag(snapshot, tag_name, ignore_if_exists, retained)

    def replace_tag(
        self,
        tag_name: str,
        snapshot_id: int | None = None,
        time_retained: str | timedelta | None = None,
    ) -> None:
        """Make a tag keep another snapshot, by default the latest, permanently or for a time.

        Raises:
            TagNotFound, SnapshotNotFound: there is no such tag or snapshot.
        """
        snapshot = self._snapshot_to_tag(snapshot_id)
        self.tag_manager().replace_tag(snapshot, tag_name, time_retained)

    def delete_tag(self, tag_name: str) -> bool:
        """Delete a tag; False if there is none of that name."""
        return self.tag_manager().delete_tag(tag_name)

    def rename_tag(self, old_name: str, new_name: str) -> None:
        """Give a tag another name."""
        self.store.tags.rename(old_name, new_name)

    def list_tags(self) -> list[str]:
        """The names of all tags, sorted."""
        return self.tag_manager().list_tags()

    def expire_tags(
        self, *, older_than: datetime | int | None = None, dry_run: bool = False
    ) -> list[str]:
        """Delete the tags whose retention time has passed, and return their names.

        Files that only such a tag refers to are left for ``remove_orphan_files``.

        Args:
            older_than: Tags created before this moment go too, even those without a retention time.
            dry_run: Only report which tags would go.
        """
        before = None if older_than is None else to_millis(older_than)
        return expire_tags(self.store, before, dry_run=dry_run)

    def rollback_to(self, target: int | str) -> None:
        """Make a snapshot (by id) or a tag (by name) the latest; later snapshots are deleted.

        Raises:
            SnapshotNotFound, TagNotFound: there is no such snapshot or tag.
        """
        match target:
            case str():
                rollback_to_tag(self.store, target)
            case int():
                rollback_to_snapshot(self.store, target)
            case _:
                raise InvalidInput(f"{target!r} is neither the id of a snapshot nor a tag's name")

    def rollback_to_timestamp(self, timestamp_millis: int) -> None:
        """Make the snapshot that was the latest at a time the latest again.

        Raises:
            SnapshotNotFound: all snapshots are later.
        """
        snapshot = self.store.snapshots.at_or_before(timestamp_millis)
        if snapshot is None:
            raise SnapshotNotFound(f"{self.identifier} has no snapshot of {timestamp_millis} ms")
        rollback_to_snapshot(self.store, snapshot.id)

    def rollback_to_watermark(self, watermark: int) -> None:
        """Make the last snapshot that had reached no more than a watermark the latest again.

        Raises:
            SnapshotNotFound: all snapshots are later, or have no watermark.
        """
        snapshot = self.store.snapshots.at_or_before_watermark(watermark)
        if snapshot is None:
            raise SnapshotNotFound(
                f"{self.identifier} has no snapshot with a watermark of {watermark} or earlier"
            )
        rollback_to_snapshot(self.store, snapshot.id)

    def current_branch(self) -> str:
        """The name of this branch; ``main`` unless another one was opened."""
        return self.store.layout.branch

    def create_branch(
        self,
        branch_name: str,
        tag_name: str | None = None,
        ignore_if_exists: bool = False,  # noqa: FBT001, FBT002
    ) -> None:
        """Create a branch: a separate history that starts with a tag, or empty.

        Open it as ``db.t$branch_name``, and write to it as to any table.

        Raises:
            BranchAlreadyExists: the name is taken, unless that is to be ignored.
            TagNotFound: there is no such tag.
        """
        self.branch_manager().create_branch(branch_name, tag_name, ignore_if_exists)

    def delete_branch(self, branch_name: str) -> None:
        """Delete a branch; files that only it refers to are left for ``remove_orphan_files``.

        Raises:
            BranchNotFound: there is no such branch.
        """
        self.branch_manager().drop_branch(branch_name)

    def rename_branch(self, from_branch: str, to_branch: str) -> None:
        """Copy a branch to another name, then delete the old one.

        Nobody may write to it meanwhile: a commit after the copy would be deleted with the old one.

        Raises:
            BranchNotFound, BranchAlreadyExists: there is no such branch, or the name is taken.
            InvalidState: somebody wrote to the branch meanwhile; it keeps the old name.
        """
        self.branch_manager().rename_branch(from_branch, to_branch)

    def list_branches(self) -> list[str]:
        """The names of all branches but the main one, sorted."""
        return self.branch_manager().branches()

    def fast_forward(self, branch_name: str) -> None:
        """Give this table the history of a branch, from the branch's first snapshot on.

        The table's own snapshots and tags from there on are deleted. Open the table again
        afterwards: its schema may have changed.

        Raises:
            BranchNotFound, SnapshotNotFound: there is no such branch, or it is empty.
            InvalidState: somebody committed to this table meanwhile.
        """
        self._check_present()
        self.branch_manager().fast_forward(branch_name)

    def _snapshot_to_tag(self, snapshot_id: int | None) -> Snapshot:
        snapshots = self.store.snapshots
        snapshot = snapshots.latest() if snapshot_id is None else snapshots.load(snapshot_id)
        if snapshot is None:
            raise SnapshotNotFound(f"{self.identifier} has no snapshot to tag")
        return snapshot

    def _check_present(self) -> None:
        if is_travelling(self.store.options) or is_incremental(self.store.options):
            raise InvalidState(
                f"{self.identifier} is seen at an earlier snapshot here; "
                "write to the table without scan options"
            )
