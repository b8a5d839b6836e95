"""Set and remove options.

Options that decide how existing rows are interpreted are fixed once there are rows.
"""

from dataclasses import replace
from typing import Final

from emberlake.errors import InvalidSchema
from emberlake.options import (
    BUCKET,
    BUCKET_KEY,
    DELETION_VECTORS,
    DELETION_VECTORS_MODIFIABLE,
    IGNORE_DELETE,
    IGNORE_UPDATE_BEFORE,
    KNOWN,
    PRIMARY_KEY_NULLABLE,
    ROWKIND_FIELD,
    TYPE,
    TableOptions,
)
from emberlake.spec.option_columns import split_names, tidy_option
from emberlake.spec.rules.keys import normalise_key_columns
from emberlake.spec.schema import TableSchema

_FIXED: Final = frozenset({TYPE.key, "primary-key", "partition", "path"})
# Options that decide how existing rows are interpreted.
_FIXED_WITH_DATA: Final = frozenset(
    {
        BUCKET.key,
        BUCKET_KEY.key,
        "bucket-function.type",
        "data-file.path-directory",
        "merge-engine",
        "sequence.snapshot-ordering",
        "aggregation.remove-record-on-delete",
        "partial-update.remove-record-on-delete",
        "partial-update.remove-record-on-sequence-group",
        ROWKIND_FIELD.key,
        "primary-key.nullable",
        "dynamic-bucket.initial-buckets",
        "force-lookup",
        "row-tracking.enabled",
        "data-evolution.enabled",
        "index-file-in-data-file-dir",
        "blob-field",
        "blob-descriptor-field",
        "blob-view-field",
        "pk-clustering-override",
    }
)
_ONLY_TO_TRUE: Final = {option.key: option for option in (IGNORE_DELETE[0], IGNORE_UPDATE_BEFORE)}
_KNOWN: Final = {option.key: option for option in KNOWN}


def set_option(schema: TableSchema, key: str, value: str, *, has_snapshots: bool) -> TableSchema:
    """The schema with a value for an option."""
    key, value = tidy_option(key, value)
    if key in _FIXED and _is_unchanged(schema, key, value):
        return schema
    return _change_option(schema, key, value, has_snapshots=has_snapshots)


def remove_option(schema: TableSchema, key: str, *, has_snapshots: bool) -> TableSchema:
    """The schema with an option reset to its default."""
    if key not in schema.options and key not in _FIXED:
        return schema
    return _change_option(schema, key, None, has_snapshots=has_snapshots)


def _change_option(
    schema: TableSchema, key: str, value: str | None, *, has_snapshots: bool
) -> TableSchema:
    options = schema.options.merged({key: value})
    _check_option(schema.options, options, key, has_snapshots=has_snapshots)
    if options.value(PRIMARY_KEY_NULLABLE) == schema.options.value(PRIMARY_KEY_NULLABLE):
        return replace(schema, options=options)
    fields = normalise_key_columns(schema.fields, schema.primary_keys, options)
    return replace(schema, options=options, fields=fields)


def _is_unchanged(schema: TableSchema, key: str, value: str) -> bool:
    match key:
        case "primary-key":
            return split_names(value) == schema.primary_keys
        case "partition":
            return split_names(value) == schema.partition_keys
        case TYPE.key:
            return value.lower() == schema.options.value(TYPE).lower()
        case _:
            return value == schema.options.get(key)


def _check_option(old: TableOptions, new: TableOptions, key: str, *, has_snapshots: bool) -> None:
    if key in _FIXED:
        raise InvalidSchema(f"option {key} cannot be changed")
    if not has_snapshots or _effective(old, key) == _effective(new, key):
        return
    if key in _FIXED_WITH_DATA:
        raise InvalidSchema(f"option {key} cannot be changed once the table holds data")
    if key in _ONLY_TO_TRUE and old.value(_ONLY_TO_TRUE[key]):
        raise InvalidSchema(f"option {key} cannot go from true to false once the table holds data")
    if key == DELETION_VECTORS.key and not old.value(DELETION_VECTORS_MODIFIABLE):
        raise InvalidSchema(
            f"option {key} cannot be changed once the table holds data: rows could appear twice "
            "until a full compaction; set "
            f"{DELETION_VECTORS_MODIFIABLE.key} to true first if you are sure"
        )


def _effective(options: TableOptions, key: str) -> object:
    option = _KNOWN.get(key)
    return options.get(key) if option is None else options.value(option)
