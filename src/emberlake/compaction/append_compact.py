"""Compact one bucket of an append table: small files become larger ones.

Rows that a deletion vector marks as deleted are dropped, and so are the vectors of merged files.
Rows keep their ids.
"""

from collections.abc import Iterator
from dataclasses import replace

from emberlake.compaction.append_picking import AppendRules, Bin, pick_ordered, pick_unordered
from emberlake.compaction.bucket import Bucket, Compacted
from emberlake.read.append_plans import AppendPlans
from emberlake.read.file_read import stream_rows
from emberlake.spec.manifest import DataFile, FileSource
from emberlake.spec.row_tracking import carried_fields
from emberlake.wire import VectorEdit
from emberlake.write.rolling import AppendWriter, FileLimits


def compact_append_bucket(bucket: Bucket, *, full: bool) -> Compacted | None:
    """Merge the small files of a bucket; None if there is nothing to do."""
    bins = pick_bins(bucket, full=full)
    if not bins:
        return None
    limits = FileLimits.of(bucket.store.options)
    after: list[DataFile] = []
    try:
        for files in bins:
            after.extend(_rewrite(bucket, files, limits))
    except BaseException:
        bucket.discard(after)
        raise
    before = tuple(file for files in bins for file in files)
    has_vectors = bucket.store.schema.profile.has_deletion_vectors or bucket.vector_files
    edits = tuple(drop_vectors(bucket, before)) if has_vectors else ()
    return Compacted(before, tuple(after), edits=edits)


def drop_vectors(bucket: Bucket, files: Bin) -> Iterator[VectorEdit]:
    """The edits for files that leave the table.

    Files without deleted rows are named too: otherwise rows that somebody deletes in them meanwhile
    would come back.
    """
    for file in files:
        name = file.file_name
        yield VectorEdit(file_name=name, drops=True, seen=bucket.deleted_count(name))


def pick_bins(bucket: Bucket, *, full: bool) -> list[Bin]:
    """The files of a bucket that are due, in groups that each become one file."""
    options = bucket.store.options
    rules = AppendRules.of(options, FileLimits.of(options).file_bytes)
    pick = pick_unordered if not bucket.store.schema.profile.has_buckets else pick_ordered
    return pick(bucket.files, rules, lambda file: bucket.deleted_count(file.file_name), full=full)


def _rewrite(bucket: Bucket, files: Bin, limits: FileLimits) -> Iterator[DataFile]:
    ordered = sorted(files, key=lambda file: (file.min_sequence_number, file.max_sequence_number))
    store = bucket.store
    fields = store.schema.fields
    if store.schema.profile.tracks_rows:
        fields = carried_fields(store.schema, is_changed=False)
    plans = AppendPlans(store, fields)
    first = ordered[0].min_sequence_number
    writer = AppendWriter(store, bucket.partition, bucket.number, limits, first, fields)
    for file in writer.write_all(stream_rows([bucket.read_rows(f, plans) for f in ordered])):
        yield replace(file, file_source=FileSource.COMPACT)
