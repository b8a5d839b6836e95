"""Write changed rows of an append table: what was found in each file becomes messages.

One function for each way in which a table lets rows be changed (``Strategy``). Files are written in
parallel, each in bounded memory. Nothing is committed here.
"""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, replace
from functools import cached_property
from threading import Lock
from typing import Final

import numpy as np
import pyarrow as pa

from emberlake.base.option_texts import MEBIBYTE
from emberlake.base.parallel import default_workers, parallel_map
from emberlake.commit.discard import discard
from emberlake.formats import format_of
from emberlake.formats.file_format import DEFAULT_BATCH_ROWS
from emberlake.read.append_plans import AppendPlans
from emberlake.read.bucket_reads import BucketReads
from emberlake.read.file_read import FileRead
from emberlake.rowops.clauses import Choice, Editor
from emberlake.rowops.columns import column_message, updated_fields, write_group
from emberlake.rowops.locate import FilePlace
from emberlake.rowops.marks import Marked, mark_rows, remove_files
from emberlake.rowops.result import Strategy, Tally, strategy_of
from emberlake.rowops.rewrite import EditedFile, EditedGroup
from emberlake.session.write_session import WriteSession
from emberlake.spec.column_buffers import I64, Mask
from emberlake.spec.file_groups import FileGroup, is_dedicated
from emberlake.spec.key_value import SEQUENCE
from emberlake.spec.row_tracking import HIDDEN_FIELDS, carried_fields
from emberlake.spec.snapshot import Snapshot
from emberlake.types import DataField, arrow_schema
from emberlake.wire import CommitMessage
from emberlake.write.rolling import AppendWriter, FileLimits

# Few of the rows that are read change: small batches leave little behind, and are as fast.
_BATCH_BYTES: Final = MEBIBYTE
_PART_BYTES: Final = 4 * MEBIBYTE  # of rows that change together


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
    messages: list[CommitMessage] = []  # in the order of the edits, whichever was done first
    with ExitStack() as resources:
        writing.open(resources)
        try:
            for rows in inserts:
                writing.insert(rows)
            for made in parallel_map(writing.write, edits):
                tally += made.tally
                messages += made.messages
            messages += writing.finish()
        except BaseException:
            discard(session.store, writing.messages)
            raise
    return Prepared(tuple(messages), tally)


class _Writing:
    """The files of one operation."""

    def __init__(self, session: WriteSession, snapshot: Snapshot | None, editor: Editor) -> None:
        self._session = session
        self._store = session.store
        self._snapshot = snapshot
        self._editor = editor
        self._strategy = strategy_of(session.store.schema)
        self._lock = Lock()
        self._files_in_work = 0
        self.messages: list[CommitMessage] = []  # of all threads, even after one has failed

    def open(self, resources: ExitStack) -> None:
        """Open the writers that all files share, and find out which columns are written."""
        if self._strategy is Strategy.COLUMNS and self._editor.assigned:
            names = sorted(self._editor.assigned)
            self._written_fields = updated_fields(self._store, self._snapshot, names)
        self._new = resources.enter_context(closing(self._session.new_writer()))
        self._moved = self._new
        if self._store.schema.profile.tracks_rows:
            # Rows that keep their ids are in files of their own.
            moved = self._session.new_writer(carries_ids=True)
            self._moved = resources.enter_context(closing(moved))

    def insert(self, rows: pa.Table) -> None:
        """Write new rows."""
        self._new.write(rows)

    def finish(self) -> list[CommitMessage]:
        """Finish the files of rows that are new, or have left their file."""
        finished: list[CommitMessage] = []
        for writer in {id(w): w for w in (self._moved, self._new)}.values():
            made = writer.prepare()
            self.messages += made
            finished += made
        return finished

    def write(self, edit: FileEdit) -> Prepared:
        """Write the changes of one file."""
        with self._lock:
            self._files_in_work += 1
        try:
            return self._write(edit)
        finally:
            with self._lock:
                self._files_in_work -= 1

    def _write(self, edit: FileEdit) -> Prepared:
        if edit.positions is None:
            made = self._remove(edit.place)
        elif self._strategy is Strategy.REWRITE:
            made = self._rewrite(edit, edit.positions)
        elif self._strategy is Strategy.VECTORS:
            made = self._mark(edit, edit.positions)
        else:
            made = self._write_columns(edit, edit.positions)
        self.messages += made.messages
        return made

    def _remove(self, place: FilePlace) -> Prepared:
        messages = remove_files(self._store, self._snapshot, [place])
        return Prepared(tuple(messages), Tally(deleted=place.live_count(self._store)))

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
        write = self._write_columns_of if self._goes_by_columns(place, writer) else self._write_rows
        with writer.finished():
            kept = write(edit, positions, writer)
        (message,) = remove_files(store, self._snapshot, [place])
        message = replace(message, new_files=writer.take_written().new_files)
        updated = self._updated_count(edit)
        copied = kept if self._moves_rows else kept - updated
        counts = Tally(updated=updated, deleted=len(positions) - updated, copied=copied)
        return Prepared((message,), counts)

    def _goes_by_columns(self, place: FilePlace, writer: AppendWriter) -> bool:
        is_parquet = format_of(place.file.file_name) == "parquet" and writer.takes_columns
        return is_parquet and place.vector is None

    def _write_columns_of(self, edit: FileEdit, positions: I64, writer: AppendWriter) -> int:
        """Rewrite a file one row group after the other, column by column."""
        place = edit.place
        file = EditedFile.of(
            self._store,
            place,
            self._read_column,
            self._kept_columns,
            keeps_rows=not self._moves_rows and bool(self._is_update(edit, slice(None)).all()),
        )
        kept = 0
        for group in file.groups():
            low, high = np.searchsorted(positions, [group.start, group.stop]).tolist()
            part = slice(low, high)
            places = positions[part] - group.start
            is_update = self._is_update(edit, part)
            if self._moves_rows:
                for rows in self._new_versions(edit, positions, part, None):
                    self._move(rows)
                changed, is_update = None, np.zeros(len(places), bool)
            else:
                made = list(self._new_versions(edit, positions, part, self._set_fields))
                changed = pa.concat_tables(made) if made else None
            rows = EditedGroup(file, group, places, is_update, changed)
            kept += rows.num_rows
            if rows.num_rows:
                # The files in work share the cores; a single file gets all of them.
                workers = max(1, default_workers() // self._files_in_work)
                writer.write_columns(rows, workers=workers)
        return kept

    def _read_column(self, place: FilePlace, field: DataField) -> FileRead:
        (as_read,) = (f for f in self._stored_as_read if f.name == field.name)
        return self._read(place, (as_read,))

    def _write_rows(self, edit: FileEdit, positions: I64, writer: AppendWriter) -> int:
        """Rewrite a file of another format, all columns of some rows at a time."""
        kept = 0
        with closing(self._read(edit.place, self._stored_as_read).located_tables()) as tables:
            for found, rows in tables:
                after = self._overlaid(edit, positions, found, rows)
                kept += after.num_rows
                writer.add(after)
                if writer.is_due:
                    writer.flush()
        return kept

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
            return rows.take(pa.array(np.delete(picked, places)))
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
        for rows in self._new_versions(edit, positions, slice(0, len(positions)), None):
            self._move(rows)
        marks = [Marked(edit.place, positions)]
        is_exclusive = bool(updated)  # a new row replaces the marked one
        messages = mark_rows(self._store, self._snapshot, marks, is_exclusive=is_exclusive)
        counts = Tally(updated=updated, deleted=len(positions) - updated, marked=1)
        return Prepared(tuple(messages), counts)

    # --- columns beside the files -----------------------------------------------------------------

    def _write_columns(self, edit: FileEdit, positions: I64) -> Prepared:
        store, place = self._store, edit.place
        assert edit.chosen is not None
        is_update = self._editor.is_update(edit.chosen)
        messages: list[CommitMessage] = []
        if is_update.any():
            fields = self._written_fields
            parts = list(self._new_versions(edit, positions, slice(0, len(positions)), fields))
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

    @cached_property
    def _set_fields(self) -> tuple[DataField, ...]:
        """The columns that updates set."""
        return tuple(f for f in self._store.schema.fields if f.name in self._editor.assigned)

    @cached_property
    def _kept_columns(self) -> frozenset[str]:
        """The columns that updates leave as they are; the commit dates changed rows."""
        kept = {f.name for f in self._stored} - {SEQUENCE}
        return frozenset(kept - self._editor.assigned)

    def _updated_count(self, edit: FileEdit) -> int:
        return int(self._is_update(edit, slice(None)).sum())

    def _is_update(self, edit: FileEdit, part: slice) -> Mask:
        assert edit.chosen is not None
        return self._editor.is_update(edit.chosen[part])

    def _new_versions(
        self, edit: FileEdit, positions: I64, part: slice, fields: tuple[DataField, ...] | None
    ) -> Iterator[pa.Table]:
        """The new versions of some of the rows that change, in parts.

        They have the given columns; None: all columns, and the ids of the rows if they have some.
        """
        if not self._is_update(edit, part).any():
            return
        wanted = self._store.schema.fields if fields is None else fields
        needed = self._editor.needed(wanted)
        is_moved = fields is None
        read = tuple(
            f for f in self._stored_as_read if f.name in needed or (is_moved and f in HIDDEN_FIELDS)
        )
        for some, rows in self._rows_at(edit.place, read, positions[part]):
            at = slice(part.start + some.start, part.start + some.stop)
            changed, _ = self._changed(edit, at, rows, fields)
            if changed is not None:
                yield changed

    def _changed(
        self,
        edit: FileEdit,
        part: slice,
        rows: pa.Table,
        fields: tuple[DataField, ...] | None = None,
    ) -> tuple[pa.Table | None, np.ndarray]:
        """The new versions of rows, and which of the rows have one; None if none has."""
        assert edit.chosen is not None
        chosen, is_update = edit.chosen[part], self._is_update(edit, part)
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
        if not fields:  # nothing of them is needed but their number
            for low in range(0, len(positions), DEFAULT_BATCH_ROWS):
                high = min(low + DEFAULT_BATCH_ROWS, len(positions))
                yield slice(low, high), pa.table({"": pa.nulls(high - low)})
            return
        read = self._read(place, fields)
        read = replace(
            read,
            rows=(int(positions[0]), int(positions[-1]) + 1),
            batch_bytes=_BATCH_BYTES,
        )
        start = 0
        for rows in _gathered(_picked(read, positions)):
            yield slice(start, start + rows.num_rows), rows
            start += rows.num_rows

    def _read(self, place: FilePlace, fields: tuple[DataField, ...]) -> FileRead:
        store, vector = self._store, place.vector
        deletions = {} if vector is None else {place.file.file_name: vector}
        reads = BucketReads(store, place.partition, place.bucket, deletions)
        plans = AppendPlans(store, fields)
        if not store.schema.profile.evolves_data:
            return plans.read(reads, place.file)
        group = FileGroup(tuple(f for f in place.files if not is_dedicated(f.file_name)))
        return plans.read_group(reads, group)


def _picked(read: FileRead, positions: I64) -> Iterator[pa.Table]:
    """The rows at positions, of which there may be few in each table."""
    with closing(read.located_tables()) as tables:
        for found, rows in tables:
            if not len(found):
                continue
            low, high = np.searchsorted(positions, [found[0], found[-1] + 1]).tolist()
            if low < high:
                yield rows.take(pa.array(np.searchsorted(found, positions[low:high])))


def _gathered(tables: Iterable[pa.Table]) -> Iterator[pa.Table]:
    """The same rows in fewer tables: each costs the same to change and to write, however small."""
    parts: list[pa.Table] = []
    size = 0
    for rows in tables:
        parts.append(rows)
        size += rows.nbytes
        if size >= _PART_BYTES:
            yield pa.concat_tables(parts).combine_chunks()
            parts, size = [], 0
    if parts:
        yield pa.concat_tables(parts).combine_chunks()
