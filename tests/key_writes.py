"""Primary-key tables for tests of writing: written in one line, looked at file by file."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa

from append_tables import NAME, open_catalog
from emberlake import Schema
from emberlake.base.env import Env
from emberlake.commit.change import CommitResult
from emberlake.formats import format_of, open_reader
from emberlake.io import MemoryStorage, Storage
from emberlake.scan.files import live_entries
from emberlake.spec.key_value import KIND, SEQUENCE, RowKind, key_value_fields
from emberlake.spec.manifest import DataFile, IndexManifestEntry, ManifestEntry
from emberlake.table import Table
from emberlake.types import AtomicType, DataField, arrow_schema
from emberlake.wire import CommitMessage, WriteMode

COLUMNS = {"id": "BIGINT", "v": "STRING"}

Row = tuple[Any, ...]


def create_key_table(
    columns: Mapping[str, str] = COLUMNS,
    primary_keys: Sequence[str] = ("id",),
    partition_keys: Sequence[str] = (),
    *,
    storage: Storage | None = None,
    env: Env | None = None,
    **options: str,
) -> Table:
    """A new table with a primary key, of one bucket unless options say otherwise."""
    catalog = open_catalog(storage or MemoryStorage(), env)
    catalog.create_database("db", ignore_if_exists=True)
    fields = [DataField(i, n, AtomicType(t)) for i, (n, t) in enumerate(columns.items())]
    given = {"bucket": "1", **options}
    catalog.create_table(NAME, Schema(fields, partition_keys, primary_keys, given))
    return catalog.get_table(NAME)


def data_of(table: Table, rows: Sequence[Sequence[Any]]) -> pa.Table:
    schema = arrow_schema(tuple(table.fields))
    columns = zip(*rows, strict=True) if rows else [[] for _ in schema]
    arrays = [pa.array(c, f.type) for c, f in zip(columns, schema, strict=True)]
    return pa.Table.from_arrays(arrays, schema=schema)


def prepare_rows(
    table: Table,
    rows: Sequence[Sequence[Any]] | pa.Table,
    row_kind: str | None = None,
    builder: Any = None,
) -> list[CommitMessage]:
    """The messages of a write that is not committed."""
    with (builder or table.new_batch_write_builder()).new_write() as write:
        data = rows if isinstance(rows, pa.Table) else data_of(table, rows)
        write.write_arrow(data, row_kind)
        return write.prepare_commit()


def upsert(
    table: Table, rows: Sequence[Sequence[Any]] | pa.Table, row_kind: str | None = None
) -> CommitResult:
    builder = table.new_batch_write_builder()
    return builder.new_commit().commit(prepare_rows(table, rows, row_kind, builder))


def live_files(table: Table) -> list[ManifestEntry]:
    """The files of the latest snapshot, in the order of their sequence numbers."""
    snapshot = table.store.snapshots.latest()
    found = live_entries(table.store, snapshot).entries() if snapshot else []
    return sorted(found, key=lambda entry: (entry.bucket, entry.file.max_sequence_number))


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


def records_in(table: Table, entry: ManifestEntry) -> list[Row]:
    """The records of a data file: values, sequence number, symbol of the kind."""
    return records_of(table, entry.partition, entry.bucket, entry.file)


def records_of(table: Table, partition: bytes, bucket: int, file: DataFile) -> list[Row]:
    store = table.store
    path = store.data_file_path(partition, bucket, file)
    fields = key_value_fields(store.schema)
    with open_reader(store.storage, path, fields, format_of(file.file_name)) as reader:
        rows = reader.read_table(fields).to_pylist()
    names = [f.name for f in store.schema.fields]
    return [(*(row[n] for n in names), row[SEQUENCE], RowKind(row[KIND]).symbol) for row in rows]


def all_records(table: Table) -> Iterator[Row]:
    """The records of all live files."""
    for entry in live_files(table):
        yield from records_in(table, entry)


def index_entries(table: Table) -> list[IndexManifestEntry]:
    snapshot = table.store.snapshots.latest()
    if snapshot is None or snapshot.index_manifest is None:
        return []
    return list(table.store.manifests.read_index(snapshot.index_manifest))
