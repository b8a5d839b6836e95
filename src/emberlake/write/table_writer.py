"""The write engine: align, route, buffer within bounds, flush, report.

Memory stays below ``write-buffer-size`` plus one row group for each thread: when the buffers of all
buckets together exceed it, the largest are written out.
"""

from collections.abc import Callable, Iterable
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import suppress
from functools import cached_property
from typing import Final

import pyarrow as pa

from emberlake.base.option_texts import MEBIBYTE
from emberlake.base.parallel import default_workers
from emberlake.errors import (
    CommitConflict,
    ConflictReason,
    DataMismatch,
    InvalidState,
    StorageError,
)
from emberlake.merge.plan import MergePlan, plan_merge
from emberlake.options import (
    BUCKET,
    POSTPONE_BUCKET,
    PRIMARY_KEY_NULLABLE,
    WRITE_BUFFER_SIZE,
    ChangelogProducer,
)
from emberlake.scan.buckets import BucketState, load_bucket_states
from emberlake.spec.profile import BucketMode
from emberlake.spec.row_tracking import carried_fields
from emberlake.spec.snapshot import Snapshot
from emberlake.store.table_store import TableStore
from emberlake.types import DataField
from emberlake.wire import BaseSnapshot, CommitMessage, WriteMode
from emberlake.write.align import align, as_tables
from emberlake.write.bucket_rooms import SINGLE_ASSIGNER, Assigner
from emberlake.write.bucket_writer import BucketWriter
from emberlake.write.dynamic_bucket import DynamicBuckets, IndexChange
from emberlake.write.fitting import check_keys, slices
from emberlake.write.key_bucket import KeyBucketWriter
from emberlake.write.lacking import lacking_columns
from emberlake.write.postpone import PostponeWriter, postpone_prefix
from emberlake.write.rolling import AppendWriter, FileLimits, Written
from emberlake.write.route import Group, route
from emberlake.write.row_kinds import (
    add_row_kinds,
    check_kinds,
    drop_ignored,
    has_adds,
    take_row_kinds,
)

# Open files cost memory and handles. Beyond this many, those that were idle for longest are closed.
# During a flush there can be twice as many.
_MAX_OPEN_FILES: Final = 128
_SMALL_BYTES: Final = MEBIBYTE  # below this, threads cost more than they gain


_Action = Callable[[BucketWriter, Executor | None], None]


class TableWriter:
    """Writes rows to the buckets of a table and reports the files as commit messages.

    Args:
        store: The table.
        commit_user: Who will commit; files of postponed buckets are named after it.
        ignore_previous: Whether an overwrite replaces the existing files, so their sequence
            numbers and bucket counts do not matter.
        accepts: Tells whether a serialized partition may be written to (static overwrite).
        workers: How many threads encode files.
        assigner: Which of the writers that assign dynamic buckets for one commit this is; each must
            have its own keys.
        sequence_offset: How far above the numbers in a bucket this writer begins, for writers of
            one commit that write to the same buckets.
        carries_ids: Whether the data has the hidden columns of rows that move: ``_ROW_ID``, and
            ``_SEQUENCE_NUMBER``, which is null for rows that change.
        as_of: The snapshot that the rows were read from, if they come from the table itself. What
            others have written since counts as concurrent. None: the latest at any time.
    """

    def __init__(  # noqa: PLR0913
        self,
        store: TableStore,
        *,
        commit_user: str = "",
        ignore_previous: bool = False,
        accepts: Callable[[bytes], bool] | None = None,
        workers: int | None = None,
        assigner: Assigner = SINGLE_ASSIGNER,
        sequence_offset: int = 0,
        carries_ids: bool = False,
        as_of: Snapshot | None = None,
    ) -> None:
        self._store = store
        self._as_of = as_of
        self._is_pinned = as_of is not None
        self._ignore_previous = ignore_previous
        self._accepts = accepts
        self._workers = workers or default_workers()
        self._limits = FileLimits.of(store.options)
        self._commit_user = commit_user
        self._sequence_offset = sequence_offset
        self._plan: MergePlan | None = None
        if store.schema.profile.has_keys:
            self._plan = plan_merge(store.schema, store.schema.fields)
        self._memory_bound = store.options.value(WRITE_BUFFER_SIZE)
        self._total_buckets = store.options.value(BUCKET)
        self._dynamic: DynamicBuckets | None = None
        if store.schema.profile.keeps_key_index:
            self._dynamic = DynamicBuckets(
                store, ignore_previous=ignore_previous, assigner=assigner
            )
        self._write_columns: tuple[str, ...] | None = None
        self._fields = carried_fields(store.schema) if carries_ids else store.schema.fields
        # In order of last use: the first writers have been idle for longest.
        self._writers: dict[tuple[bytes, int], BucketWriter] = {}
        self._next_sequences: dict[tuple[bytes, int], int] = {}  # after what was handed over
        self._states_by_partition: dict[bytes, dict[int, BucketState]] = {}
        self._base = BaseSnapshot.of(as_of or store.snapshots.latest())
        # The snapshot that the state of a partition is from: its numbers are below ours.
        self._base_by_partition: dict[bytes, BaseSnapshot | None] = {}
        self._closed_because: str | None = None

    @property
    def write_columns(self) -> tuple[str, ...] | None:
        """The declared columns of the data; None: all, but nullable ones may be missing."""
        return self._write_columns

    @property
    def has_rows(self) -> bool:
        """Whether there are rows that were not handed over."""
        return bool(self._writers)

    def set_write_columns(self, columns: Iterable[str]) -> None:
        """Declare that the data will have exactly these columns."""
        if self._writers and self._store.schema.profile.evolves_data:
            raise InvalidState("the columns of the data must be declared before its first rows")
        self._write_columns = tuple(columns)

    def write(self, data: object, row_kind: str | None = None) -> None:
        """Write Arrow data: a table, a batch, or a stream, which is read batch by batch.

        Raises:
            InvalidInput: unknown row kinds, or kinds from several places.
            DataMismatch: lists every column that does not fit. None of the data was written; in
                the middle of a stream, the writer is closed and everything is undone.
        """
        self._check_open()
        has_begun = False
        try:
            for table in as_tables(data):
                for rows in slices(self.fit(table, row_kind)):
                    groups = self._route(rows)
                    writers = [self._writer(group.partition, group.bucket) for group in groups]
                    has_begun = True
                    self._add(rows, groups, writers)
        except BaseException as error:
            if has_begun:  # without some of its rows the data must not be committed
                self._fail(error)
            raise

    def look_at(self, snapshot: Snapshot | None) -> None:
        """Build on this state: what others have written since counts as concurrent."""
        self._as_of, self._is_pinned = snapshot, True
        self._base = BaseSnapshot.of(snapshot)

    def write_groups(self, rows: pa.Table, groups: list[Group]) -> None:
        """Write rows of ``fit`` whose partitions and buckets are known."""
        self._check_open()
        try:
            writers = [self._writer(group.partition, group.bucket) for group in groups]
            self._add(rows, groups, writers)
        except BaseException as error:
            self._fail(error)
            raise

    def prepare(self) -> list[CommitMessage]:
        """Finish all files and hand them over; the writer can continue with new ones."""
        self._check_open()
        try:
            latest = self._store.begin(self._store.snapshots.latest)
            self._each(_finish, list(self._writers.values()))
            indexes = self._dynamic.write_changes() if self._dynamic else {}
            base, self._base = self._base, BaseSnapshot.of(latest())
        except BaseException as error:
            self._fail(error)
            raise
        messages = [
            self._message(key, base, indexes.get(key))
            for key in dict.fromkeys((*self._writers, *indexes))
        ]
        self._base_by_partition.clear()
        if self._dynamic:
            self._dynamic.hand_over()
        if self._plan is not None:
            self._forget_writers()
        return [message for message in messages if not message.is_empty()]

    def _message(
        self, key: tuple[bytes, int], base: BaseSnapshot | None, index: IndexChange | None
    ) -> CommitMessage:
        writer = self._writers.get(key)
        written = Written() if writer is None else writer.take_written()
        return CommitMessage(
            table=self._store.layout.metadata_root,
            mode=WriteMode.OVERWRITE if self._ignore_previous else WriteMode.APPEND,
            partition=key[0],
            bucket=key[1],
            total_buckets=self._total_buckets,
            new_files=written.new_files,
            changelog_files=written.changelog_files,
            new_index_files=(index.new,) if index else (),
            deleted_index_files=(index.old,) if index and index.old else (),
            base=self._base_by_partition.get(key[0], base),
        )

    def _forget_writers(self) -> None:
        """Look again before the next rows: they must be newer than what others commit meanwhile."""
        for key, writer in self._writers.items():
            self._next_sequences[key] = writer.next_sequence
        self._writers.clear()
        self._states_by_partition.clear()

    def abort(self) -> None:
        """Delete every file that was not handed over, and close the writer.

        Raises:
            StorageError: files could not be deleted; call abort again to retry.
        """
        self._closed_because = self._closed_because or "it was closed or aborted"
        self._close_pool()
        failure: StorageError | None = None
        for key, writer in list(self._writers.items()):
            try:
                writer.abort()
            except StorageError as error:
                failure = failure or error
            else:
                del self._writers[key]
        if self._dynamic is not None:
            try:
                self._dynamic.abort()
            except StorageError as error:
                failure = failure or error
        if failure is not None:
            raise failure

    def close(self) -> None:
        """Release everything; files that were not handed over are deleted."""
        if self._closed_because is None:
            self.abort()

    def _fail(self, error: BaseException) -> None:
        self._closed_because = f"a write failed ({error})"
        # The caller must see why the write failed; files that are left are garbage.
        with suppress(StorageError):
            self.abort()

    def fit(self, data: pa.Table, row_kind: str | None) -> pa.Table:
        """The data with the columns of the table and, in key tables, the kind of every row.

        Raises:
            InvalidInput: unknown row kinds, or kinds from several places.
            DataMismatch: lists every column that does not fit.
        """
        schema = self._store.schema
        data, kinds = take_row_kinds(data, schema, row_kind)
        declared = self._write_columns
        if self._plan is None:
            return align(data, self._fields, write_columns=declared)
        lacking = lacking_columns(
            schema,
            self._plan,
            frozenset(data.column_names),
            is_declared=declared is not None,
            has_adds=has_adds(kinds),
        )
        aligned = align(data, schema.fields, write_columns=declared, lacking=lacking)
        if not schema.options.value(PRIMARY_KEY_NULLABLE):
            check_keys(aligned, schema.primary_keys)
        rows = add_row_kinds(aligned, kinds)
        rows = drop_ignored(rows, schema, ignore_delete=self._plan.ignore_delete)
        check_kinds(rows, self._plan)
        return rows

    def _route(self, rows: pa.Table) -> list[Group]:
        if self._store.schema.profile.crosses_partitions:
            raise InvalidState("where rows go that may move is for the places of keys to say")
        groups = list(route(rows, self._store.schema))
        self.check_partitions(group.partition for group in groups)
        if self._dynamic is not None:
            return list(self._dynamic.assign(rows, groups))
        if self._store.schema.profile.bucket_mode is BucketMode.POSTPONED:
            return [Group(group.partition, POSTPONE_BUCKET, group.rows) for group in groups]
        return groups

    def _add(self, rows: pa.Table, groups: list[Group], writers: list[BucketWriter]) -> None:
        if len(groups) == 1 or self._workers == 1 or rows.nbytes < _SMALL_BYTES:
            taken = [group.take(rows) for group in groups]
        else:
            taken = list(self._pool.map(lambda group: group.take(rows), groups))
        for writer, part in zip(writers, taken, strict=True):
            writer.add(part)
        self._flush([writer for writer in writers if writer.is_due])
        self._bound_memory()

    def check_partitions(self, partitions: Iterable[bytes]) -> None:
        """Refuse partitions that must not be written to, with a ``DataMismatch``."""
        accepts = self._accepts
        if accepts is None:
            return
        outside = [partition for partition in partitions if not accepts(partition)]
        if outside:
            texts = ", ".join(str(dict(self._store.partition_spec(p))) for p in outside[:5])
            raise DataMismatch(
                f"rows for partitions outside the one to overwrite: {texts}"
                f"{' and more' if len(outside) > 5 else ''}; nothing of this call was written"
            )

    def _writer(self, partition: bytes, bucket: int) -> BucketWriter:
        key = (partition, bucket)
        writer = self._writers.pop(key, None)
        if writer is None:
            writer = self._new_writer(partition, bucket)
        self._writers[key] = writer
        return writer

    def _new_writer(self, partition: bytes, bucket: int) -> BucketWriter:
        store, first = self._store, self._first_sequence(partition, bucket)
        if self._plan is None:
            return AppendWriter(store, partition, bucket, self._limits, first, self._file_fields)
        if bucket == POSTPONE_BUCKET:
            return PostponeWriter(store, partition, self._postpone_prefix, first)
        # Spec: "Overwrite": it has no changelog files.
        producer = store.schema.profile.changelog_producer
        has_changelog = producer is ChangelogProducer.INPUT and not self._ignore_previous
        return KeyBucketWriter(
            store, partition, bucket, self._plan, first, has_changelog=has_changelog
        )

    @property
    def _file_fields(self) -> tuple[DataField, ...]:
        """The columns of new files: only the declared ones, if others can be added beside them."""
        declared = self._write_columns
        if declared is None or not self._store.schema.profile.evolves_data:
            return self._fields
        return tuple(f for f in self._fields if f.name in declared or f.default_value is not None)

    def _first_sequence(self, partition: bytes, bucket: int) -> int:
        handed_over = self._next_sequences.get((partition, bucket), 0)
        mode = self._store.schema.profile.bucket_mode
        has_order = mode in (BucketMode.FIXED, BucketMode.DYNAMIC, BucketMode.CROSS_PARTITION)
        if not has_order:
            return handed_over
        state = self.bucket_states(partition).get(bucket)
        above = 0 if state is None else state.max_sequence_number + 1
        return max(handed_over, above + self._sequence_offset)

    def bucket_states(self, partition: bytes) -> dict[int, BucketState]:
        """What the buckets of a partition hold; nothing if this write replaces it."""
        if self._ignore_previous:
            return {}
        if partition not in self._states_by_partition:
            snapshot = self._as_of if self._is_pinned else self._store.snapshots.latest()
            states = load_bucket_states(self._store, snapshot, partition)
            other = {s.total_buckets for s in states.values()} - {self._total_buckets}
            if other:
                raise CommitConflict(
                    ConflictReason.BUCKET_COUNT_CHANGED,
                    f"partition {dict(self._store.partition_spec(partition))} has "
                    f"{min(other)} buckets, the table now asks for {self._total_buckets}",
                    "rewrite the partition with an overwrite, then append to it",
                )
            self._states_by_partition[partition] = states
            self._base_by_partition[partition] = BaseSnapshot.of(snapshot)
        return self._states_by_partition[partition]

    def _bound_memory(self) -> None:
        total = sum(writer.buffered_bytes for writer in self._writers.values())
        if total <= self._memory_bound:
            return
        largest = sorted(self._writers.values(), key=lambda w: w.buffered_bytes, reverse=True)
        due = []
        for writer in largest:
            # Down to half of the bound, or it would happen again with every batch.
            if total <= self._memory_bound // 2:
                break
            total -= writer.buffered_bytes
            due.append(writer)
        self._flush(due)

    def _flush(self, writers: list[BucketWriter]) -> None:
        for start in range(0, len(writers), _MAX_OPEN_FILES):
            self._each(_flush, writers[start : start + _MAX_OPEN_FILES])
            self._bound_open_files()

    def _bound_open_files(self) -> None:
        opened = [writer for writer in self._writers.values() if writer.has_open_file]
        self._each(_close_file, opened[: max(0, len(opened) - _MAX_OPEN_FILES)])

    def _each(self, action: _Action, writers: list[BucketWriter]) -> None:
        """Call writers in parallel; a single one gets a helper thread for its statistics."""
        if self._workers == 1:
            for writer in writers:
                action(writer, None)
        elif len(writers) == 1:
            action(writers[0], self._pool)
        else:
            list(self._pool.map(lambda writer: action(writer, None), writers))

    @cached_property
    def _postpone_prefix(self) -> str:
        return postpone_prefix(self._store, self._commit_user)

    @cached_property
    def _pool(self) -> ThreadPoolExecutor:
        return ThreadPoolExecutor(self._workers, thread_name_prefix="emberlake-write")

    def _close_pool(self) -> None:
        if "_pool" in self.__dict__:
            self._pool.shutdown(wait=True)

    def _check_open(self) -> None:
        if self._closed_because is not None:
            raise InvalidState(
                f"this writer is closed because {self._closed_because}; "
                "open a new one with new_write()"
            )


def _flush(writer: BucketWriter, pool: Executor | None) -> None:
    writer.flush(pool)


def _close_file(writer: BucketWriter, _pool: Executor | None) -> None:
    writer.close_file()


def _finish(writer: BucketWriter, pool: Executor | None) -> None:
    writer.flush(pool)
    writer.close_file()
