"""Columns that a write to a primary-key table must not leave out by accident.

If a record replaces the row with its key, a column that is left out becomes null. The write
looks like an update of the other columns, but is not. So the caller must be explicit: give nulls in
the data, or declare the columns. Deletes need only the key and the columns that order records.
"""

from collections.abc import Collection, Iterator
from typing import Final

from emberlake.merge.plan import MergePlan
from emberlake.options import MergeEngine
from emberlake.spec.schema import TableSchema
from emberlake.types import DataField

_SAY_SO: Final = (
    "give every column, with nulls where null is meant, or name the columns that are meant with "
    "with_write_type"
)


def lacking_columns(
    schema: TableSchema,
    plan: MergePlan,
    given: Collection[str],
    *,
    is_declared: bool,
    has_adds: bool,
) -> dict[str, str]:
    """Why columns must not be left out, by their names.

    NOT NULL columns are not among them: every table refuses data without those.

    Args:
        schema: The table.
        plan: How its records are merged, over all columns.
        given: The columns of the data.
        is_declared: Whether the caller has declared the columns of the data.
        has_adds: Whether some of the rows are not deletes.
    """
    missing = [f for f in schema.fields if f.name not in given and _becomes_null(f)]
    # A delete finds its row in any partition if keys are unique over all of them.
    finds_partition = schema.profile.crosses_partitions and not has_adds
    problems = dict(_lacking_keys(schema, missing, finds_partition=finds_partition))
    if is_declared:
        return problems
    ordering = [
        f.name for f in missing if f.name in {order.column.name for order in plan.sequences}
    ]
    if ordering:
        problems[", ".join(ordering)] = (
            "left out, and says which record is newer: without it a record is older than all "
            f"others and changes nothing; {_SAY_SO}"
        )
    if not has_adds:
        return problems
    nulled = plan.nulled_without(given)
    named = {*problems, *ordering}
    names = [f.name for f in missing if f.name in nulled and f.name not in named]
    if names:
        problems[", ".join(names)] = _replacement(plan.engine)
    return problems


def _becomes_null(field: DataField) -> bool:
    return field.type.nullable and field.default_value is None


def _lacking_keys(
    schema: TableSchema, missing: Collection[DataField], *, finds_partition: bool
) -> Iterator[tuple[str, str]]:
    for field in missing:
        if field.name in schema.primary_keys:
            yield field.name, "is missing, and is in the primary key"
        elif field.name in schema.partition_keys and not finds_partition:
            yield field.name, "is missing, and a key is looked for in the partition that it says"


def _replacement(engine: MergeEngine) -> str:
    if engine is MergeEngine.DEDUPLICATE:
        return (
            "left out, and would become null: with merge-engine=deduplicate a row replaces the "
            f"whole row that has its key; {_SAY_SO}; merge-engine=partial-update keeps what is "
            "left out"
        )
    return (
        f"left out, and would become null: with merge-engine={engine} the last value of these "
        f"columns counts, null or not; {_SAY_SO}"
    )
