"""The half of a write that makes files visible: commits of batches and of streams."""

from collections.abc import Mapping, Sequence
from typing import Protocol, runtime_checkable

from emberlake.base.closing import Closing
from emberlake.commit.change import CommitResult
from emberlake.commit.committer import CommitCallback, CommitCallbackContext
from emberlake.commit.history import already_committed
from emberlake.errors import InvalidInput
from emberlake.session.write_session import WriteSession
from emberlake.spec.partition_match import AnyPartitionMatch, partitions_of
from emberlake.spec.replacement import Replacement
from emberlake.store.table_store import TableStore
from emberlake.wire import CommitMessage


@runtime_checkable
class HasCall(Protocol):
    """A callback object with a method ``call``, as in pypaimon."""

    def call(self, context: CommitCallbackContext, /) -> None:
        """Called after a commit."""


class TableCommit(Closing):
    """Makes written files visible, all at once."""

    def __init__(
        self, store: TableStore, commit_user: str, replaces: Replacement | None = None
    ) -> None:
        self.commit_user = commit_user
        self._callbacks: list[CommitCallback] = []
        self._session = WriteSession(store, commit_user, replaces, self._callbacks)

    def add_commit_callback(self, callback: CommitCallback | HasCall) -> None:
        """Call ``callback(context)`` after every commit; if it fails, the commit still stands.

        An object with a method ``call``, as in pypaimon, works too.
        """
        self._callbacks.append(callback.call if isinstance(callback, HasCall) else callback)

    def abort(self, messages: Sequence[CommitMessage]) -> None:
        """Delete the files of messages that will not be committed.

        Raises:
            AlreadyCommitted: they are in the table; nothing is deleted.
            MessageMismatch: they are of another table; nothing is deleted.
        """
        self._session.abort(messages)

    def close(self) -> None:
        """Release everything. Commits are durable without it."""


class BatchTableCommit(TableCommit):
    """Commits of batch writes."""

    def commit(
        self,
        messages: Sequence[CommitMessage],
        snapshot_properties: Mapping[str, str] | None = None,
    ) -> CommitResult:
        """Make the messages' files visible in one snapshot, appending or overwriting.

        The builder decides which; the messages must come from a writer of such a builder.

        Raises:
            MessageMismatch: the messages are of another table, or were written to append and this
                overwrites, or the other way round; nothing changes.
            AlreadyCommitted: these messages are in the table; nothing changes.
            FilesMissing: files of the messages no longer exist; nothing changes.
            CommitConflict: a concurrent change makes this commit wrong; nothing changes, unless
                the error says that a snapshot stands.
            CommitUnknown: the storage failed, and the outcome cannot be found out.
        """
        return self._session.commit(messages, properties=snapshot_properties)

    def overwrite(
        self,
        messages: Sequence[CommitMessage],
        static_partitions: Mapping[str, object] | Replacement | None = None,
        snapshot_properties: Mapping[str, str] | None = None,
    ) -> CommitResult:
        """Replace partitions by the messages' files, whatever the builder says.

        Without ``static_partitions`` the partitions of the messages are replaced, and no messages
        replace nothing. With it all partitions that match are replaced, even if there are no
        messages. ``{}`` matches the whole table. The messages may come from a writer that
        overwrites or one that appends; not the latter in key tables with dynamic buckets, deletion
        vectors or first rows, where its rows depend on the rows to be replaced.

        Raises:
            MessageMismatch: messages that cannot replace anything; nothing changes.
            DataMismatch: messages for partitions that do not match; nothing changes.
        """
        schema = self._session.store.schema
        if static_partitions is None:
            static_partitions = Replacement.dynamic(schema)
        elif not isinstance(static_partitions, Replacement):
            static_partitions = Replacement.static(schema, static_partitions)
        return self._session.replace(messages, static_partitions, snapshot_properties)

    def truncate_table(self) -> CommitResult:
        """Delete all rows."""
        return self._session.empty(partitions_of(self._session.store.schema, {}))

    def truncate_partitions(self, partitions: Sequence[Mapping[str, object]]) -> CommitResult:
        """Delete all rows of the partitions that match any of the descriptions.

        Raises:
            InvalidInput: a description is empty, which would match every partition, or does not
                fit the partition columns.
        """
        if not all(partitions):
            raise InvalidInput(
                "an empty description matches every partition; truncate_table() deletes all rows"
            )
        schema = self._session.store.schema
        matches = tuple(partitions_of(schema, partition) for partition in partitions)
        return self._session.empty(AnyPartitionMatch(matches))


class StreamTableCommit(TableCommit):
    """Commits of a stream: each has an identifier, greater than the one before."""

    def __init__(self, store: TableStore, commit_user: str) -> None:
        super().__init__(store, commit_user)
        self._newest: int | None = None
        self._has_looked = False

    def commit(
        self,
        messages: Sequence[CommitMessage],
        commit_identifier: int,
        snapshot_properties: Mapping[str, str] | None = None,
    ) -> CommitResult:
        """Make the messages' files visible under an identifier.

        Raises:
            MessageMismatch: the messages are of another table, or were written to overwrite.
            AlreadyCommitted: this commit user has committed this identifier or a later one.
        """
        self._session.accept(messages)
        newest = self._newest_identifier()
        if newest is not None and commit_identifier <= newest:
            raise already_committed(self.commit_user, commit_identifier, newest)
        result = self._session.commit(messages, commit_identifier, snapshot_properties)
        if result.snapshot_id is not None:
            self._newest = commit_identifier
        return result

    def filter_and_commit(self, commits: Mapping[int, Sequence[CommitMessage]]) -> int:
        """Commit what is not committed yet, in order; return how many commits were made.

        For restarts: give it all commits whose outcome is unknown.

        Raises:
            MessageMismatch: messages of another table, or that were written to overwrite.
            FilesMissing: files of one of these commits are not there; none of them is made.
        """
        for messages in commits.values():
            self._session.accept(messages)
        newest = self._newest_identifier()
        todo = [i for i in sorted(commits) if newest is None or i > newest]
        for identifier in todo:
            self._session.check_files(commits[identifier])
        return sum(self.commit(commits[i], i).snapshot_id is not None for i in todo)

    def _newest_identifier(self) -> int | None:
        if not self._has_looked:
            self._newest = self._session.newest_identifier()
            self._has_looked = True
        return self._newest
