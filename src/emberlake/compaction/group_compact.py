"""Compact a table with data evolution: files side by side, and their neighbours, become one file.

Spec: "Data evolution". Rows keep their ids, so they keep their positions: rows that are deleted
stay in the file, and their marks move along. The sequence number of every row becomes that of the
newest row in the file.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from emberlake.compaction.append_compact import drop_vectors
from emberlake.compaction.append_picking import AppendRules, GroupBin, pick_groups
from emberlake.compaction.bucket import Bucket, Compacted
from emberlake.read.append_plans import AppendPlans, columns_of_file
from emberlake.read.file_read import stream_rows
from emberlake.spec.column_buffers import I64
from emberlake.spec.deletion_vector import deleted_positions, encode_deletion_vector, vector_of
from emberlake.spec.file_groups import FileGroup, group_files
from emberlake.spec.manifest import DataFile, FileSource
from emberlake.types import DataField
from emberlake.wire import VectorEdit
from emberlake.write.rolling import AppendWriter, FileLimits


def compact_groups(bucket: Bucket, *, full: bool) -> Compacted | None:
    """Merge the groups of files of a partition that are due; None if none is."""
    bins = pick_group_bins(bucket, full=full)
    if not bins:
        return None
    after: list[DataFile] = []
    edits: list[VectorEdit] = []
    try:
        for groups in bins:
            file = _rewrite(bucket, groups)
            after.append(file)
            edits += _moved_vectors(bucket, groups, file)
    except BaseException:
        bucket.discard(after)
        raise
    before = tuple(file for groups in bins for group in groups for file in group.files)
    return Compacted(before, tuple(after), edits=tuple(edits))


def pick_group_bins(bucket: Bucket, *, full: bool) -> list[GroupBin]:
    """The groups of files that are due, in bins that each become one file."""
    limits = FileLimits.of(bucket.store.options)
    rules = AppendRules.of(bucket.store.options, limits.file_bytes)
    return pick_groups(group_files(bucket.files), rules, full=full)


def _rewrite(bucket: Bucket, groups: GroupBin) -> DataFile:
    store = bucket.store
    fields = _fields_of(bucket, groups)
    limits = FileLimits.of(store.options).of_one_file()
    writer = AppendWriter(store, bucket.partition, bucket.number, limits, 0, fields)
    plans = AppendPlans(store, fields)
    (file,) = writer.write_all(stream_rows([bucket.read_group(group, plans) for group in groups]))
    files = [file for group in groups for file in group.files]
    return replace(
        file,
        file_source=FileSource.COMPACT,
        first_row_id=groups[0].first_row_id,
        min_sequence_number=min(f.min_sequence_number for f in files),
        max_sequence_number=max(f.max_sequence_number for f in files),
    )


def _fields_of(bucket: Bucket, groups: Sequence[FileGroup]) -> tuple[DataField, ...]:
    """The columns to write: all columns of the table except those in files of their own."""
    apart = {
        field.id
        for group in groups
        for file in group.dedicated
        for field in columns_of_file(bucket.store, file)
    }
    return tuple(f for f in bucket.store.schema.fields if f.id not in apart)


def _moved_vectors(bucket: Bucket, groups: GroupBin, file: DataFile) -> Iterator[VectorEdit]:
    """The marks of deleted rows, at their new positions."""
    if not bucket.store.schema.profile.has_deletion_vectors:
        return
    yield from drop_vectors(bucket, tuple(group.anchor for group in groups))
    positions = list(_deleted(bucket, groups))
    if positions:
        vector = vector_of(np.concatenate(positions))
        yield VectorEdit(
            file_name=file.file_name,
            marked=encode_deletion_vector(vector, bitmap64=vector.max() >= 2**31),
        )


def _deleted(bucket: Bucket, groups: GroupBin) -> Iterator[I64]:
    first = groups[0].first_row_id
    for group in groups:
        name = group.anchor.file_name
        if name in bucket.deletion_files:
            found = deleted_positions(bucket.load_vector(name), 0, group.row_count)
            yield found + (group.first_row_id - first)
