"""The hidden columns of row-tracked tables, and which columns a data file has.

Spec: "Row tracking". A row keeps its id, whatever file it moves to, and has the number of the
snapshot that last changed it. Most files store neither: the id is that of the file's first row plus
the position of the row, and the number is in the manifest. Rows that have moved store both.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from emberlake.spec.key_value import SEQUENCE, SEQUENCE_FIELD
from emberlake.spec.schema import TableSchema
from emberlake.types import AtomicType, DataField

ROW_ID: Final = "_ROW_ID"
ROW_ID_FIELD: Final = DataField(2_147_483_642, ROW_ID, AtomicType("BIGINT", nullable=False))
HIDDEN_FIELDS: Final = (ROW_ID_FIELD, SEQUENCE_FIELD)
HIDDEN_NAMES: Final = (ROW_ID, SEQUENCE)

# A stored null means that the value is in the metadata.
_STORED: Final = {f.name: replace(f, type=f.type.with_nullable(True)) for f in HIDDEN_FIELDS}


def is_hidden(field: DataField) -> bool:
    """Whether a column is one that row-tracked tables have without declaring it."""
    return field.id in (ROW_ID_FIELD.id, SEQUENCE_FIELD.id)


def readable_fields(schema: TableSchema) -> tuple[DataField, ...]:
    """The columns that a read may name: those of the table, then its hidden ones."""
    return (*schema.fields, *HIDDEN_FIELDS) if schema.profile.tracks_rows else schema.fields


def stored_fields(
    schema: TableSchema, write_cols: Sequence[str] | None
) -> tuple[DataField, ...] | None:
    """The columns of a data file of an append table, in order.

    Args:
        schema: The schema that the file was written with.
        write_cols: The names in the file's metadata; None: all columns of that schema.

    Returns:
        The columns; None if the schema does not have all of them.
    """
    if write_cols is None:
        return schema.fields
    known = {**_STORED, **schema.field_by_name}
    found = tuple(known[name] for name in write_cols if name in known)
    return found if len(found) == len(write_cols) else None


def carried_fields(schema: TableSchema, *, is_changed: bool = True) -> tuple[DataField, ...]:
    """The columns of files with rows that have moved, in order.

    ``is_changed``: some rows may have changed, so the number of their last change is not known yet.
    """
    number = _STORED[SEQUENCE] if is_changed else SEQUENCE_FIELD
    return (*schema.fields, ROW_ID_FIELD, number)
