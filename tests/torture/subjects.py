"""The tables that are tortured, and what is done to them: small, and of every kind."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import pyarrow as pa

from builders import NAME, copy_of, open_catalog, open_table
from emberlake import AtomicType, DataField, Schema, SchemaChange
from emberlake.base.requests import settle
from emberlake.catalog import FileSystemCatalog
from emberlake.errors import InvalidInput
from emberlake.io import MemoryStorage, Storage
from emberlake.table import Table
from emberlake.types import arrow_type
from places import Place, living_at
from table_reads import check_whole, manifest_files, referenced_manifests

Record = tuple[Any, ...]
State = tuple[tuple[str, ...], tuple[Record, ...]]  # columns, and rows in an order of their own

COLUMNS = {"id": "BIGINT", "day": "STRING", "n": "BIGINT", "v": "STRING"}
OLD = (
    [(1, "mon", 1, "old"), (2, "mon", 1, "old"), (3, "tue", 1, "old")],
    [(2, "mon", 2, "older"), (4, "wed", 2, "older")],
)


@dataclass(frozen=True)
class Subject:
    """A kind of table."""

    name: str
    options: Mapping[str, str] = field(default_factory=dict, hash=False)
    primary_keys: tuple[str, ...] = ()
    partition_keys: tuple[str, ...] = ()
    # Rows are seen only once they are compacted, which is a commit of its own.
    hides_what_is_new: bool = False

    def schema(self) -> Schema:
        fields = [DataField(i, n, AtomicType(t)) for i, (n, t) in enumerate(COLUMNS.items())]
        # Manifests are merged at nearly every commit: that is swept as well.
        options = {"manifest.merge-min-count": "2", **self.options}
        return Schema(fields, self.partition_keys, self.primary_keys, options)

    @property
    def operations(self) -> tuple[str, ...]:
        if not self.primary_keys:
            named = [*WRITES, *ROW_CHANGES, *NEW_UPDATES]
            return tuple(name for name in named if name not in ("upsert", "delete"))
        changes = ROW_CHANGES if self.name in _CHANGED_BY_ROWS else {}
        return tuple(name for name in (*WRITES, *changes) if name not in ("append", "upsert by id"))


_BY_DAY = {"primary_keys": ("day", "id"), "partition_keys": ("day",)}
_BY_ID = {"primary_keys": ("id",)}
# Key tables in which a record takes the place of a row, and that show it at once.
_CHANGED_BY_ROWS = ("keys", "keys, two buckets", "dynamic", "vectors", "ordered", "partial")
SUBJECTS: dict[str, Subject] = {
    subject.name: subject
    for subject in (
        Subject("append", partition_keys=("day",)),
        Subject("append buckets", {"bucket": "2", "bucket-key": "id"}),
        Subject("append vectors", {"deletion-vectors.enabled": "true"}, partition_keys=("day",)),
        Subject("tracked", {"row-tracking.enabled": "true"}),
        Subject(
            "columns",
            {
                "row-tracking.enabled": "true",
                "data-evolution.enabled": "true",
                "deletion-vectors.enabled": "true",
            },
        ),
        Subject("keys", {"bucket": "1"}, **_BY_DAY),
        Subject("keys, two buckets", {"bucket": "2", "changelog-producer": "input"}, **_BY_ID),
        Subject("dynamic", {"bucket": "-1", "dynamic-bucket.target-row-num": "2"}, **_BY_DAY),
        Subject(
            "vectors",
            {"bucket": "1", "deletion-vectors.enabled": "true"},
            hides_what_is_new=True,
            **_BY_DAY,
        ),
        Subject(
            "first row",
            {"bucket": "1", "merge-engine": "first-row", "ignore-delete": "true"},
            hides_what_is_new=True,
            **_BY_ID,
        ),
        Subject(
            "sums",
            {
                "bucket": "1",
                "merge-engine": "aggregation",
                "fields.n.aggregate-function": "sum",
                "fields.v.aggregate-function": "max",
                "fields.v.ignore-retract": "true",
            },
            **_BY_DAY,
        ),
        Subject(
            "partial",
            {
                "bucket": "1",
                "merge-engine": "partial-update",
                "partial-update.remove-record-on-delete": "true",
            },
            **_BY_DAY,
        ),
        Subject("ordered", {"bucket": "1", "sequence.field": "n"}, **_BY_DAY),
        Subject("postponed", {"bucket": "-2"}, hides_what_is_new=True, **_BY_DAY),
    )
}


@cache
def _template(subject: Subject) -> MemoryStorage:
    storage = MemoryStorage()
    catalog = open_catalog(storage)
    catalog.create_database("db")
    catalog.create_table(NAME, subject.schema())
    for rows in OLD:
        write(catalog.get_table(NAME), rows)
    return storage


def fresh(subject: Subject) -> Storage:
    """A table with some rows, in a storage of its own."""
    return copy_of(_template(subject))


# --- what is done ---------------------------------------------------------------------------------

Operation = Callable[[FileSystemCatalog, str], None]  # what it does depends on who does it


def _rows_of(who: str) -> list[Record]:
    """Rows that others have too, and one of one's own, in two partitions."""
    number = 10 + ord(who[0])
    return [(2, "mon", number, who), (3, "tue", number, who), (number, "mon", number, who)]


def arrow(table: Table, rows: Sequence[Record]) -> pa.Table:
    """Rows for the first columns, under the names that they have now; the others are null."""
    columns = list(zip(*rows, strict=True))
    types = [pa.int64(), pa.string(), pa.int64(), pa.string()]
    return pa.table(
        {
            f.name: pa.array(columns[f.id], types[f.id])
            if f.id < len(COLUMNS)
            else pa.nulls(len(rows), arrow_type(f.type))
            for f in table.fields
        }
    )


def write(table: Table, rows: Sequence[Record], row_kind: str | None = None) -> None:
    builder = table.new_batch_write_builder()
    with builder.new_write() as writer, builder.new_commit() as commit:
        writer.write_arrow(arrow(table, rows), row_kind)
        commit.commit(writer.prepare_commit())


def _write(catalog: FileSystemCatalog, who: str) -> None:
    write(catalog.get_table(NAME), _rows_of(who))


def _delete(catalog: FileSystemCatalog, who: str) -> None:
    # Of the row that everybody writes to, and only what it has: see tests/key_histories.py.
    write(catalog.get_table(NAME), [(2, "mon", 2, "older")], row_kind="-D")


def _overwrite(catalog: FileSystemCatalog, who: str) -> None:
    table = catalog.get_table(NAME)
    builder = table.new_batch_write_builder().overwrite()
    with builder.new_write() as writer, builder.new_commit() as commit:
        writer.write_arrow(arrow(table, [(2, "mon", 5, who), (9, "mon", 5, who)]))
        commit.commit(writer.prepare_commit())


def _truncate(catalog: FileSystemCatalog, who: str) -> None:
    catalog.get_table(NAME).new_batch_write_builder().new_commit().truncate_table()


def _compact(catalog: FileSystemCatalog, who: str) -> None:
    catalog.get_table(NAME).compact(full=True)


def _add_column(catalog: FileSystemCatalog, who: str) -> None:
    catalog.alter_table(NAME, [SchemaChange.add_column(f"new_{who}", AtomicType("INT"))])


def _rename_column(catalog: FileSystemCatalog, who: str) -> None:
    catalog.alter_table(NAME, [SchemaChange.rename_column("v", f"named_by_{who}")])


def _delete_rows(catalog: FileSystemCatalog, who: str) -> None:
    catalog.get_table(NAME).delete("id = 3 OR n > 1000")


def _update_rows(catalog: FileSystemCatalog, who: str) -> None:
    catalog.get_table(NAME).update({"n": "n + 1"}, "id IN (2, 4)")


def _merge_rows(catalog: FileSystemCatalog, who: str) -> None:
    table = catalog.get_table(NAME)
    # Of columns that nobody renames.
    source = arrow(table, _rows_of(who)).select(["id", "day", "n"])
    merge = table.merge(source, on="t.id = s.id AND t.day = s.day")
    merge.when_matched_update({"n": "t.n + 10"}, "s.id <> 3").when_matched_delete()
    merge.when_not_matched_insert({"id": "s.id", "day": "s.day", "n": "s.n"}).execute()


def _upsert_by_id(catalog: FileSystemCatalog, who: str) -> None:
    for _ in range(3):  # others may change the columns in between
        table = catalog.get_table(NAME)
        try:
            table.upsert(arrow(table, _rows_of(who)[:2]), on=["id", "day"])
        except InvalidInput:
            continue
        return


def _update_in_two_steps(catalog: FileSystemCatalog, who: str) -> None:
    builder = catalog.get_table(NAME).new_batch_write_builder()
    messages = builder.new_update().update_by_predicate("id = 2", {"n": 100})
    builder.new_commit().commit(messages)


def _delete_in_two_steps(catalog: FileSystemCatalog, who: str) -> None:
    builder = catalog.get_table(NAME).new_batch_write_builder()
    builder.new_commit().commit(builder.new_update().delete_by_predicate("id = 3"))


WRITES: dict[str, Operation] = {
    "append": _write,
    "upsert": _write,
    "delete": _delete,
    "overwrite": _overwrite,
    "truncate": _truncate,
    "compact": _compact,
    "add column": _add_column,
    "rename column": _rename_column,
}
ROW_CHANGES: dict[str, Operation] = {
    "delete rows": _delete_rows,
    "update rows": _update_rows,
    "merge rows": _merge_rows,
    "upsert by id": _upsert_by_id,
}
# The messages are committed apart, so what is stale is refused and not done again.
NEW_UPDATES: dict[str, Operation] = {
    "update in two steps": _update_in_two_steps,
    "delete in two steps": _delete_in_two_steps,
}
OPERATIONS = {**WRITES, **ROW_CHANGES, **NEW_UPDATES}


# --- what a table holds ---------------------------------------------------------------------------


def in_memory(storage: Storage) -> MemoryStorage:
    """A storage as it is now, to be looked at from all sides: that takes many calls."""
    if isinstance(storage, MemoryStorage):
        return storage
    settle()  # where requests take long, what is not needed is deleted later
    with living_at(Place()):
        copy = copy_of(storage)
    assert isinstance(copy, MemoryStorage)
    return copy


def seen(storage: Storage) -> State:
    """The columns and rows that a reader sees."""
    table = open_table(storage)
    builder = table.new_read_builder()
    found = builder.new_read().to_arrow(builder.new_scan().plan().splits())
    rows = [tuple(row.values()) for row in found.to_pylist()]
    return tuple(table.field_names), tuple(sorted(rows, key=repr))


def settled(storage: Storage) -> State:
    """What a reader sees when all that was written is compacted; the table stays as it is."""
    with living_at(Place()):
        copy = copy_of(storage)
    open_table(copy).compact(full=True)
    return seen(copy)


def check_sound(storage: Storage) -> None:
    """Every snapshot is whole, and numbered without gaps."""
    table = open_table(storage)
    check_whole(table)
    ids = table.snapshot_manager().list_ids()
    assert ids == tuple(range(1, len(ids) + 1)), ids


def left_behind(storage: Storage) -> set[str]:
    """The manifests that no snapshot needs."""
    table = open_table(storage)
    store = table.store
    needed = referenced_manifests(table)
    for snapshot_id in store.snapshots.list_ids():
        changelog = store.snapshots.load(snapshot_id).changelog_manifest_list
        if changelog is not None:
            manifests = store.manifests.read_list(changelog)
            needed |= {store.layout.manifest(manifest.file_name) for manifest in manifests}
    return manifest_files(table) - needed
