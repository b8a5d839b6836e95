"""Key tables that DuckDB reads by itself (``emberlake.sql.on_duckdb.key_parts``)."""

from dataclasses import dataclass
from typing import Final

from emberlake.spec.key_value import KIND, SEQUENCE
from emberlake.spec.manifest import EMPTY_ROW
from emberlake.spec.snapshot import Snapshot
from emberlake.sql.on_duckdb.dead_records import FILE, POSITION
from emberlake.sql.on_duckdb.key_parts import KeyPart, find_key_parts
from emberlake.sql.on_duckdb.native import is_plain_file, is_plain_table, listed, selected
from emberlake.sql.on_duckdb.pinned import PinnedTable
from emberlake.sql.on_duckdb.types import quoted
from emberlake.store.table_store import TableStore

_IS_KEPT: Final = f"{KIND} IN (0, 2)"  # +I and +U


@dataclass(frozen=True)
class KeyTable:
    """The files of a key table as sources of rows for DuckDB.

    Args:
        columns: What a query selects.
        keys: The primary key.
        old: Files in which no key occurs twice.
        newer: Files whose records are all newer; None if there are none.
        is_once: Whether no key occurs twice in ``newer`` either.
        files: All files, the old ones first.
        row_counts: The number of records in each of them.
        has_places: Whether DuckDB says where in the files a record is.
    """

    columns: str
    keys: tuple[str, ...]
    old: str
    newer: str | None
    is_once: bool
    files: str
    row_counts: tuple[int, ...]
    old_count: int
    has_places: bool


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
    both = KeyPart((*parts.old.files, *parts.newer.files))
    files, old = _source(store, both), _source(store, parts.old)
    if files is None or old is None:
        return None
    names = {field.name.lower() for field in pinned.fields}
    return KeyTable(
        columns=selected(pinned.fields),
        keys=tuple(map(quoted, parts.keys)),
        old=old,
        newer=_source(store, parts.newer) if parts.newer.files else None,
        is_once=parts.is_once,
        files=files,
        row_counts=tuple(file.row_count for _, file in both.files),
        old_count=len(parts.old.files),
        has_places=names.isdisjoint((FILE, POSITION)),
    )


def joined_query(table: KeyTable) -> str:
    """A query of the rows: old ones without the keys of newer ones, and those."""
    if table.newer is None:
        return f"SELECT {table.columns} FROM {table.old} WHERE {_IS_KEPT}"
    newest = f"{table.newer} WHERE"
    if not table.is_once:
        newest = f"(SELECT *, {_rank(table)} AS __rank FROM {table.newer}) WHERE __rank = 1 AND"
    return (
        f"SELECT {table.columns} FROM {_old_rows(table, 'ANTI')} WHERE {_IS_KEPT} "
        f"UNION ALL SELECT {table.columns} FROM {newest} {_IS_KEPT}"
    )


def places_query(table: KeyTable) -> str:
    """A query of the places of dead records, some of them more than once."""
    place = f"CAST(o.{FILE} AS BIGINT) AS file, o.{POSITION} AS position"
    text = f"SELECT {place} FROM {table.files} AS o WHERE NOT ({_IS_KEPT})"
    if table.newer is None:
        return text
    text += f" UNION ALL SELECT {place} FROM {_old_rows(table, 'SEMI')}"
    if not table.is_once:
        place = f"CAST({FILE} AS BIGINT) + {table.old_count} AS file, {POSITION} AS position"
        ranked = f"SELECT {place}, {_rank(table)} AS __rank FROM {table.newer}"
        text += f" UNION ALL SELECT file, position FROM ({ranked}) WHERE __rank > 1"
    return text


def placed_query(table: KeyTable, is_alive: str | None) -> str:
    """A query of the rows, which are the records that meet a condition on their places."""
    where = "" if is_alive is None else f" WHERE {is_alive}"
    return f"SELECT {table.columns} FROM {table.files}{where}"


def _old_rows(table: KeyTable, join: str) -> str:
    same = " AND ".join(f"n.{key} = o.{key}" for key in table.keys)
    return f"{table.old} AS o {join} JOIN {table.newer} AS n ON {same}"


def _rank(table: KeyTable) -> str:
    return f"row_number() OVER (PARTITION BY {', '.join(table.keys)} ORDER BY {SEQUENCE} DESC)"


def _source(store: TableStore, part: KeyPart) -> str | None:
    if not all(is_plain_file(store, file) for _, file in part.files):
        return None
    folders = {bucket: store.bucket_folder(EMPTY_ROW, bucket) for bucket, _ in part.files}
    return listed([f"{folders[bucket]}/{file.file_name}" for bucket, file in part.files])
