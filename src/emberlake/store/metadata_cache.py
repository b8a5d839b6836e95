"""This process's cache of manifests, manifest lists, index manifests and schemas.

Such files are written once and never changed, so a decoded file can be used again. A rollback may
replace a snapshot, so its key includes the mark that a listing has for its bytes. There is one
bound for all tables of the process, since there is one memory: ``EMBERLAKE_METADATA_CACHE``.

A manifest with few entries is kept encoded, as Avro records without their schema: to decode many
such manifests together takes less time than to join as many tables. With more entries a manifest is
kept as one Arrow buffer: as a table of 29 columns it would take 37 kB more, and a buffer takes 15
microseconds to become a table again. A large manifest is kept as it was decoded: its columns cost
little compared to the data, and a buffer would be a copy of it all.
"""

from collections.abc import Sequence
from typing import Final

import pyarrow as pa

from emberlake.base.avro_blocks import Container
from emberlake.io.cache import CACHE, Key, file_key
from emberlake.io.storage import Storage
from emberlake.spec.manifest import IndexManifestEntry, ManifestFile, SimpleStats
from emberlake.spec.schema import TableSchema, decode_table_schema
from emberlake.spec.snapshot import Snapshot
from emberlake.store.entries import ENTRY_SCHEMA, ManifestEntries

_FEW_ENTRIES: Final = 20
_LARGE_MANIFEST: Final = 500  # entries

# The memory that values take besides their texts and bytes, measured on 64-bit CPython 3.11.
_RECORDS_BYTES: Final = 250  # for each block
_BUFFER_BYTES: Final = 200
_TABLE_BYTES: Final = 40_000
_MANIFEST_FILE_BYTES: Final = 420
_INDEX_ENTRY_BYTES: Final = 390
_VECTOR_RANGE_BYTES: Final = 230
_NULL_COUNT_BYTES: Final = 20
_SCHEMA_BYTES_PER_BYTE: Final = 5  # of its JSON
_SNAPSHOT_BYTES_PER_BYTE: Final = 4
_LATEST_BYTES: Final = 4_000
_LATEST: Final = "latest"  # beside a path, in a key

# The schemas of manifests that are kept encoded, which no entry counts. Every writer has one.
_SHARED_SCHEMAS: Final[set[str]] = set()
_MOST_SCHEMAS: Final = 16
_SCHEMA_CHARACTERS: Final = 64 * 1024


def listed_key(storage: Storage, path: str, etag: str) -> Key:
    """The cache key of a file that had this etag in a listing, whatever it holds by now."""
    return (*file_key(storage, path), etag)


def find_manifest(key: Key) -> ManifestEntries | Container | None:
    """The entries of a manifest, decoded or encoded, if they are cached."""
    found: ManifestEntries | Container | pa.Buffer | None = CACHE.find(key)
    if not isinstance(found, pa.Buffer):
        return found
    batch = pa.ipc.read_record_batch(found, ENTRY_SCHEMA)
    return ManifestEntries(pa.Table.from_batches([batch]))


def keep_entries(key: Key, entries: ManifestEntries, records: Container | None = None) -> None:
    """Cache the entries of a manifest, of which the records may be at hand."""
    if records is not None and len(entries) <= _FEW_ENTRIES and _is_shared(records.schema):
        CACHE.keep(key, records, records.size + _RECORDS_BYTES * max(len(records.blocks), 1))
        return
    if len(entries) >= _LARGE_MANIFEST or not len(entries):
        columns = [entries.column(name) for name in ENTRY_SCHEMA.names]
        CACHE.keep(key, entries, sum(column.nbytes for column in columns) + _TABLE_BYTES)
        return
    (batch,) = entries.table.combine_chunks().to_batches()
    buffer = batch.serialize()
    CACHE.keep(key, buffer, buffer.size + _BUFFER_BYTES)


def _is_shared(schema: str) -> bool:
    """Whether a schema is one of a few that are in memory once, however many files have it."""
    if schema in _SHARED_SCHEMAS:
        return True
    if len(_SHARED_SCHEMAS) >= _MOST_SCHEMAS or len(schema) > _SCHEMA_CHARACTERS:
        return False
    _SHARED_SCHEMAS.add(schema)
    return True


def keep_manifest_list(key: Key, manifests: Sequence[ManifestFile]) -> None:
    """Cache the manifests that a manifest list names."""
    CACHE.keep(key, manifests, sum(map(_manifest_file_bytes, manifests)))


def keep_index_manifest(key: Key, entries: Sequence[IndexManifestEntry]) -> None:
    """Cache the index files that an index manifest names."""
    CACHE.keep(key, entries, sum(map(_index_entry_bytes, entries)))


def keep_snapshot(key: Key, snapshot: Snapshot, raw_bytes: int) -> None:
    """Remember a snapshot, whose file has ``raw_bytes`` bytes."""
    CACHE.keep(key, snapshot, _SNAPSHOT_BYTES_PER_BYTE * raw_bytes)


def keep_schema(key: Key, schema: TableSchema, raw_bytes: int) -> None:
    """Remember a schema, whose file has ``raw_bytes`` bytes."""
    CACHE.keep(key, schema, _SCHEMA_BYTES_PER_BYTE * raw_bytes)


def listed_schema(storage: Storage, path: str, etag: str | None) -> TableSchema | None:
    """The schema in a file that had this mark in a listing, if it is remembered."""
    found: TableSchema | None = CACHE.find(listed_key(storage, path, etag)) if etag else None
    return found


def note_latest(key: Key, snapshot: Snapshot) -> None:
    """Remember which snapshot was the latest, for callers that work ahead with a guess."""
    texts = sum(len(name) + len(value) for name, value in snapshot.properties.items())
    CACHE.replace((*key, _LATEST), snapshot, _LATEST_BYTES + texts)


def last_latest(key: Key) -> Snapshot | None:
    """The snapshot that was the latest when somebody last asked; by now it may be another."""
    found: Snapshot | None = CACHE.find((*key, _LATEST))
    return found


def decoded_schema(raw: bytes, path: str) -> TableSchema:
    """The schema in a schema file; every commit reads the latest one, which rarely changes.

    A table may have been dropped and created again, so the bytes of the file are the key.
    """
    key = (raw, path)
    schema: TableSchema | None = CACHE.find(key)
    if schema is None:
        schema = decode_table_schema(raw, path)
        CACHE.keep(key, schema, _SCHEMA_BYTES_PER_BYTE * len(raw))
    return schema


def _manifest_file_bytes(manifest: ManifestFile) -> int:
    return _MANIFEST_FILE_BYTES + len(manifest.file_name) + _stats_bytes(manifest.partition_stats)


def _stats_bytes(stats: SimpleStats) -> int:
    counts = _NULL_COUNT_BYTES * len(stats.null_counts or ())
    return len(stats.min_values) + len(stats.max_values) + counts


def _index_entry_bytes(entry: IndexManifestEntry) -> int:
    file = entry.index_file
    texts = len(file.file_name) + len(file.external_path or "") + len(entry.partition)
    ranges = sum(_VECTOR_RANGE_BYTES + len(r.data_file_name) for r in file.deletion_vectors or ())
    index = file.global_index
    metas = len(index.index_meta or b"") + len(index.source_meta or b"") if index else 0
    return _INDEX_ENTRY_BYTES + texts + ranges + metas
