"""Tables for tests: made in one line, written in another, changed behind the engine's back."""

import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa
from pyroaring import BitMap, BitMap64

from emberlake import Schema, SchemaChange
from emberlake.base.env import SYSTEM_ENV, Env
from emberlake.catalog import FileSystemCatalog
from emberlake.commit.change import CommitResult
from emberlake.io import Storage
from emberlake.scan.files import manifests_of
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
from emberlake.types import AtomicType, DataField, arrow_schema
from emberlake.wire import CommitMessage, WriteMode
from places import new_storage
from table_reads import latest_snapshot, live_files

WAREHOUSE = "/warehouse"
NAME = "db.t"
COLUMNS = pa.schema([("id", pa.int64()), ("day", pa.string())])
PAIRS = {"id": "BIGINT", "v": "STRING"}
NUMBERED = pa.schema(
    [pa.field("id", pa.int64(), nullable=False), ("v", pa.string()), ("n", pa.int32())]
)

Row = dict[str, Any]
Rows = Sequence[Mapping[str, Any]] | Sequence[Sequence[Any]] | pa.Table
_WORLDS = itertools.count()


@dataclass
class FakeEnv:
    """A deterministic environment: time moves only by sleeping, ids count, randomness is fixed."""

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
    """A new table; its storage is a fresh one when none is given."""
    catalog = open_catalog(storage or new_storage(), env)
    catalog.create_database("db", ignore_if_exists=True)
    schema = Schema.from_pyarrow_schema(
        columns, partition_keys=list(partition_keys), options=dict(options or {})
    )
    catalog.create_table(NAME, schema)
    return catalog.get_table(NAME)


def create_key_table(
    columns: Mapping[str, str] | pa.Schema = PAIRS,
    primary_keys: Sequence[str] = ("id",),
    partition_keys: Sequence[str] = (),
    *,
    storage: Storage | None = None,
    env: Env | None = None,
    **options: str,
) -> Table:
    """A new table with a primary key, of one bucket unless options say otherwise."""
    catalog = open_catalog(storage or new_storage(), env)
    catalog.create_database("db", ignore_if_exists=True)
    given = {"bucket": "1", **options}
    if isinstance(columns, pa.Schema):
        keys = list(partition_keys), list(primary_keys)
        schema = Schema.from_pyarrow_schema(columns, *keys, given)
    else:
        fields = [DataField(i, n, AtomicType(t)) for i, (n, t) in enumerate(columns.items())]
        schema = Schema(fields, partition_keys, primary_keys, given)
    catalog.create_table(NAME, schema)
    return catalog.get_table(NAME)


def open_catalog(storage: Storage, env: Env | None = None) -> FileSystemCatalog:
    return FileSystemCatalog(storage, WAREHOUSE, env=env or FakeEnv().env())


def open_table(storage: Storage, env: Env | None = None) -> Table:
    """The table as another program sees it, perhaps through another storage."""
    return open_catalog(storage, env).get_table(NAME)


def copy_of(storage: Storage, env: Env = SYSTEM_ENV) -> Storage:
    """A new storage with the same files."""
    copy = new_storage(env)
    paths = [info.path for info in storage.list_all("")]
    copy.create_all(list(zip(paths, storage.read_many(paths), strict=True)))
    return copy


def rows_of(ids: Sequence[int], day: str = "mon") -> list[Row]:
    return [{"id": n, "day": day} for n in ids]


def as_arrow(rows: Sequence[Row], columns: pa.Schema = COLUMNS) -> pa.Table:
    return pa.Table.from_pylist(list(rows), schema=columns)


def numbered(ids: Sequence[int], value: str = "a", number: int | None = 0) -> list[Row]:
    """Rows of a table with the columns ``NUMBERED``."""
    return [{"id": n, "v": f"{value}{n}", "n": number} for n in ids]


def data_of(table: Table, rows: Rows) -> pa.Table:
    """Rows, given by name or in the order of the columns, with the types of the table."""
    if isinstance(rows, pa.Table):
        return rows
    schema = arrow_schema(tuple(table.fields))
    if rows and isinstance(rows[0], Mapping):
        return pa.Table.from_pylist(list(rows), schema)
    columns = zip(*rows, strict=True) if rows else [[] for _ in schema]
    arrays = [pa.array(c, f.type) for c, f in zip(columns, schema, strict=True)]
    return pa.Table.from_arrays(arrays, schema=schema)


def prepare(
    table: Table, rows: Rows, row_kind: str | None = None, builder: Any = None
) -> list[CommitMessage]:
    """The messages of a write that is not committed."""
    with (builder or table.new_batch_write_builder()).new_write() as write:
        write.write_arrow(data_of(table, rows), row_kind)
        return write.prepare_commit()


def append(table: Table, rows: Rows, row_kind: str | None = None) -> CommitResult:
    """Write rows and commit; each write makes a file of its own in a bucket."""
    builder = table.new_batch_write_builder()
    return builder.new_commit().commit(prepare(table, rows, row_kind, builder))


upsert = append  # one call, whatever the table does with it: a test says which it means


def overwrite(
    table: Table, rows: Rows, static_partition: Mapping[str, object] | None = None
) -> CommitResult:
    builder = table.new_batch_write_builder().overwrite(static_partition)
    return builder.new_commit().commit(prepare(table, rows, builder=builder))


def alter(table: Table, *changes: SchemaChange) -> Table:
    """The table after a change of its schema."""
    catalog = open_catalog(table.store.storage)
    catalog.alter_table(NAME, list(changes))
    return catalog.get_table(NAME)


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


def lift(table: Table, levels: Mapping[int, int]) -> None:
    """Say that files, by their place in order of writing, are on other levels than 0."""
    entries = live_files(table)
    lifted = [
        replace(entry, file=replace(entry.file, level=levels.get(place, entry.file.level)))
        for place, entry in enumerate(entries)
    ]
    publish(table, lifted)


def forget_deletes(table: Table) -> None:
    """Say that no file has deletes, as writers do that do not count them."""
    entries = live_files(table)
    publish(table, [replace(e, file=replace(e.file, delete_row_count=0)) for e in entries])


def compaction_of(table: Table, level: int = 5) -> CommitMessage:
    """A message that moves all files of bucket 0 to a level, as they are."""
    before = tuple(entry.file for entry in live_files(table))
    after = tuple(replace(file, level=level) for file in before)
    return CommitMessage(
        table=table.store.layout.metadata_root,
        mode=WriteMode.APPEND,
        partition=live_files(table)[0].partition,
        bucket=0,
        total_buckets=1,
        compact_before=before,
        compact_after=after,
    )
