"""Key tables that DuckDB reads by itself (``emberlake.sql.on_duckdb.key_parts``)."""

from emberlake.spec.key_value import SEQUENCE
from emberlake.spec.manifest import EMPTY_ROW
from emberlake.spec.snapshot import Snapshot
from emberlake.sql.on_duckdb.key_parts import KEPT_KINDS, KeyPart, find_key_parts
from emberlake.sql.on_duckdb.native import is_plain_file, is_plain_table, listed, selected
from emberlake.sql.on_duckdb.pinned import PinnedTable
from emberlake.sql.on_duckdb.types import quoted
from emberlake.store.table_store import TableStore


def native_key_query(pinned: PinnedTable) -> str | None:
    """A query of DuckDB with the rows of a pinned key table; None if the engine has to merge."""
    store, target = pinned.store, pinned.target
    if not isinstance(target, Snapshot):
        return None
    if not is_plain_table(store, pinned.fields, with_keys=True):
        return None
    parts = find_key_parts(store, target)
    old = None if parts is None else _source(store, parts.old)
    if parts is None or old is None:
        return None
    columns = selected(pinned.fields)
    if not parts.newer.files:
        return f"SELECT {columns} FROM {old} WHERE {KEPT_KINDS}"
    newer = _source(store, parts.newer)
    if newer is None:
        return None
    keys = [quoted(name) for name in parts.keys]
    same = " AND ".join(f"n.{key} = o.{key}" for key in keys)
    newest = f"{newer} WHERE"
    if not parts.is_once:
        rank = f"row_number() OVER (PARTITION BY {', '.join(keys)} ORDER BY {SEQUENCE} DESC)"
        newest = f"(SELECT *, {rank} AS __rank FROM {newer}) WHERE __rank = 1 AND"
    return (
        f"SELECT {columns} FROM {old} AS o WHERE {KEPT_KINDS} "
        f"AND NOT EXISTS (SELECT 1 FROM {newer} AS n WHERE {same}) "
        f"UNION ALL SELECT {columns} FROM {newest} {KEPT_KINDS}"
    )


def _source(store: TableStore, part: KeyPart) -> str | None:
    if not all(is_plain_file(store, file) for _, file in part.files):
        return None
    folders = {bucket: store.bucket_folder(EMPTY_ROW, bucket) for bucket, _ in part.files}
    return listed([f"{folders[bucket]}/{file.file_name}" for bucket, file in part.files])
