"""The branches of a table: separate histories over the same files. Spec: "Branch".

A branch has schemas, snapshots and tags in its own folder; the data and manifests of all branches
are shared. A marker next to the folder, ``.unfinished-<name>``, hides a branch that is being
created or deleted, so that it exists as a whole or not at all:

    create  put the marker if absent ── no branch has the name ── put the files ── delete the marker
    delete  put the marker ── delete the files ── delete the marker

Other engines do not know the marker. For them, schemas are written last and deleted first: a branch
without a schema cannot be opened.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Final

from emberlake.base.names import choices
from emberlake.errors import (
    BranchAlreadyExists,
    BranchNotFound,
    FileNotFound,
    InvalidState,
    StorageError,
)
from emberlake.io.storage import Storage
from emberlake.spec.identifier import NameKind, check_name
from emberlake.spec.layout import (
    BRANCH_PREFIX,
    MAIN_BRANCH,
    SCHEMA_PREFIX,
    TableLayout,
    parse_numbered,
)
from emberlake.spec.snapshot import Snapshot
from emberlake.store.publishing import BranchServer, Snapshots

UNFINISHED_PREFIX: Final = ".unfinished-"
# The creator of a branch writes this marker before it checks whether the branch exists. If it is
# interrupted in between, it must not hide a branch of somebody else, so this marker hides nothing.
_CLAIMED: Final = b"claimed "
_UNFINISHED: Final = b"unfinished "


def unfinished_marker(layout: TableLayout) -> str:
    """The file that says that a branch is being created or deleted."""
    return f"{layout.branch_folder}/{UNFINISHED_PREFIX}{layout.branch}"


def is_unfinished(storage: Storage, layout: TableLayout) -> bool:
    """Whether a branch is being created or deleted, or was left so; the main one never is."""
    marker = unfinished_marker(layout)
    if layout.branch == MAIN_BRANCH or not storage.exists(marker):
        return False
    content = _read(storage, marker)
    return content is not None and not content.startswith(_CLAIMED)


def list_branches(storage: Storage, layout: TableLayout) -> list[str]:
    """The names of all branches of a table except the main one, sorted."""
    content = [*storage.list(layout.branch_folder)]
    marked = {i.name.removeprefix(UNFINISHED_PREFIX) for i in content if not i.is_folder}
    names = [
        info.name.removeprefix(BRANCH_PREFIX)
        for info in content
        if info.is_folder and info.name.startswith(BRANCH_PREFIX)
    ]
    return sorted(
        name
        for name in names
        if name not in marked or not is_unfinished(storage, layout.for_branch(name))
    )


class BranchStore:
    """Lists, creates, renames and deletes the branches of a table."""

    def __init__(
        self,
        storage: Storage,
        layout: TableLayout,
        snapshots_of: Callable[[TableLayout], Snapshots],
        new_id: Callable[[], str],
        server: BranchServer | None = None,
    ) -> None:
        self.server = server
        self._storage = storage
        self._layout = layout
        self._snapshots_of = snapshots_of
        self._new_id = new_id

    def list(self) -> list[str]:
        """The names of all branches except the main one, sorted."""
        if self.server is not None:
            return self.server.list()
        return list_branches(self._storage, self._layout)

    def exists(self, name: str) -> bool:
        layout = self._layout_of(name)
        if self.server is not None:
            return name in self.server.list()
        has_files = self._storage.exists(layout.metadata_root)
        return has_files and not is_unfinished(self._storage, layout)

    def layouts(self) -> tuple[TableLayout, ...]:
        """The layouts of all branches, the main one first."""
        return tuple(self._layout.for_branch(name) for name in (MAIN_BRANCH, *self.list()))

    def create(
        self, name: str, files: Mapping[str, bytes], history: Sequence[Snapshot] = ()
    ) -> None:
        """Create a branch.

        Args:
            name: Its name.
            files: Its files other than snapshots, by their paths inside its folder.
            history: Its snapshots, the oldest first.

        Raises:
            BranchAlreadyExists: the name is taken, or the branch is being created or deleted.
            InvalidIdentifier: the name is not allowed for a branch.
            InvalidState: somebody deleted the branch while it was being created.
        """
        if self.exists(name):
            raise branch_exists(name)
        with self._creating(name) as layout:
            self._publish(layout, history)
            for path in sorted(files, key=_write_order):
                self._storage.put_if_absent(f"{layout.metadata_root}/{path}", files[path])

    def delete(self, name: str) -> None:
        """Delete a branch; the files that only it referred to become orphans.

        A branch that was left unfinished can be deleted, too.

        Raises:
            BranchNotFound: there is no such branch.
        """
        layout = self._layout_of(name)
        if self.server is not None:
            self.check_exists(name)
            self.server.delete(name)
            return
        marker = unfinished_marker(layout)
        if not (self._storage.exists(layout.metadata_root) or self._storage.exists(marker)):
            raise self._not_found(name)
        # Hidden at once: a branch that is half deleted could be taken for a whole one.
        self._storage.put(marker, _UNFINISHED + self._new_id().encode())
        self._sweep(layout)

    def rename(self, old: str, new: str) -> None:
        """Copy a branch to another name, then delete the old one.

        Nobody may write to it meanwhile: commits after the copy are deleted with the old name.

        Raises:
            BranchNotFound: there is no branch with the old name.
            BranchAlreadyExists: the new name is taken.
            InvalidIdentifier: a name is not allowed for a branch.
            InvalidState: somebody wrote to the branch meanwhile; it keeps the old name.
        """
        self.check_exists(old)
        if self.server is not None:
            if self.exists(new):
                raise branch_exists(new)
            self.server.rename(old, new)
            return
        files, history = self._files_of(old), self._history_of(old)
        self.create(new, files, history)
        if (self._files_of(old), self._history_of(old)) != (files, history):
            self.delete(new)
            raise InvalidState(
                f"somebody wrote to branch {old!r} while it was being renamed; rename it again "
                "when nobody writes to it"
            )
        if history:
            self._snapshots_of(self._layout_of(new)).write_latest_hint(history[-1].id)
        self.delete(old)

    def check_exists(self, name: str) -> None:
        """Refuse a name that no branch has."""
        if not self.exists(name):
            raise self._not_found(name)

    # --- creating and deleting --------------------------------------------------------------------

    @contextmanager
    def _creating(self, name: str) -> Iterator[TableLayout]:
        """The files that the block puts into the branch appear as a whole, or not at all."""
        layout, own_id = self._layout_of(name), self._new_id().encode()
        marker = unfinished_marker(layout)
        try:
            self._claim(layout, own_id)
            yield layout
            if _read(self._storage, marker) != _UNFINISHED + own_id:
                raise InvalidState(
                    f"branch {name!r} was deleted while it was being created; delete it again: "
                    "files that were written since may be left"
                )
        except BaseException:
            with suppress(StorageError):
                self._give_up(layout, own_id)
            raise
        try:
            self._storage.delete(marker)
        except StorageError:
            # The response may have been lost after the branch was published.
            if not self._storage.exists(marker):
                return
            self._give_up(layout, own_id)
            raise

    def _claim(self, layout: TableLayout, own_id: bytes) -> None:
        marker = unfinished_marker(layout)
        is_ours = self._storage.put_if_absent(marker, _CLAIMED + own_id)
        # A storage that repeats a request after a lost response runs into our own marker.
        if not is_ours and _read(self._storage, marker) != _CLAIMED + own_id:
            raise _being_created(layout.branch)
        if self._storage.exists(layout.metadata_root):
            raise branch_exists(layout.branch)
        self._storage.put(marker, _UNFINISHED + own_id)

    def _publish(self, layout: TableLayout, history: Sequence[Snapshot]) -> None:
        snapshots, base_uuid = self._snapshots_of(layout), None
        for snapshot in history:
            if not snapshots.publish(snapshot, base_uuid=base_uuid):
                raise InvalidState(
                    f"somebody committed snapshot {snapshot.id} to branch {layout.branch!r} while "
                    "it was being created; create it again"
                )
            base_uuid = snapshot.uuid

    def _give_up(self, layout: TableLayout, own_id: bytes) -> None:
        """Delete what was written under our own claim, and nothing under another one."""
        content = _read(self._storage, unfinished_marker(layout))
        if content == _UNFINISHED + own_id:
            self._sweep(layout)
        elif content == _CLAIMED + own_id:
            self._storage.delete(unfinished_marker(layout))

    def _sweep(self, layout: TableLayout) -> None:
        schemas = self._storage.list_all(layout.schema_folder)
        self._storage.delete_all([info.path for info in schemas])
        self._snapshots_of(layout).drop()
        self._storage.delete_folder(layout.metadata_root)
        self._storage.delete(unfinished_marker(layout))

    # --- parts ------------------------------------------------------------------------------------

    def _layout_of(self, name: str) -> TableLayout:
        check_name(NameKind.BRANCH, name)
        return self._layout.for_branch(name)

    def _files_of(self, name: str) -> dict[str, bytes]:
        """The files of a branch other than its snapshots, by their paths inside its folder."""
        layout = self._layout_of(name)
        root, snapshots = f"{layout.metadata_root}/", f"{layout.snapshot_folder}/"
        return {
            info.path.removeprefix(root): self._storage.read(info.path)
            for info in self._storage.list_all(layout.metadata_root)
            if not info.path.startswith(snapshots) and not info.name.startswith(".")
        }

    def _history_of(self, name: str) -> tuple[Snapshot, ...]:
        snapshots = self._snapshots_of(self._layout_of(name))
        return tuple(snapshots.load(snapshot_id) for snapshot_id in snapshots.list_ids())

    def _not_found(self, name: str) -> BranchNotFound:
        known = choices(name, self.list(), "the branches are:")
        return BranchNotFound(f"branch {name!r} does not exist; {known}", branch=name)


def _read(storage: Storage, path: str) -> bytes | None:
    try:
        return storage.read(path)
    except FileNotFound:
        return None


def _write_order(path: str) -> tuple[bool, int]:
    """Schemas last, the newest first: a reader that sees only some must see the newest."""
    number = parse_numbered(path.rpartition("/")[2], SCHEMA_PREFIX)
    return number is not None, -(number or 0)


def branch_exists(name: str) -> BranchAlreadyExists:
    """The error for a branch whose name is taken."""
    return BranchAlreadyExists(
        f"branch {name!r} already exists; delete it first or choose another name", branch=name
    )


def _being_created(name: str) -> BranchAlreadyExists:
    return BranchAlreadyExists(
        f"branch {name!r} is unfinished: it is being created or deleted, or that was interrupted; "
        "in the latter case delete it and create it again",
        branch=name,
    )
