"""What keeps files alive: every snapshot of any branch that somebody may read, and every tag.

A file is needed if one of them refers to it. Tags and branches share files with the snapshots that
they were made from, so code that deletes files must ask all of them.
"""

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from emberlake.base.parallel import parallel_map
from emberlake.errors import FileNotFound, InvalidState, NotFound
from emberlake.spec.layout import MAIN_BRANCH, TableLayout, parse_numbered
from emberlake.spec.manifest import IndexManifestEntry, ManifestFile
from emberlake.spec.snapshot import Snapshot, decode_snapshot
from emberlake.store.entries import ManifestEntries, merge_entries
from emberlake.store.table_store import TableStore
from emberlake.store.tags import TagStore

_CHANGELOG_PREFIX: Final = "changelog-"
_T = TypeVar("_T")

# One file with the changelogs of many buckets: the name says in which bucket it is stored, and
# perhaps which part of it is meant.
COMPACTED_CHANGELOG_PREFIX: Final = "compacted-changelog-"
_COMPACTED_CHANGELOG: Final = re.compile(
    r"(?P<name>compacted-changelog-[^$]*\$(?P<bucket>\d+)-\d+)(?:-\d+-\d+)?(?P<format>\..*)"
)


@dataclass(frozen=True, slots=True)
class Holder:
    """A snapshot of a branch, one kept by a tag, or one kept only for its changelog."""

    path: str
    snapshot: Snapshot
    is_changelog: bool = False


def load_holders(store: TableStore, *, without: Collection[int] = ()) -> list[Holder]:
    """All snapshots, tags and changelogs of all branches, except some snapshots of this one.

    Raises:
        InvalidState: one of them vanished meanwhile.
    """
    found: list[Holder] = []
    for layout in store.branches.layouts():
        found += _snapshots(store, layout, without if layout == store.layout else ())
        found += _tags(store, layout)
        found += _changelogs(store, layout)
    return found


def tag_paths(store: TableStore) -> list[str]:
    """The files of all tags of all branches; a new branch has a tag too."""
    return [
        layout.tag(name)
        for layout in store.branches.layouts()
        for name in TagStore(store.storage, layout).names()
    ]


def _snapshots(store: TableStore, layout: TableLayout, without: Collection[int]) -> list[Holder]:
    snapshots = store.snapshots_of(layout)
    ids = [number for number in snapshots.list_ids() if number not in without]

    def load(snapshot_id: int) -> Holder:
        snapshot = own_part(store, layout, snapshots.load(snapshot_id))
        return Holder(layout.snapshot(snapshot_id), snapshot)

    return [*parallel_map(explained(load), ids, workers=store.readers)]


def _tags(store: TableStore, layout: TableLayout) -> list[Holder]:
    # A tag that has vanished since the listing may have been renamed, and is not listed then.
    tags = TagStore(store.storage, layout)

    def load(name: str) -> Holder:
        return Holder(layout.tag(name), own_part(store, layout, tags.load(name), is_tag=True))

    return [*parallel_map(explained(load), tags.names(), workers=store.readers)]


def own_part(
    store: TableStore, layout: TableLayout, snapshot: Snapshot, *, is_tag: bool = False
) -> Snapshot:
    """A snapshot without a changelog that it does not keep alive.

    A changelog expires with the snapshot that wrote it. A tag holds a copy of that snapshot, and so
    may the first snapshot of a branch; both still name the changelog.
    """
    name = snapshot.changelog_manifest_list
    if name is None or (layout.branch == MAIN_BRANCH and not is_tag):
        return snapshot
    if not is_tag and store.storage.exists(layout.manifest(name)):
        return snapshot
    return replace(snapshot, changelog_manifest_list=None, changelog_manifest_list_size=None)


def _changelogs(store: TableStore, layout: TableLayout) -> list[Holder]:
    return [
        Holder(info.path, decode_snapshot(store.storage.read(info.path), info.path), True)
        for info in store.storage.list(layout.changelog_folder)
        if parse_numbered(info.name, _CHANGELOG_PREFIX) is not None
    ]


@dataclass(frozen=True, slots=True)
class Metadata:
    """The metadata files that a snapshot refers to."""

    lists: dict[str, int | None]  # manifest lists with their sizes
    manifests: dict[str, ManifestFile]  # those of the state of the table
    changelog_manifests: dict[str, ManifestFile]
    index_manifest: str | None
    index_entries: tuple[IndexManifestEntry, ...]
    statistics: str | None

    @property
    def file_names(self) -> Iterator[str]:
        """The names of all of these, and of the index files."""
        yield from (*self.lists, *self.manifests, *self.changelog_manifests)
        yield from (name for name in (self.index_manifest, self.statistics) if name is not None)
        yield from (entry.index_file.file_name for entry in self.index_entries)


def load_metadata(store: TableStore, holder: Holder) -> Metadata:
    """The metadata files of a snapshot that stays.

    Raises:
        InvalidState: one of them is missing.
    """
    # Of an expired snapshot, only the changelog may be left.
    return explained(lambda h: read_metadata(store, h.snapshot, is_partial=h.is_changelog))(holder)


def read_metadata(store: TableStore, snapshot: Snapshot, *, is_partial: bool) -> Metadata:
    """The metadata files of a snapshot; if it may be partial, those that are still there."""
    lists = {
        snapshot.base_manifest_list: snapshot.base_manifest_list_size,
        snapshot.delta_manifest_list: snapshot.delta_manifest_list_size,
    }
    of_changelog = {}
    if snapshot.changelog_manifest_list is not None:
        of_changelog[snapshot.changelog_manifest_list] = snapshot.changelog_manifest_list_size

    def manifests(names: dict[str, int | None]) -> dict[str, ManifestFile]:
        found: dict[str, ManifestFile] = {}
        for name, size in names.items():
            try:
                listed = store.manifests.read_list(name, size)
            except FileNotFound:
                if not is_partial:
                    raise
                continue
            found.update((m.file_name, m) for m in listed)
        return found

    return Metadata(
        lists={**lists, **of_changelog},
        manifests=manifests(lists),
        changelog_manifests=manifests(of_changelog),
        index_manifest=snapshot.index_manifest,
        index_entries=_index_entries(store, snapshot, is_partial=is_partial),
        statistics=snapshot.statistics,
    )


def _index_entries(
    store: TableStore, snapshot: Snapshot, *, is_partial: bool
) -> tuple[IndexManifestEntry, ...]:
    if snapshot.index_manifest is None:
        return ()
    try:
        return store.manifests.read_index(snapshot.index_manifest)
    except FileNotFound:
        if not is_partial:
            raise
        return ()


def find_needed(store: TableStore, holders: Sequence[Metadata], names: Collection[str]) -> set[str]:
    """Of some data files, by name, those that are live in a snapshot or in its changelog."""
    if not names:
        return set()
    wanted = _texts(names)
    hits = by_manifest(store, holders, lambda entries: entries.take(_is_in(entries, wanted)))
    states = {frozenset(name for name in h.manifests if len(hits[name])) for h in holders}
    changelogs = {name for h in holders for name in h.changelog_manifests}
    needed: set[str] = set()
    for state in states:
        live = merge_entries(ManifestEntries.concat(hits[name] for name in sorted(state)))
        needed.update(live.file_name.to_pylist())
    for name in changelogs:
        needed.update(hits[name].file_name.to_pylist())
    return needed


def find_named(store: TableStore, holders: Sequence[Metadata], names: Collection[str]) -> set[str]:
    """Of some files, by name, those that a manifest adds or deletes."""
    if not names:
        return set()
    wanted = _texts(names)

    def look(entries: ManifestEntries) -> set[str]:
        extras = pc.list_flatten(entries.extra_files)
        compacted = pc.starts_with(entries.file_name, COMPACTED_CHANGELOG_PREFIX)
        stored = map(stored_name, entries.file_name.filter(compacted).to_pylist())
        return {
            *entries.file_name.filter(pa.array(_is_in(entries, wanted))).to_pylist(),
            *extras.filter(pc.is_in(extras, value_set=wanted)).to_pylist(),
            *(name for _, name in stored),
        }

    return set().union(*by_manifest(store, holders, look).values())


def stored_name(file_name: str) -> tuple[int | None, str]:
    """The name under which a file is stored, and its bucket if it differs from the entry's."""
    found = _COMPACTED_CHANGELOG.fullmatch(file_name)
    if found is None:
        return None, file_name
    return int(found["bucket"]), found["name"] + found["format"]


def by_manifest(
    store: TableStore, holders: Sequence[Metadata], look: Callable[[ManifestEntries], _T]
) -> dict[str, _T]:
    """What ``look`` finds in every manifest; each is read once, and only the result is kept."""
    distinct: dict[str, ManifestFile] = {}
    for metadata in holders:
        distinct.update(metadata.manifests)
        distinct.update(metadata.changelog_manifests)
    read = explained(lambda manifest: look(store.manifests.read_manifest(manifest)))
    found = parallel_map(read, distinct.values(), workers=store.readers)
    return dict(zip(distinct, found, strict=True))


def _is_in(entries: ManifestEntries, names: pa.Array) -> npt.NDArray[np.bool_]:
    found: npt.NDArray[np.bool_] = pc.is_in(entries.file_name, value_set=names).to_numpy(
        zero_copy_only=False
    )
    return found


def _texts(names: Iterable[str]) -> pa.Array:
    return pa.array(list(names), pa.large_string())


def explained(load: Callable[..., _T]) -> Callable[..., _T]:
    """The same loader, with an error that says what to do if it does not find something."""

    def attempt(item: object) -> _T:
        try:
            return load(item)
        except NotFound as error:
            raise InvalidState(
                f"cannot tell which files are needed, so nothing was deleted: {error}. Snapshots "
                "that expire meanwhile may be the reason: run it again; if that does not help, an "
                "expiration was cut off (finish it) or the table is damaged (check it)"
            ) from error

    return attempt
