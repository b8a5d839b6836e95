"""Write some columns of rows that are there, in tables with data evolution.

The new values go to files beside those that hold the rows. Such a file has the same rows, so the
rows that do not change repeat their values. The cost is that of the written columns, for all rows
of the groups that have a changed row::

    messages = write_columns(store, snapshot, table_with_row_ids)   # _ROW_ID, and the new values
    session.commit_or_abort(messages)

``write_group`` does it for one group of files: what a worker does that owns it. Two operations that
write the same columns of the same rows are a conflict, whichever rows of a group they change.
Columns that others write meanwhile are kept. Spec: "Data evolution".
"""

from collections.abc import Iterator, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
import pyarrow as pa

from emberlake.base.names import choices, listed
from emberlake.base.parallel import parallel_map
from emberlake.commit.discard import discard
from emberlake.errors import ColumnNotFound, InvalidInput, StorageError, Unsupported
from emberlake.options import GLOBAL_INDEX_UPDATE
from emberlake.predicates import Leaf, Op
from emberlake.read.append_plans import AppendPlans
from emberlake.read.bucket_reads import BucketReads
from emberlake.rowops.locate import FilePlace, file_places, vector_path
from emberlake.spec.column_buffers import I64
from emberlake.spec.deletion_vector import deleted_positions
from emberlake.spec.file_groups import FileGroup, is_dedicated
from emberlake.spec.manifest import DataFile
from emberlake.spec.row_tracking import ROW_ID, ROW_ID_FIELD
from emberlake.spec.snapshot import Snapshot
from emberlake.spec.support import check_readable, check_writable
from emberlake.store.table_store import TableStore
from emberlake.store.vector_files import load_vector
from emberlake.types import DataField
from emberlake.wire import BaseSnapshot, CommitMessage, WriteMode
from emberlake.write.align import align
from emberlake.write.rolling import AppendWriter, FileLimits

_SHOWN: Final = 5


def write_columns(
    store: TableStore,
    snapshot: Snapshot | None,
    data: pa.Table,
    *,
    workers: int | None = None,
) -> list[CommitMessage]:
    """Messages that give rows new values in some columns.

    Args:
        store: The table.
        snapshot: The state in which the rows were found.
        data: ``_ROW_ID``, and the new values of some columns; every row once, in any order.
        workers: How many groups of files are written at a time; by default one for each core.

    Raises:
        Unsupported: the table has no data evolution, or it is partitioned by one of the columns.
        ColumnNotFound: the table does not have one of the columns.
        InvalidInput: row ids that are null, given twice, or of no live row.
        DataMismatch: values that do not fit their columns.
    """
    fields = updated_fields(store, snapshot, [n for n in data.column_names if n != ROW_ID])
    ids = _row_ids(data)
    values = align(data.select([f.name for f in fields]), fields)
    messages: list[CommitMessage] = []
    try:
        found = find_rows(store, snapshot, ids)
        written = parallel_map(
            lambda part: write_group(
                store, part.place, fields, part.positions, values.take(pa.array(part.rows))
            ),
            found,
            workers=workers,
        )
        for part, file in zip(found, written, strict=True):
            messages.append(column_message(store, snapshot, part.place, [file]))
    except BaseException:
        discard(store, messages)
        raise
    return messages


def updated_fields(
    store: TableStore, snapshot: Snapshot | None, names: Sequence[str]
) -> tuple[DataField, ...]:
    """The columns that an operation is to write, in the order of the table.

    Raises:
        Unsupported: the table has no data evolution, or the columns cannot be rewritten.
        ColumnNotFound: the table does not have one of them.
        InvalidInput: there are none.
    """
    schema = store.schema
    check_writable(schema)
    if not schema.profile.evolves_data:
        raise Unsupported(
            "single columns of rows can be written only with data-evolution.enabled=true, which is "
            "set when a table is created"
        )
    unknown = [name for name in names if name not in schema.field_by_name]
    if unknown:
        known = choices(unknown, list(schema.field_names), "the table has")
        raise ColumnNotFound(f"no such columns: {listed(unknown)}; {known}")
    if not names:
        raise InvalidInput("there are no columns to write")
    fixed = [name for name in names if name in schema.partition_keys]
    if fixed:
        raise Unsupported(
            f"rows cannot move to another partition here: {listed(fixed)} are partition columns. "
            "Delete the rows and append them again"
        )
    fields = tuple(f for f in schema.fields if f.name in names)
    check_readable(schema, fields)
    _check_indexes(store, snapshot, fields)
    return fields


def write_group(
    store: TableStore,
    place: FilePlace,
    fields: tuple[DataField, ...],
    positions: I64,
    values: pa.Table,
) -> DataFile:
    """Write columns of one group of files; rows that are not named repeat their values.

    Args:
        store: The table.
        place: The group.
        fields: The columns, as ``updated_fields`` gives them.
        positions: Of the rows that change, ascending.
        values: Their new values, with exactly these columns.
    """
    writer = AppendWriter(
        store, place.partition, place.bucket, FileLimits.of(store.options).of_one_file(), 0, fields
    )
    try:
        for rows in _overlaid(store, place, fields, positions, values):
            writer.add(rows)
            if writer.is_due:
                writer.flush()
        writer.flush()
        writer.close_file()
    except BaseException:
        with suppress(StorageError):  # a file that is left is garbage; the failure is what matters
            writer.abort()
        raise
    (file,) = writer.take_written().new_files
    return replace(file, first_row_id=place.file.first_row_id)


def column_message(
    store: TableStore, snapshot: Snapshot | None, place: FilePlace, files: Sequence[DataFile]
) -> CommitMessage:
    """The message that adds files of ``write_group``."""
    return CommitMessage(
        table=store.layout.metadata_root,
        mode=WriteMode.APPEND,
        partition=place.partition,
        bucket=place.bucket,
        total_buckets=place.total_buckets,
        new_files=tuple(files),
        base=BaseSnapshot.of(snapshot),
    )


def _overlaid(
    store: TableStore,
    place: FilePlace,
    fields: tuple[DataField, ...],
    positions: I64,
    values: pa.Table,
) -> Iterator[pa.Table]:
    """The columns of all rows of a group, with the new values in their places."""
    if len(positions) == place.file.row_count:
        yield values
        return
    # Without deletion vectors: every row has its place, and nobody reads a deleted one.
    group = FileGroup(tuple(f for f in place.files if not is_dedicated(f.file_name)))
    reads = BucketReads(store, place.partition, place.bucket)
    start = 0
    with closing(AppendPlans(store, fields).read_group(reads, group).tables()) as tables:
        for old in tables:
            low, high = np.searchsorted(positions, [start, start + old.num_rows]).tolist()
            if low == high:
                yield old
            else:
                picked = np.arange(old.num_rows)
                picked[positions[low:high] - start] = old.num_rows + np.arange(high - low)
                both = pa.concat_tables([old, values.slice(low, high - low)]).combine_chunks()
                yield both.take(pa.array(picked))
            start += old.num_rows


# --- row ids to groups ----------------------------------------------------------------------------


@dataclass(frozen=True)
class GroupRows:
    """Rows that were named by their ids, and the group of files that holds them."""

    place: FilePlace
    positions: I64  # ascending
    rows: I64  # where each of them is among the ids that were given


def _row_ids(data: pa.Table) -> I64:
    if ROW_ID not in data.column_names:
        raise InvalidInput(f"the data has no column {ROW_ID}, which tells its rows apart")
    try:
        ids = data.column(ROW_ID).cast(pa.int64())
    except pa.ArrowException as error:
        raise InvalidInput(f"{ROW_ID} holds values that are no row ids: {error}") from error
    if ids.null_count:
        raise InvalidInput(f"{ROW_ID} holds {ids.null_count} nulls")
    found: I64 = ids.to_numpy()
    return found


def find_rows(store: TableStore, snapshot: Snapshot | None, ids: I64) -> list[GroupRows]:
    """Where rows are in a table with data evolution.

    Raises:
        InvalidInput: ids that are given twice, or that no live row has.
    """
    if not len(ids):
        return []
    order = np.argsort(ids, kind="stable")
    ordered = ids[order]
    twice = ordered[1:][ordered[1:] == ordered[:-1]]
    if len(twice):
        raise InvalidInput(f"row ids that are given twice: {_shown(np.unique(twice))}")
    near = Leaf(ROW_ID_FIELD, Op.BETWEEN, (int(ordered[0]), int(ordered[-1])))
    places = sorted(file_places(store, snapshot, near), key=_first)
    firsts = np.array([_first(place) for place in places], np.int64)
    ends = firsts + np.array([place.file.row_count for place in places], np.int64)
    group = np.searchsorted(firsts, ordered, side="right") - 1
    is_there = group >= 0
    is_there[is_there] = ordered[is_there] < ends[group[is_there]]
    unknown = [ordered[~is_there]]
    found = []
    for number in np.unique(group[is_there]).tolist():
        low, high = np.searchsorted(group, [number, number + 1]).tolist()
        positions = ordered[low:high] - firsts[number]
        unknown.append(_deleted(store, places[number], positions) + firsts[number])
        found.append(GroupRows(places[number], positions, order[low:high]))
    gone = np.concatenate(unknown)
    if len(gone):
        raise InvalidInput(f"row ids of no row that is in the table: {_shown(gone)}")
    return found


def _first(place: FilePlace) -> int:
    return place.file.first_row_id or 0


def _deleted(store: TableStore, place: FilePlace, positions: I64) -> I64:
    """The positions that are deleted."""
    if place.vector is None:
        return np.empty(0, np.int64)
    vector = load_vector(store.storage, vector_path(store, place), place.vector.range)
    return np.intersect1d(positions, deleted_positions(vector, 0, place.file.row_count))


def _shown(ids: I64) -> str:
    more = f" and {len(ids) - _SHOWN} more" if len(ids) > _SHOWN else ""
    return ", ".join(map(str, ids[:_SHOWN].tolist())) + more


def _check_indexes(
    store: TableStore, snapshot: Snapshot | None, fields: Sequence[DataField]
) -> None:
    """Refuse columns that another engine's index over row ids covers: it would be stale."""
    if snapshot is None or snapshot.index_manifest is None:
        return
    if store.options.value(GLOBAL_INDEX_UPDATE) == "ignore":
        return
    by_id = {f.id: f.name for f in fields}
    entries = store.manifests.read_index(snapshot.index_manifest)
    indexes = (e.index_file.global_index for e in entries if e.index_file.global_index is not None)
    stale = {by_id[index.index_field_id] for index in indexes if index.index_field_id in by_id}
    if stale:
        raise Unsupported(
            f"an index over row ids covers {listed(sorted(stale))}, and emberlake cannot maintain "
            f"it. Drop the index, or set {GLOBAL_INDEX_UPDATE.key}=ignore if its readers can do "
            "with old values"
        )
