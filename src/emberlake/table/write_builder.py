"""Write builders, and the two halves of a write: ``TableWrite`` and ``TableCommit``."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Self

import pyarrow as pa

from emberlake.base.closing import Closing
from emberlake.commit.change import (
    NOTHING_COMMITTED,
    Change,
    CommitResult,
    overwrite_changes,
    split_changes,
)
from emberlake.commit.committer import CommitCallback, Committer
from emberlake.commit.history import already_committed
from emberlake.errors import (
    ColumnNotFound,
    DataMismatch,
    FileNotFound,
    InvalidInput,
    InvalidState,
)
from emberlake.maintenance.compact import WrittenCompaction, commit_written
from emberlake.options import (
    COMMIT_USER_PREFIX,
    DYNAMIC_PARTITION_OVERWRITE,
    PARTITION_DEFAULT_NAME,
)
from emberlake.spec.key_value import RowKind
from emberlake.spec.partition_match import AnyPartitionMatch, PartitionMatch, match_partition
from emberlake.spec.snapshot import BATCH_COMMIT_IDENTIFIER
from emberlake.spec.support import check_writable
from emberlake.store.table_store import TableStore
from emberlake.types import DataField, arrow_type
from emberlake.wire import CommitMessage
from emberlake.write.table_writer import TableWriter

if TYPE_CHECKING:
    import pandas as pd


def new_commit_user(store: TableStore) -> str:
    """A fresh name for whoever commits."""
    prefix = store.options.value(COMMIT_USER_PREFIX)
    unique = store.env.new_id()
    return f"{prefix}_{unique}" if prefix else unique


@dataclass
class BatchWriteBuilder:
    """Makes the two halves of a batch write; pickles, so that workers can write for one commit."""

    store: TableStore
    commit_user: str
    _replaces: PartitionMatch | None = field(default=None, repr=False)

    def overwrite(self, static_partition: Mapping[str, object] | None = None) -> Self:
        """Replace instead of append.

        With ``dynamic-partition-overwrite`` (the default) the partitions that the new data
        touches are replaced; without it all partitions that match ``static_partition``, which
        for an empty one, or an unpartitioned table, is everything. Data outside of
        ``static_partition`` is refused either way.
        """
        self._replaces = _match(self.store, static_partition or {})
        return self

    def new_write(self) -> "BatchTableWrite":
        """The half that writes files."""
        check_writable(self.store.schema)
        return BatchTableWrite(
            TableWriter(
                self.store,
                commit_user=self.commit_user,
                ignore_previous=self._replaces is not None,
                accepts=self._replaces,
            ),
            self.store,
            ignore_previous=self._replaces is not None,
        )

    def new_commit(self) -> "BatchTableCommit":
        """The half that makes written files visible."""
        check_writable(self.store.schema)
        return BatchTableCommit(self.store, self.commit_user, self._replaces)


@dataclass
class StreamWriteBuilder:
    """Makes the two halves of a stream of commits by one commit user."""

    store: TableStore
    commit_user: str

    def new_write(self) -> "StreamTableWrite":
        """The half that writes files."""
        check_writable(self.store.schema)
        return StreamTableWrite(TableWriter(self.store, commit_user=self.commit_user), self.store)

    def new_commit(self) -> "StreamTableCommit":
        """The half that makes written files visible."""
        check_writable(self.store.schema)
        return StreamTableCommit(self.store, self.commit_user)


class TableWrite(Closing):
    """Writes Arrow and pandas data to files of a table; nothing is visible before the commit."""

    def __init__(
        self, writer: TableWriter, store: TableStore, *, ignore_previous: bool = False
    ) -> None:
        self._writer = writer
        self._store = store
        self._written = WrittenCompaction(store, ignore_previous=ignore_previous)

    def with_write_type(self, write_cols: Sequence[str]) -> Self:
        """Declare that the data has just these columns; the others become null or default."""
        names = self._store.schema.field_names
        unknown = [name for name in write_cols if name not in names]
        if unknown:
            raise ColumnNotFound(
                f"no such columns: {', '.join(unknown)}; the table has {', '.join(names)}"
            )
        self._writer.set_write_columns(write_cols)
        return self

    def write_arrow(self, data: object, row_kind: RowKind | str | None = None) -> None:
        """Write a table, a batch, or anything with ``__arrow_c_stream__``, aligned by name.

        In a table with a primary key rows are inserts unless something tells their kind (``+I``,
        ``-U``, ``+U``, ``-D``): ``row_kind`` for all of them, a column ``_row_kind`` of the data,
        or the column that the option ``rowkind.field`` names.

        Raises:
            InvalidInput: a row kind that is none, or kinds from two places; nothing was written.
            DataMismatch: listing every column that does not fit; nothing of it was written. In the
                middle of a stream it ends the write, and what was written is deleted.
        """
        self._writer.write(data, row_kind)

    def write_arrow_batch(
        self, data: pa.RecordBatch, row_kind: RowKind | str | None = None
    ) -> None:
        """Write one record batch."""
        self._writer.write(data, row_kind)

    def write_pandas(
        self, dataframe: "pd.DataFrame", row_kind: RowKind | str | None = None
    ) -> None:
        """Write a pandas DataFrame; its index is not written, and NaN is null.

        pandas keeps integers with missing values as floats; they are taken for what they were.
        """
        try:
            table = pa.Table.from_pandas(dataframe, preserve_index=False)
        except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
            raise DataMismatch(f"the DataFrame has no Arrow form: {error}") from error
        self._writer.write(_with_integers(table, self._store.schema.fields), row_kind)

    def abort(self) -> None:
        """Delete what was written and not handed over by ``prepare_commit``; ends the write."""
        self._writer.abort()

    def close(self) -> None:
        """Release everything; what was not handed over by ``prepare_commit`` is deleted."""
        self._writer.close()

    def _prepare(self) -> list[CommitMessage]:
        messages = self._writer.prepare()
        try:
            return self._written.compact(messages)
        except BaseException:  # the rows are gone; what follows must not be committed without them
            self._writer.abort()
            raise


class BatchTableWrite(TableWrite):
    """Writes for one commit."""

    _is_prepared = False

    def prepare_commit(self) -> list[CommitMessage]:
        """Finish all files and describe them; once per writer."""
        if self._is_prepared:
            raise InvalidState("prepare_commit was called before; open a new writer for more data")
        messages = self._prepare()
        self._is_prepared = True
        return messages


class StreamTableWrite(TableWrite):
    """Writes for many commits, one after the other."""

    def prepare_commit(self, commit_identifier: int) -> list[CommitMessage]:  # noqa: ARG002
        """Finish the files since the last call; the identifier goes to the commit."""
        return self._prepare()


class TableCommit(Closing):
    """Makes written files visible, all of them at once."""

    def __init__(self, store: TableStore, commit_user: str) -> None:
        self.commit_user = commit_user
        self._store = store
        self._callbacks: list[CommitCallback] = []
        self._committer = Committer(store, commit_user, self._callbacks)

    def add_commit_callback(self, callback: CommitCallback) -> None:
        """Call ``callback(context)`` after every commit; should it fail, the commit stands."""
        self._callbacks.append(callback)

    def abort(self, messages: Sequence[CommitMessage]) -> None:
        """Delete the files of messages that will not be committed.

        Raises:
            AlreadyCommitted: they are in the table; nothing is deleted.
        """
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
        def commit(parts: Sequence[Change]) -> CommitResult:
            return self._committer.commit_all(parts, identifier, properties=properties)

        return commit_written(self._store, commit, changes, messages)

    def close(self) -> None:
        """Release everything; a commit is durable without it."""


class BatchTableCommit(TableCommit):
    """Commits of batch writes."""

    def __init__(
        self, store: TableStore, commit_user: str, replaces: PartitionMatch | None = None
    ) -> None:
        super().__init__(store, commit_user)
        self._replaces = replaces

    def commit(
        self,
        messages: Sequence[CommitMessage],
        snapshot_properties: Mapping[str, str] | None = None,
    ) -> CommitResult:
        """Make the messages' files visible in one snapshot.

        Raises:
            AlreadyCommitted: these messages are in the table; nothing changes.
            CommitConflict: a concurrent change makes this commit wrong; nothing changes.
            CommitUnknown: the storage failed and the outcome cannot be found out.
        """
        if self._replaces is None:
            changes = split_changes(messages)
            return self._commit(messages, changes, properties=snapshot_properties)
        return self._overwrite(messages, self._replaces, snapshot_properties)

    def overwrite(
        self,
        messages: Sequence[CommitMessage],
        static_partitions: Mapping[str, object] | None = None,
        snapshot_properties: Mapping[str, str] | None = None,
    ) -> CommitResult:
        """Replace all partitions that match ``static_partitions`` by the messages' files."""
        match = _match(self._store, static_partitions or {})
        return self._replace(messages, match, snapshot_properties)

    def truncate_table(self) -> CommitResult:
        """Delete all rows."""
        return self._replace([], _match(self._store, {}), None)

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
        matches = tuple(_match(self._store, partition) for partition in partitions)
        return self._committer.commit_all(overwrite_changes([], AnyPartitionMatch(matches)))

    def _overwrite(
        self,
        messages: Sequence[CommitMessage],
        match: PartitionMatch,
        properties: Mapping[str, str] | None,
    ) -> CommitResult:
        is_dynamic = self._store.options.value(DYNAMIC_PARTITION_OVERWRITE)
        if not (is_dynamic and self._store.schema.partition_keys):
            return self._replace(messages, match, properties)
        self._check_inside(messages, match)
        touched = frozenset(m.partition for m in messages if not m.is_empty)
        if not touched:
            return NOTHING_COMMITTED
        changes = overwrite_changes(messages, touched)
        return self._commit(messages, changes, properties=properties)

    def _replace(
        self,
        messages: Sequence[CommitMessage],
        match: PartitionMatch,
        properties: Mapping[str, str] | None,
    ) -> CommitResult:
        self._check_inside(messages, match)
        changes = overwrite_changes(messages, match)
        return self._commit(messages, changes, properties=properties)

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
            AlreadyCommitted: this commit user has committed this identifier or a later one.
        """
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
        """
        newest = self._newest_identifier()
        todo = [i for i in sorted(commits) if newest is None or i > newest]
        for identifier in todo:
            self._check_files(commits[identifier])
        return sum(self.commit(commits[i], i).snapshot_id is not None for i in todo)

    def _newest_identifier(self) -> int | None:
        if not self._has_looked:
            self._newest = self._committer.newest_identifier()
            self._has_looked = True
        return self._newest

    def _check_files(self, messages: Sequence[CommitMessage]) -> None:
        """Files of an old attempt may have been cleaned up since; they must not be committed."""
        for message in messages:
            for file in message.written_files:
                path = self._store.data_file_path(message.partition, message.bucket, file)
                if not self._store.storage.exists(path):
                    raise FileNotFound(path, "it was written for a commit that cannot be made now")


def _with_integers(table: pa.Table, fields: Sequence[DataField]) -> pa.Table:
    """Columns of whole floats as integers where the table has integers; others as they are."""
    for column in fields:
        index = table.schema.get_field_index(column.name)
        target = arrow_type(column.type)
        if index < 0 or not pa.types.is_integer(target):
            continue
        if not pa.types.is_floating(table.schema.field(index).type):
            continue
        with suppress(pa.ArrowInvalid):  # a fraction: the writer says so, with all else
            table = table.set_column(index, column.name, table.column(index).cast(target))
    return table


def _match(store: TableStore, literals: Mapping[str, object]) -> PartitionMatch:
    return match_partition(
        store.schema.partition_fields,
        literals,
        default_name=store.options.value(PARTITION_DEFAULT_NAME),
    )
