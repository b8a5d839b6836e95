"""Rules for the other options: which go together, and which values they can have."""

import re
from collections.abc import Iterator
from typing import Final

from emberlake.base.option_texts import parse_words
from emberlake.errors import InvalidInput, InvalidOption
from emberlake.options import (
    BUCKET,
    CHANGELOG_PRODUCER,
    DATA_EVOLUTION,
    DEFAULT_AGGREGATE,
    DYNAMIC_BUCKET_MAX,
    FILE_FORMAT,
    FILE_FORMAT_PER_LEVEL,
    FULL_COMPACTION_COMMITS,
    INCREMENTAL_CLUSTERING,
    MERGE_ENGINE,
    ROW_TRACKING,
    SNAPSHOT_ORDERING,
    STATS_MODE,
    STREAM_OVERWRITES,
    TARGET_FILE_ROWS,
    UNAWARE_BUCKET,
    ChangelogProducer,
    MergeEngine,
)
from emberlake.spec.default_values import default_value
from emberlake.spec.external_paths import external_problems
from emberlake.spec.option_columns import column_lists, split_names
from emberlake.spec.rules.check import Check, empty_names, repeated
from emberlake.spec.schema import TableSchema
from emberlake.spec.stats import parse_stats_mode
from emberlake.types import AtomicType, DataField, DataType, TypeRoot, nested_types


def _check_row_tracking(schema: TableSchema) -> Iterator[str]:
    options = schema.options
    if options.value(ROW_TRACKING):
        if schema.primary_keys:
            yield f"{ROW_TRACKING.key} cannot be combined with a primary key"
        if options.value(BUCKET) != UNAWARE_BUCKET:
            yield f"{ROW_TRACKING.key} cannot be combined with buckets: remove the option bucket"
    if options.value(DATA_EVOLUTION):
        if not options.value(ROW_TRACKING):
            yield f"{DATA_EVOLUTION.key} needs {ROW_TRACKING.key}"
        if options.value(INCREMENTAL_CLUSTERING):
            yield f"{DATA_EVOLUTION.key} cannot be combined with clustering.incremental"
    blobs = [f.name for f in schema.fields if _holds_blob(f.type)]
    if blobs and not schema.primary_keys and not options.value(DATA_EVOLUTION):
        yield f"column {', '.join(blobs)} of type BLOB needs {DATA_EVOLUTION.key}"
    if blobs and len(blobs) == len(schema.fields):
        yield "a table with BLOB columns needs other columns too"


def _holds_blob(data_type: DataType) -> bool:
    return any(
        isinstance(inner, AtomicType) and inner.root is TypeRoot.BLOB
        for inner in nested_types(data_type)
    )


def _check_changelog(schema: TableSchema) -> Iterator[str]:
    options = schema.options
    producer = options.value(CHANGELOG_PRODUCER)
    if producer not in (ChangelogProducer.LOOKUP, ChangelogProducer.FULL_COMPACTION):
        return
    given = f"{CHANGELOG_PRODUCER.key}={producer}"
    if options.value(STREAM_OVERWRITES):
        yield f"{STREAM_OVERWRITES.key} cannot be combined with {given}: changes would come twice"
    if producer is ChangelogProducer.LOOKUP and options.value(FULL_COMPACTION_COMMITS) is not None:
        yield (
            f"{FULL_COMPACTION_COMMITS.key} cannot be combined with {given}: remove it, or set "
            f"{CHANGELOG_PRODUCER.key}={ChangelogProducer.FULL_COMPACTION}"
        )


def _check_clustering(schema: TableSchema) -> Iterator[str]:
    if schema.options.value(INCREMENTAL_CLUSTERING) and schema.primary_keys:
        yield "clustering.incremental cannot be combined with a primary key"
    if schema.options.value(SNAPSHOT_ORDERING) and not schema.primary_keys:
        yield "sequence.snapshot-ordering needs a primary key"


# --- options of single columns --------------------------------------------------------------------

_FILE_INDEX: Final = re.compile(r"file-index\.[^.]+\.columns")


def _check_column_options(schema: TableSchema) -> Iterator[str]:
    names = [f.name for f in schema.fields]
    has_groups = schema.options.value(MERGE_ENGINE) is MergeEngine.PARTIAL_UPDATE
    for key, value in schema.options.items():
        if has_groups and key.endswith(".sequence-group"):
            continue  # checked with the merge engines
        if key.startswith("fields.") and key != DEFAULT_AGGREGATE.key:
            yield from _check_column_key(key, names)
        if key.startswith("fields.") and key.endswith(".stats-mode"):
            yield from _check_stats_mode(key, value)
        if _FILE_INDEX.fullmatch(key):
            for word in parse_words(value):
                if word.partition("[")[0] not in names:
                    yield f"{key} names {word}, which is not a column of the table"
    yield from _check_stats_mode(STATS_MODE.key, schema.options.value(STATS_MODE))


def _check_lists(schema: TableSchema) -> Iterator[str]:
    for what, names in column_lists(schema.options):
        yield from empty_names(what, names)
        yield from (f"{what} names {name} twice" for name in repeated(names) if name)
    # Levels and their formats: ``0:avro,5:orc``.
    levels = schema.options.get(FILE_FORMAT_PER_LEVEL.key)
    if levels is not None:
        words = split_names(levels)
        yield from empty_names(FILE_FORMAT_PER_LEVEL.key, words)
        given = [word.partition(":")[0].strip() for word in words if word]
        yield from (
            f"{FILE_FORMAT_PER_LEVEL.key} names level {name} twice" for name in repeated(given)
        )


def _check_column_key(key: str, names: list[str]) -> Iterator[str]:
    rest = key.removeprefix("fields.")
    if any(rest.startswith(f"{name}.") for name in names):
        return
    words = rest.partition(".")[0].split(",")  # sequence groups are ordered by several columns
    unknown = [word for word in words if word.strip() not in names]
    if unknown:
        yield f"option {key}: {', '.join(unknown)} is not a column of the table"


def _check_stats_mode(key: str, value: str) -> Iterator[str]:
    try:
        parse_stats_mode(value)
    except InvalidOption:
        yield f"{key}={value}: expected none, counts, full or truncate(<length>)"


def _check_default_values(schema: TableSchema) -> Iterator[str]:
    for field in schema.fields:
        for text in (
            field.default_value,
            schema.options.get(f"fields.{field.name}.default-value"),
        ):
            # Defaults of nested types have a notation that only writers need.
            if text is None or not isinstance(field.type, AtomicType):
                continue
            try:
                default_value(field.type, text)
            except InvalidInput as error:
                yield f"the default value of column {field.name} does not fit its type: {error}"


# --- formats and numbers --------------------------------------------------------------------------


def _check_formats(schema: TableSchema) -> Iterator[str]:
    options = schema.options
    formats = {options.value(FILE_FORMAT), *options.value(FILE_FORMAT_PER_LEVEL).values()}
    for field in schema.fields:
        yield from _check_column_format(field, formats)


def _check_column_format(field: DataField, formats: set[str]) -> Iterator[str]:
    for inner in nested_types(field.type):
        if not isinstance(inner, AtomicType):
            continue
        if "avro" in formats and inner.root.is_timestamp and inner.precision > 6:
            yield f"column {field.name}: Avro files store timestamps up to a precision of 6"
        if inner.root in (TypeRoot.GEOMETRY, TypeRoot.GEOGRAPHY) and formats != {"parquet"}:
            yield f"column {field.name}: only Parquet files can store {inner.root}"


def _check_numbers(schema: TableSchema) -> Iterator[str]:
    if schema.options.value(TARGET_FILE_ROWS) < 1:
        yield f"{TARGET_FILE_ROWS.key} must be 1 or more"
    limit = schema.options.value(DYNAMIC_BUCKET_MAX)
    if limit < 1 and limit != DYNAMIC_BUCKET_MAX.default:
        yield f"{DYNAMIC_BUCKET_MAX.key}={limit}: expected 1 or more, or -1 for no limit"
    for kind in ("snapshot", "changelog"):
        low_key, high_key = f"{kind}.num-retained.min", f"{kind}.num-retained.max"
        low, high = (_whole_number(schema.options.get(key)) for key in (low_key, high_key))
        for key, number in ((low_key, low), (high_key, high)):
            if key in schema.options and (number is None or number < 1):
                yield f"{key} must be 1 or more"
        if low is not None and high is not None and low > high:
            yield f"{low_key} must not be larger than {high_key}"


def _whole_number(text: str | None) -> int | None:
    return int(text) if text is not None and text.strip().isdecimal() else None


def _check_external_paths(schema: TableSchema) -> Iterator[str]:
    yield from external_problems(schema.options)


CHECKS: Final[tuple[Check, ...]] = (
    _check_row_tracking,
    _check_changelog,
    _check_clustering,
    _check_lists,
    _check_column_options,
    _check_default_values,
    _check_formats,
    _check_numbers,
    _check_external_paths,
)
