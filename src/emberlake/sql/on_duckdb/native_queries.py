"""How DuckDB reads tables by itself, remembered for the next query of the same snapshot."""

import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import count
from typing import Final

from emberlake.base.byte_cache import ByteCache
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

_MOST_DECIDED: Final = 8 << 20  # bytes, for all tables
_MOST_BITS: Final = 64 << 20  # bytes, for all tables
_MOST_RECORDS: Final = 1 << 27  # whose bits are kept, for one table
_RECORDS_A_READ: Final = 1 << 24
_STATE_BYTES: Final = 4 << 10  # of a snapshot and a schema, about


@dataclass(frozen=True)
class NativeQuery:
    """A query of files, and the values of its variables, which are of type BIT."""

    text: str
    bits: Mapping[str, bytes] = field(default_factory=dict)


@dataclass(frozen=True)
class _Decided:
    """A decision, everything that it depends on, and numbers for the reads that use it."""

    snapshot: Snapshot
    schema: TableSchema
    fields: tuple[DataField, ...]
    way: str | KeyTable | None  # a query, or what makes one; None: only our own scan has the rows
    reads: Iterator[int] = field(default_factory=lambda: count(1))

    def is_about(self, pinned: PinnedTable) -> bool:
        """Whether it holds for a table: if it was made again, its snapshots have the same ids."""
        mine = self.snapshot, self.schema, self.fields
        return mine == (pinned.target, pinned.store.schema, pinned.fields)

    @property
    def byte_count(self) -> int:
        way = self.way
        texts = way.files.paths if isinstance(way, KeyTable) else (way or "",)
        return _STATE_BYTES + sum(map(sys.getsizeof, texts))


class NativeQueries:
    """Queries of DuckDB by tables; the files of a snapshot never change."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._decided = ByteCache(lambda: _MOST_DECIDED)  # by layouts and ids of snapshots
        self._placed = ByteCache(lambda: _MOST_BITS)  # queries by key tables
        self._number = count(1)

    def find(self, pinned: PinnedTable) -> NativeQuery | None:
        """A query with the rows of a pinned table; None if only our own scan has them."""
        snapshot = pinned.target
        if not isinstance(snapshot, Snapshot):
            return None
        key = pinned.store.layout, snapshot.id
        found: _Decided | None = self._decided.find(key)
        if found is None or not found.is_about(pinned):
            found = _Decided(snapshot, pinned.store.schema, pinned.fields, _way(pinned))
            self._decided.replace(key, found, found.byte_count)
        if isinstance(found.way, KeyTable):
            return self._of_keys(found.way, next(found.reads))
        return None if found.way is None else NativeQuery(found.way)

    def _of_keys(self, table: KeyTable, reads: int) -> NativeQuery:
        """A join, or places of dead records: looking for them pays off after some reads."""
        if not table.may_have_dead:
            return NativeQuery(placed_query(table, None))
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


def _way(pinned: PinnedTable) -> str | KeyTable | None:
    return find_key_table(pinned) if pinned.store.schema.profile.has_keys else native_query(pinned)
