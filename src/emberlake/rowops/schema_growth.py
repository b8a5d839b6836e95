"""Let a table grow to what new data has: columns that it lacks, numbers of a wider type.

Nothing changes before the rows are committed: files are written for the schema that the table will
have, and the commit publishes it right before its snapshot (``store.new_schema``).

- ``growth_of(schema, fields)``: the changes after which data fits; ``grown_fields``: the columns.
- ``growing(store, fields)``: the table as it will be.
- ``write_growing(store, fields, write)``: a write to it, again if others change the schema first.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Final, TypeVar

import pyarrow as pa

from emberlake.errors import (
    CommitConflict,
    ConflictReason,
    DataMismatch,
    InvalidSchema,
    TableNotFound,
)
from emberlake.merge.plan import check_functions, check_merge_options
from emberlake.spec.schema import TableSchema
from emberlake.spec.schema_change import SchemaChange
from emberlake.spec.schema_evolution import apply_changes
from emberlake.spec.widening import is_widening
from emberlake.store.new_schema import NewSchema
from emberlake.store.table_store import TableStore
from emberlake.types import (
    ArrayType,
    AtomicType,
    DataField,
    DataType,
    MapType,
    RowType,
    from_arrow_schema,
)
from emberlake.write.row_kinds import ROW_KIND_COLUMN

_T = TypeVar("_T")

_ATTEMPTS: Final = 5


def growth_of(schema: TableSchema, fields: Sequence[DataField]) -> list[SchemaChange]:
    """The changes after which a table has columns for data with these columns.

    Columns are added as nullable, fields of ROW columns too. Numbers are widened, but not those of
    keys, which decide where rows are. The length of text and the precision of times stay: data does
    not say which ones it needs.
    """
    fixed = {*schema.primary_keys, *schema.partition_keys, *schema.bucket_keys}
    return list(_row_changes((), schema.fields, fields, fixed))


def grown_fields(schema: TableSchema, fields: Sequence[DataField]) -> tuple[DataField, ...]:
    """The columns of a table once it has grown to data with these columns.

    Raises:
        InvalidSchema: the table cannot have such a column.
    """
    changes = growth_of(schema, fields)
    if not changes:
        return schema.fields
    return apply_changes(schema, changes, has_snapshots=True, time_millis=schema.time_millis).fields


def _row_changes(
    path: tuple[str, ...],
    known: Sequence[DataField],
    given: Sequence[DataField],
    fixed: set[str],
) -> Iterator[SchemaChange]:
    by_name = {field.name: field for field in known}
    for field in given:
        inner = (*path, field.name)
        if field.name not in by_name:
            _refuse_other_case(inner, by_name)
            yield SchemaChange.add_column(list(inner), field.type.with_nullable(True))
        elif path or field.name not in fixed:
            yield from _type_changes(inner, by_name[field.name].type, field.type)


def _refuse_other_case(path: tuple[str, ...], known: Iterable[str]) -> None:
    """``Id`` beside ``id`` is a slip, and no engine that ignores case can read such a table."""
    twin = next((name for name in known if name.lower() == path[-1].lower()), None)
    if twin is not None:
        raise DataMismatch(
            f"{'.'.join(path)}: is not a column of the table, which has {twin}: names must agree "
            "in case; rename it in the data"
        )


def _type_changes(
    path: tuple[str, ...], known: DataType, given: DataType
) -> Iterator[SchemaChange]:
    match known, given:
        case RowType(), RowType():
            yield from _row_changes(path, known.fields, given.fields, set())
        case ArrayType(), ArrayType():
            yield from _type_changes((*path, "element"), known.element, given.element)
        case MapType(), MapType():
            yield from _type_changes((*path, "value"), known.value, given.value)
        case AtomicType(), AtomicType() if _is_wider(known, given):
            yield SchemaChange.update_column_type(list(path), given, keep_nullability=True)
        case _:
            pass


def _is_wider(known: AtomicType, given: AtomicType) -> bool:
    if not (known.root.is_number and given.root.is_number):
        return False
    is_same = known.with_nullable(True) == given.with_nullable(True)
    return not is_same and is_widening(known, given)


def columns_to_grow(data: pa.Schema, schema: TableSchema) -> tuple[DataField, ...]:
    """The columns of data, as a table would have them; without row kinds and untyped nulls.

    Raises:
        InvalidSchema: a column that the table lacks has no Paimon type.
    """
    found: list[DataField] = []
    for column in data:
        is_known = column.name in schema.field_by_name
        if pa.types.is_null(column.type) or (column.name == ROW_KIND_COLUMN and not is_known):
            continue
        try:
            found += from_arrow_schema(pa.schema([column]))
        except InvalidSchema:
            if not is_known:
                raise  # a column that is there has its own rules for what can be written to it
    return tuple(found)


def growing(store: TableStore, fields: Sequence[DataField]) -> TableStore:
    """The table as it is when rows with these columns have been committed.

    Its schema is the latest one, or one that the commit publishes.

    Raises:
        InvalidSchema: the table cannot have such a column.
        TableNotFound: it is gone.
    """
    latest = store.schemas.latest()
    if latest is None:
        raise TableNotFound(f"{store.layout.metadata_root} has no schema any more")
    changes = growth_of(latest, fields)
    own = store.own_options()
    if not changes:
        return store.with_schema(latest.with_options(own))
    changed = apply_changes(
        latest,
        changes,
        has_snapshots=store.snapshots.latest_id() is not None,
        time_millis=store.env.now_ms(),
    )
    _check_merging(changed, latest)
    new = NewSchema(latest, tuple(changes), changed)
    return replace(store, schema=changed.with_options(own), new_schema=new)


def grown(store: TableStore) -> TableStore:
    """A table whose new schema has been published."""
    return store if store.new_schema is None else replace(store, new_schema=None)


def write_growing(
    store: TableStore,
    fields: Sequence[DataField],
    write: Callable[[TableStore], _T],
    *,
    is_repeatable: bool = True,
) -> _T:
    """Write rows with these columns to a table that grows to them.

    Args:
        store: The table.
        fields: The columns of the data.
        write: Writes to the table that it gets, in one commit.
        is_repeatable: Whether the rows can be written again, if others have changed the schema.

    Raises:
        CommitConflict: others change the schema again and again.
    """
    for _ in range(_ATTEMPTS - 1):
        try:
            return write(growing(store, fields))
        except CommitConflict as error:
            if error.reason is not ConflictReason.SCHEMA_CHANGED or not is_repeatable:
                raise
    return write(growing(store, fields))


def grow_now(store: TableStore, fields: Sequence[DataField]) -> TableStore:
    """Let a table grow before rows are written; for streams, whose batches come one by one.

    Raises:
        CommitConflict: others change the schema again and again.
    """

    def publish(new: TableStore) -> TableStore:
        new.publish_schema()
        return grown(new)

    return write_growing(store, fields, publish)


def _check_merging(changed: TableSchema, before: TableSchema) -> None:
    """Refuse columns that the merge options of a table do not allow, unless it has them already."""
    known = set(check_merge_options(before))
    problems = [problem for problem in check_merge_options(changed) if problem not in known]
    if problems:
        raise InvalidSchema("; ".join(problems))
    check_functions(changed, before)
