"""Rules for merging rows with the same primary key: merge engines and their order."""

from collections.abc import Iterator
from typing import Any, Final, TypeAlias

from emberlake.base.option_texts import parse_words
from emberlake.options import (
    CHANGELOG_PRODUCER,
    DEFAULT_AGGREGATE,
    DELETION_VECTORS,
    IGNORE_DELETE,
    MERGE_ENGINE,
    PK_CLUSTERING,
    REMOVE_ON_DELETE,
    REMOVE_ON_SEQUENCE_GROUP,
    ROWKIND_FIELD,
    SEQUENCE_FIELD,
    ChangelogProducer,
    MergeEngine,
    Option,
    TableOptions,
)
from emberlake.spec.aggregate import AGGREGATE_NAMES
from emberlake.spec.rules.check import Check, no_column
from emberlake.spec.schema import TableSchema
from emberlake.types import AtomicType

_AGGREGATE: Final = "aggregate-function"
_SEQUENCE_GROUP: Final = "sequence-group"


def _check_without_key(schema: TableSchema) -> Iterator[str]:
    if schema.primary_keys:
        return
    options = schema.options
    if options.value(CHANGELOG_PRODUCER) is not ChangelogProducer.NONE:
        yield f"{CHANGELOG_PRODUCER.key} needs a primary key"
    if options.value(MERGE_ENGINE) is not MergeEngine.DEDUPLICATE:
        yield f"{MERGE_ENGINE.key} needs a primary key"
    for key in options:
        is_for_keys = key in (SEQUENCE_FIELD.key, ROWKIND_FIELD.key, DEFAULT_AGGREGATE.key)
        if is_for_keys or _ends_with(key, _AGGREGATE, _SEQUENCE_GROUP):
            yield f"{key} needs a primary key"


def _check_merge_engine(schema: TableSchema) -> Iterator[str]:
    if not schema.primary_keys:
        return
    options = schema.options
    engine, producer = options.value(MERGE_ENGINE), options.value(CHANGELOG_PRODUCER)
    if engine is MergeEngine.FIRST_ROW:
        if producer not in (ChangelogProducer.NONE, ChangelogProducer.LOOKUP):
            yield f"merge engine first-row cannot be combined with changelog producer {producer}"
        if options.value(SEQUENCE_FIELD):
            yield "merge engine first-row cannot be combined with sequence.field"
        if options.value(DELETION_VECTORS) and not options.value(PK_CLUSTERING):
            yield (
                "merge engine first-row cannot be combined with deletion vectors: it deletes "
                "nothing"
            )
    if options.value(DELETION_VECTORS) and producer is ChangelogProducer.FULL_COMPACTION:
        yield f"deletion vectors cannot be combined with changelog producer {producer}"
    if engine is MergeEngine.PARTIAL_UPDATE:
        yield from _check_partial_update(schema)
    for key, name in options.items():
        is_aggregate = key == DEFAULT_AGGREGATE.key or _ends_with(key, _AGGREGATE)
        if is_aggregate and name not in AGGREGATE_NAMES:
            yield f"{key}={name}: expected one of {', '.join(sorted(AGGREGATE_NAMES))}"


def _check_partial_update(schema: TableSchema) -> Iterator[str]:
    options = schema.options
    groups = _sequence_groups(options)
    yield from _check_sequence_groups(schema, groups)
    ignoring = next((option for option in IGNORE_DELETE if options.is_set(option)), None)
    removing = REMOVE_ON_DELETE[MergeEngine.PARTIAL_UPDATE]
    if ignoring is not None and options.value(ignoring):
        others: tuple[Option[Any], ...] = (removing, REMOVE_ON_SEQUENCE_GROUP)
        for other in others:
            if options.value(other):
                yield f"{ignoring.key} and {other.key} exclude each other"
    removes = options.value(removing)
    if groups and removes:
        yield f"{removing.key} and sequence groups exclude each other"
    ordering_names = {name for ordering, _ in groups.values() for name in ordering}
    for name in options.value(REMOVE_ON_SEQUENCE_GROUP):
        if name not in ordering_names:
            yield f"{REMOVE_ON_SEQUENCE_GROUP.key} names {name}, which orders no sequence group"


_Groups: TypeAlias = dict[str, tuple[tuple[str, ...], tuple[str, ...]]]  # ordered by, members


def _check_sequence_groups(schema: TableSchema, groups: _Groups) -> Iterator[str]:
    # If a column were in two groups, each engine could choose either of them to order it. The same
    # is true of the columns that order a group.
    taken: set[str] = set()
    for key, (ordering, members) in groups.items():
        for name in (*ordering, *members):
            if name not in schema.field_by_name:
                yield f"{key} names {name}, which is not a column of the table"
            elif name in schema.primary_keys:
                yield f"{key} names {name}, which is in the primary key"
        for name in dict.fromkeys((*ordering, *members)):
            if name in taken:
                yield f"{key} names {name}, which is in another sequence group"
        taken.update(ordering, members)


def _sequence_groups(options: TableOptions) -> _Groups:
    return {
        key: (
            parse_words(key.removeprefix("fields.").removesuffix(f".{_SEQUENCE_GROUP}")),
            parse_words(value),
        )
        for key, value in options.items()
        if _ends_with(key, _SEQUENCE_GROUP)
    }


def _check_sequence(schema: TableSchema) -> Iterator[str]:
    names = schema.options.value(SEQUENCE_FIELD)
    for name in names:
        if name not in schema.field_by_name:
            yield no_column(schema, "sequence.field", name)
        if f"fields.{name}.{_AGGREGATE}" in schema.options:
            yield f"sequence.field {name} cannot be aggregated"
    missing = schema.partition_keys_outside_key
    if names and missing:
        yield (
            "sequence.field needs a primary key with all partition columns; it lacks "
            f"{', '.join(missing)}"
        )
    rowkind = schema.options.value(ROWKIND_FIELD)
    if rowkind is not None:
        column = schema.field_by_name.get(rowkind)
        if column is None:
            yield no_column(schema, "rowkind.field", rowkind)
        elif not (isinstance(column.type, AtomicType) and column.type.root.is_text):
            yield f"rowkind.field {rowkind} is of type {column.type}, not a text type"


def _ends_with(key: str, *suffixes: str) -> bool:
    return key.startswith("fields.") and key.endswith(tuple(f".{s}" for s in suffixes))


CHECKS: Final[tuple[Check, ...]] = (
    _check_without_key,
    _check_merge_engine,
    _check_sequence,
)
