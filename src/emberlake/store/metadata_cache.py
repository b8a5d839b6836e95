"""This process's cache of manifests, manifest lists, index manifests and schemas.

Such files are written once and never changed, so a decoded file can be used again. There is one
bound for all tables of the process, since there is one memory: ``EMBERLAKE_METADATA_CACHE``.

The entries of a small manifest are kept as one Arrow buffer. As a table of 29 columns, a single
entry takes 37 kB, but only 0.3 kB of that is data. As a buffer it takes 3 kB, and 15 microseconds
to become a table again, a fortieth of the time that decoding takes. A large manifest is kept as it
was decoded: its columns cost little compared to the data, and a buffer would be a copy of it all.
"""

import os
import weakref
from collections.abc import Mapping, Sequence
from typing import Final

import pyarrow as pa

from emberlake.base.byte_cache import ByteCache
from emberlake.errors import InvalidOption
from emberlake.io.routed import own_storage
from emberlake.io.storage import Storage
from emberlake.options import MEBIBYTE, parse_size
from emberlake.spec.manifest import IndexManifestEntry, ManifestFile, SimpleStats
from emberlake.spec.schema import TableSchema, decode_table_schema
from emberlake.store.entries import ENTRY_SCHEMA, ManifestEntries

ENV_LIMIT: Final = "EMBERLAKE_METADATA_CACHE"
DEFAULT_LIMIT: Final = 64 * MEBIBYTE
_LARGE_MANIFEST: Final = 500  # entries

# The memory that values take besides their texts and bytes, measured on 64-bit CPython 3.11.
_BUFFER_BYTES: Final = 200
_TABLE_BYTES: Final = 40_000
_MANIFEST_FILE_BYTES: Final = 420
_INDEX_ENTRY_BYTES: Final = 390
_VECTOR_RANGE_BYTES: Final = 230
_NULL_COUNT_BYTES: Final = 20
_SCHEMA_BYTES_PER_BYTE: Final = 5  # of its JSON


def cache_limit(environ: Mapping[str, str] = os.environ) -> int:
    """How many bytes of metadata to cache.

    Raises:
        InvalidOption: the environment variable is not a size.
    """
    text = environ.get(ENV_LIMIT)
    if not text:
        return DEFAULT_LIMIT
    try:
        return parse_size(text)
    except ValueError as error:
        raise InvalidOption(
            f"the environment variable {ENV_LIMIT} is {text!r}: {error}; 0 turns the cache off"
        ) from error


CACHE: Final = ByteCache(cache_limit)

Key = tuple[object, ...]


def file_key(storage: Storage, path: str) -> Key:
    """The cache key of a metadata file.

    A storage that equals only itself, such as one in memory, may hold all of its files: a cached
    file must not keep it alive.
    """
    storage = own_storage(storage)
    equals_only_itself = type(storage).__hash__ is object.__hash__
    return (weakref.ref(storage) if equals_only_itself else storage, path)


def find_entries(key: Key) -> ManifestEntries | None:
    """The entries of a manifest, if they are cached."""
    found: ManifestEntries | pa.Buffer | None = CACHE.find(key)
    if found is None or isinstance(found, ManifestEntries):
        return found
    batch = pa.ipc.read_record_batch(found, ENTRY_SCHEMA)
    return ManifestEntries(pa.Table.from_batches([batch]))


def keep_entries(key: Key, entries: ManifestEntries) -> None:
    """Cache the entries of a manifest."""
    columns = [entries.column(name) for name in ENTRY_SCHEMA.names]
    if len(entries) >= _LARGE_MANIFEST:
        CACHE.keep(key, entries, sum(column.nbytes for column in columns) + _TABLE_BYTES)
        return
    buffer = pa.RecordBatch.from_arrays(columns, schema=ENTRY_SCHEMA).serialize()
    CACHE.keep(key, buffer, buffer.size + _BUFFER_BYTES)


def keep_manifest_list(key: Key, manifests: Sequence[ManifestFile]) -> None:
    """Cache the manifests that a manifest list names."""
    CACHE.keep(key, manifests, sum(map(_manifest_file_bytes, manifests)))


def keep_index_manifest(key: Key, entries: Sequence[IndexManifestEntry]) -> None:
    """Cache the index files that an index manifest names."""
    CACHE.keep(key, entries, sum(map(_index_entry_bytes, entries)))


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
