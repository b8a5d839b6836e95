"""Rewrite the rows of a bucket of an append table in a given order."""

from collections.abc import Sequence
from dataclasses import replace

import pyarrow as pa

from emberlake.compaction.append_compact import drop_vectors
from emberlake.compaction.bucket import Bucket
from emberlake.compaction.curves import OrderKind, order_of
from emberlake.read.append_plans import AppendPlans
from emberlake.read.file_read import stream_rows
from emberlake.spec.row_tracking import carried_fields
from emberlake.wire import BaseSnapshot, CommitMessage, WriteMode
from emberlake.write.rolling import AppendWriter, FileLimits


def sort_bucket(
    bucket: Bucket, columns: Sequence[str], kind: OrderKind, base: BaseSnapshot | None
) -> CommitMessage:
    """The message that replaces all files of a bucket by sorted ones; its rows are in memory."""
    store = bucket.store
    fields = store.schema.fields
    if store.schema.profile.tracks_rows:
        fields = carried_fields(store.schema, is_changed=False)
    plans = AppendPlans(store, fields)
    first = min(file.min_sequence_number for file in bucket.files)
    limits = FileLimits.of(store.options)
    writer = AppendWriter(store, bucket.partition, bucket.number, limits, first, fields)
    rows = pa.concat_tables(
        stream_rows([bucket.read_rows(file, plans) for file in bucket.files])
    ).combine_chunks()
    rows = rows.take(order_of(rows, columns, kind))
    starts = range(0, rows.num_rows, _ROWS_AT_ONCE)
    new_files = writer.write_all(rows.slice(start, _ROWS_AT_ONCE) for start in starts)
    message = CommitMessage(
        table=store.layout.metadata_root,
        mode=WriteMode.APPEND,
        partition=bucket.partition,
        bucket=bucket.number,
        total_buckets=bucket.total_buckets,
        base=base,
        new_files=new_files,
        deleted_files=bucket.files,
    )
    if not (store.schema.profile.has_deletion_vectors or bucket.vector_files):
        return message
    return replace(message, vector_edits=tuple(drop_vectors(bucket, bucket.files)))


_ROWS_AT_ONCE = 1 << 17
