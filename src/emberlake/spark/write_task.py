"""The part of a write that one Spark task does: it writes rows to files, and reports them once."""

from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, replace
from typing import Final

import pyarrow as pa

from emberlake.base.option_texts import MEBIBYTE
from emberlake.base.parallel import limit_threads
from emberlake.places.live_keys import LiveKeys
from emberlake.session.write_session import WriteSession
from emberlake.spark.failures import reported_errors
from emberlake.spark.job_files import task_store
from emberlake.spark.live_rows import live_rows
from emberlake.spark.reports import TaskReport, report_batch, task_number
from emberlake.spark.sifting import Sifting, TaskSifter
from emberlake.spec.snapshot import Snapshot
from emberlake.store.table_store import TableStore
from emberlake.wire import CommitMessage
from emberlake.write.bucket_rooms import SINGLE_ASSIGNER, Assigner
from emberlake.write.rows_writer import RowsWriter

# Spark passes small batches; the cost of a call pays off only for more rows.
_GATHER_ROWS: Final = 250_000
_GATHER_BYTES: Final = 64 * MEBIBYTE


@dataclass(frozen=True, slots=True)
class WriteTask:
    """Writes the rows of one task to files of a table."""

    session: WriteSession
    job_id: str
    columns: tuple[str, ...]  # the names of the columns, whatever Spark calls them
    write_columns: tuple[str, ...] | None = None
    as_of: Snapshot | None = None  # the state that the rows were read from, if it was the table
    assigners: int = 1  # how many tasks assign dynamic buckets, each numbered like its partition
    sifting: Sifting | None = None  # what happens to rows that do not fit; None: the task fails
    live: LiveKeys | None = None  # where the keys are that come with the rows, if any may come

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Write all batches, or none; yield one report."""
        limit_threads()
        number = task_number()
        with reported_errors():
            messages, rejected = self._write(batches, number)
        counts = [] if self.sifting is None else [rejected]
        yield report_batch([TaskReport.of(self.job_id, number, messages, counts)])

    def _write(
        self, batches: Iterator[pa.RecordBatch], number: int
    ) -> tuple[list[CommitMessage], int]:
        store = task_store(self.session.store, self.job_id, number)
        assigner = Assigner(number, self.assigners) if self.assigners > 1 else SINGLE_ASSIGNER
        # Closing it deletes what was not returned.
        session = replace(self.session, store=store)
        tables = gathered(batches)
        opened: RowsWriter
        if store.schema.profile.crosses_partitions:
            placing = session.new_placing(
                assigner, as_of=self.as_of, live=self.live, name=self.job_id
            )
            keys = store.schema.primary_keys
            fields = tuple(store.schema.field_by_name[name] for name in keys)
            tables = live_rows(tables, placing, fields, len(self.columns))
            opened = session.compacting(placing)
        else:
            opened = session.new_writer(assigner, as_of=self.as_of)
        with closing(opened) as writer:
            if self.write_columns is not None:
                writer.set_write_columns(self.write_columns)
            if self.sifting is not None:
                return self._sift(writer, self.sifting, tables, number)
            for table in tables:
                writer.write(table.rename_columns(self.columns))
            return writer.prepare(), 0

    def _sift(
        self,
        writer: RowsWriter,
        sifting: Sifting,
        tables: Iterator[pa.Table],
        number: int,
    ) -> tuple[list[CommitMessage], int]:
        schema = self.session.store.schema

        def place(store: TableStore) -> TableStore:
            return task_store(store, self.job_id, number)

        with closing(TaskSifter(writer, schema, sifting, self.job_id, place)) as sifter:
            for table in tables:
                sifter.write(table.rename_columns(self.columns))
            return sifter.prepare(), sifter.rows_rejected


def gathered(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.Table]:
    """Combine small batches, within bounds; nothing is copied."""
    held: list[pa.RecordBatch] = []
    rows = size = 0
    for batch in batches:
        held.append(batch)
        rows += batch.num_rows
        size += batch.nbytes
        if rows >= _GATHER_ROWS or size >= _GATHER_BYTES:
            yield pa.Table.from_batches(held)
            held, rows, size = [], 0, 0
    if rows:
        yield pa.Table.from_batches(held)
