"""Reads for tests: in one line, and what a read ought to give, in plain Python."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from pyroaring import BitMap, BitMap64

from append_tables import NAME, Row, latest_snapshot, open_catalog
from emberlake import SchemaChange
from emberlake.io import MemoryStorage
from emberlake.scan.files import live_entries, manifests_of
from emberlake.spec.deletion_vector import encode_deletion_vectors
from emberlake.spec.manifest import (
    DELETION_VECTORS_INDEX,
    FileKind,
    IndexFile,
    IndexManifestEntry,
    ManifestEntry,
)
from emberlake.spec.snapshot import BATCH_COMMIT_IDENTIFIER, CommitKind, Snapshot
from emberlake.table import Table


def read_rows(
    table: Table,
    where: Any = None,
    columns: Sequence[str] | None = None,
    limit: int | None = None,
) -> list[Row]:
    """The rows of a read, in the order in which they come."""
    builder = table.new_read_builder().with_filter(where)
    builder.with_projection(columns).with_limit(limit)
    rows: list[Row] = builder.new_read().to_arrow(builder.new_scan().plan().splits()).to_pylist()
    return rows


def planned_files(table: Table, where: Any = None) -> list[str]:
    """The names of the files that a read would open."""
    splits = table.new_read_builder().with_filter(where).new_scan().plan().splits()
    return [file.file_name for split in splits for file in split.files]


def alter(table: Table, *changes: SchemaChange) -> Table:
    """The table after a change of its schema."""
    catalog = open_catalog(table.store.storage)
    catalog.alter_table(NAME, list(changes))
    return catalog.get_table(NAME)


def live_files(table: Table) -> list[ManifestEntry]:
    entries = live_entries(table.store, latest_snapshot(table)).entries()
    return sorted(entries, key=lambda entry: entry.file.min_sequence_number)


def publish(
    table: Table, entries: Sequence[ManifestEntry] | None = None, **changes: Any
) -> Snapshot:
    """One more snapshot: the latest one with some values changed, or with these files alone."""
    store, latest = table.store, latest_snapshot(table)
    manifests = manifests_of(store, latest)
    if entries is not None:
        manifests = store.manifests.write_manifests(entries, store.partition_types)
    whole, whole_size = store.manifests.write_list(manifests)
    empty, empty_size = store.manifests.write_list(())
    made = replace(
        latest,
        id=latest.id + 1,
        base_manifest_list=whole,
        base_manifest_list_size=whole_size,
        delta_manifest_list=empty,
        delta_manifest_list_size=empty_size,
        delta_record_count=0,
        commit_identifier=min(latest.commit_identifier + 1, BATCH_COMMIT_IDENTIFIER),
        **changes,
    )
    assert store.snapshots.publish(made)
    store.snapshots.write_latest_hint(made.id)
    return made


def delete_rows(
    table: Table, positions: Mapping[str, Iterable[int]], *, bitmap64: bool = False
) -> Snapshot:
    """Mark rows, given by data file and position in it, as deleted by a new snapshot."""
    store = table.store
    kind = BitMap64 if bitmap64 else BitMap
    entries = []
    for number, entry in enumerate(live_files(table)):
        if entry.file.file_name in positions:
            vector = kind(positions[entry.file.file_name])
            raw, ranges = encode_deletion_vectors({entry.file.file_name: vector}, bitmap64=bitmap64)
            name = f"index-{latest_snapshot(table).id}-{number}"
            store.storage.put(store.layout.index(name), raw)
            file = IndexFile(
                index_type=DELETION_VECTORS_INDEX,
                file_name=name,
                file_size=len(raw),
                row_count=1,
                deletion_vectors=ranges,
            )
            entries.append(
                IndexManifestEntry(
                    kind=FileKind.ADD,
                    partition=entry.partition,
                    bucket=entry.bucket,
                    index_file=file,
                )
            )
    return publish(
        table,
        index_manifest=store.manifests.write_index(entries),
        commit_kind=CommitKind.OVERWRITE,
    )


class OpenFiles(MemoryStorage):
    """Storage that knows which files were opened to be read, and which are open now."""

    def __init__(self) -> None:
        super().__init__()
        self.opened: list[str] = []
        self.open_now: set[str] = set()

    def open_input(self, path: str) -> Any:
        opened = super().open_input(path)
        self.opened.append(path)
        self.open_now.add(path)
        return _Watched(opened, lambda: self.open_now.discard(path))


class _Watched:
    def __init__(self, inner: Any, on_exit: Callable[[], None]) -> None:
        self._inner = inner
        self._on_exit = on_exit

    def __enter__(self) -> Any:
        return self._inner.__enter__()

    def __exit__(self, *problem: object) -> Any:
        self._on_exit()
        return self._inner.__exit__(*problem)
