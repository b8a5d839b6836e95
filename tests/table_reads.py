"""Reads for tests: in one line, and what is on the storage, file by file."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pyarrow as pa

from emberlake.base.requests import settle
from emberlake.formats import format_of, open_reader
from emberlake.io import MemoryStorage, Storage
from emberlake.scan.files import live_entries, manifests_of
from emberlake.spec.key_value import KIND, SEQUENCE, RowKind, key_value_fields
from emberlake.spec.manifest import DataFile, IndexManifestEntry, ManifestEntry
from emberlake.spec.snapshot import Snapshot
from emberlake.table import Table

Row = dict[str, Any]
Record = tuple[Any, ...]


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


def read(table: Table, **options: object) -> list[Row]:
    """All rows, in order of their columns."""
    seen = table.copy({key.replace("_", "-"): value for key, value in options.items()})
    rows = read_arrow(seen).to_pylist()
    return sorted(rows, key=lambda row: [(v is None, str(type(v)), v) for v in row.values()])


def read_ids(table: Table) -> list[int]:
    return sorted(read_arrow(table).column("id").to_pylist())


def read_arrow(table: Table) -> pa.Table:
    """All rows, in the order in which they come."""
    builder = table.new_read_builder()
    return builder.new_read().to_arrow(builder.new_scan().plan().splits())


def files_under(storage: Storage, folder: str) -> set[str]:
    """The paths of all files below a folder."""
    settle()  # where requests take long, some are made later
    return {info.path for info in storage.list_all(folder)}


def data_files(table: Table) -> set[str]:
    root = table.table_path
    return {
        path
        for path in files_under(table.store.storage, root)
        if "/bucket-" in path.removeprefix(root)
    }


def manifest_files(table: Table) -> set[str]:
    return files_under(table.store.storage, f"{table.table_path}/manifest")


def referenced_manifests(table: Table) -> set[str]:
    """The manifests, lists and index manifests that any snapshot needs."""
    store = table.store
    names: set[str | None] = set()
    for snapshot_id in store.snapshots.list_ids():
        snapshot = store.snapshots.load(snapshot_id)
        names |= {
            snapshot.base_manifest_list,
            snapshot.delta_manifest_list,
            snapshot.changelog_manifest_list,
            snapshot.index_manifest,
        }
        names |= {manifest.file_name for manifest in manifests_of(store, snapshot)}
    return {store.layout.manifest(name) for name in names if name is not None}


def left_over(table: Table) -> set[str]:
    """Every file below the table's folder that is no metadata and in no snapshot."""
    store = table.store
    layout = store.layout
    known = referenced_manifests(table)
    for snapshot_id in store.snapshots.list_ids():
        snapshot = store.snapshots.load(snapshot_id)
        entries = [*live_entries(store, snapshot).entries()]
        if snapshot.changelog_manifest_list is not None:
            changelog = store.manifests.read_list(snapshot.changelog_manifest_list)
            known |= {layout.manifest(manifest.file_name) for manifest in changelog}
            entries += store.manifests.read_manifests(changelog).entries()
        known |= {store.data_file_path(e.partition, e.bucket, e.file) for e in entries}
        if snapshot.index_manifest is not None:
            for index in store.manifests.read_index(snapshot.index_manifest):
                known.add(store.index_file_path(index.partition, index.bucket, index.index_file))
    kept = (f"{layout.schema_folder}/", f"{layout.snapshot_folder}/")
    found = files_under(store.storage, layout.root)
    return {path for path in found if not path.startswith(kept)} - known


def check_whole(table: Table) -> None:
    """Every snapshot's files exist, with the size that its metadata has; its counts are right."""
    storage, store = table.store.storage, table.store
    assert referenced_manifests(table) <= manifest_files(table)
    for snapshot_id in store.snapshots.list_ids():
        snapshot = store.snapshots.load(snapshot_id)
        live = live_entries(store, snapshot).entries()
        assert snapshot.total_record_count == sum(entry.file.row_count for entry in live)
        for entry in live:
            path = store.data_file_path(entry.partition, entry.bucket, entry.file)
            assert storage.size(path) == entry.file.file_size


def latest_snapshot(table: Table) -> Snapshot:
    snapshot = table.latest_snapshot()
    assert snapshot is not None
    return snapshot


def live_files(table: Table) -> list[ManifestEntry]:
    """The files of the latest snapshot, in the order of their sequence numbers."""
    snapshot = table.store.snapshots.latest()
    found = live_entries(table.store, snapshot).entries() if snapshot else []
    return sorted(found, key=lambda entry: (entry.bucket, entry.file.min_sequence_number))


def records_in(table: Table, entry: ManifestEntry) -> list[Record]:
    """The records of a data file: values, sequence number, symbol of the kind."""
    return records_of(table, entry.partition, entry.bucket, entry.file)


def records_of(table: Table, partition: bytes, bucket: int, file: DataFile) -> list[Record]:
    store = table.store
    path = store.data_file_path(partition, bucket, file)
    fields = key_value_fields(store.schema)
    with open_reader(store.storage, path, fields, format_of(file.file_name)) as reader:
        rows = reader.read_table(fields).to_pylist()
    names = [f.name for f in store.schema.fields]
    return [(*(row[n] for n in names), row[SEQUENCE], RowKind(row[KIND]).symbol) for row in rows]


def all_records(table: Table) -> Iterator[Record]:
    """The records of all live files."""
    for entry in live_files(table):
        yield from records_in(table, entry)


def index_entries(table: Table) -> list[IndexManifestEntry]:
    snapshot = table.store.snapshots.latest()
    if snapshot is None or snapshot.index_manifest is None:
        return []
    return list(table.store.manifests.read_index(snapshot.index_manifest))


class OpenFiles(MemoryStorage):
    """Storage that knows which files were opened to be read, and which are open now."""

    def __init__(self) -> None:
        super().__init__()
        self.opened: list[str] = []
        self.open_now: set[str] = set()

    def open_input(self, path: str, size: int | None = None) -> Any:
        opened = super().open_input(path, size)
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
