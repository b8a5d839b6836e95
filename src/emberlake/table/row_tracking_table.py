"""The system table of row-tracked tables: all rows, with their ids and when they last changed."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Self

from emberlake.errors import Unsupported
from emberlake.inspect.system_table import LazyColumns, SystemTable, SystemTableKind
from emberlake.inspect.tables import ROW_TRACKING
from emberlake.spec.identifier import Identifier
from emberlake.spec.row_tracking import HIDDEN_FIELDS, readable_fields
from emberlake.spec.snapshot import Snapshot
from emberlake.store.table_store import TableStore
from emberlake.table.read_builder import ReadBuilder


@dataclass(frozen=True, eq=False, repr=False)
class RowTrackingTable(SystemTable):
    """``db.t$row_tracking``: it is read as the table is, in parts."""

    def new_read_builder(self) -> ReadBuilder:  # type: ignore[override]  # of data, not metadata
        """A builder for a read; by default it has all columns, the hidden ones last."""
        builder = _ReadBuilder(self.store, _name=str(self.identifier))
        return builder.with_projection(None)

    def count(self, filter: object = None) -> int:  # noqa: A002
        """The number of rows, or of those that match."""
        return len(self.to_arrow([HIDDEN_FIELDS[0].name], filter))  # type: ignore[arg-type]


class _ReadBuilder(ReadBuilder):
    def with_projection(self, projection: Sequence[str] | Mapping[str, str] | None) -> Self:
        if projection is None:
            projection = [field.name for field in readable_fields(self.store.schema)]
        return super().with_projection(projection)


def open_row_tracking(identifier: Identifier, store: TableStore) -> RowTrackingTable:
    """The rows of a table with their ids.

    Raises:
        Unsupported: its rows have no ids.
    """
    if not store.schema.profile.tracks_rows:
        raise Unsupported(
            f"{identifier}: rows of this table have no ids; row-tracking.enabled=true is set when "
            "a table is created"
        )
    fields = readable_fields(store.schema)
    return RowTrackingTable(
        SystemTableKind(ROW_TRACKING, fields, (), _no_columns), identifier, store
    )


def _no_columns(store: TableStore, snapshot: Snapshot | None) -> LazyColumns:
    del store, snapshot
    return {}
