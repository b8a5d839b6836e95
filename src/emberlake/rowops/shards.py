"""New values for the rows of a shard: read in order, and given in the same order.

The files of one snapshot are dealt out to shards, whole files to each, so that workers need not
know of each other. A worker reads the columns that it needs and gives as many rows of new values;
they are written file by file, as the table asks for (``edits``). One commit takes the messages of
all shards.
"""

from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa

from emberlake.base.names import listed
from emberlake.commit.discard import discard
from emberlake.errors import InvalidInput, InvalidState
from emberlake.expressions import Scope, Source, bind_each
from emberlake.read.projection import project
from emberlake.rowops.attempts import present
from emberlake.rowops.change import check_changes
from emberlake.rowops.clauses import Action, Clause, Editor
from emberlake.rowops.edits import FileEdit, write_edits
from emberlake.rowops.locate import FilePlace, PlacedRead, file_reads, vector_path
from emberlake.rowops.merge_plan import quoted
from emberlake.rowops.source import with_paimon_types
from emberlake.scan.share import Shard
from emberlake.session.write_session import WriteSession
from emberlake.spec.column_buffers import I64
from emberlake.spec.deletion_vector import deleted_positions
from emberlake.spec.row_tracking import readable_fields
from emberlake.spec.snapshot import Snapshot
from emberlake.store.table_store import TableStore
from emberlake.store.vector_files import load_vector
from emberlake.types import arrow_schema, from_arrow_schema
from emberlake.wire import CommitMessage
from emberlake.write.align import align


@dataclass(frozen=True)
class ShardedState:
    """The snapshot that shards are cut from, and the write that they belong to; pickles."""

    session: WriteSession
    snapshot: Snapshot | None

    @staticmethod
    def of(session: WriteSession) -> "ShardedState":
        """The present state of a table."""
        return ShardedState(*present(session))

    @property
    def store(self) -> TableStore:
        return self.session.store


class ShardUpdate:
    """New values for the rows of one shard.

    Args:
        state: What is cut into shards.
        shard: Which part of it.
        columns: The columns that get new values; None: those of the first rows that are given.
        projection: The columns that are read; None: all columns of the table.
    """

    def __init__(
        self,
        state: ShardedState,
        shard: Shard,
        columns: Sequence[str] | None,
        projection: Sequence[str] | None,
    ) -> None:
        self._state = state
        self._shard = shard
        self._columns = columns
        self._read = list(projection or state.store.schema.field_names)
        project(readable_fields(state.store.schema), self._read)  # refuses unknown columns
        self._editing: Clause | None = None
        self._given: list[pa.Table] = []  # for the file at `_at`
        self._at = 0
        self._messages: list[CommitMessage] = []
        self._is_over = False

    # --- reading ----------------------------------------------------------------------------------

    def reader(self) -> pa.RecordBatchReader:
        """The rows of the shard, in the order in which new values are to be given."""
        known = {f.name: f for f in readable_fields(self._state.store.schema)}
        schema = arrow_schema(tuple(known[name] for name in self._read))
        return pa.RecordBatchReader.from_batches(schema, self._batches())

    def _batches(self) -> Iterator[pa.RecordBatch]:
        for placed in self._placed(self._read):
            with closing(placed.read.batches()) as batches:
                yield from batches

    def _placed(self, columns: Sequence[str]) -> list[PlacedRead]:
        store = self._state.store
        with store.decoding_rows():
            reads = list(file_reads(store, self._state.snapshot, None, columns))
        part = self._shard.range_of(len(reads))
        return [] if part is None else reads[part.start : part.end]

    @cached_property
    def _places(self) -> list[tuple[FilePlace, int]]:
        """The files of the shard that have rows, and how many rows."""
        store = self._state.store
        found = [placed.place for placed in self._placed(store.schema.field_names[:1])]
        counted = [(place, place.live_count(store)) for place in found]
        return [(place, count) for place, count in counted if count]

    @property
    def _total(self) -> int:
        return sum(count for _, count in self._places)

    @property
    def _total_given(self) -> int:
        done = sum(count for _, count in self._places[: self._at])
        return done + sum(int(rows.num_rows) for rows in self._given)

    # --- writing ----------------------------------------------------------------------------------

    def update(self, rows: pa.Table) -> None:
        """Give the next rows of the shard new values.

        Raises:
            InvalidInput: other columns than those to be updated, or more rows than the shard has.
            InvalidExpression, DataMismatch: values that do not fit their columns.
            Unsupported: the table does not take new values for these columns.
        """
        if self._is_over:
            raise InvalidState("the update of this shard has ended; make another updator")
        rows = with_paimon_types(rows, self._state.store.schema)
        if self._editing is None:
            self._editing = self._clause(rows.schema)
        names = list(self._editing.values)
        if sorted(rows.column_names) != sorted(names):
            raise InvalidInput(
                f"every batch must have the columns {listed(names)}, "
                f"not {listed(rows.column_names)}"
            )
        if self._total_given + rows.num_rows > self._total:
            raise InvalidInput(
                f"{self._total_given + rows.num_rows} rows of new values for a shard of "
                f"{self._total} rows: give one for each row that its reader returns"
            )
        rows = rows.select(names)
        while rows.num_rows:
            place, count = self._places[self._at]
            room = count - sum(some.num_rows for some in self._given)
            self._given.append(rows.slice(0, room))
            if rows.num_rows >= room:
                self._write(place, pa.concat_tables(self._given), self._editing)
                self._given = []
                self._at += 1
            rows = rows.slice(room)

    def prepare(self) -> list[CommitMessage]:
        """The messages of the shard; none if no new values were given at all.

        Raises:
            InvalidInput: new values were given for some of the rows only.
        """
        if self._is_over:
            raise InvalidState("prepare_commit was called before; make another updator")
        if 0 < self._total_given < self._total:
            raise InvalidInput(
                f"new values for {self._total_given} rows of a shard of {self._total} rows: give "
                "one for each row that its reader returns"
            )
        self._is_over = True
        return self._messages

    def abort(self) -> None:
        """End the update, and delete what was written and not handed over."""
        if not self._is_over:
            self._is_over = True
            discard(self._state.store, self._messages)

    def _clause(self, given: pa.Schema) -> Clause:
        schema = self._state.store.schema
        names = list(self._columns or given.names)
        if sorted(names) != sorted(given.names):
            raise InvalidInput(
                f"new values are to be given for {listed(names)}, not for {listed(given.names)}"
            )
        source = Source("s", from_arrow_schema(given))
        scope = Scope((Source("t", readable_fields(schema)), source))
        values = [(name, quoted("s", name)) for name in names]
        bound = bind_each(values, schema.fields, scope)
        check_changes(schema, updates=True, deletes=False, assigned=frozenset(bound))
        return Clause(Action.UPDATE, values=bound)

    def _write(self, place: FilePlace, values: pa.Table, clause: Clause) -> None:
        store = self._state.store
        positions = _live_positions(store, place)
        source = align(values, from_arrow_schema(values.schema))
        edit = FileEdit(
            place, positions, np.zeros(len(positions), np.int8), np.arange(len(positions))
        )
        editor = Editor((clause,), source, store.env.now_ms())
        made = write_edits(self._state.session, self._state.snapshot, editor, [edit])
        self._messages += made.messages


def _live_positions(store: TableStore, place: FilePlace) -> I64:
    """The positions of the rows of a file that are not deleted."""
    positions: I64 = np.arange(place.file.row_count)
    if place.vector is None:
        return positions
    vector = load_vector(store.storage, vector_path(store, place), place.vector.range)
    return np.delete(positions, deleted_positions(vector, 0, place.file.row_count))
