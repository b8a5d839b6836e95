"""The system table of index files: deletion vectors, key hashes, indexes over row ids."""

from typing import Final

from emberlake.inspect.small_rows import columns_of_rows, fields_of
from emberlake.inspect.system_table import LazyColumns, SystemTableKind
from emberlake.inspect.text import braced_partitions
from emberlake.spec.manifest import IndexFile
from emberlake.spec.snapshot import Snapshot
from emberlake.store.table_store import TableStore
from emberlake.types import ArrayType, RowType

_VECTOR: Final = RowType(
    False,
    fields_of(f0="STRING NOT NULL", f1="INT NOT NULL", f2="INT NOT NULL", _CARDINALITY="BIGINT"),
)
_INDEX_FIELDS: Final = fields_of(
    partition="STRING",
    bucket="INT NOT NULL",
    index_type="STRING NOT NULL",
    file_name="STRING NOT NULL",
    file_size="BIGINT NOT NULL",
    row_count="BIGINT NOT NULL",
    dv_ranges=ArrayType(True, _VECTOR),
    row_range_start="BIGINT",
    row_range_end="BIGINT",
    index_field_id="INT",
    index_field_name="STRING",
)


def _load_indexes(store: TableStore, snapshot: Snapshot | None) -> LazyColumns:
    if snapshot is None or snapshot.index_manifest is None:
        return columns_of_rows(_INDEX_FIELDS, [])
    entries = list(store.manifests.read_index(snapshot.index_manifest))
    partitions = braced_partitions(store, [entry.partition for entry in entries])
    rows = [
        (partition, entry.bucket, *_index_row(store, entry.index_file))
        for partition, entry in zip(partitions, entries, strict=True)
    ]
    return columns_of_rows(_INDEX_FIELDS, rows)


def _index_row(store: TableStore, file: IndexFile) -> tuple[object, ...]:
    vectors = None
    if file.deletion_vectors is not None:
        vectors = [
            {"f0": v.data_file_name, "f1": v.offset, "f2": v.length, "_CARDINALITY": v.cardinality}
            for v in file.deletion_vectors
        ]
    own = (file.index_type, file.file_name, file.file_size, file.row_count, vectors)
    index = file.global_index
    if index is None:
        return (*own, None, None, None, None)
    names = {field.id: field.name for field in store.schema.fields}
    return (
        *own,
        index.row_range_start,
        index.row_range_end,
        index.index_field_id,
        names.get(index.index_field_id),
    )


TABLE_INDEXES: Final = SystemTableKind(
    "table_indexes", _INDEX_FIELDS, ("file_name",), _load_indexes
)
