"""The branches of a table: histories of their own over the same files. Spec: "Branch".

A branch has schemas, snapshots and tags in a folder of its own; data and manifests of all branches
lie together. The folder gets its name when all that it begins with is in it, so that a branch is
there as a whole or not at all.
"""

from collections.abc import Callable, Mapping

from emberlake.base.names import choices
from emberlake.errors import AlreadyExists, BranchAlreadyExists, BranchNotFound
from emberlake.io.storage import Storage
from emberlake.spec.identifier import NameKind, check_name
from emberlake.spec.layout import BRANCH_PREFIX, MAIN_BRANCH, TableLayout

UNFINISHED_PREFIX = ".unfinished-"  # a folder that is being made or deleted; nobody reads it


class BranchStore:
    """Lists, creates, renames and deletes the branches of a table."""

    def __init__(self, storage: Storage, layout: TableLayout, new_id: Callable[[], str]) -> None:
        self._storage = storage
        self._layout = layout
        self._new_id = new_id

    def list(self) -> list[str]:
        """The names of all branches but the main one, sorted."""
        return sorted(
            info.name.removeprefix(BRANCH_PREFIX)
            for info in self._storage.list(self._layout.branch_folder)
            if info.is_folder and info.name.startswith(BRANCH_PREFIX)
        )

    def exists(self, name: str) -> bool:
        check_name(NameKind.BRANCH, name)
        return self._storage.exists(self._folder(name))

    def layouts(self) -> tuple[TableLayout, ...]:
        """The layouts of all branches, the main one first."""
        return tuple(self._layout.for_branch(name) for name in (MAIN_BRANCH, *self.list()))

    def create(self, name: str, files: Mapping[str, bytes]) -> None:
        """Make a branch of files, given by their paths inside its folder.

        Raises:
            BranchAlreadyExists: the name is taken.
            InvalidIdentifier: the name cannot be a branch's.
        """
        if self.exists(name):
            raise _already_exists(name)
        unfinished = self._unfinished()
        for path, data in files.items():
            self._storage.put_if_absent(f"{unfinished}/{path}", data)
        try:
            self._storage.move_folder(unfinished, self._folder(name))
        except AlreadyExists as error:  # somebody else was faster
            self._storage.delete_folder(unfinished)
            raise _already_exists(name) from error

    def delete(self, name: str) -> None:
        """Forget a branch; the files that it alone referred to become orphans.

        Raises:
            BranchNotFound: there is no such branch.
        """
        self.check_exists(name)
        # Gone at once: a branch that is half deleted could be taken for a whole one.
        unfinished = self._unfinished()
        self._storage.move_folder(self._folder(name), unfinished)
        self._storage.delete_folder(unfinished)

    def rename(self, old: str, new: str) -> None:
        """Give a branch another name.

        Raises:
            BranchNotFound: there is no branch of the old name.
            BranchAlreadyExists: the new name is taken.
            InvalidIdentifier: a name cannot be a branch's.
        """
        self.check_exists(old)
        if self.exists(new):
            raise _already_exists(new)
        try:
            self._storage.move_folder(self._folder(old), self._folder(new))
        except AlreadyExists as error:  # somebody else was faster
            raise _already_exists(new) from error

    def check_exists(self, name: str) -> None:
        """Refuse a name that no branch has."""
        if not self.exists(name):
            known = choices(name, self.list(), "the branches are:")
            raise BranchNotFound(f"branch {name!r} does not exist; {known}", branch=name)

    def _folder(self, name: str) -> str:
        return self._layout.for_branch(name).metadata_root

    def _unfinished(self) -> str:
        return f"{self._layout.branch_folder}/{UNFINISHED_PREFIX}{self._new_id()}"


def _already_exists(name: str) -> BranchAlreadyExists:
    return BranchAlreadyExists(
        f"branch {name!r} already exists; delete it first or choose another name", branch=name
    )
