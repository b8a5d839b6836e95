"""Keys of files that a writer has handed over and nobody has committed yet.

A stream of commits may prepare the next one before the last is in the table. Its rows must find the
keys of those files where they will be.
"""

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from emberlake.commit.committer import Committer
from emberlake.errors import AlreadyCommitted, FileNotFound
from emberlake.merge.order import order_rows
from emberlake.merge.plan import plan_merge
from emberlake.read.bucket_reads import BucketReads
from emberlake.read.column_plan import plan_columns
from emberlake.spec.key_value import KIND, KIND_FIELD, SEQUENCE_FIELD, key_value_fields
from emberlake.spec.manifest import BucketKey
from emberlake.spec.snapshot import Snapshot
from emberlake.store.table_store import TableStore
from emberlake.types import arrow_schema
from emberlake.wire import CommitMessage


class HandedOver:
    """The messages of one writer, until they are committed."""

    def __init__(self, store: TableStore) -> None:
        self._store = store
        self._messages: list[list[CommitMessage]] = []
        # A record that only takes something from the row leaves the row where it is.
        kinds = plan_merge(store.schema, store.schema.fields).removing_kinds
        self._removing_kinds = pa.array([int(kind) for kind in kinds], pa.int8())

    def add(self, messages: Sequence[CommitMessage]) -> None:
        """Remember what is handed over now."""
        if messages:
            self._messages.append(list(messages))

    @property
    def names(self) -> tuple[str, ...]:
        """The names of their files."""
        return tuple(
            f.file_name for messages in self._messages for m in messages for f in m.new_files
        )

    def forget_committed(self, snapshot: Snapshot | None) -> None:
        """Forget what is in the table, in that state: its keys are found there."""
        self._messages = [m for m in self._messages if not self._is_in(snapshot, m)]

    def _is_in(self, snapshot: Snapshot | None, messages: Sequence[CommitMessage]) -> bool:
        try:
            Committer(self._store, "").check_not_in(snapshot, messages)
        except AlreadyCommitted:
            return True
        return False

    def known(self) -> Iterator[tuple[BucketKey | None, pa.Table]]:
        """Keys and where they are, from the oldest to the newest knowledge; None: nowhere."""
        for messages in self._messages:
            gone, there = [], []
            for message in tuple(messages):
                try:
                    rows = self._last_records(message)
                except FileNotFound:  # it was aborted, so nothing counts on it from here on
                    messages.remove(message)
                    continue
                is_gone = pc.is_in(rows.column(KIND), value_set=self._removing_kinds)
                gone.append(rows.filter(is_gone))
                there.append(((message.partition, message.bucket), rows.filter(pc.invert(is_gone))))
            # A row that has moved is gone in one place and there in another.
            yield from ((None, rows) for rows in gone)
            yield from there

    def _last_records(self, message: CommitMessage) -> pa.Table:
        """The last record of every key in the files of a message, which are in one bucket."""
        schema = self._store.schema
        keys = [schema.field_by_name[name] for name in schema.primary_keys]
        fields = (*keys, SEQUENCE_FIELD, KIND_FIELD)
        reads = BucketReads(self._store, message.partition, message.bucket)
        tables = [arrow_schema(fields).empty_table()]
        for file in message.new_files:
            stored = key_value_fields(self._store.schemas.load(file.schema_id))
            plan = plan_columns([stored], fields, constants=schema.partition_keys)
            tables.append(reads.read(file, plan).table(use_threads=True))
        names = [f.name for f in fields]
        rows = pa.concat_tables([table.select(names) for table in tables])
        order = order_rows(rows, keys, ())
        return rows.take(pa.array(order.rows[np.append(order.starts, rows.num_rows)[1:] - 1]))
