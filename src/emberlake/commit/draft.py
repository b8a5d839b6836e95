"""One attempt: the manifests of a change on top of the latest snapshot, and the next snapshot.

What an attempt has written is used by the next one where it still fits.
"""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final

from emberlake._version import __version__
from emberlake.commit.change import Change
from emberlake.commit.conflicts import (
    check_deleted_files,
    check_indexes,
    check_key_ranges,
    check_rewritten_vectors,
    check_vector_files,
)
from emberlake.commit.key_bounds import stored_key_bound
from emberlake.commit.manifest_merge import Merged, merge_manifests
from emberlake.errors import CommitConflict, StorageError, TableNotFound
from emberlake.scan.files import in_partitions, live_entries, manifests_of
from emberlake.spec.manifest import (
    DELETION_VECTORS_INDEX,
    HASH_INDEX,
    FileKind,
    IndexManifestEntry,
    ManifestEntry,
    ManifestFile,
)
from emberlake.spec.profile import BucketMode
from emberlake.spec.schema import TableSchema
from emberlake.spec.snapshot import Snapshot
from emberlake.store.table_store import TableStore

_WRITER_VERSION: Final = f"emberlake-{__version__}"


@dataclass(frozen=True, kw_only=True)
class Request:
    """A change, and under which name it is to be committed."""

    change: Change
    commit_user: str
    identifier: int
    properties: Mapping[str, str] = field(default_factory=dict)
    then: tuple[Change, ...] = ()  # what is to follow: its files must be there as well


@dataclass(frozen=True, slots=True)
class Draft:
    """A snapshot that is ready to be published."""

    snapshot: Snapshot
    entries: tuple[ManifestEntry, ...]  # what it changes; deletes come first
    paths: frozenset[str]  # the manifests that it needs, new and old
    new_paths: tuple[str, ...]  # those that were written for it
    base_uuid: str | None  # the snapshot that it was made on top of

    @property
    def uuid(self) -> str:
        assert self.snapshot.uuid is not None
        return self.snapshot.uuid


class Drafter:
    """Drafts the snapshot of a request, anew for every attempt."""

    def __init__(self, store: TableStore, request: Request) -> None:
        self._store = store
        self._request = request
        self._written: set[str] = set()  # paths; none is referred to unless a draft is published
        self._merged: Merged | None = None
        self._delta: tuple[tuple[ManifestEntry, ...], tuple[ManifestFile, ...]] | None = None
        self._changelog: tuple[ManifestFile, ...] | None = None

    def draft(self, latest: Snapshot | None) -> Draft | None:
        """The next snapshot on top of ``latest``; None when it would change nothing.

        Raises:
            CommitConflict: a file that the change deletes is not there any more.
        """
        change = self._request.change
        entries = _delta_entries(self._store, change, latest)
        if not (entries or change.changelog or change.touches_indexes):
            return None  # an overwrite of nothing by nothing
        base = self._base_manifests(latest)
        delta = self._delta_manifests(entries)
        changelog = self._changelog_manifests()
        lists: dict[str, Any] = {
            **self._write_list("base_manifest_list", base),
            **self._write_list("delta_manifest_list", delta),
            **(self._write_list("changelog_manifest_list", changelog) if changelog else {}),
            "index_manifest": self._index_manifest(latest),
        }
        snapshot = self._compose(latest, entries, lists)
        names = [m.file_name for m in (*base, *delta, *changelog)]
        names += [name for name in lists.values() if isinstance(name, str)]
        paths = frozenset(map(self._store.layout.manifest, names))
        new_paths = tuple(sorted(paths & self._written))
        return Draft(snapshot, entries, paths, new_paths, latest.uuid if latest else None)

    def forget(self) -> None:
        """Write everything anew in the next attempt."""
        self._merged = self._delta = self._changelog = None

    def discard(self, keep: Draft | None = None) -> None:
        """Delete what was written, but for what a published draft needs.

        Nothing refers to these files, so one that cannot be deleted now is garbage, not a problem:
        it must not hide how the commit ended.
        """
        for path in self._written - (keep.paths if keep else frozenset()):
            with suppress(StorageError):
                self._store.storage.delete(path)

    def _compose(
        self, latest: Snapshot | None, entries: Sequence[ManifestEntry], lists: dict[str, Any]
    ) -> Snapshot:
        store, request = self._store, self._request
        now = store.env.now_ms()
        schema = present_schema(store)  # or a table without a schema would be left behind
        delta_rows = sum(entry.kind.sign * entry.file.row_count for entry in entries)
        changelog_rows = sum(entry.file.row_count for entry in request.change.changelog)
        return Snapshot(
            id=latest.id + 1 if latest else 1,
            uuid=store.env.new_id(),
            schema_id=schema.id,
            commit_user=request.commit_user,
            commit_identifier=request.identifier,
            commit_kind=request.change.kind,
            # Time travel searches by time, so time must not run backwards.
            time_millis=max(now, latest.time_millis) if latest else now,
            total_record_count=(latest.total_record_count if latest else 0) + delta_rows,
            delta_record_count=delta_rows,
            changelog_record_count=changelog_rows if request.change.changelog else None,
            watermark=latest.watermark if latest else None,
            statistics=latest.statistics if latest and latest.schema_id == schema.id else None,
            properties=request.properties,
            next_row_id=(latest.next_row_id if latest else None) or 0,
            writer_version=_WRITER_VERSION,
            **lists,
        )

    def _base_manifests(self, latest: Snapshot | None) -> tuple[ManifestFile, ...]:
        if latest is None:
            return ()
        manifests = manifests_of(self._store, latest)
        if self._merged is None:
            self._merged = merge_manifests(self._store, manifests)
            self._note(self._merged.written)
        # A winner may have merged the same manifests; then ours are left out and deleted later.
        merged = self._merged.apply(manifests)
        return manifests if merged is None else merged

    def _delta_manifests(self, entries: tuple[ManifestEntry, ...]) -> tuple[ManifestFile, ...]:
        if self._delta is None or self._delta[0] != entries:
            self._delta = (entries, self._write_manifests(entries))
        return self._delta[1]

    def _changelog_manifests(self) -> tuple[ManifestFile, ...]:
        if self._changelog is None:
            self._changelog = self._write_manifests(self._request.change.changelog)
        return self._changelog

    def _index_manifest(self, latest: Snapshot | None) -> str | None:
        change = self._request.change
        inherited = latest.index_manifest if latest else None
        if not (change.replaces is not None or change.touches_indexes or change.deleted):
            return inherited
        before = self._store.manifests.read_index(inherited) if inherited else ()
        after = _next_index(self._store, before, change)
        if after == before:
            return inherited
        if not after:
            return None
        name = self._store.manifests.write_index(after)
        self._written.add(self._store.layout.manifest(name))
        return name

    def _write_manifests(self, entries: Sequence[ManifestEntry]) -> tuple[ManifestFile, ...]:
        written = self._store.manifests.write_manifests(entries, self._store.partition_types)
        self._note(written)
        return written

    def _write_list(self, key: str, manifests: Sequence[ManifestFile]) -> dict[str, Any]:
        name, size = self._store.manifests.write_list(manifests)
        self._written.add(self._store.layout.manifest(name))
        return {key: name, f"{key}_size": size}

    def _note(self, manifests: Sequence[ManifestFile]) -> None:
        self._written.update(self._store.layout.manifest(m.file_name) for m in manifests)


def present_schema(store: TableStore) -> TableSchema:
    """The latest schema.

    Raises:
        TableNotFound: there is none any more.
    """
    schema = store.schemas.latest()
    if schema is None:
        raise TableNotFound(
            f"{store.layout.metadata_root} has no schema any more: the table was dropped or "
            "renamed while it was written to"
        )
    return schema


def _delta_entries(
    store: TableStore, change: Change, latest: Snapshot | None
) -> tuple[ManifestEntry, ...]:
    """The entries of the delta on top of ``latest``; deletes come first."""
    deleted = change.deleted
    kept: list[ManifestEntry] = []
    if change.replaces is not None:
        if latest is not None:
            live = live_entries(store, latest, partitions=change.replaces)
            deleted = tuple(_as_delete(entry) for entry in live.entries() if _is_ours(store, entry))
    elif deleted or _has_runs(change) or _has_vectors(change):
        touched = frozenset(entry.partition for entry in (*deleted, *change.added))
        touched |= frozenset(entry.partition for entry in change.index_added)
        current = live_entries(store, latest, partitions=touched).entries() if latest else []
        latest_id = latest.id if latest else 0
        _raise(check_deleted_files(deleted, current, snapshot_id=latest_id))
        gone = {entry.identity for entry in deleted}
        kept = [entry for entry in current if entry.identity not in gone]
        after = (*kept, *change.added)
        _raise(check_vector_files(change.index_added, after, snapshot_id=latest_id))
    if _has_runs(change) and store.schema.profile.has_keys:
        _raise(check_key_ranges(change.added, kept, partial(stored_key_bound, store)))
    return (*deleted, *change.added)


def _has_vectors(change: Change) -> bool:
    return any(entry.index_file.deletion_vectors for entry in change.index_added)


def _has_runs(change: Change) -> bool:
    return any(entry.file.level > 0 for entry in change.added)


def _raise(conflict: CommitConflict | None) -> None:
    if conflict is not None:
        raise conflict


def _is_ours(store: TableStore, entry: ManifestEntry) -> bool:
    # Spec: "Overwrite": postponed files are left alone unless the table is in postpone mode.
    return entry.bucket >= 0 or store.schema.profile.bucket_mode is BucketMode.POSTPONED


def _as_delete(entry: ManifestEntry) -> ManifestEntry:
    return ManifestEntry(
        kind=FileKind.DELETE,
        partition=entry.partition,
        bucket=entry.bucket,
        total_buckets=entry.total_buckets,
        file=entry.file,
    )


def _next_index(
    store: TableStore, before: tuple[IndexManifestEntry, ...], change: Change
) -> tuple[IndexManifestEntry, ...]:
    """The whole listing of index files after a change. Spec: "Index manifest"."""
    is_replaced = in_partitions(change.replaces if change.replaces is not None else frozenset())
    kept = [entry for entry in before if not is_replaced(entry.partition)]
    rewritten = [
        entry for entry in change.deleted if entry.file.file_name not in change.added_names
    ]
    _raise(check_rewritten_vectors(rewritten, change.index_deleted, kept))
    has_buckets = store.schema.profile.has_buckets
    _raise(check_indexes(change.index_added, change.index_deleted, kept, has_buckets=has_buckets))
    removed = {(e.partition, e.bucket, e.index_file.file_name) for e in change.index_deleted}
    added = {_slot(entry) for entry in change.index_added if _is_single(store, entry)}
    return (
        *(
            entry
            for entry in kept
            if (entry.partition, entry.bucket, entry.index_file.file_name) not in removed
            and _slot(entry) not in added
        ),
        *change.index_added,
    )


def _slot(entry: IndexManifestEntry) -> tuple[bytes, int, str]:
    return entry.partition, entry.bucket, entry.index_file.index_type


def _is_single(store: TableStore, entry: IndexManifestEntry) -> bool:
    """Whether a bucket has at most one index file of that type."""
    if entry.index_file.index_type == HASH_INDEX:
        return True
    is_vectors = entry.index_file.index_type == DELETION_VECTORS_INDEX
    return is_vectors and store.schema.profile.has_buckets
