"""Key tables that DuckDB reads by itself (``emberlake.sql.on_duckdb.key_parts``)."""

from dataclasses import dataclass
from typing import Final

from emberlake.spec.key_value import KIND, SEQUENCE
from emberlake.spec.manifest import EMPTY_ROW
from emberlake.spec.snapshot import Snapshot
from emberlake.sql.on_duckdb.dead_records import FILE, POSITION
from emberlake.sql.on_duckdb.key_parts import KeyPart, find_key_parts
from emberlake.sql.on_duckdb.native import (
    are_plain_paths,
    is_plain_file,
    is_plain_table,
    listed,
    selected,
)
from emberlake.sql.on_duckdb.pinned import PinnedTable
from emberlake.sql.on_duckdb.types import quoted
from emberlake.store.table_store import TableStore

_IS_KEPT: Final = f"{KIND} IN (0, 2)"  # +I and +U
_ASSUMED_SHARE: Final = 0.2  # of the rows for which a condition is true, as DuckDB guesses


@dataclass(frozen=True)
class Files:
    """Data files, and how many records each of them has."""

    paths: tuple[str, ...]
    row_counts: tuple[int, ...]

    @property
    def row_count(self) -> int:
        return sum(self.row_counts)

    def scan(self, expected: int | None = None) -> str:
        """A source of all records; DuckDB orders joins as if it had so many rows."""
        return listed(self.paths, self.row_count if expected is None else expected)


@dataclass(frozen=True)
class KeyTable:
    """A key table that DuckDB reads by itself.

    Args:
        columns: What a query selects.
        keys: The primary key.
        old: Files in which no key occurs twice.
        newer: Files whose records are all newer.
        is_once: Whether no key occurs twice in ``newer`` either.
        has_places: Whether DuckDB says where in the files a record is.
    """

    columns: str
    keys: tuple[str, ...]
    old: Files
    newer: Files
    is_once: bool
    has_places: bool

    @property
    def files(self) -> Files:
        """All files, the old ones first."""
        old, newer = self.old, self.newer
        return Files(old.paths + newer.paths, old.row_counts + newer.row_counts)


def find_key_table(pinned: PinnedTable) -> KeyTable | None:
    """A pinned table for DuckDB; None if the engine has to merge it."""
    store, target = pinned.store, pinned.target
    if not isinstance(target, Snapshot):
        return None
    if not is_plain_table(store, pinned.fields, with_keys=True):
        return None
    parts = find_key_parts(store, target)
    if parts is None:
        return None
    old, newer = _files(store, parts.old), _files(store, parts.newer)
    if old is None or newer is None:
        return None
    names = {field.name.lower() for field in pinned.fields}
    return KeyTable(
        columns=selected(pinned.fields),
        keys=tuple(map(quoted, parts.keys)),
        old=old,
        newer=newer,
        is_once=parts.is_once,
        has_places=names.isdisjoint((FILE, POSITION)),
    )


def _files(store: TableStore, part: KeyPart) -> Files | None:
    if not all(is_plain_file(store, file) for _, file in part.files):
        return None
    folders = {bucket: store.bucket_folder(EMPTY_ROW, bucket) for bucket, _ in part.files}
    paths = tuple(f"{folders[bucket]}/{file.file_name}" for bucket, file in part.files)
    if not are_plain_paths(paths):
        return None
    return Files(paths, tuple(file.row_count for _, file in part.files))


# --- queries --------------------------------------------------------------------------------------


def joined_query(table: KeyTable) -> str:
    """A query of the rows: old ones without the keys of newer ones, and those."""
    if not table.newer.paths:
        return f"SELECT {table.columns} FROM {table.old.scan()} WHERE {_IS_KEPT}"
    newest = f"{table.newer.scan()} WHERE"
    if not table.is_once:
        newest = (
            f"(SELECT *, {_rank(table)} AS __rank FROM {table.newer.scan()}) WHERE __rank = 1 AND"
        )
    return (
        f"SELECT {table.columns} FROM {_old_rows(table, 'ANTI')} WHERE {_IS_KEPT} "
        f"UNION ALL SELECT {table.columns} FROM {newest} {_IS_KEPT}"
    )


def places_query(table: KeyTable) -> str:
    """A query of the places of dead records, some of them more than once."""
    place = f"CAST(o.{FILE} AS BIGINT) AS file, o.{POSITION} AS position"
    text = f"SELECT {place} FROM {table.files.scan()} AS o WHERE NOT ({_IS_KEPT})"
    if not table.newer.paths:
        return text
    text += f" UNION ALL SELECT {place} FROM {_old_rows(table, 'SEMI')}"
    if not table.is_once:
        place = f"CAST({FILE} AS BIGINT) + {len(table.old.paths)} AS file, {POSITION} AS position"
        ranked = f"SELECT {place}, {_rank(table)} AS __rank FROM {table.newer.scan()}"
        text += f" UNION ALL SELECT file, position FROM ({ranked}) WHERE __rank > 1"
    return text


def placed_query(table: KeyTable, is_alive: str | None) -> str:
    """A query of the rows, which are the records that meet a condition on their places."""
    if is_alive is None:
        return f"SELECT {table.columns} FROM {table.files.scan()}"
    expected = round(table.files.row_count / _ASSUMED_SHARE)
    return f"SELECT {table.columns} FROM {table.files.scan(expected)} WHERE {is_alive}"


def _old_rows(table: KeyTable, join: str) -> str:
    same = " AND ".join(f"n.{key} = o.{key}" for key in table.keys)
    return f"{table.old.scan()} AS o {join} JOIN {table.newer.scan()} AS n ON {same}"


def _rank(table: KeyTable) -> str:
    return f"row_number() OVER (PARTITION BY {', '.join(table.keys)} ORDER BY {SEQUENCE} DESC)"
