"""Rules for partition columns, primary keys and buckets."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Final

from emberlake.options import (
    BUCKET,
    BUCKET_FUNCTION,
    BUCKET_KEY,
    POSTPONE_BUCKET,
    PRIMARY_KEY_NULLABLE,
    UNAWARE_BUCKET,
    TableOptions,
)
from emberlake.spec.bucket import check_bucket_key
from emberlake.spec.rules.check import Check, no_column, repeated
from emberlake.spec.schema import TableSchema
from emberlake.types import AtomicType, DataField, DataType


def normalise_key_columns(
    fields: tuple[DataField, ...], primary_keys: Sequence[str], options: TableOptions
) -> tuple[DataField, ...]:
    """The same columns, with the nullability that primary key columns must have."""
    nullable = options.value(PRIMARY_KEY_NULLABLE)
    return tuple(
        replace(f, type=f.type.with_nullable(nullable)) if f.name in primary_keys else f
        for f in fields
    )


def _check_keys(schema: TableSchema) -> Iterator[str]:
    for what, keys in (
        ("partition column", schema.partition_keys),
        ("primary key column", schema.primary_keys),
    ):
        yield from (f"{what} {key} is given twice" for key in repeated(keys))
        for key in keys:
            field = schema.field_by_name.get(key)
            if field is None:
                yield no_column(schema, what, key)
            elif not _can_be_key(field.type):
                yield f"{what} {key} cannot be of type {field.type}"
    if schema.primary_keys and not schema.trimmed_primary_keys:
        yield (
            "the primary key has only partition columns, so every partition could hold just one "
            "row: add a column to the key"
        )
    if schema.options.value(PRIMARY_KEY_NULLABLE) and not schema.primary_keys:
        yield f"{PRIMARY_KEY_NULLABLE.key} needs a primary key"


def _can_be_key(data_type: DataType) -> bool:
    return isinstance(data_type, AtomicType) and not data_type.root.is_opaque


def _check_bucket(schema: TableSchema) -> Iterator[str]:
    bucket = schema.options.value(BUCKET)
    has_key = bool(schema.primary_keys)
    if bucket == UNAWARE_BUCKET:
        if schema.options.is_set(BUCKET_KEY):
            yield "bucket-key needs a number of buckets: set bucket to 1 or more, or remove it"
        return
    if bucket < 1 and not (bucket == POSTPONE_BUCKET and has_key):
        kinds = "1 or more, -1 or -2" if has_key else "1 or more, or -1"
        yield f"bucket={bucket}: expected {kinds}"
        return
    if not has_key and not schema.options.value(BUCKET_KEY):
        yield f"bucket={bucket} needs bucket-key: the columns that decide a row's bucket"
        return
    yield from _check_bucket_key(schema)


def _check_bucket_key(schema: TableSchema) -> Iterator[str]:
    keys = schema.options.value(BUCKET_KEY)
    for key in keys:
        if key not in schema.field_by_name:
            yield no_column(schema, "bucket-key", key)
        elif key in schema.partition_keys:
            yield f"bucket-key {key} is a partition column, which cannot decide the bucket"
        elif schema.primary_keys and key not in schema.primary_keys:
            yield f"bucket-key {key} is not in the primary key, so a key could be in two buckets"
    columns = [schema.field_by_name.get(key) for key in schema.bucket_keys]
    types = [column.type for column in columns if column is not None]
    if types and len(types) == len(columns):
        problem = check_bucket_key(schema.options.value(BUCKET_FUNCTION), types)
        if problem is not None:
            yield problem


CHECKS: Final[tuple[Check, ...]] = (
    _check_keys,
    _check_bucket,
)
