"""Write changed rows of an append table: what was found in each file becomes messages.

One function for each way in which a table lets rows be changed (``Strategy``). Files are written in
parallel, each in bounded memory. Nothing is committed here.
"""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, closing, suppress
from dataclasses import dataclass, replace
from functools import cached_property
from threading import Lock

import numpy as np
import pyarrow as pa

from emberlake.base.parallel import parallel_map
from emberlake.commit.discard import discard
from emberlake.errors import StorageError
from emberlake.read.append_plans import AppendPlans
from emberlake.read.bucket_reads import BucketReads
from emberlake.read.file_read import FileRead
from emberlake.rowops.clauses import Choice, Editor
from emberlake.rowops.columns import column_message, updated_fields, write_group
from emberlake.rowops.locate import FilePlace
from emberlake.rowops.marks import Marked, mark_rows, remove_files
from emberlake.rowops.result import Strategy, Tally, strategy_of
from emberlake.session.write_session import WriteSession
from emberlake.spec.column_buffers import I64
from emberlake.spec.file_groups import FileGroup, is_dedicated
from emberlake.spec.key_value import SEQUENCE
from emberlake.spec.row_tracking import HIDDEN_FIELDS, carried_fields
from emberlake.spec.snapshot import Snapshot
from emberlake.types import DataField, arrow_schema
from emberlake.wire import CommitMessage
from emberlake.write.rolling import AppendWriter, FileLimits


@dataclass(frozen=True)
class FileEdit:
    """Rows of a file that change.

    Args:
        place: The file.
        positions: Of the rows, ascending; None: all rows of the file are deleted.
        chosen: The clause of each row.
        matches: The row of the source of each row, in a merge.
    """

    place: FilePlace
    positions: I64 | None
    chosen: Choice | None = None
    matches: I64 | None = None


@dataclass(frozen=True)
class Prepared:
    """Messages that are ready to be committed, and what they do."""

    messages: tuple[CommitMessage, ...]
    tally: Tally


def write_edits(
    session: WriteSession,
    snapshot: Snapshot | None,
    editor: Editor,
    edits: Iterable[FileEdit],
    inserts: Sequence[pa.Table] = (),
) -> Prepared:
    """Write the files of an operation on an append table.

    Args:
        session: The write.
        snapshot: The state in which the rows were found.
        editor: What happens to them.
        edits: The rows that change; only those of a few files are held at a time, if they come
            one after the other.
        inserts: New rows.

    Raises:
        DataMismatch: a new value does not fit its column; what was written is deleted.
    """
    writing = _Writing(session, snapshot, editor)
    tally = Tally(inserted=sum(rows.num_rows for rows in inserts))
    with ExitStack() as resources:
        writing.open(resources)
        try:
            for rows in inserts:
                writing.insert(rows)
            for counts in parallel_map(writing.write, edits):
                tally += counts
            writing.finish()
        except BaseException:
            discard(session.store, writing.messages)
            raise
    return Prepared(tuple(writing.messages), tally)


class _Writing:
    """The files of one operation."""

    def __init__(self, session: WriteSession, snapshot: Snapshot | None, editor: Editor) -> None:
        self._session = session
        self._store = session.store
        self._snapshot = snapshot
        self._editor = editor
        self._strategy = strategy_of(session.store.schema)
        self._lock = Lock()
        self.messages: list[CommitMessage] = []  # of all threads, even after one has failed

    def open(self, resources: ExitStack) -> None:
        """Open the writers that all files share."""
        self._new = resources.enter_context(closing(self._session.new_writer()))
        self._moved = self._new
        if self._store.schema.profile.tracks_rows:
            # Rows that keep their ids are in files of their own.
            moved = self._session.new_writer(carries_ids=True)
            self._moved = resources.enter_context(closing(moved))

    def insert(self, rows: pa.Table) -> None:
        """Write new rows."""
        self._new.write(rows)

    def finish(self) -> None:
        """Finish the files of rows that are new, or have left their file."""
        for writer in {id(w): w for w in (self._moved, self._new)}.values():
            self.messages += writer.prepare()

    def write(self, edit: FileEdit) -> Tally:
        """Write what becomes of one file."""
        if edit.positions is None:
            made = self._remove(edit.place)
        elif self._strategy is Strategy.REWRITE:
            made = self._rewrite(edit, edit.positions)
        elif self._strategy is Strategy.VECTORS:
            made = self._mark(edit, edit.positions)
        else:
            made = self._write_columns(edit, edit.positions)
        self.messages += made.messages
        return made.tally

    def _remove(self, place: FilePlace) -> Prepared:
        messages = remove_files(self._store, self._snapshot, [place])
        rows = place.file.row_count - place.deleted_count(self._store)
        return Prepared(tuple(messages), Tally(deleted=rows))

    # --- rewriting --------------------------------------------------------------------------------

    def _rewrite(self, edit: FileEdit, positions: I64) -> Prepared:
        store, place = self._store, edit.place
        writer = AppendWriter(
            store,
            place.partition,
            place.bucket,
            FileLimits.of(store.options),
            place.file.min_sequence_number,
            self._stored,
        )
        kept = 0
        try:
            with closing(self._read(place, self._stored_as_read).located_tables()) as tables:
                for found, rows in tables:
                    after = self._overlaid(edit, positions, found, rows)
                    kept += after.num_rows
                    writer.add(after)
                    if writer.is_due:
                        writer.flush()
            writer.flush()
            writer.close_file()
        except BaseException:
            with suppress(StorageError):  # a file that is left is garbage; the failure matters
                writer.abort()
            raise
        (message,) = remove_files(store, self._snapshot, [place])
        message = replace(message, new_files=writer.take_written().new_files)
        updated = self._updated_count(edit)
        copied = kept if self._moves_rows else kept - updated
        counts = Tally(updated=updated, deleted=len(positions) - updated, copied=copied)
        return Prepared((message,), counts)

    def _overlaid(self, edit: FileEdit, positions: I64, found: I64, rows: pa.Table) -> pa.Table:
        """Rows of a file after the edit: without those that are deleted or go elsewhere."""
        low, high = np.searchsorted(positions, [found[0], found[-1] + 1]) if len(found) else (0, 0)
        if low == high:
            return rows
        places = np.searchsorted(found, positions[low:high])
        changed, is_update = self._changed(edit, slice(low, high), rows.take(pa.array(places)))
        if changed is not None and self._moves_rows:
            self._move(changed)
        picked = np.arange(rows.num_rows)
        if changed is None or self._moves_rows:
            picked = np.delete(picked, places)
            return rows.take(pa.array(picked))
        schema = arrow_schema(self._stored)
        rows, changed = (
            pa.Table.from_arrays([t.column(name) for name in schema.names], schema=schema)
            for t in (rows, changed)
        )
        picked[places[is_update]] = rows.num_rows + np.arange(changed.num_rows)
        picked = np.delete(picked, places[~is_update])
        # One chunk: rows are taken from several chunks four times as slowly.
        return pa.concat_tables([rows, changed]).combine_chunks().take(pa.array(picked))

    # --- marking ----------------------------------------------------------------------------------

    def _mark(self, edit: FileEdit, positions: I64) -> Prepared:
        updated = self._updated_count(edit)
        if updated:
            self._append_changed(edit, positions)
        marks = [Marked(edit.place, positions)]
        is_exclusive = bool(updated)  # a new row stands for the marked one
        messages = mark_rows(self._store, self._snapshot, marks, is_exclusive=is_exclusive)
        counts = Tally(updated=updated, deleted=len(positions) - updated, marked=1)
        return Prepared(tuple(messages), counts)

    def _append_changed(self, edit: FileEdit, positions: I64) -> None:
        needed = self._editor.needed(self._store.schema.fields)
        fields = tuple(f for f in self._stored_as_read if f.name in needed or f in HIDDEN_FIELDS)
        for part, rows in self._rows_at(edit.place, fields, positions):
            changed, _ = self._changed(edit, part, rows)
            if changed is not None:
                self._move(changed)

    # --- columns beside the files -----------------------------------------------------------------

    def _write_columns(self, edit: FileEdit, positions: I64) -> Prepared:
        store, place = self._store, edit.place
        assert edit.chosen is not None
        is_update = self._editor.is_update(edit.chosen)
        messages: list[CommitMessage] = []
        if is_update.any():
            fields = self._written_fields
            needed = self._editor.needed(fields)
            read = tuple(f for f in store.schema.fields if f.name in needed) or fields[:1]
            parts = []
            for part, rows in self._rows_at(place, read, positions):
                changed, _ = self._changed(edit, part, rows, fields)
                parts += [] if changed is None else [changed]
            file = write_group(store, place, fields, positions[is_update], pa.concat_tables(parts))
            messages.append(column_message(store, self._snapshot, place, [file]))
        if not is_update.all():
            marks = [Marked(place, positions[~is_update])]
            messages += mark_rows(store, self._snapshot, marks)
        updated = int(is_update.sum())
        deleted = len(positions) - updated
        copied = place.file.row_count - updated if updated else 0
        counts = Tally(updated=updated, deleted=deleted, copied=copied, marked=int(deleted > 0))
        return Prepared(tuple(messages), counts)

    @cached_property
    def _written_fields(self) -> tuple[DataField, ...]:
        return updated_fields(self._store, self._snapshot, sorted(self._editor.assigned))

    # --- rows -------------------------------------------------------------------------------------

    @cached_property
    def _stored(self) -> tuple[DataField, ...]:
        """The columns of rewritten files."""
        schema = self._store.schema
        return carried_fields(schema) if schema.profile.tracks_rows else schema.fields

    @cached_property
    def _stored_as_read(self) -> tuple[DataField, ...]:
        schema = self._store.schema
        return (*schema.fields, *HIDDEN_FIELDS) if schema.profile.tracks_rows else schema.fields

    @cached_property
    def _moves_rows(self) -> bool:
        """Whether changed rows may belong to another partition or bucket."""
        schema = self._store.schema
        placing = {*schema.partition_keys}
        if schema.profile.has_buckets:
            placing |= {*schema.bucket_keys}
        return bool(placing & self._editor.assigned)

    def _updated_count(self, edit: FileEdit) -> int:
        assert edit.chosen is not None
        return int(self._editor.is_update(edit.chosen).sum())

    def _changed(
        self,
        edit: FileEdit,
        part: slice,
        rows: pa.Table,
        fields: tuple[DataField, ...] | None = None,
    ) -> tuple[pa.Table | None, np.ndarray]:
        """The new versions of rows, and which of the rows have one; None if none has."""
        assert edit.chosen is not None
        chosen = edit.chosen[part]
        is_update = self._editor.is_update(chosen)
        if not is_update.any():
            return None, is_update
        matches = None if edit.matches is None else edit.matches[part][is_update]
        old = rows if is_update.all() else rows.filter(pa.array(is_update))
        wanted = self._store.schema.fields if fields is None else fields
        changed = self._editor.new_rows(wanted, old, chosen[is_update], matches)
        if fields is None and self._store.schema.profile.tracks_rows:
            # A row keeps its id; the commit dates its change.
            for hidden in HIDDEN_FIELDS:
                is_date = hidden.name == SEQUENCE
                column = pa.nulls(old.num_rows, pa.int64()) if is_date else old.column(hidden.name)
                changed = changed.append_column(hidden.name, column)
        return changed, is_update

    def _move(self, rows: pa.Table) -> None:
        with self._lock:
            self._moved.write(rows)

    def _rows_at(
        self, place: FilePlace, fields: tuple[DataField, ...], positions: I64
    ) -> Iterator[tuple[slice, pa.Table]]:
        """The rows at positions, in parts, each with its place among the positions."""
        read = self._read(place, fields or self._store.schema.fields[:1])
        read = replace(read, rows=(int(positions[0]), int(positions[-1]) + 1))
        with closing(read.located_tables()) as tables:
            for found, rows in tables:
                if not len(found):
                    continue
                low, high = np.searchsorted(positions, [found[0], found[-1] + 1]).tolist()
                if low < high:
                    places = np.searchsorted(found, positions[low:high])
                    yield slice(low, high), rows.take(pa.array(places))

    def _read(self, place: FilePlace, fields: tuple[DataField, ...]) -> FileRead:
        store, vector = self._store, place.vector
        deletions = {} if vector is None else {place.file.file_name: vector}
        reads = BucketReads(store, place.partition, place.bucket, deletions)
        plans = AppendPlans(store, fields)
        if not store.schema.profile.evolves_data:
            return plans.read(reads, place.file)
        group = FileGroup(tuple(f for f in place.files if not is_dedicated(f.file_name)))
        return plans.read_group(reads, group)
