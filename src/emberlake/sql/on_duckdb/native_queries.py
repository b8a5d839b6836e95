"""How DuckDB reads tables by itself, remembered for the next query of the same snapshot."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from itertools import count
from typing import Final

from emberlake.base.byte_cache import ByteCache
from emberlake.spec.layout import TableLayout
from emberlake.spec.schema import TableSchema
from emberlake.spec.snapshot import Snapshot
from emberlake.sql.on_duckdb.connection import Database, Prepared
from emberlake.sql.on_duckdb.dead_records import DeadRecords, collect_dead
from emberlake.sql.on_duckdb.native import native_query
from emberlake.sql.on_duckdb.native_keys import (
    KeyTable,
    find_key_table,
    joined_query,
    placed_query,
    places_query,
)
from emberlake.sql.on_duckdb.pinned import PinnedTable
from emberlake.types import DataField

_MOST_REMEMBERED: Final = 256
_MOST_BITS: Final = 64 << 20  # bytes, for all tables
_MOST_RECORDS: Final = 1 << 27  # whose bits are kept, for one table
_RECORDS_A_READ: Final = 1 << 24


@dataclass(frozen=True)
class NativeQuery:
    """A query of DuckDB, and the values of its variables."""

    text: str
    bits: Mapping[str, bytes] = field(default_factory=dict)


@dataclass(frozen=True)
class _Decided:
    """A decision, everything that it depends on, and how often it was used."""

    snapshot: Snapshot
    schema: TableSchema
    fields: tuple[DataField, ...]
    plain: str | None
    keys: KeyTable | None
    reads: int = 0


class NativeQueries:
    """Queries of DuckDB by tables; the files of a snapshot never change."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._decided: dict[tuple[TableLayout, int], _Decided] = {}
        self._placed = ByteCache(lambda: _MOST_BITS)  # queries by key tables
        self._number = count(1)

    def find(self, pinned: PinnedTable) -> NativeQuery | None:
        """A query with the rows of a pinned table; None if only our own scan has them."""
        snapshot = pinned.target
        if not isinstance(snapshot, Snapshot):
            return None
        key = pinned.store.layout, snapshot.id
        found = self._decided.pop(key, None)
        # A table that was dropped and made again has other snapshots with the same ids.
        if found is None or (found.snapshot, found.schema, found.fields) != (
            snapshot,
            pinned.store.schema,
            pinned.fields,
        ):
            found = _decide(pinned, snapshot)
        found = replace(found, reads=found.reads + 1)
        self._decided[key] = found  # the last one is the newest
        if len(self._decided) > _MOST_REMEMBERED:
            del self._decided[next(iter(self._decided))]
        if found.keys is not None:
            return self._of_keys(found.keys, found.reads)
        return None if found.plain is None else NativeQuery(found.plain)

    def _of_keys(self, table: KeyTable, reads: int) -> NativeQuery:
        """A join, or places of dead records: looking for them pays off after some reads."""
        records = table.files.row_count
        pays_off = reads > 1 + records // _RECORDS_A_READ
        if not (pays_off and table.has_places and records <= _MOST_RECORDS):
            return NativeQuery(joined_query(table))
        found: NativeQuery | None = self._placed.find((table,))
        if found is None:
            dead = self._find_dead(table)
            prefix = f"dead_{next(self._number)}"
            found = NativeQuery(placed_query(table, dead.condition(prefix)), dead.named(prefix))
            self._placed.keep((table,), found, dead.byte_count + 2 * len(found.text))
        return found

    def _find_dead(self, table: KeyTable) -> DeadRecords:
        places = self._database.stream(Prepared(places_query(table)))
        return collect_dead(places, table.files.row_counts)


def _decide(pinned: PinnedTable, snapshot: Snapshot) -> _Decided:
    plain = native_query(pinned)
    keys = find_key_table(pinned) if plain is None else None
    return _Decided(snapshot, pinned.store.schema, pinned.fields, plain, keys)
