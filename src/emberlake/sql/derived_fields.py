"""The columns of system tables that are reads of their data table."""

from emberlake.spec.row_tracking import HIDDEN_FIELDS
from emberlake.table import Table
from emberlake.types import ArrayType, AtomicType, DataField

_KIND = DataField(0, "rowkind", AtomicType("STRING NOT NULL"))


def derived_fields(kind: str, table: Table) -> tuple[DataField, ...] | None:
    """The columns of ``t$audit_log`` and the like; None if it is not one of them."""
    fields = tuple(table.fields)
    match kind.lower():
        case "audit_log":
            return (_KIND, *fields)
        case "binlog":
            arrays = (DataField(f.id, f.name, ArrayType(True, f.type)) for f in fields)
            return (_KIND, *arrays)
        case "ro":
            return fields
        case "row_tracking":
            return (*fields, *HIDDEN_FIELDS)
        case _:
            return None
