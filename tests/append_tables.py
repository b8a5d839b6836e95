"""Tables for tests: made in memory, written and read in one line, checked for wholeness."""

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from emberlake import Schema
from emberlake.base.env import Env
from emberlake.catalog import FileSystemCatalog
from emberlake.commit.change import CommitResult
from emberlake.io import MemoryStorage, Storage
from emberlake.scan.files import live_entries, manifests_of
from emberlake.spec.snapshot import Snapshot
from emberlake.table import Table
from emberlake.types import arrow_schema
from emberlake.wire import CommitMessage

WAREHOUSE = "/warehouse"
NAME = "db.t"
COLUMNS = pa.schema([("id", pa.int64()), ("day", pa.string())])

Row = dict[str, Any]
_WORLDS = itertools.count()


@dataclass
class FakeEnv:
    """A world of one's own: time stands still but for sleeping, ids count, chance is fixed."""

    time_ms: int = 1_750_000_000_000
    slept: list[float] = field(default_factory=list)
    prefix: str = field(default_factory=lambda: f"world{next(_WORLDS)}")
    _numbers: itertools.count = field(default_factory=itertools.count)

    def env(self) -> Env:
        return Env(
            now_ms=lambda: self.time_ms,
            new_id=lambda: f"{self.prefix}-{next(self._numbers)}",
            sleep_ms=self._sleep,
            chance=lambda: 0.5,
        )

    def _sleep(self, millis: float) -> None:
        self.slept.append(millis)
        self.time_ms += int(millis)


def create_table(
    storage: Storage | None = None,
    columns: pa.Schema = COLUMNS,
    *,
    partition_keys: Sequence[str] = (),
    options: Mapping[str, str] | None = None,
    env: Env | None = None,
) -> Table:
    """A new table; its storage is a fresh one in memory when none is given."""
    catalog = open_catalog(storage or MemoryStorage(), env)
    catalog.create_database("db", ignore_if_exists=True)
    schema = Schema.from_pyarrow_schema(
        columns, partition_keys=list(partition_keys), options=dict(options or {})
    )
    catalog.create_table(NAME, schema)
    return catalog.get_table(NAME)


def open_catalog(storage: Storage, env: Env | None = None) -> FileSystemCatalog:
    return FileSystemCatalog(storage, WAREHOUSE, env=env or FakeEnv().env())


def open_table(storage: Storage, env: Env | None = None) -> Table:
    """The table as another program sees it, perhaps through another storage."""
    return open_catalog(storage, env).get_table(NAME)


def copy_of(storage: MemoryStorage) -> MemoryStorage:
    """Another storage with the same files."""
    copy = MemoryStorage()
    for path in files_under(storage, ""):
        copy.put(path, storage.read(path))
    return copy


def rows_of(ids: Sequence[int], day: str = "mon") -> list[Row]:
    return [{"id": n, "day": day} for n in ids]


def as_arrow(rows: Sequence[Row], columns: pa.Schema = COLUMNS) -> pa.Table:
    return pa.Table.from_pylist(list(rows), schema=columns)


def prepare(
    table: Table, rows: Sequence[Row] | pa.Table, builder: Any = None
) -> list[CommitMessage]:
    """The messages of a write that is not committed."""
    builder = builder or table.new_batch_write_builder()
    with builder.new_write() as write:
        columns = arrow_schema(tuple(table.fields))
        write.write_arrow(rows if isinstance(rows, pa.Table) else as_arrow(rows, columns))
        return write.prepare_commit()


def append(table: Table, rows: Sequence[Row] | pa.Table) -> CommitResult:
    builder = table.new_batch_write_builder()
    return builder.new_commit().commit(prepare(table, rows, builder))


def overwrite(
    table: Table, rows: Sequence[Row], static_partition: Mapping[str, object] | None = None
) -> CommitResult:
    builder = table.new_batch_write_builder().overwrite(static_partition)
    return builder.new_commit().commit(prepare(table, rows, builder))


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
    found: set[str] = set()
    for info in storage.list(folder):
        found |= files_under(storage, info.path) if info.is_folder else {info.path}
    return found


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


def check_whole(table: Table) -> None:
    """Every snapshot's files exist, with the size that is told of them; its counts are right."""
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
