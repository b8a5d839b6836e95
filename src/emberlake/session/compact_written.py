"""Compact what a writer has written before it is committed, in tables that ask for it.

Reads of tables with deletion vectors or first rows skip level 0, and with the changelog producer
``lookup`` a compaction finds the changes. So a write to them is not finished until its files are on
a higher level. The option ``full-compaction.delta-commits`` asks for full compactions.
"""

from collections.abc import Iterable

from emberlake.commit.committer import Committer
from emberlake.commit.discard import discard
from emberlake.compaction.buckets import (
    compact_all,
    existing_buckets,
    extended,
    with_files,
    with_present_schema,
)
from emberlake.errors import AlreadyCommitted
from emberlake.options import FULL_COMPACTION_COMMITS, WRITE_ONLY
from emberlake.spec.schema import TableSchema
from emberlake.spec.snapshot import BATCH_COMMIT_IDENTIFIER
from emberlake.store.table_store import TableStore
from emberlake.wire import CommitMessage
from emberlake.write.rows_writer import RowsWriter


class WrittenCompaction:
    """Compacts the files of a writer, if the table asks for it.

    Args:
        store: The table.
        ignore_previous: Whether the writer's commits replace the existing files.
        full: Whether the buckets are compacted fully.
    """

    def __init__(self, store: TableStore, *, ignore_previous: bool, full: bool) -> None:
        self._store = store
        self._ignore_previous = ignore_previous
        self._full = full
        self._is_needed = store.schema.profile.compacts_on_write or full
        self._handed_over: list[CommitMessage] = []

    def compact(self, messages: list[CommitMessage]) -> list[CommitMessage]:
        """Compact the files of messages, together with the existing files of their buckets.

        If that fails, the files of the messages are deleted. A bucket is left out while earlier
        messages for it are not committed: until then nobody knows which files it has.
        """
        if not self._is_needed:
            return messages
        try:
            compacted = self._compact(messages)
        except BaseException:
            discard(self._store, messages)
            raise
        self._handed_over += compacted
        return compacted

    def _compact(self, messages: list[CommitMessage]) -> list[CommitMessage]:
        self._handed_over = [m for m in self._handed_over if not _is_committed(self._store, m)]
        pending = {(m.partition, m.bucket) for m in self._handed_over}
        snapshot = None if self._ignore_previous else self._store.snapshots.latest()
        store = with_present_schema(self._store)
        touched = {
            place: m
            for m in messages
            if m.new_files and m.bucket >= 0 and (place := (m.partition, m.bucket)) not in pending
        }
        existing = existing_buckets(store, snapshot, touched)
        buckets = [
            with_files(store, existing.get(place), message) for place, message in touched.items()
        ]
        # Spec: "Overwrite": it has no changelog.
        compacted = compact_all(
            store, buckets, full=self._full, with_changelog=not self._ignore_previous
        )
        found = dict(zip(touched, compacted, strict=True))
        return [extended(m, found.get((m.partition, m.bucket))) for m in messages]


def is_due_fully(schema: TableSchema, identifier: int) -> bool:
    """Whether a commit compacts fully: every batch, and every n-th commit of a stream."""
    commits = schema.options.value(FULL_COMPACTION_COMMITS)
    if commits is None or not schema.profile.has_keys or schema.options.value(WRITE_ONLY):
        return False
    return identifier == BATCH_COMMIT_IDENTIFIER or identifier % max(1, commits) == 0


def compacts_batches(schema: TableSchema) -> bool:
    """Whether the writers of a batch compact what they write."""
    return schema.profile.compacts_on_write or is_due_fully(schema, BATCH_COMMIT_IDENTIFIER)


class CompactingWriter:
    """A writer that hands over its messages together with the compaction they need."""

    def __init__(self, writer: RowsWriter, compaction: WrittenCompaction) -> None:
        self._writer = writer
        self._compaction = compaction

    def prepare(self) -> list[CommitMessage]:
        """Finish all files, and compact them if needed."""
        messages = self._writer.prepare()
        try:
            return self._compaction.compact(messages)
        except BaseException:  # the rows are gone; what follows must not be committed without them
            self._writer.abort()
            raise

    # --- everything else is left to the writer ----------------------------------------------------

    @property
    def write_columns(self) -> tuple[str, ...] | None:
        return self._writer.write_columns

    @property
    def has_rows(self) -> bool:
        return self._writer.has_rows

    def set_write_columns(self, columns: Iterable[str]) -> None:
        self._writer.set_write_columns(columns)

    def write(self, data: object, row_kind: str | None = None) -> None:
        self._writer.write(data, row_kind)

    def abort(self) -> None:
        self._writer.abort()

    def close(self) -> None:
        self._writer.close()


def _is_committed(store: TableStore, message: CommitMessage) -> bool:
    try:
        Committer(store, "").check_not_committed([message])
    except AlreadyCommitted:
        return True
    return False
