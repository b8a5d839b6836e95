"""Every kind of system table: its columns, and where their values come from.

Spec: "System tables". Names, types and order of the columns are those that all engines use.
"""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Final

import pyarrow as pa

from emberlake.base.names import choices
from emberlake.base.times import wall_clock_ms
from emberlake.errors import CorruptFile, SnapshotNotFound, TableNotFound
from emberlake.inspect.files import load_file_columns
from emberlake.inspect.indexes import TABLE_INDEXES
from emberlake.inspect.small_rows import columns_of_rows as _columns_of_rows
from emberlake.inspect.small_rows import fields_of as _fields
from emberlake.inspect.statistics import AGGREGATION_FIELDS, STATISTICS
from emberlake.inspect.system_table import LazyColumns, SystemTable, SystemTableKind
from emberlake.inspect.text import braced_partitions
from emberlake.inspect.totals import FileTotals, load_bucket_totals, load_partition_totals
from emberlake.scan.files import manifests_of
from emberlake.spec.identifier import Identifier
from emberlake.spec.layout import BRANCH_PREFIX, CONSUMER_PREFIX
from emberlake.spec.manifest import DELETION_VECTORS_INDEX
from emberlake.spec.snapshot import Snapshot
from emberlake.spec.tag import as_if_utc_ms, format_duration
from emberlake.store.table_store import TableStore
from emberlake.types import ArrayType, AtomicType, arrow_type
from emberlake.types.json import field_to_json

ROW_TRACKING: Final = "row_tracking"  # rows of the table itself, so not of this layer


def open_system_table(name: str, identifier: Identifier, store: TableStore) -> SystemTable:
    """The system table with that name over a data table.

    Raises:
        TableNotFound: there is no such system table; the message lists those that exist.
    """
    kind = SYSTEM_TABLES.get(name.lower())
    if kind is None:
        raise TableNotFound(
            f"{identifier}: there is no system table {name!r}; "
            + choices(name, sorted([*SYSTEM_TABLES, ROW_TRACKING]), "there are"),
            identifier=identifier,
        )
    return SystemTable(kind, identifier, store)


# --- snapshots ------------------------------------------------------------------------------------

_SNAPSHOT_FIELDS: Final = _fields(
    snapshot_id="BIGINT NOT NULL",
    schema_id="BIGINT NOT NULL",
    commit_user="STRING NOT NULL",
    commit_identifier="BIGINT NOT NULL",
    commit_kind="STRING NOT NULL",
    commit_time="TIMESTAMP(3) NOT NULL",
    base_manifest_list="STRING NOT NULL",
    delta_manifest_list="STRING NOT NULL",
    changelog_manifest_list="STRING",
    total_record_count="BIGINT",
    delta_record_count="BIGINT",
    changelog_record_count="BIGINT",
    watermark="BIGINT",
    next_row_id="BIGINT",
    operation="STRING",
    writer_version="STRING",
)


def _load_snapshots(store: TableStore, snapshot: Snapshot | None) -> LazyColumns:
    del snapshot  # all of them are shown
    rows = [
        (
            snapshot.id,
            snapshot.schema_id,
            snapshot.commit_user,
            snapshot.commit_identifier,
            snapshot.commit_kind.value,
            wall_clock_ms(snapshot.time_millis),
            snapshot.base_manifest_list,
            snapshot.delta_manifest_list,
            snapshot.changelog_manifest_list,
            snapshot.total_record_count,
            snapshot.delta_record_count,
            snapshot.changelog_record_count,
            snapshot.watermark,
            snapshot.next_row_id,
            snapshot.operation,
            snapshot.writer_version,
        )
        for snapshot in _iter_snapshots(store)
    ]
    return _columns_of_rows(_SNAPSHOT_FIELDS, rows)


def _iter_snapshots(store: TableStore) -> Iterator[Snapshot]:
    for snapshot_id in store.snapshots.list_ids():
        try:
            yield store.snapshots.load(snapshot_id)
        except SnapshotNotFound:  # expired since it was listed
            continue


# --- schemas and options --------------------------------------------------------------------------

_SCHEMA_FIELDS: Final = _fields(
    schema_id="BIGINT NOT NULL",
    fields="STRING NOT NULL",
    partition_keys="STRING NOT NULL",
    primary_keys="STRING NOT NULL",
    options="STRING NOT NULL",
    comment="STRING",
    update_time="TIMESTAMP(3) NOT NULL",
)


def _load_schemas(store: TableStore, snapshot: Snapshot | None) -> LazyColumns:
    del snapshot
    rows = [
        (
            schema.id,
            _json([field_to_json(field) for field in schema.fields]),
            _json(schema.partition_keys),
            _json(schema.primary_keys),
            _json(dict(schema.options)),
            schema.comment,
            wall_clock_ms(schema.time_millis),
        )
        for schema in map(store.schemas.load, store.schemas.list_ids())
    ]
    return _columns_of_rows(_SCHEMA_FIELDS, rows)


_OPTION_FIELDS: Final = _fields(key="STRING NOT NULL", value="STRING NOT NULL")


def _load_options(store: TableStore, snapshot: Snapshot | None) -> LazyColumns:
    del snapshot
    stored = store.schemas.load(store.schema.id)  # without options for this read only
    return _columns_of_rows(_OPTION_FIELDS, sorted(stored.options.items()))


# --- manifests ------------------------------------------------------------------------------------

_MANIFEST_FIELDS: Final = _fields(
    file_name="STRING NOT NULL",
    file_size="BIGINT NOT NULL",
    num_added_files="BIGINT NOT NULL",
    num_deleted_files="BIGINT NOT NULL",
    schema_id="BIGINT NOT NULL",
    min_partition_stats="STRING",
    max_partition_stats="STRING",
    min_row_id="BIGINT",
    max_row_id="BIGINT",
)


def _load_manifests(store: TableStore, snapshot: Snapshot | None) -> LazyColumns:
    if snapshot is None:
        return _columns_of_rows(_MANIFEST_FIELDS, [])
    files = manifests_of(store, snapshot)
    lows = braced_partitions(store, [file.partition_stats.min_values for file in files])
    highs = braced_partitions(store, [file.partition_stats.max_values for file in files])
    rows = [
        (
            file.file_name,
            file.file_size,
            file.num_added_files,
            file.num_deleted_files,
            file.schema_id,
            lows[index],
            highs[index],
            file.min_row_id,
            file.max_row_id,
        )
        for index, file in enumerate(files)
    ]
    return _columns_of_rows(_MANIFEST_FIELDS, rows)


# --- partitions and buckets -----------------------------------------------------------------------

_PARTITION_FIELDS: Final = _fields(
    partition="STRING",
    record_count="BIGINT NOT NULL",
    file_size_in_bytes="BIGINT NOT NULL",
    file_count="BIGINT NOT NULL",
    last_update_time="TIMESTAMP(3)",
    created_at="TIMESTAMP(3)",
    created_by="STRING",
    updated_by="STRING",
    options="STRING",
    total_buckets="INT NOT NULL",
    done="BOOLEAN NOT NULL",
    deleted_record_count="BIGINT",
)


def _load_partitions(store: TableStore, snapshot: Snapshot | None) -> LazyColumns:
    totals = load_partition_totals(store, snapshot)
    count = len(totals.names)
    # Only catalogs with a server know who created a partition and whether it is done.
    untracked = {
        field.name: partial(pa.nulls, count, arrow_type(field.type))
        for field in _PARTITION_FIELDS
        if field.name in ("created_at", "created_by", "updated_by", "options")
    }
    return {
        **_total_columns(totals.files),
        **untracked,
        "partition": partial(_partition_names, store, totals.names),
        "total_buckets": partial(pa.array, totals.files.total_buckets, pa.int32()),
        "done": partial(pa.repeat, pa.scalar(False), count),
        "deleted_record_count": partial(_deleted_rows, store, snapshot, totals.partitions),
    }


_BUCKET_FIELDS: Final = _fields(
    partition="STRING",
    bucket="INT NOT NULL",
    record_count="BIGINT NOT NULL",
    file_size_in_bytes="BIGINT NOT NULL",
    file_count="BIGINT NOT NULL",
    last_update_time="TIMESTAMP(3)",
)


def _load_buckets(store: TableStore, snapshot: Snapshot | None) -> LazyColumns:
    totals = load_bucket_totals(store, snapshot)
    return {
        **_total_columns(totals.files),
        "partition": partial(_partition_names, store, totals.names),
        "bucket": partial(pa.array, totals.buckets, pa.int32()),
    }


def _total_columns(files: FileTotals) -> dict[str, Callable[[], pa.Array]]:
    return {
        "record_count": partial(pa.array, files.record_count, pa.int64()),
        "file_size_in_bytes": partial(pa.array, files.file_size_in_bytes, pa.int64()),
        "file_count": partial(pa.array, files.file_count, pa.int64()),
        "last_update_time": lambda: files.last_creation_time,
    }


def _partition_names(store: TableStore, names: Sequence[str]) -> pa.Array:
    if not store.schema.partition_keys:
        return pa.nulls(len(names), pa.string())
    return pa.array(names, pa.string())


def _deleted_rows(
    store: TableStore, snapshot: Snapshot | None, partitions: Sequence[bytes]
) -> pa.Array:
    """Rows that deletion vectors hide, by partition; null where a vector does not say how many."""
    deleted: dict[bytes, int | None] = dict.fromkeys(partitions, 0)
    for partition, cardinality in _iter_cardinalities(store, snapshot):
        known = deleted.get(partition, 0)
        is_known = known is not None and cardinality is not None
        deleted[partition] = (known or 0) + (cardinality or 0) if is_known else None
    return pa.array([deleted[partition] for partition in partitions], pa.int64())


def _iter_cardinalities(
    store: TableStore, snapshot: Snapshot | None
) -> Iterator[tuple[bytes, int | None]]:
    if snapshot is None or not store.schema.profile.has_deletion_vectors:
        return
    index_manifest = snapshot.index_manifest
    if index_manifest is None:
        return
    for entry in store.manifests.read_index(index_manifest):
        if entry.index_file.index_type == DELETION_VECTORS_INDEX:
            for vector in entry.index_file.deletion_vectors or ():
                yield entry.partition, vector.cardinality


# --- files ----------------------------------------------------------------------------------------

_FILE_FIELDS: Final = _fields(
    partition="STRING",
    bucket="INT NOT NULL",
    file_path="STRING NOT NULL",
    file_format="STRING NOT NULL",
    schema_id="BIGINT NOT NULL",
    level="INT NOT NULL",
    record_count="BIGINT NOT NULL",
    file_size_in_bytes="BIGINT NOT NULL",
    min_key="STRING",
    max_key="STRING",
    null_value_counts="STRING NOT NULL",
    min_value_stats="STRING NOT NULL",
    max_value_stats="STRING NOT NULL",
    min_sequence_number="BIGINT",
    max_sequence_number="BIGINT",
    creation_time="TIMESTAMP(3)",
    deleteRowCount="BIGINT",  # every engine spells it this way
    file_source="STRING",
    first_row_id="BIGINT",
    write_cols=ArrayType(True, AtomicType("STRING")),
)


_OF_CONTENTS: Final = frozenset(  # what $files says about the rows in a file
    {"null_value_counts", "min_value_stats", "max_value_stats", "min_sequence_number"}
    | {"max_sequence_number", "creation_time", "deleteRowCount", "file_source", "write_cols"}
)
_KEY_RANGE_FIELDS: Final = tuple(f for f in _FILE_FIELDS if f.name not in _OF_CONTENTS)


def _load_key_ranges(store: TableStore, snapshot: Snapshot | None) -> LazyColumns:
    columns = load_file_columns(store, snapshot)
    return {field.name: columns[field.name] for field in _KEY_RANGE_FIELDS}


# --- tags, branches, consumers --------------------------------------------------------------------

_TAG_FIELDS: Final = _fields(
    tag_name="STRING NOT NULL",
    snapshot_id="BIGINT NOT NULL",
    schema_id="BIGINT NOT NULL",
    commit_time="TIMESTAMP(3) NOT NULL",
    record_count="BIGINT",
    create_time="TIMESTAMP(3)",
    time_retained="STRING",
)


def _load_tags(store: TableStore, snapshot: Snapshot | None) -> LazyColumns:
    del snapshot
    rows = [
        (
            name,
            tag.id,
            tag.schema_id,
            wall_clock_ms(tag.time_millis),
            tag.total_record_count,
            None if tag.tag_create_time is None else as_if_utc_ms(tag.tag_create_time),
            None if tag.tag_time_retained is None else format_duration(tag.tag_time_retained),
        )
        for name, tag in sorted(store.tags.list().items())
    ]
    return _columns_of_rows(_TAG_FIELDS, rows)


_BRANCH_FIELDS: Final = _fields(branch_name="STRING NOT NULL", create_time="TIMESTAMP(3) NOT NULL")


def _load_branches(store: TableStore, snapshot: Snapshot | None) -> LazyColumns:
    del snapshot
    folders = store.storage.list(store.layout.branch_folder)
    created = {info.name: info.modified_ms for info in folders}
    rows = [
        (name, wall_clock_ms(created[BRANCH_PREFIX + name]))
        for name in store.branches.list()
        if BRANCH_PREFIX + name in created  # otherwise it was created after the listing
    ]
    return _columns_of_rows(_BRANCH_FIELDS, rows)


_CONSUMER_FIELDS: Final = _fields(consumer_id="STRING NOT NULL", next_snapshot_id="BIGINT NOT NULL")


def _load_consumers(store: TableStore, snapshot: Snapshot | None) -> LazyColumns:
    del snapshot
    rows = [
        (info.name.removeprefix(CONSUMER_PREFIX), _next_snapshot(store, info.path))
        for info in store.storage.list(store.layout.consumer_folder)
        if not info.is_folder and info.name.startswith(CONSUMER_PREFIX)
    ]
    return _columns_of_rows(_CONSUMER_FIELDS, sorted(rows))


def _next_snapshot(store: TableStore, path: str) -> int:
    try:
        return int(json.loads(store.storage.read(path))["nextSnapshot"])
    except (ValueError, KeyError, TypeError) as error:
        raise CorruptFile(path, f"it is not a consumer: {error}") from error


def _json(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


SYSTEM_TABLES: Final[Mapping[str, SystemTableKind]] = {
    kind.name: kind
    for kind in (
        SystemTableKind(
            "snapshots", _SNAPSHOT_FIELDS, ("snapshot_id",), _load_snapshots, tells_values=False
        ),
        SystemTableKind(
            "schemas", _SCHEMA_FIELDS, ("schema_id",), _load_schemas, tells_values=False
        ),
        SystemTableKind("options", _OPTION_FIELDS, ("key",), _load_options, tells_values=False),
        SystemTableKind("manifests", _MANIFEST_FIELDS, ("file_name",), _load_manifests),
        SystemTableKind("partitions", _PARTITION_FIELDS, ("partition",), _load_partitions),
        SystemTableKind("buckets", _BUCKET_FIELDS, ("partition", "bucket"), _load_buckets),
        SystemTableKind("files", _FILE_FIELDS, ("file_path",), load_file_columns),
        SystemTableKind("file_key_ranges", _KEY_RANGE_FIELDS, ("file_path",), _load_key_ranges),
        TABLE_INDEXES,
        SystemTableKind("tags", _TAG_FIELDS, ("tag_name",), _load_tags, tells_values=False),
        SystemTableKind(
            "branches", _BRANCH_FIELDS, ("branch_name",), _load_branches, tells_values=False
        ),
        SystemTableKind(
            "consumers", _CONSUMER_FIELDS, ("consumer_id",), _load_consumers, tells_values=False
        ),
        STATISTICS,
        AGGREGATION_FIELDS,
    )
}
