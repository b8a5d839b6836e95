"""Add the columns that new data has and the table lacks, before the data is written."""

from collections.abc import Sequence
from typing import Final

from emberlake.errors import CommitConflict, ConflictReason, TableNotFound, Unsupported
from emberlake.spec.schema_change import SchemaChange
from emberlake.spec.schema_evolution import apply_changes
from emberlake.store.snapshots import FilePublisher
from emberlake.store.table_store import TableStore
from emberlake.types import DataField

_ATTEMPTS: Final = 10


def add_columns(store: TableStore, columns: Sequence[DataField]) -> None:
    """Add those of the columns that the table does not have; they can be null.

    Raises:
        Unsupported: the schema belongs to a server; a column has a type that is not supported.
        InvalidSchema: the table cannot have such a column.
        CommitConflict: others changed the schema again and again.
    """
    for _ in range(_ATTEMPTS):
        current = store.schemas.latest()
        if current is None:
            raise TableNotFound(f"{store.layout.metadata_root} has no schema any more")
        new = [f for f in columns if f.name not in current.field_by_name]
        if not new:
            return
        if not isinstance(store.publisher, FilePublisher):
            names = ", ".join(f.name for f in new)
            raise Unsupported(
                f"the catalog keeps the schema of this table: add {names} with alter_table first"
            )
        changed = apply_changes(
            current,
            [SchemaChange.add_column(f.name, f.type.with_nullable(True)) for f in new],
            has_snapshots=store.snapshots.latest_id() is not None,
            time_millis=store.env.now_ms(),
        )
        if store.schemas.create(changed):
            return
    raise CommitConflict(
        ConflictReason.SCHEMA_CHANGED,
        f"others changed the schema in each of {_ATTEMPTS} attempts",
        "try again when fewer others are altering the table",
    )
