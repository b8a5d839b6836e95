"""Write rows of a table with postponed buckets straight to their buckets.

A partition that has buckets keeps their number; any other gets the number that the options say.
There is one writer for each number of buckets, which sees a table with this many.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable

import numpy as np
import pyarrow as pa

from emberlake.errors import InvalidOption, InvalidState
from emberlake.options import BUCKET, POSTPONE_BUCKET, POSTPONE_BUCKET_COUNT
from emberlake.scan.buckets import load_bucket_states
from emberlake.store.table_store import TableStore
from emberlake.wire import CommitMessage
from emberlake.write.align import align, as_tables
from emberlake.write.route import Group, route
from emberlake.write.row_kinds import take_row_kinds
from emberlake.write.table_writer import TableWriter


class FixedBucketWriter:
    """Writes rows of a table with postponed buckets to buckets."""

    def __init__(
        self,
        store: TableStore,
        *,
        commit_user: str,
        ignore_previous: bool,
        accepts: Callable[[bytes], bool] | None,
    ) -> None:
        self._store = store
        self._commit_user = commit_user
        self._ignore_previous = ignore_previous
        self._accepts = accepts
        self._write_columns: tuple[str, ...] | None = None
        self._writers: dict[int, TableWriter] = {}
        self._counts: dict[bytes, int] = {}
        self._is_closed = False

    @property
    def write_columns(self) -> tuple[str, ...] | None:
        return self._write_columns

    @property
    def has_rows(self) -> bool:
        return any(writer.has_rows for writer in self._writers.values())

    def set_write_columns(self, columns: Iterable[str]) -> None:
        self._write_columns = tuple(columns)
        for writer in self._writers.values():
            writer.set_write_columns(self._write_columns)

    def write(self, data: object, row_kind: str | None = None) -> None:
        if self._is_closed:
            raise InvalidState("this writer is closed; open a new one with new_write()")
        try:
            for table in as_tables(data):
                for count, rows in self._divide(table, row_kind):
                    self._writer(count).write(rows, row_kind)
        except BaseException:
            if self.has_rows:  # without some of its rows the data must not be committed
                self.abort()
            raise

    def prepare(self) -> list[CommitMessage]:
        return [message for writer in self._writers.values() for message in writer.prepare()]

    def abort(self) -> None:
        self._is_closed = True
        for writer in self._writers.values():
            writer.abort()

    def close(self) -> None:
        self._is_closed = True
        for writer in self._writers.values():
            writer.close()

    def _divide(self, table: pa.Table, row_kind: str | None) -> list[tuple[int, pa.Table]]:
        """The rows by the number of buckets of their partition."""
        schema = self._store.schema
        data, _ = take_row_kinds(table, schema, row_kind)
        aligned = align(data, schema.fields, write_columns=self._write_columns)
        by_count: defaultdict[int, list[Group]] = defaultdict(list)
        for group in route(aligned, schema):
            by_count[self._count_of(group.partition)].append(group)
        if len(by_count) < 2:
            return [(count, table) for count in by_count]
        return [
            (count, table.take(pa.array(np.sort(np.concatenate([g.rows for g in groups])))))
            for count, groups in by_count.items()
        ]

    def _writer(self, count: int) -> TableWriter:
        if count not in self._writers:
            schema = self._store.schema.with_options({BUCKET.key: str(count)})
            writer = self._writers[count] = TableWriter(
                self._store.with_schema(schema),
                commit_user=self._commit_user,
                ignore_previous=self._ignore_previous,
                accepts=self._accepts,
            )
            if self._write_columns is not None:
                writer.set_write_columns(self._write_columns)
        return self._writers[count]

    def _count_of(self, partition: bytes) -> int:
        if partition not in self._counts:
            self._counts[partition] = self._load_count(partition)
        return self._counts[partition]

    def _load_count(self, partition: bytes) -> int:
        store = self._store
        states = dict(load_bucket_states(store, store.snapshots.latest(), partition))
        if states.pop(POSTPONE_BUCKET, None) and not self._ignore_previous:
            # They are older than the rows written now, but would be replayed on top of them.
            raise InvalidState(
                f"rows of partition {dict(store.partition_spec(partition))} wait for their "
                "buckets; compact the table first"
            )
        given = store.options.value(POSTPONE_BUCKET_COUNT)
        present = next((state.total_buckets for state in states.values()), None)
        # An overwrite replaces all buckets, so it can change their number.
        choices = (given, present) if self._ignore_previous else (present, given)
        count = next((choice for choice in choices if choice is not None), None)
        if count is None or count < 1:
            raise InvalidOption(
                f"partition {dict(store.partition_spec(partition))} has no buckets yet; set "
                f"{POSTPONE_BUCKET_COUNT.key} to the number it should have"
            )
        return count
