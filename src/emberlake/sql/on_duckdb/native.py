"""Files that DuckDB reads by itself, where its own Parquet reader gives exactly our rows.

It decodes row groups in all threads and skips more of them, by filters that it derives while a join
runs. It knows nothing of field ids, deletion vectors, keys or partitions, so it gets only plain
files: Parquet on the local disk, of a table without keys and partitions, written with the columns
that the table has in this snapshot. Everything is decided from metadata.
"""

from collections.abc import Iterable, Sequence
from typing import Final

from emberlake.io.registry import scheme_of
from emberlake.options import DATA_FILE_PREFIX, VERIFY_PAGES
from emberlake.scan.files import manifests_of
from emberlake.scan.plan import plan_target
from emberlake.scan.splits import DataSplit
from emberlake.spec.key_value import key_value_fields
from emberlake.spec.manifest import DataFile
from emberlake.spec.snapshot import Snapshot
from emberlake.sql.names import text_literal
from emberlake.sql.on_duckdb.pinned import PinnedTable
from emberlake.sql.on_duckdb.types import duckdb_type, quoted
from emberlake.store.table_store import TableStore
from emberlake.types import AtomicType, DataField, TypeRoot

# Virtual columns of DuckDB's scans of Parquet files; a column of a file hides one of the same name.
FILE: Final = "file_index"
POSITION: Final = "file_row_number"
# True for every row. A condition needs both virtual columns: one that DuckDB hands to the scan,
# because it needs only one, makes ORDER BY ... LIMIT fail.
EVERYWHERE: Final = f"{POSITION} >= -CAST({FILE} AS BIGINT)"
_FLOATS: Final = (TypeRoot.FLOAT, TypeRoot.DOUBLE)

_MAX_FILES: Final = 256
_PATTERN_CHARACTERS: Final = frozenset("*?[]{}\\")
_PLAIN: Final = frozenset(
    {
        TypeRoot.BOOLEAN,
        TypeRoot.TINYINT,
        TypeRoot.SMALLINT,
        TypeRoot.INT,
        TypeRoot.BIGINT,
        TypeRoot.FLOAT,
        TypeRoot.DOUBLE,
        TypeRoot.DECIMAL,
        TypeRoot.VARCHAR,
        TypeRoot.VARBINARY,
        TypeRoot.DATE,
        TypeRoot.TIMESTAMP,
        TypeRoot.TIMESTAMP_LTZ,
    }
)


def native_query(pinned: PinnedTable) -> str | None:
    """A query of DuckDB that reads the files of a pinned table; None if it may not."""
    store, target = pinned.store, pinned.target
    if not isinstance(target, Snapshot) or not is_plain_table(store, pinned.fields):
        return None
    if not has_few_files(store, target):
        return None
    paths: list[str] = []
    row_count = 0
    for split in plan_target(store, target, None, None).splits:
        if not _is_plain_split(split):
            return None
        folder = store.bucket_folder(split.partition, split.bucket)
        for file in split.files:
            if not is_plain_file(store, file):
                return None
            paths.append(f"{folder}/{file.file_name}")
            row_count += file.row_count
    if not paths or not are_plain_paths(paths):
        return None
    return rows_query(pinned.fields, listed(paths, row_count))


def has_few_files(store: TableStore, snapshot: Snapshot) -> bool:
    """Whether a snapshot has so few files that their footers skip as fast as manifests."""
    manifests = manifests_of(store, snapshot)
    return sum(m.num_added_files - m.num_deleted_files for m in manifests) <= _MAX_FILES


def are_plain_paths(paths: Iterable[str]) -> bool:
    """Whether DuckDB understands paths as they are meant."""
    return not any(map(_is_odd, paths))


def listed(paths: Iterable[str], row_count: int) -> str:
    """Files as a source of rows.

    Args:
        paths: The files.
        row_count: How many rows DuckDB expects when it orders joins; it only knows the first file.
    """
    texts = ", ".join(map(text_literal, paths))
    # NaN is above all numbers for DuckDB, but statistics of files leave it out.
    options = f"explicit_cardinality = {row_count}, can_have_nan = true"
    return f"read_parquet([{texts}], hive_partitioning = false, {options})"


def rows_query(fields: Sequence[DataField], source: str, *conditions: str) -> str:
    """A query of the columns of a table, each of its type."""
    columns = ", ".join(
        f"CAST({quoted(f.name)} AS {duckdb_type(f.type)}) AS {quoted(f.name)}" for f in fields
    )
    if any(map(_is_float, fields)):
        # Without a condition, DuckDB takes the largest and the smallest value of a column from
        # statistics, which know neither NaN nor the sign of zero.
        conditions = (*conditions, EVERYWHERE)
    where = f" WHERE {' AND '.join(conditions)}" if conditions else ""
    return f"SELECT {columns} FROM {source}{where}"


def is_plain_file(store: TableStore, file: DataFile) -> bool:
    """Whether a file was written by us with the columns that the table has now."""
    prefix = store.options.value(DATA_FILE_PREFIX)
    is_ours = file.file_name.startswith(prefix) and file.file_name.endswith(".parquet")
    return is_ours and file.schema_id == store.schema.id and not file.external_path


def is_plain_table(
    store: TableStore, fields: tuple[DataField, ...], *, with_keys: bool = False
) -> bool:
    """Whether DuckDB has a type for every column, and rows need no other work."""
    profile = store.schema.profile
    return (
        store.storage.traits.spark_reads  # not if a storage observes reads, as in tests
        and not store.is_guarded
        and profile.has_keys == with_keys
        and not (profile.evolves_data or store.schema.partition_keys)
        and fields == store.schema.fields
        and all(map(_is_plain_field, fields))
        and _has_unique_names(key_value_fields(store.schema) if with_keys else fields)
        and not (any(map(_is_float, fields)) and hides_places(fields))
        and not store.options.value(VERIFY_PAGES)  # DuckDB does not compare checksums
    )


def _is_plain_field(field: DataField) -> bool:
    kind = field.type
    return (
        isinstance(kind, AtomicType)
        and kind.root in _PLAIN
        and not (kind.root.is_timestamp and kind.precision > 6)
    )


def hides_places(fields: Sequence[DataField]) -> bool:
    """Whether a column has the name of a virtual one, so that DuckDB cannot say where a row is."""
    return any(field.name.lower() in (FILE, POSITION) for field in fields)


def _is_float(field: DataField) -> bool:
    return isinstance(field.type, AtomicType) and field.type.root in _FLOATS


def _has_unique_names(stored: Sequence[DataField]) -> bool:
    """Whether DuckDB, which ignores case, can tell the columns of a file apart."""
    return len({field.name.lower() for field in stored}) == len(stored)


def _is_plain_split(split: DataSplit) -> bool:
    is_changed = split.is_changes or split.before is not None
    return (
        bool(split.raw_convertible)
        and not (is_changed or split.is_grouped)
        and not (split.deletion_files or split.ranges)
    )


def _is_odd(path: str) -> bool:
    return scheme_of(path) != "file" or not _PATTERN_CHARACTERS.isdisjoint(path)
