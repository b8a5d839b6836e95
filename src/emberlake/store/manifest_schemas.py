"""The Avro schemas of manifests, manifest lists and index manifests.

Spec: "Avro schemas". Writing uses exactly the fields and record names of the spec, with null first
in every union. Reading accepts what any release of any engine wrote, so it asks for columns.
"""

import json
from typing import Any, Final

import pyarrow as pa

from emberlake.store.avro_container import Column
from emberlake.store.entries import ENTRY_SCHEMA

# Schemas as they are written ---------------------------------------------------------------------

_RECORD: Final = "org.apache.paimon.avro.generated.record"


def _record(name: str, *fields: tuple[str, Any]) -> dict[str, Any]:
    return {
        "type": "record",
        "name": name,
        "fields": [
            {"name": field, "type": kind, **({"default": None} if isinstance(kind, list) else {})}
            for field, kind in fields
        ],
    }


def _nullable(kind: Any) -> list[Any]:
    return ["null", kind]


def _array(items: Any) -> dict[str, Any]:
    return {"type": "array", "items": items}


def _stats_record(name: str) -> dict[str, Any]:
    return _record(
        name,
        ("_MIN_VALUES", "bytes"),
        ("_MAX_VALUES", "bytes"),
        ("_NULL_COUNTS", _nullable(_array(_nullable("long")))),
    )


def _schema_text(*fields: tuple[str, Any]) -> str:
    return json.dumps(_record(_RECORD, *fields), separators=(",", ":"))


MANIFEST_LIST_SCHEMA: Final = _schema_text(
    ("_VERSION", "int"),
    ("_FILE_NAME", "string"),
    ("_FILE_SIZE", "long"),
    ("_NUM_ADDED_FILES", "long"),
    ("_NUM_DELETED_FILES", "long"),
    ("_PARTITION_STATS", _stats_record(f"{_RECORD}__PARTITION_STATS")),
    ("_SCHEMA_ID", "long"),
    ("_MIN_BUCKET", _nullable("int")),
    ("_MAX_BUCKET", _nullable("int")),
    ("_MIN_LEVEL", _nullable("int")),
    ("_MAX_LEVEL", _nullable("int")),
    ("_MIN_ROW_ID", _nullable("long")),
    ("_MAX_ROW_ID", _nullable("long")),
)

MANIFEST_SCHEMA: Final = _schema_text(
    ("_VERSION", "int"),
    ("_KIND", "int"),
    ("_PARTITION", "bytes"),
    ("_BUCKET", "int"),
    ("_TOTAL_BUCKETS", "int"),
    (
        "_FILE",
        _record(
            f"{_RECORD}__FILE",
            ("_FILE_NAME", "string"),
            ("_FILE_SIZE", "long"),
            ("_ROW_COUNT", "long"),
            ("_MIN_KEY", "bytes"),
            ("_MAX_KEY", "bytes"),
            ("_KEY_STATS", _stats_record(f"{_RECORD}__FILE__KEY_STATS")),
            ("_VALUE_STATS", _stats_record(f"{_RECORD}__FILE__VALUE_STATS")),
            ("_MIN_SEQUENCE_NUMBER", "long"),
            ("_MAX_SEQUENCE_NUMBER", "long"),
            ("_SCHEMA_ID", "long"),
            ("_LEVEL", "int"),
            ("_EXTRA_FILES", _array("string")),
            ("_CREATION_TIME", _nullable({"type": "long", "logicalType": "timestamp-millis"})),
            ("_DELETE_ROW_COUNT", _nullable("long")),
            ("_EMBEDDED_FILE_INDEX", _nullable("bytes")),
            ("_FILE_SOURCE", _nullable("int")),
            ("_VALUE_STATS_COLS", _nullable(_array("string"))),
            ("_EXTERNAL_PATH", _nullable("string")),
            ("_FIRST_ROW_ID", _nullable("long")),
            ("_WRITE_COLS", _nullable(_array("string"))),
            ("_WRITE_COLS_SEQUENCES", _nullable(_array("long"))),
        ),
    ),
)

INDEX_MANIFEST_SCHEMA: Final = _schema_text(
    ("_VERSION", "int"),
    ("_KIND", "int"),
    ("_PARTITION", "bytes"),
    ("_BUCKET", "int"),
    ("_INDEX_TYPE", "string"),
    ("_FILE_NAME", "string"),
    ("_FILE_SIZE", "long"),
    ("_ROW_COUNT", "long"),
    (
        "_DELETIONS_VECTORS_RANGES",
        _nullable(
            _array(
                _nullable(
                    _record(
                        f"{_RECORD}__DELETIONS_VECTORS_RANGES",
                        ("f0", "string"),
                        ("f1", "int"),
                        ("f2", "int"),
                        ("_CARDINALITY", _nullable("long")),
                    )
                )
            )
        ),
    ),
    ("_EXTERNAL_PATH", _nullable("string")),
    (
        "_GLOBAL_INDEX",
        _nullable(
            _record(
                f"{_RECORD}__GLOBAL_INDEX",
                ("_ROW_RANGE_START", "long"),
                ("_ROW_RANGE_END", "long"),
                ("_INDEX_FIELD_ID", "int"),
                ("_EXTRA_FIELD_IDS", _nullable(_array("int"))),
                ("_INDEX_META", _nullable("bytes")),
                ("_SOURCE_META", _nullable("bytes")),
            )
        ),
    ),
)

# Columns as they are read ------------------------------------------------------------------------

_INT: Final = pa.int32()
_LONG: Final = pa.int64()
_BYTES: Final = pa.large_binary()
_TEXT: Final = pa.large_string()
_LONGS: Final = pa.large_list(_LONG)


def _required(name: str, path: str, kind: pa.DataType) -> Column:
    return Column(name, tuple(path.split("/")), kind, is_required=True)


def _optional(name: str, path: str, kind: pa.DataType) -> Column:
    return Column(name, tuple(path.split("/")), kind)


_VERSION: Final = _required("version", "_VERSION", _INT)


def _stats_columns(name: str, path: str) -> tuple[Column, Column, Column]:
    # Optional: some writers leave statistics out as a null record.
    return (
        _optional(f"{name}_min", f"{path}/_MIN_VALUES", _BYTES),
        _optional(f"{name}_max", f"{path}/_MAX_VALUES", _BYTES),
        _optional(f"{name}_null_counts", f"{path}/_NULL_COUNTS", _LONGS),
    )


MANIFEST_LIST_COLUMNS: Final = (
    _VERSION,
    _required("file_name", "_FILE_NAME", _TEXT),
    _required("file_size", "_FILE_SIZE", _LONG),
    _required("num_added_files", "_NUM_ADDED_FILES", _LONG),
    _required("num_deleted_files", "_NUM_DELETED_FILES", _LONG),
    *_stats_columns("partition_stats", "_PARTITION_STATS"),
    _required("schema_id", "_SCHEMA_ID", _LONG),
    _optional("min_bucket", "_MIN_BUCKET", _INT),
    _optional("max_bucket", "_MAX_BUCKET", _INT),
    _optional("min_level", "_MIN_LEVEL", _INT),
    _optional("max_level", "_MAX_LEVEL", _INT),
    _optional("min_row_id", "_MIN_ROW_ID", _LONG),
    _optional("max_row_id", "_MAX_ROW_ID", _LONG),
)

_ENTRY_PATHS: Final = {
    "kind": "_KIND",
    "partition": "_PARTITION",
    "bucket": "_BUCKET",
    "total_buckets": "_TOTAL_BUCKETS",
    "key_stats_min": "_FILE/_KEY_STATS/_MIN_VALUES",
    "key_stats_max": "_FILE/_KEY_STATS/_MAX_VALUES",
    "key_stats_null_counts": "_FILE/_KEY_STATS/_NULL_COUNTS",
    "value_stats_min": "_FILE/_VALUE_STATS/_MIN_VALUES",
    "value_stats_max": "_FILE/_VALUE_STATS/_MAX_VALUES",
    "value_stats_null_counts": "_FILE/_VALUE_STATS/_NULL_COUNTS",
}
STATS_ROWS: Final = ("key_stats_min", "key_stats_max", "value_stats_min", "value_stats_max")
MANIFEST_COLUMNS: Final = (
    _VERSION,
    *(
        Column(
            field.name,
            tuple(_ENTRY_PATHS.get(field.name, f"_FILE/_{field.name.upper()}").split("/")),
            field.type,
            is_required=not field.nullable and field.name not in STATS_ROWS,
        )
        for field in ENTRY_SCHEMA
    ),
)

_RANGE: Final = pa.struct([("f0", _TEXT), ("f1", _INT), ("f2", _INT), ("_CARDINALITY", _LONG)])
INDEX_MANIFEST_COLUMNS: Final = (
    _VERSION,
    _required("kind", "_KIND", _INT),
    _required("partition", "_PARTITION", _BYTES),
    _required("bucket", "_BUCKET", _INT),
    _required("index_type", "_INDEX_TYPE", _TEXT),
    _required("file_name", "_FILE_NAME", _TEXT),
    _required("file_size", "_FILE_SIZE", _LONG),
    _required("row_count", "_ROW_COUNT", _LONG),
    _optional("ranges", "_DELETIONS_VECTORS_RANGES", pa.large_list(_RANGE)),
    _optional("external_path", "_EXTERNAL_PATH", _TEXT),
    _optional("row_range_start", "_GLOBAL_INDEX/_ROW_RANGE_START", _LONG),
    _optional("row_range_end", "_GLOBAL_INDEX/_ROW_RANGE_END", _LONG),
    _optional("index_field_id", "_GLOBAL_INDEX/_INDEX_FIELD_ID", _INT),
    _optional("extra_field_ids", "_GLOBAL_INDEX/_EXTRA_FIELD_IDS", pa.large_list(_INT)),
    _optional("index_meta", "_GLOBAL_INDEX/_INDEX_META", _BYTES),
    _optional("source_meta", "_GLOBAL_INDEX/_SOURCE_META", _BYTES),
)
