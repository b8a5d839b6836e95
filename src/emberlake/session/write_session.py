"""One write, from its rows to a snapshot: write, accept, commit, and then finish, abort or leave.

Every write uses a ``WriteSession``: local writers, the tasks and drivers of Spark, and compaction.
It decides what happens to the files when a commit fails. A commit that is refused has changed
nothing, so its files are deleted. After any other failure a snapshot may refer to them, so they
stay; if none does, orphan cleaning finds them.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

from emberlake.commit.acceptance import (
    check_appended,
    check_overwritten,
    check_replacing,
    check_table,
)
from emberlake.commit.change import (
    NOTHING_COMMITTED,
    Change,
    CommitResult,
    append_change,
    overwrite_changes,
    split_changes,
)
from emberlake.commit.committer import CommitCallback, Committer
from emberlake.commit.discard import written_paths
from emberlake.errors import (
    CommitConflict,
    ConflictReason,
    DataMismatch,
    EmberlakeError,
    InvalidInput,
    ServerError,
    SnapshotOverwritten,
)
from emberlake.io.routed import is_same_folder
from emberlake.places.acceptance import check_placed_together
from emberlake.places.live_keys import LiveKeys
from emberlake.places.writer import PlacingWriter
from emberlake.scan.files import PartitionChoice
from emberlake.session.commit_written import as_replacement, commit_written, discard_passing
from emberlake.session.compact_written import (
    CompactingWriter,
    WrittenCompaction,
    is_due_fully,
)
from emberlake.spec.manifest import HASH_INDEX
from emberlake.spec.replacement import Replacement
from emberlake.spec.snapshot import BATCH_COMMIT_IDENTIFIER, CommitKind, Operation, Snapshot
from emberlake.spec.support import check_writable
from emberlake.store.table_store import TableStore
from emberlake.wire import CommitMessage
from emberlake.write.bucket_rooms import SINGLE_ASSIGNER, Assigner
from emberlake.write.rows_writer import RowsWriter
from emberlake.write.table_writer import TableWriter


@dataclass(frozen=True)
class WriteSession:
    """Who writes to which table, and what the write replaces; pickles for workers.

    Args:
        store: The table.
        commit_user: Who commits.
        replaces: What the write replaces; None: it appends.
        callbacks: Called after every commit.
        stale_after: Kinds of commits that others may not have made since the messages' base,
            because the messages depend on rows that were read then.
        operation: The operation that snapshots record.
    """

    store: TableStore
    commit_user: str
    replaces: Replacement | None = None
    callbacks: Sequence[CommitCallback] = ()
    stale_after: frozenset[CommitKind] = frozenset()
    operation: Operation | None = None

    # --- rows to messages -------------------------------------------------------------------------

    @property
    def is_overwrite(self) -> bool:
        return self.replaces is not None

    @property
    def accepts(self) -> Callable[[bytes], bool] | None:
        """Tells whether a partition may be written to; None: all may."""
        return None if self.replaces is None else self.replaces.match

    def new_writer(
        self,
        assigner: Assigner = SINGLE_ASSIGNER,
        *,
        carries_ids: bool = False,
        as_of: Snapshot | None = None,
        is_stream: bool = False,
    ) -> RowsWriter:
        """A writer of rows; its messages are ready to be committed.

        Args:
            assigner: Which of the writers of one commit this is, in tables with dynamic buckets.
            carries_ids: Whether the rows keep their ids, which are in the data (``TableWriter``).
            as_of: The snapshot that the rows were read from, if they are rows of the table.
            is_stream: Whether it writes for the commits of a stream, which knows later which of
                them are to compact fully.
        """
        writer: RowsWriter
        if self.store.schema.profile.crosses_partitions:
            writer = self.new_placing(assigner, as_of=as_of)
        else:
            writer = self._table_writer(assigner, carries_ids=carries_ids, as_of=as_of)
        return self.compacting(writer, is_stream=is_stream)

    def new_placing(
        self,
        assigner: Assigner = SINGLE_ASSIGNER,
        *,
        as_of: Snapshot | None = None,
        live: LiveKeys | None = None,
        name: str | None = None,
    ) -> PlacingWriter:
        """A writer for a table whose rows may move; it compacts nothing.

        Args:
            assigner: Which of the writers of one commit this is; each must have its own keys.
            as_of: The snapshot that the rows were read from, if they are rows of the table.
            live: Where the keys are that come with the rows; None: the writer reads them.
            name: What the writers of one commit have in common.
        """
        return PlacingWriter(
            self._table_writer(assigner, as_of=as_of),
            self.store,
            replaces=self.replaces,
            as_of=as_of,
            assigner=assigner,
            given=live,
            name=name,
        )

    def _table_writer(
        self, assigner: Assigner, *, as_of: Snapshot | None, carries_ids: bool = False
    ) -> TableWriter:
        self.store.check_served()
        check_writable(self.store.schema)
        return TableWriter(
            self.store,
            commit_user=self.commit_user,
            ignore_previous=self.is_overwrite,
            accepts=self.accepts,
            assigner=assigner,
            carries_ids=carries_ids,
            as_of=as_of,
        )

    def compacting(self, writer: RowsWriter, *, is_stream: bool = False) -> RowsWriter:
        """The same writer, with the compaction that the table needs in its messages."""
        return CompactingWriter(writer, self.new_compaction(is_stream=is_stream))

    def new_compaction(self, *, is_stream: bool = False) -> WrittenCompaction:
        """The compaction for messages of writers that do not compact."""
        full = not is_stream and is_due_fully(self.store.schema, BATCH_COMMIT_IDENTIFIER)
        return WrittenCompaction(self.store, ignore_previous=self.is_overwrite, full=full)

    # --- messages to a snapshot -------------------------------------------------------------------

    def commit_or_abort(
        self,
        messages: Sequence[CommitMessage],
        identifier: int = BATCH_COMMIT_IDENTIFIER,
        properties: Mapping[str, str] | None = None,
    ) -> CommitResult:
        """Commit the messages; if they are refused, delete their files.

        Files that are in the table are not deleted: another session may have committed the same
        messages, or the first of two snapshots stands.
        """
        try:
            return self.commit(messages, identifier, properties)
        except SnapshotOverwritten:
            raise  # a writer that saw the snapshot while it existed may have built on its files
        except (CommitConflict, InvalidInput, ServerError) as error:
            # A server that failed, rather than refused, may have taken the commit.
            if not isinstance(error, ServerError) or error.had_no_effect:
                with suppress(EmberlakeError):  # why it was refused matters more than what is left
                    self.abort(messages)
            raise

    def commit(
        self,
        messages: Sequence[CommitMessage],
        identifier: int = BATCH_COMMIT_IDENTIFIER,
        properties: Mapping[str, str] | None = None,
    ) -> CommitResult:
        """Make the files of the messages visible; none of them is deleted, no matter what happens.

        Raises:
            MessageMismatch: they are of another table, or were written to append and this
                overwrites, or the other way round.
            CommitConflict: a concurrent change makes the commit wrong.
            CommitUnknown: the storage failed, and whether it took effect cannot be found out.
        """
        self.accept(messages)
        if self.replaces is not None:
            return self._overwrite(messages, self.replaces, properties)
        changes = split_changes(messages)
        if self.stale_after and changes:
            changes = (replace(changes[0], stale_after=self.stale_after), *changes[1:])
        return self._commit(messages, changes, identifier, properties)

    def replace(
        self,
        messages: Sequence[CommitMessage],
        replaces: Replacement,
        properties: Mapping[str, str] | None = None,
    ) -> CommitResult:
        """Replace partitions with the files of the messages, no matter what the session is for.

        Raises:
            MessageMismatch: the messages cannot replace anything.
            DataMismatch: there are messages for partitions that are not replaced.
        """
        self._check_table(messages)
        check_replacing(messages, self.store.schema)
        return self._overwrite(messages, replaces, properties)

    def empty(self, partitions: PartitionChoice) -> CommitResult:
        """Delete all rows of some partitions."""
        return self._committer.commit_all(overwrite_changes([], partitions))

    def abort(self, messages: Sequence[CommitMessage]) -> None:
        """Delete the files of messages that will not be committed.

        Raises:
            AlreadyCommitted: they are in the table; nothing is deleted.
            MessageMismatch: they are of another table; nothing is deleted.
        """
        self._check_table(messages)
        self._committer.check_not_committed(messages)
        self.store.storage.delete_all(written_paths(self.store, messages))

    def accept(self, messages: Sequence[CommitMessage]) -> None:
        """Refuse messages of another table, or written for another kind of commit."""
        self._check_table(messages)
        if self.replaces is None:
            check_appended(messages)
        else:
            check_overwritten(messages)

    def check_files(self, messages: Sequence[CommitMessage]) -> None:
        """Refuse messages whose files no longer exist."""
        self._committer.check_files(append_change(messages))

    def newest_identifier(self) -> int | None:
        """The identifier of the newest snapshot of the commit user, if there is one."""
        return self._committer.newest_identifier()

    @property
    def _committer(self) -> Committer:
        return Committer(self.store, self.commit_user, self.callbacks)

    def _check_table(self, messages: Sequence[CommitMessage]) -> None:
        root, storage = self.store.layout.metadata_root, self.store.storage
        others = (m for m in messages if m.table != root)
        # A folder that is reached through a link is the same folder.
        check_table([m for m in others if not is_same_folder(storage, m.table, root)], root)

    def _overwrite(
        self,
        messages: Sequence[CommitMessage],
        replaces: Replacement,
        properties: Mapping[str, str] | None,
    ) -> CommitResult:
        self._check_inside(messages, replaces.match)
        touched = frozenset(m.partition for m in messages if not m.is_empty())
        if replaces.only_touched and not touched:
            return NOTHING_COMMITTED
        whole = [as_replacement(message) for message in messages]
        changes = overwrite_changes(whole, replaces.partitions(touched))
        result = self._commit(whole, changes, BATCH_COMMIT_IDENTIFIER, properties)
        merged = [m for m, w in zip(messages, whole, strict=True) if m is not w]
        discard_passing(self.store, merged)
        return result

    def _check_inside(
        self, messages: Sequence[CommitMessage], match: Callable[[bytes], bool]
    ) -> None:
        outside = sorted({m.partition for m in messages if not match(m.partition)})
        if outside:
            shown = ", ".join(str(dict(self.store.partition_spec(p))) for p in outside[:5])
            raise DataMismatch(f"messages for partitions outside those to overwrite: {shown}")

    def _commit(
        self,
        messages: Sequence[CommitMessage],
        changes: Sequence[Change],
        identifier: int,
        properties: Mapping[str, str] | None,
    ) -> CommitResult:
        _check_one_index_a_bucket(messages)
        if self.store.schema.profile.crosses_partitions:
            check_placed_together(self.store, messages)
        committer = self._committer

        def commit(parts: Sequence[Change]) -> CommitResult:
            parts = [replace(part, operation=self.operation) for part in parts]
            return committer.commit_all(parts, identifier, properties=properties)

        is_stream = identifier != BATCH_COMMIT_IDENTIFIER
        full = (is_stream or bool(changes)) and is_due_fully(self.store.schema, identifier)
        return commit_written(self.store, commit, changes, messages, full=full)


def _check_one_index_a_bucket(messages: Sequence[CommitMessage]) -> None:
    """A key index is written as a whole: of two, one would lose the other's keys."""
    indexed = Counter(
        (message.partition, message.bucket)
        for message in messages
        for file in message.new_index_files
        if file.index_type == HASH_INDEX
    )
    for (_, bucket), count in indexed.items():
        if count > 1:
            raise CommitConflict(
                ConflictReason.KEY_INDEX_CHANGED,
                f"{count} of the messages to commit put new keys into bucket {bucket}",
                "let one writer write all rows of a partition of a table with dynamic buckets",
            )
