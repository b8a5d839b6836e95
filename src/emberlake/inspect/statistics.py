"""The system tables ``$statistics`` and ``$aggregation_fields``."""

from typing import Final

from emberlake.inspect.small_rows import columns_of_rows, fields_of
from emberlake.inspect.system_table import LazyColumns, SystemTableKind
from emberlake.spec.snapshot import Snapshot
from emberlake.spec.statistics import TableStatistics
from emberlake.store.table_store import TableStore

_STATISTICS_FIELDS: Final = fields_of(
    snapshot_id="BIGINT NOT NULL",
    schema_id="BIGINT NOT NULL",
    mergedRecordCount="BIGINT",
    mergedRecordSize="BIGINT",
    colstat="STRING",
)


def _load_statistics(store: TableStore, snapshot: Snapshot | None) -> LazyColumns:
    if snapshot is None or snapshot.statistics is None:
        return columns_of_rows(_STATISTICS_FIELDS, [])
    path = store.layout.statistics(snapshot.statistics)
    found = TableStatistics.from_bytes(path, store.storage.read(path))
    row = (found.snapshot_id, found.schema_id, found.row_count, found.size, found.columns_text)
    return columns_of_rows(_STATISTICS_FIELDS, [row])


_AGGREGATION_FIELDS: Final = fields_of(
    field_name="STRING NOT NULL",
    field_type="STRING NOT NULL",
    function="STRING",
    function_options="STRING",
    comment="STRING",
)


def _load_aggregations(store: TableStore, snapshot: Snapshot | None) -> LazyColumns:
    del snapshot
    schema = store.schemas.load(store.schema.id)
    found: dict[str, list[tuple[str, str]]] = {}
    for key, value in schema.options.items():
        first, *rest = key.split(".")
        if first == "fields" and len(rest) > 1:
            found.setdefault(rest[0], []).append((key, value))
    rows = [
        (
            field.name,
            str(field.type),
            f"[{', '.join(value for _, value in found.get(field.name, ()))}]",
            f"[{', '.join(key for key, _ in found.get(field.name, ()))}]",
            field.description,
        )
        for field in schema.fields
    ]
    return columns_of_rows(_AGGREGATION_FIELDS, rows)


STATISTICS: Final = SystemTableKind(
    "statistics", _STATISTICS_FIELDS, ("snapshot_id",), _load_statistics
)
AGGREGATION_FIELDS: Final = SystemTableKind(
    "aggregation_fields",
    _AGGREGATION_FIELDS,
    ("field_name",),
    _load_aggregations,
    tells_values=False,
)
