"""The records of manifests, manifest lists and index manifests: Avro bytes to values and back.

Spec: "Manifest list, manifest, index manifest".
"""

from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from typing import Any, Final, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from emberlake.base.avro_blocks import Container, encode_bytes, encode_long
from emberlake.errors import CorruptFile, Unsupported
from emberlake.spec.manifest import (
    EMPTY_ROW,
    INDEX_MANIFEST_VERSION,
    MANIFEST_ENTRY_VERSION,
    MANIFEST_LIST_VERSION,
    DataFile,
    DeletionVectorRange,
    FileKind,
    GlobalIndex,
    IndexFile,
    IndexManifestEntry,
    ManifestEntry,
    ManifestFile,
    SimpleStats,
)
from emberlake.store.avro_container import decode_container, decode_rows, decode_together
from emberlake.store.avro_lanes import Bytes, Lanes, Positions
from emberlake.store.entries import ENTRY_SCHEMA, ManifestEntries
from emberlake.store.manifest_schemas import (
    INDEX_MANIFEST_COLUMNS,
    MANIFEST_COLUMNS,
    MANIFEST_LIST_COLUMNS,
    STATS_ROWS,
)

_T = TypeVar("_T")

_CACHED_LISTS: Final = 16

# Decoding ----------------------------------------------------------------------------------------


def decode_entries(raw: bytes, path: str) -> ManifestEntries:
    """The entries of a manifest file."""
    return _entries_of(decode_container(raw, path, MANIFEST_COLUMNS, find=find_entries), path)


def decode_small_manifests(files: Sequence[tuple[Container, str]]) -> ManifestEntries:
    """The entries of some manifest files with few entries."""
    try:
        return _decode_together(files)
    except (CorruptFile, Unsupported):
        # One by one, the failure says which file it is.
        return ManifestEntries.concat(_decode_together([file]) for file in files)


def _decode_together(files: Sequence[tuple[Container, str]]) -> ManifestEntries:
    containers, (path, *_) = zip(*files, strict=True)
    table = decode_together(containers, path, MANIFEST_COLUMNS, find=find_entries)
    return _entries_of(table, path)


def _entries_of(table: pa.Table, path: str) -> ManifestEntries:
    _check_version(_bounds(table.column("version")), MANIFEST_ENTRY_VERSION, path)
    for name in ("kind", "file_source"):
        _check_codes(_bounds(table.column(name)), name, path)
    arrays = [
        _or_empty_row(table.column(field.name))
        if field.name in STATS_ROWS
        else table.column(field.name)
        for field in ENTRY_SCHEMA
    ]
    return ManifestEntries(pa.Table.from_arrays(arrays, schema=ENTRY_SCHEMA))


def find_entries(data: Bytes, count: int, branch: int | None) -> Positions | None:
    """Guess where the entries of a manifest begin; None if there is no good guess.

    An entry begins with its version, its kind and its partition; all partitions have as many
    columns as the first one. Bytes inside an entry may look like that by chance, but are not
    followed by a file name that begins like the first one.
    """
    head = b"" if branch is None else encode_long(branch)
    head += encode_long(MANIFEST_ENTRY_VERSION)
    starts = np.flatnonzero(data == head[0])
    for offset, byte in enumerate(head[1:], 1):
        starts = starts[data[starts + offset] == byte]
    kinds = data[starts + len(head)]
    starts = starts[(kinds == _ADD) | (kinds == _DELETE)]
    lanes = Lanes(data, starts + len(head) + 1)
    sizes = lanes.longs()
    arity = data[lanes.at[0] : lanes.at[0] + 4]
    fits = (sizes >= len(arity)) & (lanes.at + sizes < len(data) - 64) & lanes.starts_with(arity)
    starts, lanes, sizes = starts[fits], lanes.select(fits), sizes[fits]
    if len(starts) > count:
        lanes.skip(sizes)
        for _ in ("bucket", "total buckets", "length of the name"):
            lanes.longs()
        starts = starts[lanes.starts_with(data[lanes.at[0] : lanes.at[0] + 4])]
    return starts if len(starts) == count else None


_ADD: Final = encode_long(FileKind.ADD)[0]
_DELETE: Final = encode_long(FileKind.DELETE)[0]


def decode_manifest_list(raw: bytes, path: str) -> tuple[ManifestFile, ...]:
    """The manifests that a manifest list names."""
    rows = decode_rows(raw, path, MANIFEST_LIST_COLUMNS)
    _check_version((row["version"] for row in rows), MANIFEST_LIST_VERSION, path)
    return tuple(
        ManifestFile(
            partition_stats=_decode_stats(
                row["partition_stats_min"],
                row["partition_stats_max"],
                row["partition_stats_null_counts"],
            ),
            **{name: row[name] for name in _PLAIN_LIST_COLUMNS},
        )
        for row in rows
    )


_PLAIN_LIST_COLUMNS: Final = tuple(
    column.name
    for column in MANIFEST_LIST_COLUMNS
    if column.path[0] not in ("_VERSION", "_PARTITION_STATS")
)


def decode_index_manifest(raw: bytes, path: str) -> tuple[IndexManifestEntry, ...]:
    """The index files that an index manifest names."""
    rows = decode_rows(raw, path, INDEX_MANIFEST_COLUMNS)
    _check_version((row["version"] for row in rows), INDEX_MANIFEST_VERSION, path)
    _check_codes((row["kind"] for row in rows), "kind", path)
    return tuple(
        IndexManifestEntry(
            kind=FileKind(row["kind"]),
            partition=row["partition"],
            bucket=row["bucket"],
            index_file=IndexFile(
                index_type=row["index_type"],
                file_name=row["file_name"],
                file_size=row["file_size"],
                row_count=row["row_count"],
                deletion_vectors=_decode_ranges(row["ranges"]),
                external_path=row["external_path"],
                global_index=_decode_global_index(row),
            ),
        )
        for row in rows
    )


def _decode_stats(
    least: bytes | None, greatest: bytes | None, null_counts: tuple[int | None, ...] | None
) -> SimpleStats:
    return SimpleStats(
        EMPTY_ROW if least is None else least,
        EMPTY_ROW if greatest is None else greatest,
        null_counts,
    )


def _decode_ranges(
    ranges: Sequence[dict[str, Any]] | None,
) -> tuple[DeletionVectorRange, ...] | None:
    if ranges is None:
        return None
    return tuple(
        DeletionVectorRange(r["f0"], r["f1"], r["f2"], r.get("_CARDINALITY")) for r in ranges
    )


def _decode_global_index(row: dict[str, Any]) -> GlobalIndex | None:
    if row["row_range_start"] is None:
        return None
    return GlobalIndex(
        row_range_start=row["row_range_start"],
        row_range_end=row["row_range_end"],
        index_field_id=row["index_field_id"],
        extra_field_ids=row["extra_field_ids"],
        index_meta=row["index_meta"],
        source_meta=row["source_meta"],
    )


def _or_empty_row(rows: pa.ChunkedArray) -> pa.ChunkedArray:
    return pc.fill_null(rows, pa.scalar(EMPTY_ROW, pa.large_binary())) if rows.null_count else rows


def _check_version(versions: Iterable[int], expected: int, path: str) -> None:
    for found in versions:
        if found != expected:
            raise Unsupported(
                f"{path} has records of version {found}; emberlake reads version {expected}"
            )


def _check_codes(codes: Iterable[int], name: str, path: str) -> None:
    for found in codes:
        if found not in (0, 1):
            raise CorruptFile(path, f"{name} is {found}, but must be 0 or 1")


def _bounds(numbers: pa.ChunkedArray) -> tuple[int, ...]:
    """The smallest and the largest number; nothing if there are none."""
    bounds = pc.min_max(numbers).as_py()
    return () if bounds["min"] is None else (bounds["min"], bounds["max"])


# Encoding ----------------------------------------------------------------------------------------
#
# By hand: commits write few records but often, and the format is simple. An array is a count, that
# many items and a zero; a union is the number of the branch and its value.

_NULL: Final = encode_long(0)
_VALUE: Final = encode_long(1)
_END: Final = encode_long(0)


def encode_entry(entry: ManifestEntry) -> bytes:
    """The bytes of one record of a manifest."""
    return b"".join((
        encode_long(MANIFEST_ENTRY_VERSION),
        encode_long(entry.kind),
        encode_bytes(entry.partition),
        encode_long(entry.bucket),
        encode_long(entry.total_buckets),
        _encode_file(entry.file),
    ))  # fmt: skip


def _encode_file(file: DataFile) -> bytes:
    return b"".join((
        encode_bytes(file.file_name.encode()),
        encode_long(file.file_size),
        encode_long(file.row_count),
        encode_bytes(file.min_key),
        encode_bytes(file.max_key),
        _encode_stats(file.key_stats),
        _encode_stats(file.value_stats),
        encode_long(file.min_sequence_number),
        encode_long(file.max_sequence_number),
        encode_long(file.schema_id),
        encode_long(file.level),
        _encode_texts(file.extra_files),
        _encode_nullable(file.creation_time, encode_long),
        _encode_nullable(file.delete_row_count, encode_long),
        _encode_nullable(file.embedded_file_index, encode_bytes),
        _encode_nullable(file.file_source, encode_long),
        _encode_nullable(file.value_stats_cols, _encode_texts),
        _encode_nullable(file.external_path, _encode_text),
        _encode_nullable(file.first_row_id, encode_long),
        _encode_nullable(file.write_cols, _encode_texts),
        _encode_nullable(file.write_cols_sequences, _encode_longs),
    ))  # fmt: skip


def encode_manifest_file(manifest: ManifestFile) -> bytes:
    """The bytes of one record of a manifest list."""
    return b"".join((
        encode_long(MANIFEST_LIST_VERSION),
        _encode_text(manifest.file_name),
        encode_long(manifest.file_size),
        encode_long(manifest.num_added_files),
        encode_long(manifest.num_deleted_files),
        _encode_stats(manifest.partition_stats),
        encode_long(manifest.schema_id),
        _encode_nullable(manifest.min_bucket, encode_long),
        _encode_nullable(manifest.max_bucket, encode_long),
        _encode_nullable(manifest.min_level, encode_long),
        _encode_nullable(manifest.max_level, encode_long),
        _encode_nullable(manifest.min_row_id, encode_long),
        _encode_nullable(manifest.max_row_id, encode_long),
    ))  # fmt: skip


def encode_index_entry(entry: IndexManifestEntry) -> bytes:
    """The bytes of one record of an index manifest."""
    file = entry.index_file
    return b"".join((
        encode_long(INDEX_MANIFEST_VERSION),
        encode_long(entry.kind),
        encode_bytes(entry.partition),
        encode_long(entry.bucket),
        _encode_text(file.index_type),
        _encode_text(file.file_name),
        encode_long(file.file_size),
        encode_long(file.row_count),
        _encode_nullable(file.deletion_vectors, _encode_ranges),
        _encode_nullable(file.external_path, _encode_text),
        _encode_nullable(file.global_index, _encode_global_index),
    ))  # fmt: skip


def _encode_stats(stats: SimpleStats) -> bytes:
    return b"".join((
        encode_bytes(stats.min_values),
        encode_bytes(stats.max_values),
        _encode_nullable(stats.null_counts, _encode_null_counts),
    ))  # fmt: skip


# The same lists of counts and column names occur in file after file. Few are cached: the list of a
# table with 500 columns takes 20 kB.
@lru_cache(maxsize=_CACHED_LISTS)
def _encode_null_counts(counts: tuple[int | None, ...]) -> bytes:
    return _encode_array([_encode_nullable(count, encode_long) for count in counts])


def _encode_ranges(ranges: Sequence[DeletionVectorRange]) -> bytes:
    return _encode_array([_VALUE + _encode_range(item) for item in ranges])


def _encode_range(item: DeletionVectorRange) -> bytes:
    return b"".join((
        _encode_text(item.data_file_name),
        encode_long(item.offset),
        encode_long(item.length),
        _encode_nullable(item.cardinality, encode_long),
    ))  # fmt: skip


def _encode_global_index(index: GlobalIndex) -> bytes:
    return b"".join((
        encode_long(index.row_range_start),
        encode_long(index.row_range_end),
        encode_long(index.index_field_id),
        _encode_nullable(index.extra_field_ids, _encode_longs),
        _encode_nullable(index.index_meta, encode_bytes),
        _encode_nullable(index.source_meta, encode_bytes),
    ))  # fmt: skip


def _encode_text(text: str) -> bytes:
    return encode_bytes(text.encode())


@lru_cache(maxsize=_CACHED_LISTS)
def _encode_texts(texts: tuple[str, ...]) -> bytes:
    return _encode_array([_encode_text(text) for text in texts])


def _encode_longs(numbers: Sequence[int]) -> bytes:
    return _encode_array([encode_long(number) for number in numbers])


def _encode_array(items: Sequence[bytes]) -> bytes:
    return b"".join((encode_long(len(items)), *items, _END)) if items else _END


def _encode_nullable(value: _T | None, encode: Callable[[_T], bytes]) -> bytes:
    return _NULL if value is None else _VALUE + encode(value)
