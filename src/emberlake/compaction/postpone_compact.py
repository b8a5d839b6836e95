"""Give postponed rows their buckets: replay them in order, as if they were written now.

Spec: "Postpone". A partition that has buckets keeps their number. For another one it follows from
the options, or from how much is waiting. The files of a partition are read in the order in which
they were written; their sequence numbers mean nothing.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, replace

import pyarrow as pa

from emberlake.base.parallel import parallel_map
from emberlake.compaction.bucket import Bucket
from emberlake.errors import InvalidOption, StorageError
from emberlake.merge.plan import plan_merge
from emberlake.options import (
    BUCKET_FUNCTION,
    POSTPONE_BUCKET,
    POSTPONE_BUCKET_COUNT,
    POSTPONE_BUCKET_ROWS,
    POSTPONE_BUCKET_SIZE,
    WRITE_BUFFER_SIZE,
    ChangelogProducer,
    TableOptions,
)
from emberlake.predicates import Predicate
from emberlake.read.file_read import stream_rows
from emberlake.scan.files import load_files, manifests_of
from emberlake.scan.key_files import bucket_files
from emberlake.spec.bucket import assign_buckets
from emberlake.spec.key_value import KIND
from emberlake.spec.manifest import DataFile
from emberlake.spec.snapshot import Snapshot
from emberlake.store.table_store import TableStore
from emberlake.wire import CommitMessage, WriteMode
from emberlake.write.key_bucket import KeyBucketWriter
from emberlake.write.route import Group, split_rows


def load_postponed(
    store: TableStore, snapshot: Snapshot | None, where: Predicate | None
) -> Iterator[Bucket]:
    """The rows that wait for their bucket, by partition, with files in the order of writing."""
    if snapshot is None:
        return
    entries, _ = load_files(store, manifests_of(store, snapshot), where)
    entries = entries.take(entries.bucket == POSTPONE_BUCKET)
    for places in bucket_files(entries):
        partition = entries.partitions[entries.partition_codes[places[0]]]
        # Files of the same millisecond stay in the order in which they were committed.
        files = sorted(entries.take(places).files(), key=lambda file: file.creation_time or 0)
        yield Bucket(store, partition, POSTPONE_BUCKET, POSTPONE_BUCKET, tuple(files))


def bucket_count(options: TableOptions, waiting: Sequence[DataFile]) -> int:
    """How many buckets a partition without any gets."""
    given, rows = options.value(POSTPONE_BUCKET_COUNT), options.value(POSTPONE_BUCKET_ROWS)
    size = options.value(POSTPONE_BUCKET_SIZE)
    if given is not None:
        return _at_least_one(POSTPONE_BUCKET_COUNT.key, given)
    if rows is not None:
        target = _at_least_one(POSTPONE_BUCKET_ROWS.key, rows)
        needed = math.ceil(sum(file.row_count for file in waiting) / target)
    else:
        target = _at_least_one(POSTPONE_BUCKET_SIZE.key, size)
        needed = math.ceil(sum(file.file_size for file in waiting) / target)
    return max(1, needed)


def _at_least_one(key: str, number: int) -> int:
    if number < 1:
        raise InvalidOption(f"{key}={number}: it must be at least 1")
    return number


def replay(waiting: Bucket, known: Mapping[tuple[bytes, int], Bucket]) -> list[CommitMessage]:
    """Write the waiting rows of one partition to their buckets, and delete the waiting files.

    Args:
        waiting: The postponed files of a partition.
        known: The existing buckets, by partition and number.
    """
    counts = {b.total_buckets for b in known.values() if b.partition == waiting.partition}
    count = min(counts) if counts else bucket_count(waiting.store.options, waiting.files)
    writers = _Writers(waiting, count, known)
    try:
        for rows in _records(waiting):
            writers.add(rows)
        writers.flush()
    except BaseException:
        writers.abort()
        raise
    gone = CommitMessage(
        table=waiting.store.layout.metadata_root,
        mode=WriteMode.APPEND,
        partition=waiting.partition,
        bucket=waiting.number,
        total_buckets=waiting.total_buckets,
        compact_before=waiting.files,
    )
    return [gone, *writers.messages()]


def settle(message: CommitMessage) -> CommitMessage:
    """A message that only compacts, made from one that writes to a bucket and compacts it."""
    new = {file.file_name for file in message.new_files}
    gone = {file.file_name for file in message.compact_before}
    stays = tuple(file for file in message.new_files if file.file_name not in gone)
    return replace(
        message,
        new_files=(),
        changelog_files=(),
        compact_before=tuple(f for f in message.compact_before if f.file_name not in new),
        compact_after=(*stays, *message.compact_after),
        compact_changelog_files=(*message.changelog_files, *message.compact_changelog_files),
    )


def _records(waiting: Bucket) -> Iterator[pa.Table]:
    """The records as they were written: the columns of the table and ``_VALUE_KIND``."""
    fields = waiting.store.schema.fields
    names = [*(f.name for f in fields), KIND]
    reads = [waiting.read_records(file, fields) for file in waiting.files]
    with closing(stream_rows(reads)) as tables:
        for rows in tables:
            if rows.num_rows:
                yield rows.select(names)


@dataclass
class _Writers:
    """The writers of the buckets of one partition; together they stay below the write buffer."""

    waiting: Bucket
    count: int
    known: Mapping[tuple[bytes, int], Bucket]

    def __post_init__(self) -> None:
        schema = self.waiting.store.schema
        self._plan = plan_merge(schema, schema.fields)
        self._keys = [schema.field_by_name[name] for name in schema.bucket_keys]
        self._bound = schema.options.value(WRITE_BUFFER_SIZE)
        self._writers: dict[int, KeyBucketWriter] = {}

    def add(self, rows: pa.Table) -> None:
        """Buffer records in their buckets."""
        buckets = assign_buckets(
            self.waiting.store.options.value(BUCKET_FUNCTION),
            [f.type for f in self._keys],
            [rows.column(f.name) for f in self._keys],
            self.count,
        )
        for group in split_rows(Group(self.waiting.partition, 0, None), buckets):
            self._writer(group.bucket).add(group.take(rows))
        if sum(writer.buffered_bytes for writer in self._writers.values()) > self._bound:
            self.flush()

    def flush(self) -> None:
        """Write what is buffered."""
        for _ in parallel_map(KeyBucketWriter.flush, list(self._writers.values())):
            pass

    def messages(self) -> list[CommitMessage]:
        """Hand over the files."""
        messages = []
        for bucket, writer in self._writers.items():
            written = writer.take_written()
            messages.append(
                CommitMessage(
                    table=self.waiting.store.layout.metadata_root,
                    mode=WriteMode.APPEND,
                    partition=self.waiting.partition,
                    bucket=bucket,
                    total_buckets=self.count,
                    new_files=written.new_files,
                    changelog_files=written.changelog_files,
                )
            )
        return messages

    def abort(self) -> None:
        """Delete what was written."""
        for writer in self._writers.values():
            with suppress(StorageError):  # nothing refers to it: garbage, not a problem
                writer.abort()

    def _writer(self, bucket: int) -> KeyBucketWriter:
        if bucket not in self._writers:
            store, partition = self.waiting.store, self.waiting.partition
            there = self.known.get((partition, bucket))
            numbers = [file.max_sequence_number for file in there.files] if there else []
            has_changelog = store.schema.profile.changelog_producer is ChangelogProducer.INPUT
            self._writers[bucket] = KeyBucketWriter(
                store,
                partition,
                bucket,
                self._plan,
                max(numbers, default=-1) + 1,
                has_changelog=has_changelog,
            )
        return self._writers[bucket]
