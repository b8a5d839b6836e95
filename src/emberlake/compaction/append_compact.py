"""Compact one bucket of an append table: small files become larger ones.

Rows that a deletion vector marks as deleted are dropped, and so are the vectors of merged files.
"""

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace

from emberlake.compaction.append_picking import AppendRules, Bin, pick_ordered, pick_unordered
from emberlake.compaction.bucket import Bucket, Compacted
from emberlake.compaction.vectors import BucketVectors
from emberlake.errors import StorageError
from emberlake.read.file_read import stream_rows
from emberlake.spec.manifest import DataFile, FileSource
from emberlake.write.rolling import AppendWriter, FileLimits


def compact_append_bucket(bucket: Bucket, *, full: bool) -> Compacted | None:
    """Merge the small files of a bucket; None if there is nothing to do."""
    bins = pick_bins(bucket, full=full)
    if not bins:
        return None
    limits = FileLimits.of(bucket.store.options)
    vectors = BucketVectors(bucket)
    after: list[DataFile] = []
    try:
        for files in bins:
            after.extend(_rewrite(bucket, files, limits))
            vectors.drop(file.file_name for file in files)
        change = vectors.write()
    except BaseException:
        bucket.discard(after)
        raise
    return Compacted(tuple(file for files in bins for file in files), tuple(after), change)


def pick_bins(bucket: Bucket, *, full: bool) -> list[Bin]:
    """The files of a bucket that are due, in groups that each become one file."""
    options = bucket.store.options
    rules = AppendRules.of(options, FileLimits.of(options).file_bytes)
    pick = pick_unordered if not bucket.store.schema.profile.has_buckets else pick_ordered
    return pick(bucket.files, rules, lambda file: _deleted_rows(bucket, file), full=full)


def _deleted_rows(bucket: Bucket, file: DataFile) -> int:
    place = bucket.deletion_files.get(file.file_name)
    if place is None:
        return 0
    count = place.range.cardinality
    return len(bucket.load_vector(file.file_name)) if count is None else count


def _rewrite(bucket: Bucket, files: Bin, limits: FileLimits) -> Iterator[DataFile]:
    ordered = sorted(files, key=lambda file: (file.min_sequence_number, file.max_sequence_number))
    writer = AppendWriter(
        bucket.store, bucket.partition, bucket.number, limits, ordered[0].min_sequence_number
    )
    try:
        for rows in stream_rows([bucket.read_rows(file) for file in ordered]):
            writer.add(rows)
            if writer.is_due:
                writer.flush()
        writer.flush()
        writer.close_file()
    except BaseException:
        with suppress(StorageError):  # a file that is left is garbage; the failure is what matters
            writer.abort()
        raise
    for file in writer.take_written().new_files:
        yield replace(file, file_source=FileSource.COMPACT)
