"""Data files of primary-key tables: their columns, and their entries in a manifest.

Spec: "Physical columns and order", "What a writer does", "Statistics". The rows of one file are
sorted by key, and no key is in it twice. Callers make sure of that.
"""

from typing import Final

import numpy as np
import pyarrow as pa

from emberlake.base.option_texts import MEBIBYTE
from emberlake.merge.order import key_at
from emberlake.merge.rows import retracts_of
from emberlake.options import (
    CHANGELOG_FILE_COMPRESSION,
    CHANGELOG_FILE_FORMAT,
    CHANGELOG_FILE_PREFIX,
    CHANGELOG_FILE_STATS,
    FILE_COMPRESSION,
    FILE_FORMAT_PER_LEVEL,
    STATS_DENSE_STORE,
    STATS_MODE,
    TableOptions,
)
from emberlake.spec.binary_row import encode_row
from emberlake.spec.key_value import KEY_PREFIX, SEQUENCE, key_fields, key_value_fields
from emberlake.spec.manifest import DataFile, FileSource
from emberlake.spec.schema import TableSchema
from emberlake.spec.stats import (
    KEY_STATS_MODE,
    NONE,
    StatsCollector,
    StatsMode,
    column_stats_modes,
)
from emberlake.spec.values import Value
from emberlake.store.table_store import TableStore
from emberlake.types import arrow_schema
from emberlake.write.rolling import FileLimits, FileNames, RollingFiles

_KEY_TARGET_BYTES: Final = 128 * MEBIBYTE


def target_bytes(options: TableOptions) -> int:
    """The size at which a file ends."""
    return FileLimits.of(options, target_bytes=_KEY_TARGET_BYTES).file_bytes


def open_key_files(
    store: TableStore,
    partition: bytes,
    bucket: int,
    *,
    level: int = 0,
    source: FileSource = FileSource.APPEND,
    names: FileNames | None = None,
    has_stats: bool = True,
) -> RollingFiles:
    """Rolling files for rows of ``physical_rows`` in one bucket."""
    return RollingFiles(
        store,
        store.new_files(partition, bucket),
        key_value_fields(store.schema),
        FileLimits.of(store.options, target_bytes=_KEY_TARGET_BYTES),
        names or _names_at(store, level),
        lambda: _KeyRecord(store, level, source, has_stats=has_stats),
    )


def _names_at(store: TableStore, level: int) -> FileNames:
    file_format = store.options.value(FILE_FORMAT_PER_LEVEL).get(level)
    return FileNames.of(store.options, store.env.new_id(), file_format=file_format)


def physical_rows(schema: TableSchema, rows: pa.Table) -> pa.Table:
    """Records with the columns of a data file, in the order of the file."""
    fields = key_value_fields(schema)
    names = set(schema.field_names)
    columns = [
        rows.column(f.name if f.name in names else f.name.removeprefix(KEY_PREFIX)) for f in fields
    ]
    return pa.Table.from_arrays(columns, schema=arrow_schema(fields))


def open_changelog_files(
    store: TableStore, partition: bytes, bucket: int, *, level: int = 0
) -> RollingFiles:
    """Rolling files for changes in one bucket: records as they came, or what compaction found."""
    options = store.options
    own = {
        FILE_COMPRESSION.key: options.value(CHANGELOG_FILE_COMPRESSION),
        STATS_MODE.key: options.value(CHANGELOG_FILE_STATS),
    }
    given = {key: value for key, value in own.items() if value is not None}
    store = store.with_schema(store.schema.with_options(given)) if given else store
    by_level = options.value(FILE_FORMAT_PER_LEVEL).get(level)
    names = FileNames.of(
        store.options,
        store.env.new_id(),
        prefix=options.value(CHANGELOG_FILE_PREFIX),
        file_format=options.value(CHANGELOG_FILE_FORMAT) or by_level,
    )
    return open_key_files(store, partition, bucket, level=level, names=names)


class _KeyRecord:
    """Keys, sequence numbers, retracts and statistics of one file."""

    def __init__(
        self, store: TableStore, level: int, source: FileSource, *, has_stats: bool
    ) -> None:
        self._store = store
        self._level = level
        self._source = source
        self._keys = key_fields(store.schema)
        self._first_key: tuple[Value, ...] | None = None
        self._last_key: tuple[Value, ...] = ()
        self._min_sequence = 2**63 - 1
        self._max_sequence = -1
        self._retracts = 0
        self._key_stats = StatsCollector(self._keys, [KEY_STATS_MODE] * len(self._keys))
        modes = _stats_modes(store.schema) if has_stats else [NONE] * len(store.schema.fields)
        self._value_stats = StatsCollector(store.schema.fields, modes)

    def update(self, rows: pa.Table) -> None:
        if self._first_key is None:
            self._first_key = key_at(rows, self._keys, 0)
        self._last_key = key_at(rows, self._keys, rows.num_rows - 1)
        sequences = rows.column(SEQUENCE).to_numpy()
        self._min_sequence = min(self._min_sequence, int(sequences.min()))
        self._max_sequence = max(self._max_sequence, int(sequences.max()))
        self._retracts += int(np.count_nonzero(retracts_of(rows)))
        self._key_stats.update(rows)
        self._value_stats.update(rows)

    def describe(self, name: str, file_size: int, row_count: int) -> DataFile:
        store = self._store
        types = [f.type for f in self._keys]
        key_stats, _ = self._key_stats.finish(dense=False)
        stats, stats_columns = self._value_stats.finish(
            dense=store.options.value(STATS_DENSE_STORE)
        )
        return DataFile(
            file_name=name,
            file_size=file_size,
            row_count=row_count,
            min_key=encode_row(types, self._first_key or ()),
            max_key=encode_row(types, self._last_key),
            key_stats=key_stats,
            value_stats=stats,
            value_stats_cols=stats_columns,
            min_sequence_number=self._min_sequence,
            max_sequence_number=self._max_sequence,
            schema_id=store.schema.id,
            level=self._level,
            creation_time=store.env.local_now_ms(),
            delete_row_count=self._retracts,
            file_source=self._source,
        )


def _stats_modes(schema: TableSchema) -> tuple[StatsMode, ...]:
    modes = column_stats_modes(schema.fields, schema.options)
    if len(key_value_fields(schema)) > len(schema.fields) + 2:
        return modes
    # Thin files have no other statistics of their keys.
    keys = frozenset(schema.trimmed_primary_keys)
    return tuple(
        KEY_STATS_MODE if f.name in keys else mode
        for f, mode in zip(schema.fields, modes, strict=True)
    )
