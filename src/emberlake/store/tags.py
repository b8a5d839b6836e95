"""The tags of a table: named copies of snapshots, which expiration leaves alone. Spec: "Tag"."""

from emberlake.base.names import choices
from emberlake.errors import FileNotFound, InvalidIdentifier, TagAlreadyExists, TagNotFound
from emberlake.io.storage import Storage
from emberlake.spec.layout import TAG_PREFIX, TableLayout
from emberlake.spec.snapshot import Snapshot
from emberlake.spec.tag import Tag, decode_tag


class TagStore:
    """Loads, creates, replaces, renames and deletes the tags of one branch of a table."""

    def __init__(self, storage: Storage, layout: TableLayout) -> None:
        self._storage = storage
        self._layout = layout

    def load(self, name: str) -> Snapshot:
        """The snapshot that a tag keeps.

        Raises:
            TagNotFound: there is no such tag.
        """
        return self.load_tag(name).trim_to_snapshot()

    def load_tag(self, name: str) -> Tag:
        """A tag: the snapshot that it keeps, and for how long.

        Raises:
            TagNotFound: there is no such tag.
        """
        return decode_tag(self._read(name), self._layout.tag(name))

    def exists(self, name: str) -> bool:
        return self._storage.exists(self._layout.tag(name))

    def names(self) -> tuple[str, ...]:
        """The names of all tags, sorted; none of them is read."""
        return tuple(
            info.name.removeprefix(TAG_PREFIX)
            for info in self._storage.list(self._layout.tag_folder)
            if info.name.startswith(TAG_PREFIX) and not info.is_folder
        )

    def list(self) -> dict[str, Tag]:
        """All tags by name, in the order of their snapshots."""
        tags: dict[str, Tag] = {}
        for name in self.names():
            try:
                tags[name] = self.load_tag(name)
            except TagNotFound:  # deleted since the listing
                continue
        return dict(sorted(tags.items(), key=lambda item: (item[1].id, item[0])))

    def create(self, name: str, snapshot: Snapshot, *, ignore_if_exists: bool = False) -> None:
        """Keep a snapshot under a name; a ``Tag`` also says for how long.

        Raises:
            TagAlreadyExists: the name is taken, and ``ignore_if_exists`` is false.
            InvalidIdentifier: the name is not allowed for a tag.
        """
        check_tag_name(name)
        created = self._storage.put_if_absent(self._layout.tag(name), snapshot.encode())
        if not created and not ignore_if_exists:
            raise _already_exists(name)

    def replace(self, name: str, snapshot: Snapshot) -> None:
        """Make a tag keep another snapshot, or keep it for another time.

        Raises:
            TagNotFound: there is no such tag.
        """
        if not self.exists(name):
            raise self._not_found(name)
        self._storage.put(self._layout.tag(name), snapshot.encode())

    def delete(self, name: str) -> None:
        """Delete a tag; no error if there is none."""
        self._storage.delete(self._layout.tag(name))

    def rename(self, old: str, new: str) -> None:
        """Give a tag another name.

        Raises:
            TagNotFound: there is no tag with the old name.
            TagAlreadyExists: the new name is taken.
        """
        check_tag_name(new)
        if not self._storage.put_if_absent(self._layout.tag(new), self._read(old)):
            raise _already_exists(new)
        self._storage.delete(self._layout.tag(old))

    def _read(self, name: str) -> bytes:
        path = self._layout.tag(name)
        try:
            return self._storage.read(path)
        except FileNotFound as error:
            raise self._not_found(name) from error

    def _not_found(self, name: str) -> TagNotFound:
        known = choices(name, self.names(), "the tags are:")
        detail = f"no {self._layout.tag(name)}; {known}"
        return TagNotFound(f"tag {name!r} does not exist: {detail}", tag=name)


def check_tag_name(name: str) -> None:
    """Refuse names that other engines cannot use: blank, or with a slash."""
    if not name.strip() or "/" in name:
        raise InvalidIdentifier(
            f"{name!r} cannot be the name of a tag: it must not be blank, nor contain a slash"
        )


def _already_exists(name: str) -> TagAlreadyExists:
    return TagAlreadyExists(
        f"tag {name!r} already exists; delete it first or choose another name", tag=name
    )
