"""Options that are set, removed, or follow a column to its new name.

Options that decide how the rows that are there are to be understood are fixed once there are rows.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from emberlake.errors import InvalidSchema
from emberlake.options import (
    BUCKET,
    BUCKET_KEY,
    DELETION_VECTORS,
    KNOWN,
    PRIMARY_KEY_NULLABLE,
    ROWKIND_FIELD,
    SEQUENCE_FIELD,
    TYPE,
    TableOptions,
    parse_bool,
    parse_words,
)
from emberlake.spec.rules.keys import normalise_key_columns
from emberlake.spec.schema import TableSchema

_FIXED: Final = frozenset({TYPE.key, "primary-key", "partition", "path"})
# Options that decide how the rows that are there are to be understood.
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
_ONLY_TO_TRUE: Final = frozenset({"ignore-delete", "ignore-update-before"})
_DV_MODIFIABLE: Final = "deletion-vectors.modifiable"
_KNOWN: Final = {option.key: option for option in KNOWN}


def set_option(schema: TableSchema, key: str, value: str, *, has_snapshots: bool) -> TableSchema:
    """The schema with a value for an option."""
    key, value = tidy_option(key, value)
    if key in _FIXED and _is_as_declared(schema, key, value):
        return schema
    return _change_option(schema, key, value, has_snapshots=has_snapshots)


def remove_option(schema: TableSchema, key: str, *, has_snapshots: bool) -> TableSchema:
    """The schema with an option back at its default."""
    if key not in schema.options:
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


def _is_as_declared(schema: TableSchema, key: str, value: str) -> bool:
    match key:
        case "primary-key":
            return parse_words(value) == schema.primary_keys
        case "partition":
            return parse_words(value) == schema.partition_keys
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
    if key in _ONLY_TO_TRUE and _is_true(old, key):
        raise InvalidSchema(f"option {key} cannot go from true to false once the table holds data")
    if key == DELETION_VECTORS.key and not _is_true(old, _DV_MODIFIABLE):
        raise InvalidSchema(
            f"option {key} cannot be changed once the table holds data: rows could appear twice "
            f"until a full compaction; set {_DV_MODIFIABLE} to true first if you are sure"
        )


def _effective(options: TableOptions, key: str) -> object:
    option = _KNOWN.get(key)
    return options.get(key) if option is None else options.value(option)


def _is_true(options: TableOptions, key: str) -> bool:
    try:
        return parse_bool(options.get(key, "false"))
    except ValueError as error:
        raise InvalidSchema(f"option {key}={options[key]}: {error}") from error


# --- names of columns in options ------------------------------------------------------------------

# Options whose value is a column or a list of columns.
_COLUMN_LISTS: Final = frozenset(
    {
        BUCKET_KEY.key,
        SEQUENCE_FIELD.key,
        ROWKIND_FIELD.key,
        "partial-update.remove-record-on-sequence-group",
        "record-level.time-field",
        "clustering.columns",
    }
)


def tidy_option(key: str, value: str) -> tuple[str, str]:
    """An option whose lists of columns have no blanks: engines split them and do not trim."""
    if _is_group(key):
        names = parse_words(key.removeprefix("fields.").removesuffix(".sequence-group"))
        key = f"fields.{','.join(names)}.sequence-group"
    return key, ",".join(parse_words(value)) if _lists_columns(key) else value


def rename_in_options(options: TableOptions, old: str, new: str) -> TableOptions:
    """The options with a column's new name where they named it."""
    return TableOptions(
        {
            _rename_in_key(key, old, new): _rename_in_value(key, value, old, new)
            for key, value in options.items()
        }
    )


def rename_all_in_options(options: TableOptions, names: Mapping[str, str]) -> TableOptions:
    """The options with new names of columns, by the old ones, all at once: two may be swapped."""
    changed = {old: new for old, new in names.items() if old != new}
    for place, old in enumerate(changed):
        options = rename_in_options(options, old, _unused_name(place))
    for place, new in enumerate(changed.values()):
        options = rename_in_options(options, _unused_name(place), new)
    return options


def _unused_name(place: int) -> str:
    return f"\0{place}"  # no column can be called that


def _rename_in_value(key: str, value: str, old: str, new: str) -> str:
    if not _lists_columns(key):
        return value
    names = parse_words(value)
    renamed = rename_in(names, old, new)
    return value if renamed == names else ",".join(renamed)


def _lists_columns(key: str) -> bool:
    return (
        key in _COLUMN_LISTS
        or (key.startswith("file-index.") and key.endswith(".columns"))
        or _is_group(key)
    )


def _is_group(key: str) -> bool:
    return key.startswith("fields.") and key.endswith(".sequence-group")


def _rename_in_key(key: str, old: str, new: str) -> str:
    if not key.startswith("fields."):
        return key
    rest = key.removeprefix("fields.")
    if rest.startswith(f"{old}."):
        return f"fields.{new}{rest.removeprefix(old)}"
    if rest.endswith(".sequence-group"):  # ordered by several columns
        names = parse_words(rest.removesuffix(".sequence-group"))
        if old in names:
            return f"fields.{','.join(rename_in(names, old, new))}.sequence-group"
    return key


def rename_in(names: tuple[str, ...], old: str, new: str) -> tuple[str, ...]:
    """The names with a new one in place of the old."""
    return tuple(new if name == old else name for name in names)
