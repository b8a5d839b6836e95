"""System tables in the notation of Java's engines, for SQL statements that compare with it.

Partitions are ``{p, q}``, keys ``[1, a]``, statistics ``{a=1, b=null}`` in the order of names.
Elsewhere they are JSON, which programs can read.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import date
from functools import partial
from typing import Any, Final

import pyarrow as pa

from emberlake.inspect.files import load_file_columns
from emberlake.inspect.system_table import LazyColumns, SystemTable, SystemTableKind
from emberlake.inspect.tables import SYSTEM_TABLES
from emberlake.inspect.text import braced_partitions
from emberlake.inspect.totals import load_bucket_totals, load_live_files
from emberlake.read.casts import cast_array
from emberlake.spec.snapshot import Snapshot
from emberlake.store.table_store import TableStore
from emberlake.types import AtomicType, DataType, TypeRoot, arrow_type

_EPOCH: Final = date(1970, 1, 1)
_STRING: Final = AtomicType("STRING")


def as_in_java(table: SystemTable) -> SystemTable:
    """The same table as Java's engines show it."""
    return replace(table, kind=_FORMS.get(table.kind.name, table.kind))


def _load_files(store: TableStore, snapshot: Snapshot | None) -> LazyColumns:
    columns = load_file_columns(store, snapshot)
    types = {f.name: f.type for f in store.schema.fields}
    keys = {str(n): types[name] for n, name in enumerate(store.schema.trimmed_primary_keys)}
    values = dict.fromkeys(("min_value_stats", "max_value_stats"), types)
    forms: dict[str, Mapping[str, DataType]] = {"min_key": keys, "max_key": keys, **values}

    def partition() -> pa.Array:
        entries = load_live_files(store, snapshot)
        names = braced_partitions(store, entries.partitions)
        return pa.array(names, pa.string()).take(pa.array(entries.partition_codes))

    return {
        **columns,
        "partition": partition,
        **{name: partial(_rewritten, columns[name], forms.get(name, {})) for name in _JSON_COLUMNS},
    }


def _load_key_ranges(store: TableStore, snapshot: Snapshot | None) -> LazyColumns:
    columns = _load_files(store, snapshot)
    return {field.name: columns[field.name] for field in SYSTEM_TABLES["file_key_ranges"].fields}


def _load_buckets(store: TableStore, snapshot: Snapshot | None) -> LazyColumns:
    columns = SYSTEM_TABLES["buckets"].load(store, snapshot)
    totals = load_bucket_totals(store, snapshot)
    names = braced_partitions(store, totals.partitions)
    return {**columns, "partition": partial(pa.array, names, pa.string())}


_JSON_COLUMNS: Final = (
    "min_key",
    "max_key",
    "null_value_counts",
    "min_value_stats",
    "max_value_stats",
)


def _rewritten(column: Callable[[], pa.Array], types: Mapping[str, DataType]) -> pa.Array:
    texts = column().dictionary_encode()
    known = [_shown(text, types) for text in texts.dictionary.to_pylist()]
    return pa.array(known, pa.string()).take(texts.indices)


def _shown(text: str, types: Mapping[str, DataType]) -> str:
    value = json.loads(text, parse_int=str, parse_float=str)
    if isinstance(value, list):
        parts = (_text(item, types.get(str(n))) for n, item in enumerate(value))
        return f"[{', '.join(parts)}]"
    members = sorted(value.items())
    shown = (f"{name}={_text(member, types.get(name))}" for name, member in members)
    return f"{{{', '.join(shown)}}}"


def _text(value: Any, data_type: DataType | None) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return str(value).lower()
    root = data_type.root if isinstance(data_type, AtomicType) else None
    if root is TypeRoot.DATE:  # Java shows what it stores: days
        return str((date.fromisoformat(value) - _EPOCH).days)
    if root in (TypeRoot.TIMESTAMP, TypeRoot.TIMESTAMP_LTZ):
        return _moment_text(value)
    if data_type is not None and root in (TypeRoot.FLOAT, TypeRoot.DOUBLE):
        number = pa.array([float(value)], arrow_type(data_type))
        return str(cast_array(number, data_type, _STRING)[0])
    return str(value)


def _moment_text(value: str) -> str:
    """``2024-01-01T10:00``: seconds are left out if they are zero, as Java does."""
    day, _, time = value.removesuffix("Z").partition(" ")
    clock, _, fraction = time.partition(".")
    fraction = fraction.rstrip("0")
    if fraction:
        return f"{day}T{clock}.{fraction.ljust(-(-len(fraction) // 3) * 3, '0')}"
    return f"{day}T{clock.removesuffix(':00') if clock.count(':') == 2 else clock}"


def _form(name: str, **changes: Any) -> SystemTableKind:
    return replace(SYSTEM_TABLES[name], **changes)


_FORMS: Final[Mapping[str, SystemTableKind]] = {
    "files": _form("files", load=_load_files),
    "file_key_ranges": _form("file_key_ranges", load=_load_key_ranges),
    "buckets": _form("buckets", load=_load_buckets),
    "snapshots": _form(
        "snapshots",
        fields=tuple(f for f in SYSTEM_TABLES["snapshots"].fields if f.name != "writer_version"),
    ),
}
