"""How DuckDB reads tables by itself, remembered for the next query of the same snapshot."""

from dataclasses import dataclass
from typing import Final

from emberlake.spec.layout import TableLayout
from emberlake.spec.schema import TableSchema
from emberlake.spec.snapshot import Snapshot
from emberlake.sql.on_duckdb.native import native_query
from emberlake.sql.on_duckdb.native_keys import native_key_query
from emberlake.sql.on_duckdb.pinned import PinnedTable
from emberlake.types import DataField

_MOST_REMEMBERED: Final = 256


@dataclass(frozen=True)
class _Decided:
    """A decision, and everything that it depends on."""

    snapshot: Snapshot
    schema: TableSchema
    fields: tuple[DataField, ...]
    query: str | None


class NativeQueries:
    """Queries of DuckDB by tables; the files of a snapshot never change."""

    def __init__(self) -> None:
        self._decided: dict[tuple[TableLayout, int], _Decided] = {}

    def find(self, pinned: PinnedTable) -> str | None:
        """A query with the rows of a pinned table; None if only our own scan has them."""
        snapshot, schema = pinned.target, pinned.store.schema
        if not isinstance(snapshot, Snapshot):
            return None
        key = pinned.store.layout, snapshot.id
        found = self._decided.pop(key, None)
        # A table that was dropped and made again has other snapshots with the same ids.
        if found is None or (found.snapshot, found.schema, found.fields) != (
            snapshot,
            schema,
            pinned.fields,
        ):
            query = native_query(pinned) or native_key_query(pinned)
            found = _Decided(snapshot, schema, pinned.fields, query)
        self._decided[key] = found  # the last one is the newest
        if len(self._decided) > _MOST_REMEMBERED:
            del self._decided[next(iter(self._decided))]
        return found.query
