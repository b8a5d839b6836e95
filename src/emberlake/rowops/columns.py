"""Write some columns of existing rows, in tables with data evolution.

The new values go to files beside those that hold the rows. Such a file has the same rows, so the
rows that do not change repeat their values. The cost is that of the written columns, for all rows
of the groups that have a changed row.

``write_group`` does this for one group of files, in the worker that owns it. Two operations that
write the same columns of the same rows are a conflict, whichever rows of a group they change.
Columns that others write meanwhile are kept. Spec: "Data evolution".
"""

from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import replace

import numpy as np
import pyarrow as pa

from emberlake.base.names import choices, listed
from emberlake.errors import ColumnNotFound, InvalidInput, Unsupported
from emberlake.options import GLOBAL_INDEX_UPDATE
from emberlake.read.append_plans import AppendPlans
from emberlake.read.bucket_reads import BucketReads
from emberlake.rowops.locate import FilePlace
from emberlake.spec.column_buffers import I64
from emberlake.spec.file_groups import FileGroup, is_dedicated
from emberlake.spec.manifest import DataFile
from emberlake.spec.snapshot import Snapshot
from emberlake.spec.support import check_readable, check_writable
from emberlake.store.table_store import TableStore
from emberlake.types import DataField
from emberlake.wire import BaseSnapshot, CommitMessage, WriteMode
from emberlake.write.rolling import AppendWriter, FileLimits


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
    (file,) = writer.write_all(_overlaid(store, place, fields, positions, values))
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
            f"it. Drop the index, or set {GLOBAL_INDEX_UPDATE.key}=ignore if its readers accept "
            "old values"
        )
