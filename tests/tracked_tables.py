"""Tables whose rows have ids, for tests: made, changed and read in one line each."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from builders import create_table
from emberlake.commit.change import CommitResult
from emberlake.io import Storage
from emberlake.predicates import bind_filter
from emberlake.rowops.locate import FilePlace, file_reads
from emberlake.rowops.marks import Marked, mark_rows, remove_files
from emberlake.rowops.merge_builder import prepare_by_row_id
from emberlake.session.write_session import WriteSession
from emberlake.spec.key_value import SEQUENCE
from emberlake.spec.manifest import DataFile
from emberlake.spec.row_tracking import HIDDEN_NAMES, ROW_ID
from emberlake.table import Table
from emberlake.wire import CommitMessage

TRACKED = {"row-tracking.enabled": "true"}
EVOLVING = {**TRACKED, "data-evolution.enabled": "true"}
VECTORS = {"deletion-vectors.enabled": "true"}
COLUMNS = pa.schema([("id", pa.int64()), ("v", pa.string()), ("n", pa.int32())])


def evolving_table(storage: Storage | None = None, *, has_vectors: bool = False) -> Table:
    options = {**EVOLVING, **(VECTORS if has_vectors else {})}
    return create_table(storage, COLUMNS, options=options)


def put(table: Table, *rows: tuple[int, str | None, int | None]) -> CommitResult:
    """Append rows of the columns of ``COLUMNS``."""
    return table.append(pa.Table.from_arrays(
        [pa.array(c, f.type) for c, f in zip(zip(*rows, strict=True), COLUMNS, strict=True)],
        schema=COLUMNS,
    ))  # fmt: skip


def with_ids(table: Table, where: str | None = None) -> dict[int, tuple[object, ...]]:
    """The rows by their ids."""
    names = [f.name for f in table.fields]
    rows = table.to_arrow([ROW_ID, *names], where).to_pylist()
    assert len({row[ROW_ID] for row in rows}) == len(rows)
    return {row[ROW_ID]: tuple(row[name] for name in names) for row in rows}


def changed_in(table: Table) -> dict[int, int]:
    """For every row id the snapshot that last changed the row."""
    found = table.to_arrow(list(HIDDEN_NAMES))
    ids, numbers = (column.to_pylist() for column in found.columns)
    return dict(zip(ids, numbers, strict=True))


@dataclass(frozen=True)
class FoundRows:
    """The rows of a file that match a filter."""

    place: FilePlace
    positions: np.ndarray
    rows: pa.Table

    @property
    def file(self) -> DataFile:
        return self.place.file


def find(table: Table, where: str | None, *columns: str) -> list[FoundRows]:
    predicate = bind_filter(where, table.store.schema)
    latest = table.store.snapshots.latest()
    found = []
    for placed in file_reads(table.store, latest, predicate, columns or ("id",)):
        parts = list(placed.read.located_tables())
        if sum(len(positions) for positions, _ in parts):
            positions = np.concatenate([positions for positions, _ in parts])
            rows = pa.concat_tables(rows for _, rows in parts)
            found.append(FoundRows(placed.place, positions, rows))
    return found


def marks(table: Table, where: str, *, is_exclusive: bool = False) -> list[CommitMessage]:
    """Messages that delete the rows that match."""
    latest = table.store.snapshots.latest()
    found = [Marked(f.place, f.positions) for f in find(table, where)]
    return mark_rows(table.store, latest, found, is_exclusive=is_exclusive)


def columns_for(table: Table, values: Mapping[str, Sequence[object]]) -> list[CommitMessage]:
    """Messages that give rows, named by their ids, new values."""
    types = {**{f.name: f.type for f in COLUMNS if f.name != "n"}, ROW_ID: pa.int64()}
    arrays = {name: pa.array(column, types.get(name)) for name, column in values.items()}
    names = [name for name in arrays if name != ROW_ID]
    return prepare_by_row_id(WriteSession(table.store, "tester"), pa.table(arrays), names)


def commit(table: Table, messages: list[CommitMessage]) -> CommitResult:
    return WriteSession(table.store, "tester").commit_or_abort(messages)


def delete(table: Table, where: str) -> CommitResult:
    return commit(table, marks(table, where))


def update(table: Table, **values: Sequence[object]) -> CommitResult:
    """Give rows new values: ``update(table, ids=[3], v=["x"])``."""
    ids = values.pop("ids")
    return commit(table, columns_for(table, {ROW_ID: np.array(ids), **values}))


# --- rows that are written again, with their ids --------------------------------------------------


def moved_by_marks(table: Table, where: str, **values: object) -> list[CommitMessage]:
    """Messages that mark the rows that match and append them with new values."""
    latest = table.store.snapshots.latest()
    found = find(table, where, *_all_columns(table))
    if not found:
        return []
    marked = [Marked(f.place, f.positions) for f in found]
    rows = _changed(pa.concat_tables(f.rows for f in found), None, values)
    return [*mark_rows(table.store, latest, marked, is_exclusive=True), *_carried(table, rows)]


def moved_by_rewriting(table: Table, where: str, **values: object) -> list[CommitMessage]:
    """Messages that write all files again that have a row that matches."""
    latest = table.store.snapshots.latest()
    touched = {f.file.file_name: f.positions for f in find(table, where)}
    whole = [f for f in find(table, None, *_all_columns(table)) if f.file.file_name in touched]
    parts = []
    for found in whole:
        is_changed = np.isin(found.positions, touched[found.file.file_name])
        parts.append(_changed(found.rows, pa.array(is_changed), values))
    removed = remove_files(table.store, latest, [f.place for f in whole])
    return [*removed, *_carried(table, pa.concat_tables(parts))]


def _all_columns(table: Table) -> list[str]:
    return [*(f.name for f in table.fields), *HIDDEN_NAMES]


def _changed(rows: pa.Table, mask: pa.Array | None, values: Mapping[str, object]) -> pa.Table:
    mask = pa.repeat(pa.scalar(True), rows.num_rows) if mask is None else mask
    for name, value in {**values, SEQUENCE: None}.items():
        place = rows.schema.get_field_index(name)
        column = rows.column(name)
        new = pc.if_else(mask, pa.scalar(value, column.type), column)
        rows = rows.set_column(place, pa.field(name, column.type), new)
    return rows


def _carried(table: Table, rows: pa.Table) -> list[CommitMessage]:
    writer = WriteSession(table.store, "tester").new_writer(carries_ids=True)
    writer.write(rows)
    return writer.prepare()
