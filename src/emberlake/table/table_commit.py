"""The half of a write that makes files visible: commits of batches and of streams."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Protocol, runtime_checkable

from emberlake.base.closing import Closing
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
from emberlake.commit.committer import CommitCallback, CommitCallbackContext, Committer
from emberlake.commit.history import already_committed
from emberlake.errors import (
    CommitConflict,
    ConflictReason,
    DataMismatch,
    InvalidInput,
)
from emberlake.maintenance.compact import as_replacement, commit_written, discard_passing
from emberlake.scan.files import PartitionChoice
from emberlake.spec.manifest import HASH_INDEX
from emberlake.spec.partition_match import AnyPartitionMatch, partitions_of
from emberlake.spec.replacement import Replacement
from emberlake.spec.snapshot import BATCH_COMMIT_IDENTIFIER
from emberlake.store.table_store import TableStore
from emberlake.wire import CommitMessage


@runtime_checkable
class HasCall(Protocol):
    """What wants to be told of commits by its method ``call``."""

    def call(self, context: CommitCallbackContext, /) -> None:
        """A commit was made."""


class TableCommit(Closing):
    """Makes written files visible, all of them at once."""

    def __init__(self, store: TableStore, commit_user: str) -> None:
        self.commit_user = commit_user
        self._store = store
        self._callbacks: list[CommitCallback] = []
        self._committer = Committer(store, commit_user, self._callbacks)

    def add_commit_callback(self, callback: CommitCallback | HasCall) -> None:
        """Call ``callback(context)`` after every commit; should it fail, the commit stands.

        An object that has a method ``call`` instead, as in pypaimon, is called by that.
        """
        self._callbacks.append(callback.call if isinstance(callback, HasCall) else callback)

    def abort(self, messages: Sequence[CommitMessage]) -> None:
        """Delete the files of messages that will not be committed.

        Raises:
            AlreadyCommitted: they are in the table; nothing is deleted.
            MessageMismatch: they are of another table; nothing is deleted.
        """
        self._check_table(messages)
        self._committer.check_not_committed(messages)
        for message in messages:
            for file in message.written_files:
                path = self._store.data_file_path(message.partition, message.bucket, file)
                self._store.storage.delete(path)
            for index in (*message.new_index_files, *message.compact_new_index_files):
                place = message.partition, message.bucket, index
                self._store.storage.delete(self._store.index_file_path(*place))

    def _commit(
        self,
        messages: Sequence[CommitMessage],
        changes: Sequence[Change],
        identifier: int = BATCH_COMMIT_IDENTIFIER,
        *,
        properties: Mapping[str, str] | None = None,
    ) -> CommitResult:
        _check_one_index_a_bucket(messages)

        def commit(parts: Sequence[Change]) -> CommitResult:
            return self._committer.commit_all(parts, identifier, properties=properties)

        return commit_written(self._store, commit, changes, messages)

    def _check_table(self, messages: Sequence[CommitMessage]) -> None:
        check_table(messages, self._store.layout.metadata_root)

    def close(self) -> None:
        """Release everything; a commit is durable without it."""


class BatchTableCommit(TableCommit):
    """Commits of batch writes."""

    def __init__(
        self, store: TableStore, commit_user: str, replaces: Replacement | None = None
    ) -> None:
        super().__init__(store, commit_user)
        self._replaces = replaces

    def commit(
        self,
        messages: Sequence[CommitMessage],
        snapshot_properties: Mapping[str, str] | None = None,
    ) -> CommitResult:
        """Make the messages' files visible in one snapshot, as the builder was told.

        The builder was told to append, or by its ``overwrite`` to replace; the messages must be of
        a writer that was told the same.

        Raises:
            MessageMismatch: the messages are of another table, or were written to append and this
                overwrites, or the other way round; nothing changes.
            AlreadyCommitted: these messages are in the table; nothing changes.
            FilesMissing: files of the messages are not there any more; nothing changes.
            CommitConflict: a concurrent change makes this commit wrong; nothing changes, unless
                the error says that a snapshot stands.
            CommitUnknown: the storage failed and the outcome cannot be found out.
        """
        self._check_table(messages)
        if self._replaces is None:
            check_appended(messages)
            changes = split_changes(messages)
            return self._commit(messages, changes, properties=snapshot_properties)
        check_overwritten(messages)
        return self._overwrite(messages, self._replaces, snapshot_properties)

    def overwrite(
        self,
        messages: Sequence[CommitMessage],
        static_partitions: Mapping[str, object] | Replacement | None = None,
        snapshot_properties: Mapping[str, str] | None = None,
    ) -> CommitResult:
        """Put the messages' files in the place of what is there, whatever the builder was told.

        Without ``static_partitions`` the partitions that the messages touch are replaced, and no
        messages replace nothing; with it all partitions that match, also by no messages. ``{}``
        matches the whole table. The messages may be of a writer that was told to overwrite, or of
        one that appends, but in key tables with dynamic buckets, deletion vectors or first rows:
        there the rows of such a writer depend on those that are to go.

        Raises:
            MessageMismatch: messages that cannot replace anything; nothing changes.
            DataMismatch: messages for partitions that do not match; nothing changes.
        """
        schema = self._store.schema
        if static_partitions is None:
            static_partitions = Replacement.dynamic(schema)
        elif not isinstance(static_partitions, Replacement):
            static_partitions = Replacement.static(schema, static_partitions)
        self._check_table(messages)
        check_replacing(messages, schema)
        return self._overwrite(messages, static_partitions, snapshot_properties)

    def truncate_table(self) -> CommitResult:
        """Delete all rows."""
        return self._overwrite([], Replacement.whole_table(self._store.schema), None)

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
        matches = tuple(partitions_of(self._store.schema, partition) for partition in partitions)
        return self._committer.commit_all(overwrite_changes([], AnyPartitionMatch(matches)))

    def _overwrite(
        self,
        messages: Sequence[CommitMessage],
        replacement: Replacement,
        properties: Mapping[str, str] | None,
    ) -> CommitResult:
        self._check_inside(messages, replacement.match)
        touched = frozenset(m.partition for m in messages if not m.is_empty())
        if replacement.only_touched and not touched:
            return NOTHING_COMMITTED
        return self._commit_overwrite(messages, replacement.partitions(touched), properties)

    def _commit_overwrite(
        self,
        messages: Sequence[CommitMessage],
        replaces: PartitionChoice,
        properties: Mapping[str, str] | None,
    ) -> CommitResult:
        whole = [as_replacement(message) for message in messages]
        changes = overwrite_changes(whole, replaces)
        result = self._commit(whole, changes, properties=properties)
        merged = [m for m, w in zip(messages, whole, strict=True) if m is not w]
        discard_passing(self._store, merged)
        return result

    def _check_inside(
        self, messages: Sequence[CommitMessage], match: Callable[[bytes], bool]
    ) -> None:
        outside = sorted({m.partition for m in messages if not match(m.partition)})
        if outside:
            shown = ", ".join(str(dict(self._store.partition_spec(p))) for p in outside[:5])
            raise DataMismatch(f"messages for partitions outside those to overwrite: {shown}")


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
        self._check_table(messages)
        check_appended(messages)
        newest = self._newest_identifier()
        if newest is not None and commit_identifier <= newest:
            raise already_committed(self.commit_user, commit_identifier, newest)
        changes = split_changes(messages)
        result = self._commit(messages, changes, commit_identifier, properties=snapshot_properties)
        if result.snapshot_id is not None:
            self._newest = commit_identifier
        return result

    def filter_and_commit(self, commits: Mapping[int, Sequence[CommitMessage]]) -> int:
        """Commit what is not committed yet, in order; how many commits were made.

        For restarts: give all commits whose outcome is not known.

        Raises:
            MessageMismatch: messages of another table, or that were written to overwrite.
            FilesMissing: files of a commit that is to be made are not there; none is made.
        """
        for messages in commits.values():
            self._check_table(messages)
            check_appended(messages)
        newest = self._newest_identifier()
        todo = [i for i in sorted(commits) if newest is None or i > newest]
        for identifier in todo:
            self._committer.check_files(append_change(commits[identifier]))
        return sum(self.commit(commits[i], i).snapshot_id is not None for i in todo)

    def _newest_identifier(self) -> int | None:
        if not self._has_looked:
            self._newest = self._committer.newest_identifier()
            self._has_looked = True
        return self._newest


def _check_one_index_a_bucket(messages: Sequence[CommitMessage]) -> None:
    """An index of keys is written whole: of two, one would forget the keys of the other."""
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
                f"{count} of the messages to commit have given new keys to bucket {bucket}",
                "let one writer write all rows of a partition of a table with dynamic buckets",
            )
