"""Key tables that DuckDB reads by itself: records of plain files that no newer one replaces.

A table that keeps the newest record of a key has mostly old files, and a few newer ones that share
keys with them. Metadata tells which (``emberlake.scan.newest``), so DuckDB can find the records
that newer ones replace without merging.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from emberlake.read.key_read import may_retract
from emberlake.scan.newest import find_key_files
from emberlake.scan.plan import plan_target
from emberlake.spec.key_value import KIND, SEQUENCE
from emberlake.spec.manifest import DataFile
from emberlake.spec.snapshot import Snapshot
from emberlake.sql.on_duckdb.native import (
    FILE,
    POSITION,
    are_plain_paths,
    has_few_files,
    hides_places,
    is_plain_file,
    is_plain_table,
    listed,
    rows_query,
)
from emberlake.sql.on_duckdb.pinned import PinnedTable
from emberlake.sql.on_duckdb.types import quoted
from emberlake.store.table_store import TableStore
from emberlake.types import DataField

_MOST_NEWER: Final = 0.35  # of the records; a table with more newer ones is merged
_IS_KEPT: Final = f"{KIND} IN (0, 2)"  # +I and +U
_ASSUMED_SHARE: Final = 0.2  # of the rows for which a condition is true, as DuckDB guesses


@dataclass(frozen=True)
class Files:
    """Data files, and how many records each of them has."""

    paths: tuple[str, ...] = ()
    row_counts: tuple[int, ...] = ()

    @property
    def row_count(self) -> int:
        return sum(self.row_counts)

    def scan(self, expected: int | None = None) -> str:
        """A source of all records; DuckDB orders joins as if it had this many rows."""
        return listed(self.paths, self.row_count if expected is None else expected)


@dataclass(frozen=True)
class KeyTable:
    """A key table that DuckDB reads by itself.

    Args:
        fields: The columns.
        keys: The primary key.
        files: All files.
        newer: Those of them that may replace records of others: records of the same key with a
            higher sequence number.
        may_retract: Whether a record may be no row although no other one replaces it.
        has_places: Whether DuckDB says where in the files a record is.
    """

    fields: tuple[DataField, ...]
    keys: tuple[str, ...]
    files: Files
    newer: Files
    may_retract: bool
    has_places: bool

    @property
    def may_have_dead(self) -> bool:
        """Whether a record may be no row."""
        return self.may_retract or bool(self.newer.paths)


def find_key_table(pinned: PinnedTable) -> KeyTable | None:
    """A pinned table for DuckDB; None if the engine has to merge it."""
    store, target = pinned.store, pinned.target
    if not isinstance(target, Snapshot):
        return None
    if not is_plain_table(store, pinned.fields, with_keys=True):
        return None
    if not has_few_files(store, target):
        return None
    found: list[tuple[str, DataFile]] = []
    newer: list[tuple[str, DataFile]] = []
    for split in plan_target(store, target, None, None).splits:
        parts = find_key_files(store.schema, split)
        if parts.merged or split.deletion_files:
            return None
        folder = store.bucket_folder(split.partition, split.bucket)
        placed = [(f"{folder}/{file.file_name}", file) for file in split.files]
        found += placed
        newer += [placed[number] for number in parts.newer]
    if not _are_plain(store, found):
        return None
    table = KeyTable(
        fields=pinned.fields,
        keys=tuple(map(quoted, store.schema.trimmed_primary_keys)),
        files=_files(found),
        newer=_files(newer),
        may_retract=any(may_retract(file) for _, file in found),
        has_places=not hides_places(pinned.fields),
    )
    is_small = table.newer.row_count <= _MOST_NEWER * table.files.row_count
    return table if is_small else None


def _are_plain(store: TableStore, found: Sequence[tuple[str, DataFile]]) -> bool:
    """Whether there are files, and DuckDB reads all of them as we do."""
    return (
        bool(found)
        and all(is_plain_file(store, file) for _, file in found)
        and are_plain_paths(path for path, _ in found)
    )


def _files(found: Sequence[tuple[str, DataFile]]) -> Files:
    paths = tuple(path for path, _ in found)
    return Files(paths, tuple(file.row_count for _, file in found))


# --- queries --------------------------------------------------------------------------------------


def joined_query(table: KeyTable) -> str:
    """A query of the rows: records that add one, and that no newer one replaces."""
    source = _joined(table, "ANTI") if table.newer.paths else table.files.scan()
    return rows_query(table.fields, source, _IS_KEPT)


def places_query(table: KeyTable) -> str:
    """A query of the places of dead records, some of them more than once."""
    place = f"CAST({FILE} AS BIGINT) AS file, {POSITION} AS position"
    text = f"SELECT {place} FROM {table.files.scan()} WHERE NOT ({_IS_KEPT})"
    if not table.newer.paths:
        return text
    place = f"CAST(o.{FILE} AS BIGINT), o.{POSITION}"
    return f"{text} UNION ALL SELECT {place} FROM {_joined(table, 'SEMI')}"


def placed_query(table: KeyTable, is_alive: str | None) -> str:
    """A query of the rows, which are the records that meet a condition on their places."""
    if is_alive is None:
        return rows_query(table.fields, table.files.scan())
    expected = round(table.files.row_count / _ASSUMED_SHARE)
    return rows_query(table.fields, table.files.scan(expected), is_alive)


def _joined(table: KeyTable, join: str) -> str:
    """The records that newer ones replace, or the others."""
    pairs = [f"n.{key} = o.{key}" for key in table.keys]
    replaces = " AND ".join([*pairs, f"n.{SEQUENCE} > o.{SEQUENCE}"])
    return f"{table.files.scan()} AS o {join} JOIN {table.newer.scan()} AS n ON {replaces}"
