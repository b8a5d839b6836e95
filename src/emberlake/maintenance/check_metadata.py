"""Check the metadata of snapshots: manifest lists, manifests, and whether they add up.

Every file is read once, from the storage, even if this process has it in its cache.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import numpy as np
import pyarrow.compute as pc

from emberlake.errors import CorruptFile, StorageError
from emberlake.maintenance.check_report import DAMAGE, Finding, Problem, ProblemKind, damage
from emberlake.spec.manifest import FileKind, IndexManifestEntry, ManifestEntry, ManifestFile
from emberlake.spec.snapshot import SNAPSHOT_VERSION, Snapshot
from emberlake.store.entries import ManifestEntries, merge_entries
from emberlake.store.manifest_avro import (
    decode_entries,
    decode_index_manifest,
    decode_manifest_list,
)
from emberlake.store.schemas import SchemaStore
from emberlake.store.table_store import TableStore


@dataclass(frozen=True, slots=True)
class State:
    """The files of a snapshot, as far as its metadata can be read."""

    live: ManifestEntries
    index_entries: tuple[IndexManifestEntry, ...]


@dataclass(frozen=True, slots=True)
class _Net:
    """What manifests add to a table: rows, and files as a sum that tells sets of files apart."""

    rows: int
    files: int = 0
    is_known: bool = True

    def __add__(self, other: "_Net") -> "_Net":
        is_known = self.is_known and other.is_known
        return _Net(self.rows + other.rows, self.files + other.files, is_known=is_known)


@dataclass(slots=True)
class MetadataCheck:
    """Reads the metadata of one snapshot after the other and collects its problems."""

    store: TableStore
    problems: list[Problem] = field(default_factory=list)
    files: int = 0
    byte_count: int = 0
    _read_before: set[str] = field(default_factory=set)
    _schemas: set[int] = field(default_factory=set)
    _lists: dict[str, tuple[ManifestFile, ...] | None] = field(default_factory=dict)
    _nets: dict[str, _Net] = field(default_factory=dict)
    _indexes: dict[str, tuple[IndexManifestEntry, ...]] = field(default_factory=dict)

    def finding(self) -> Finding:
        return Finding(tuple(self.problems), self.files, 0, self.byte_count)

    @contextmanager
    def reporting(self, path: str) -> Iterator[None]:
        """Turn the errors of a damaged file into problems; a missing file still raises."""
        try:
            yield
        except (CorruptFile, StorageError) as error:
            self.problems.append(damage(path, error))

    def load_state(self, snapshot: Snapshot) -> State:
        """The files of a snapshot; those that cannot be read are problems, and left out."""
        entries = self._entries(_state_lists(snapshot))
        live = merge_entries(entries)
        self.problems += _check_entries(self.store, entries, live)
        return State(live, self._index(snapshot))

    def load_needed(self, snapshot: Snapshot, *, is_next: bool) -> State:
        """The files that a snapshot needs, and its changelog.

        For a snapshot that ``is_next`` after another, only the files that it has added.
        """
        lists = _state_lists(snapshot)
        live = merge_entries(self._entries(lists[1:] if is_next else lists))
        changelog = self._entries(_changelog_lists(snapshot))
        return State(ManifestEntries.concat([live, changelog]), self._index(snapshot))

    def _entries(self, lists: Iterable[tuple[str, int | None]]) -> ManifestEntries:
        manifests = (m for name, size in lists for m in self._list(name, size) or ())
        found = (self._manifest(manifest) for manifest in manifests)
        return ManifestEntries.concat(entries for entries in found if entries is not None)

    def check(self, path: str, snapshot: Snapshot) -> None:
        """Read the metadata of a snapshot and check that it adds up."""
        self._check_schema(snapshot.schema_id)
        base, delta = self._nets_of(snapshot)
        has_counts = snapshot.version == SNAPSHOT_VERSION
        if has_counts and delta.is_known and delta.rows != snapshot.delta_record_count:
            self._inconsistent(path, "deltaRecordCount", snapshot.delta_record_count, delta.rows)
        total = base + delta
        if has_counts and total.is_known and total.rows != snapshot.total_record_count:
            self._inconsistent(path, "totalRecordCount", snapshot.total_record_count, total.rows)
        for name, size in _changelog_lists(snapshot):
            self._net(name, size)
        self._index(snapshot)
        if snapshot.statistics is not None:
            statistics = self.store.layout.statistics(snapshot.statistics)
            if not self.store.storage.exists(statistics):
                self._add(ProblemKind.MISSING, statistics, f"{path} refers to it")

    def check_follows(self, path: str, before: Snapshot, snapshot: Snapshot) -> bool:
        """Whether a snapshot was built on the one before; in a chain of snapshots it must be."""
        if before.id + 1 != snapshot.id:
            return False
        detail = self._difference(before, snapshot)
        if detail is None:
            return True
        # Tags are not in the chain: they may be older than a rollback.
        if path == self.store.layout.snapshot(snapshot.id):
            self._add(
                ProblemKind.OVERWRITTEN,
                self.store.layout.snapshot(before.id),
                f"snapshot {snapshot.id} was built on another one: {detail}. A commit that had "
                "succeeded is lost, or only seen since then",
            )
        return False

    def _difference(self, before: Snapshot, snapshot: Snapshot) -> str | None:
        """How a snapshot differs from what the next one found; None if it does not."""
        base, (below, delta) = self._nets_of(snapshot)[0], self._nets_of(before)
        left = below + delta
        if base.is_known and left.is_known:
            found, rows = base.rows, left.rows
            if base == left:
                return None
        else:
            found = snapshot.total_record_count - snapshot.delta_record_count
            rows = before.total_record_count
            if found == rows or {before.version, snapshot.version} != {SNAPSHOT_VERSION}:
                return None
        if found == rows:
            return f"both have {rows} rows, but in other files"
        return f"it found {found} rows, this one has {rows}"

    def _check_schema(self, schema_id: int) -> None:
        if schema_id in self._schemas:
            return
        self._schemas.add(schema_id)
        try:
            SchemaStore(self.store.storage, self.store.layout).load(schema_id)
        except DAMAGE as error:
            self.problems.append(damage(self.store.layout.schema(schema_id), error))

    def _nets_of(self, snapshot: Snapshot) -> tuple[_Net, _Net]:
        base, delta = (self._net(name, size) for name, size in _state_lists(snapshot))
        return base, delta

    def _net(self, list_name: str, size: int | None) -> _Net:
        manifests = self._list(list_name, size)
        if manifests is None:
            return _Net(0, is_known=False)
        total = _Net(0)
        for manifest in manifests:
            if manifest.file_name not in self._nets:
                self._manifest(manifest)
            total += self._nets[manifest.file_name]
        return total

    def _list(self, name: str, size: int | None) -> tuple[ManifestFile, ...] | None:
        if name not in self._lists:
            path = self.store.layout.manifest(name)
            try:
                self._lists[name] = decode_manifest_list(self._read(path, size), path)
            except DAMAGE as error:
                self.problems.append(damage(path, error))
                self._lists[name] = None
        return self._lists[name]

    def _manifest(self, manifest: ManifestFile) -> ManifestEntries | None:
        path = self.store.layout.manifest(manifest.file_name)
        is_first = manifest.file_name not in self._nets
        try:
            entries = decode_entries(self._read(path, manifest.file_size), path)
        except DAMAGE as error:
            self._nets[manifest.file_name] = _Net(0, is_known=False)
            if is_first:
                self.problems.append(damage(path, error))
            return None
        if is_first:
            self._nets[manifest.file_name] = _net_of(entries)
            self._check_counts(path, manifest, entries)
        return entries

    def _check_counts(self, path: str, manifest: ManifestFile, entries: ManifestEntries) -> None:
        added = int((entries.kind == FileKind.ADD).sum())
        deleted = len(entries) - added
        if (added, deleted) != (manifest.num_added_files, manifest.num_deleted_files):
            self._add(
                ProblemKind.INCONSISTENT,
                path,
                f"it adds {added} and deletes {deleted} files; its manifest list says "
                f"{manifest.num_added_files} and {manifest.num_deleted_files}",
            )

    def _index(self, snapshot: Snapshot) -> tuple[IndexManifestEntry, ...]:
        name = snapshot.index_manifest
        if name is None:
            return ()
        if name not in self._indexes:
            path = self.store.layout.manifest(name)
            self._indexes[name] = ()
            try:
                self._indexes[name] = decode_index_manifest(self._read(path, None), path)
            except DAMAGE as error:
                self.problems.append(damage(path, error))
        return self._indexes[name]

    def _read(self, path: str, size: int | None) -> bytes:
        raw = self.store.storage.read(path)
        if path not in self._read_before:
            self._read_before.add(path)
            self.files += 1
            self.byte_count += len(raw)
        if size is not None and len(raw) != size:
            raise CorruptFile(path, f"it has {len(raw)} bytes, but {size} were written")
        return raw

    def _inconsistent(self, path: str, name: str, stated: int, found: int) -> None:
        detail = f"{name} is {stated}, but its manifests add up to {found}"
        self._add(ProblemKind.INCONSISTENT, path, detail)

    def _add(self, kind: ProblemKind, path: str, detail: str) -> None:
        self.problems.append(Problem(kind, path, detail))


def _state_lists(snapshot: Snapshot) -> tuple[tuple[str, int | None], tuple[str, int | None]]:
    return (
        (snapshot.base_manifest_list, snapshot.base_manifest_list_size),
        (snapshot.delta_manifest_list, snapshot.delta_manifest_list_size),
    )


def _changelog_lists(snapshot: Snapshot) -> tuple[tuple[str, int | None], ...]:
    name = snapshot.changelog_manifest_list
    return () if name is None else ((name, snapshot.changelog_manifest_list_size),)


def _net_of(entries: ManifestEntries) -> _Net:
    signs = np.where(entries.kind == FileKind.ADD, 1, -1)
    places = zip(
        entries.file_name.to_pylist(),
        entries.bucket.tolist(),
        entries.level.tolist(),
        strict=True,
    )
    # What is added and deleted again leaves nothing, in whichever manifests the entries are.
    files = sum(sign * hash(place) for sign, place in zip(signs.tolist(), places, strict=True))
    return _Net(int((signs * entries.row_count).sum()), files)


def _check_entries(
    store: TableStore, entries: ManifestEntries, live: ManifestEntries
) -> Iterator[Problem]:
    """Files that are in a snapshot twice, and files that are deleted but were never added."""
    counts = Counter(live.file_name.to_pylist())
    is_repeated = np.array([counts[name] > 1 for name in live.file_name.to_pylist()], bool)
    for entry in live.take(is_repeated).entries():
        detail = f"the snapshot has the file {counts[entry.file.file_name]} times"
        yield Problem(ProblemKind.OVERLAPPING, _path_of(store, entry), detail)
    is_added = entries.kind == FileKind.ADD
    deleted = entries.take(~is_added)
    known = pc.is_in(deleted.file_name, value_set=entries.take(is_added).file_name)
    for entry in deleted.take(~known.to_numpy(zero_copy_only=False)).entries():
        detail = "a manifest deletes the file, but none adds it"
        yield Problem(ProblemKind.INCONSISTENT, _path_of(store, entry), detail)


def _path_of(store: TableStore, entry: ManifestEntry) -> str:
    try:
        return store.data_file_path(entry.partition, entry.bucket, entry.file)
    except CorruptFile:  # its partition cannot be read
        return entry.file.file_name
