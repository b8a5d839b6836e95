"""Write the manifests of a change that fits, and compose the snapshot that refers to them.

Nothing here can conflict: ``resolve`` has settled that before. The next attempt uses what this one
wrote, if it still fits.
"""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Final

from emberlake._version import __version__
from emberlake.commit.change import Change
from emberlake.commit.manifest_merge import Merged, merge_manifests
from emberlake.commit.resolve import Resolved
from emberlake.errors import StorageError
from emberlake.scan.files import manifests_of
from emberlake.spec.manifest import FileKind, IndexManifestEntry, ManifestEntry, ManifestFile
from emberlake.spec.snapshot import Snapshot
from emberlake.store.table_store import TableStore
from emberlake.store.vector_files import pack_vectors

WRITER: Final = "emberlake-"  # how the versions of our own writers begin
_WRITER_VERSION: Final = f"{WRITER}{__version__}"


@dataclass(frozen=True, kw_only=True)
class Request:
    """A change, and the name under which it is committed."""

    change: Change
    commit_user: str
    identifier: int
    properties: Mapping[str, str] = field(default_factory=dict)
    then: tuple[Change, ...] = ()  # the changes that follow; their files must be there too


@dataclass(frozen=True, slots=True)
class Draft:
    """A snapshot that is ready to be published."""

    snapshot: Snapshot
    entries: tuple[ManifestEntry, ...]  # its delta; deletes come first
    paths: frozenset[str]  # all manifests that it refers to, new and old, and new index files
    new_paths: tuple[str, ...]  # the ones that were written for it
    below: Snapshot | None  # the snapshot that it is built on
    new_vectors: tuple[IndexManifestEntry, ...] = ()  # index files that were written for it

    @property
    def base_uuid(self) -> str | None:
        return self.below.uuid if self.below else None


class Drafter:
    """Drafts the snapshot of a request, again for every attempt."""

    def __init__(self, store: TableStore, request: Request) -> None:
        self._store = store
        self._request = request
        self._new = store.manifests.new_files()  # of this attempt
        self._written: set[str] = set()  # paths; nothing refers to them until a draft is published
        self._merged: Merged | None = None
        self._delta: tuple[tuple[ManifestEntry, ...], tuple[ManifestFile, ...]] | None = None
        self._changelog: tuple[ManifestFile, ...] | None = None

    def draft(self, resolved: Resolved) -> Draft:
        """Write what the next snapshot refers to."""
        latest = resolved.latest
        self._new = self._store.manifests.new_files()
        base = self._base_manifests(latest)
        delta = self._delta_manifests(resolved.entries)
        changelog = self._changelog_manifests()
        new_vectors = self._write_vectors(resolved)
        lists: dict[str, Any] = {
            **self._write_list("base_manifest_list", base),
            **self._write_list("delta_manifest_list", delta),
            **(self._write_list("changelog_manifest_list", changelog) if changelog else {}),
            "index_manifest": self._index_manifest(resolved, new_vectors),
        }
        self._written |= self._new.paths
        self._new.flush()
        snapshot = self._compose(resolved, lists)
        names = [m.file_name for m in (*base, *delta, *changelog)]
        names += [name for name in lists.values() if isinstance(name, str)]
        paths = frozenset(map(self._store.layout.manifest, names))
        paths |= {
            self._store.index_file_path(e.partition, e.bucket, e.index_file) for e in new_vectors
        }
        new_paths = tuple(sorted(paths & self._written))
        return Draft(snapshot, resolved.entries, paths, new_paths, latest, new_vectors)

    def forget(self) -> None:
        """Write everything again in the next attempt."""
        self._merged = self._delta = self._changelog = None

    def discard(self, keep: Draft | None = None) -> None:
        """Delete everything that was written, except what a published draft refers to.

        Nothing refers to these files. One that cannot be deleted is garbage, not a problem, and
        must not hide how the commit ended.
        """
        written = self._written | self._new.paths
        unused = written - (keep.paths if keep else frozenset())
        if unused:
            with suppress(StorageError):
                self._store.storage.delete_all(sorted(unused))

    def _compose(self, resolved: Resolved, lists: dict[str, Any]) -> Snapshot:
        store, request, latest = self._store, self._request, resolved.latest
        schema_id = resolved.schema_id
        now = store.env.now_ms()
        delta_rows = sum(entry.kind.sign * entry.file.row_count for entry in resolved.entries)
        changelog_rows = sum(entry.file.row_count for entry in request.change.changelog)
        is_same_schema = latest is not None and latest.schema_id == schema_id
        inherited = latest.statistics if latest and is_same_schema else None
        return Snapshot(
            id=latest.id + 1 if latest else 1,
            uuid=store.env.new_id(),
            schema_id=schema_id,
            commit_user=request.commit_user,
            commit_identifier=request.identifier,
            commit_kind=request.change.kind,
            operation=request.change.operation,
            # Time travel searches by time, so time must not run backwards.
            time_millis=max(now, latest.time_millis) if latest else now,
            total_record_count=(latest.total_record_count if latest else 0) + delta_rows,
            delta_record_count=delta_rows,
            changelog_record_count=changelog_rows if request.change.changelog else None,
            watermark=latest.watermark if latest else None,
            statistics=request.change.statistics or inherited,
            properties=request.properties,
            next_row_id=resolved.next_row_id,
            writer_version=_WRITER_VERSION,
            **lists,
        )

    def _base_manifests(self, latest: Snapshot | None) -> tuple[ManifestFile, ...]:
        if latest is None:
            return ()
        manifests = manifests_of(self._store, latest)
        if self._merged is None:
            is_all = self._request.change.merges_manifests
            self._merged = merge_manifests(self._store, manifests, self._new, is_all=is_all)
        # The winner may have merged the same manifests. Then ours are not used, and deleted later.
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

    def _write_vectors(self, resolved: Resolved) -> tuple[IndexManifestEntry, ...]:
        """Write the deletion vectors that the change amounts to on top of the latest ones."""
        written = []
        for new in resolved.vectors:
            place = new.partition, new.bucket
            for file, path, raw in pack_vectors(self._store, *place, new.vectors):
                self._new.add(path, raw)
                written.append(
                    IndexManifestEntry(
                        kind=FileKind.ADD, partition=place[0], bucket=place[1], index_file=file
                    )
                )
        return tuple(written)

    def _index_manifest(
        self, resolved: Resolved, new_vectors: tuple[IndexManifestEntry, ...]
    ) -> str | None:
        inherited = resolved.latest.index_manifest if resolved.latest else None
        if resolved.index is None and not new_vectors:
            return inherited
        kept = resolved.index
        if kept is None:
            kept = self._store.manifests.read_index(inherited) if inherited else ()
        entries = (*kept, *new_vectors)
        return self._store.manifests.write_index(entries, self._new) if entries else None

    def _write_manifests(self, entries: Sequence[ManifestEntry]) -> tuple[ManifestFile, ...]:
        types = self._store.partition_types
        return self._store.manifests.write_manifests(entries, types, self._new)

    def _write_list(self, key: str, manifests: Sequence[ManifestFile]) -> dict[str, Any]:
        name, size = self._store.manifests.write_list(manifests, self._new)
        return {key: name, f"{key}_size": size}
