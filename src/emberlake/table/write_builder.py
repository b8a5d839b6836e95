"""Write builders, and the two halves of a write: ``TableWrite`` and ``TableCommit``."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final, Self

import pyarrow as pa

from emberlake.base.closing import Closing
from emberlake.base.extras import load_extra
from emberlake.base.names import choices, listed
from emberlake.errors import ColumnNotFound, InvalidState
from emberlake.session.write_session import WriteSession
from emberlake.spec.profile import BucketMode
from emberlake.spec.replacement import Replacement
from emberlake.spec.support import check_writable
from emberlake.store.table_store import TableStore
from emberlake.table.table_commit import BatchTableCommit, StreamTableCommit
from emberlake.table.table_update import BatchTableUpdate
from emberlake.wire import CommitMessage
from emberlake.write.fixed_buckets import FixedBucketWriter
from emberlake.write.pandas_data import from_pandas
from emberlake.write.rows import RowBuffer
from emberlake.write.rows_writer import RowsWriter

if TYPE_CHECKING:
    import pandas as pd
    from pyspark.resource import ResourceProfile
    from pyspark.sql import DataFrame

    from emberlake.spark.write import SparkWriteResult, WriteJob

_UNSAID: Final[Mapping[str, object]] = {}  # compared by identity


def session_of(builder: "BatchWriteBuilder") -> WriteSession:
    """The write that a builder describes."""
    return WriteSession(builder.store, builder.commit_user, builder.replaces)


@dataclass
class BatchWriteBuilder:
    """Makes the two halves of a batch write; it pickles, so workers can write for one commit."""

    store: TableStore
    commit_user: str
    _replaces: Replacement | None = field(default=None, repr=False)

    @property
    def replaces(self) -> Replacement | None:
        """What the write replaces; None: it appends."""
        return self._replaces

    @property
    def is_overwrite(self) -> bool:
        return self._replaces is not None

    def overwrite(self, static_partition: Mapping[str, object] | Replacement | None = None) -> Self:
        """Replace instead of append.

        With ``dynamic-partition-overwrite`` (the default) only the partitions of the new data are
        replaced, so no data replaces nothing. Without it, all partitions that match
        ``static_partition`` are replaced, or the whole table if none is given, even by no data.
        Data outside of ``static_partition`` is refused either way. ``{}``, and any overwrite of an
        unpartitioned table, replaces the whole table, even by no data. A ``Replacement`` says what
        is replaced, whatever the option is.
        """
        if not isinstance(static_partition, Replacement):
            static_partition = Replacement.by_options(self.store.schema, static_partition)
        self._replaces = static_partition
        return self

    def new_write(self) -> "BatchTableWrite":
        """The half that writes files."""
        return BatchTableWrite(session_of(self).new_writer(), replace(self))

    def new_commit(self) -> BatchTableCommit:
        """The half that makes written files visible."""
        check_writable(self.store.schema)
        return BatchTableCommit(self.store, self.commit_user, self._replaces)

    def new_update(self) -> BatchTableUpdate:
        """Changes rows of an append table; its messages are for ``new_commit``."""
        check_writable(self.store.schema)
        return BatchTableUpdate(session_of(self))

    def with_overwrite(self, static_partition: Mapping[str, object] | None = _UNSAID) -> Self:
        """Replace instead of append, like ``overwrite``; an explicit None goes back to appending.

        Without an argument it is ``overwrite()``; an explicit ``{}`` is the whole table.
        """
        if static_partition is None:
            self._replaces = None
            return self
        return self.overwrite(None if static_partition is _UNSAID else static_partition)


@dataclass
class PostponeFixedBucketWriteBuilder(BatchWriteBuilder):
    """A batch write to a table with postponed buckets that assigns the buckets at once."""

    def __post_init__(self) -> None:
        if self.store.schema.profile.bucket_mode is not BucketMode.POSTPONED:
            raise InvalidState("only tables with bucket=-2 postpone the buckets of their rows")

    def new_write(self) -> "BatchTableWrite":
        """The half that writes files.

        A partition that has buckets keeps their number. For a new one the option
        ``postpone.default-bucket-num`` says it, and for one that is overwritten, if it is set.
        """
        check_writable(self.store.schema)
        session = session_of(self)
        writer = FixedBucketWriter(
            self.store,
            commit_user=self.commit_user,
            ignore_previous=session.is_overwrite,
            accepts=session.accepts,
        )
        return BatchTableWrite(session.compacting(writer), replace(self))


@dataclass
class StreamWriteBuilder:
    """Makes the two halves of a stream of commits by one commit user."""

    store: TableStore
    commit_user: str

    def new_write(self) -> "StreamTableWrite":
        """The half that writes files."""
        writer = WriteSession(self.store, self.commit_user).new_writer(is_stream=True)
        return StreamTableWrite(writer, self.store)

    def new_commit(self) -> StreamTableCommit:
        """The half that makes written files visible."""
        check_writable(self.store.schema)
        return StreamTableCommit(self.store, self.commit_user)


class TableWrite(Closing):
    """Writes Arrow and pandas data to files of a table; nothing is visible before the commit."""

    def __init__(self, writer: RowsWriter, store: TableStore) -> None:
        self._row_buffer = RowBuffer(writer, store.schema)
        self._writer: RowsWriter = self._row_buffer
        self._store = store

    def with_write_type(self, write_cols: Sequence[str]) -> Self:
        """Declare that the data has exactly these columns; the others become null or their default.

        In key tables this confirms that rows are to lose their values in the other columns.
        """
        names = self._store.schema.field_names
        unknown = [name for name in write_cols if name not in names]
        if unknown:
            raise ColumnNotFound(
                f"no such columns: {listed(unknown)}; {choices(unknown, names, 'the table has')}"
            )
        self._writer.set_write_columns(write_cols)
        return self

    def write_arrow(self, data: object, row_kind: str | None = None) -> None:
        """Write a table, a batch, or anything with ``__arrow_c_stream__``, aligned by name.

        In a table with a primary key, a row replaces or merges with the row that has its key. The
        kind of a row says what it does: ``+I`` insert, ``-U`` and ``+U`` the row before and after
        an update, ``-D`` delete. Rows are inserts unless their kind is given: by ``row_kind`` for
        all of them, by a text column ``_row_kind`` of the data, or by the column that the option
        ``rowkind.field`` names. The key is enough to delete a row (with the partition, if that is
        not in the key): ``write_arrow(keys, row_kind="-D")``.

        Columns that are nullable or have a default can be left out. Where that would overwrite
        values with null (``merge-engine=deduplicate``), ``with_write_type`` must confirm it.

        Raises:
            InvalidInput: an unknown row kind, or kinds from two places; nothing was written.
            DataMismatch: listing every column that does not fit; none of the data was written. In
                the middle of a stream it ends the write, and what was written is deleted.
        """
        self._writer.write(data, row_kind)

    def write_arrow_batch(self, data: pa.RecordBatch, row_kind: str | None = None) -> None:
        """Write one record batch, like ``write_arrow``."""
        self._writer.write(data, row_kind)

    def write_pandas(self, dataframe: "pd.DataFrame", row_kind: str | None = None) -> None:
        """Write a pandas DataFrame, like ``write_arrow``. Its index is not written, NaN is null.

        pandas keeps integers with missing values as floats; they are written as integers.
        """
        self._writer.write(from_pandas(dataframe, self._store.schema.fields), row_kind)

    def write_row(self, row: object, row_kind: str | None = None) -> None:
        """Write one row; rows are collected and written many at a time.

        Args:
            row: Its values by name (a dict or a ``GenericRow``), or in the order of the table's
                columns, or of those that ``with_write_type`` names.
            row_kind: Its kind, as in ``write_arrow``; by default that of a ``GenericRow``.

        Raises:
            DataMismatch: the row's columns do not match the table's. A value that does not fit its
                column is only found when the collected rows are written, with a later row or at
                the end. That ends the write, and what was written is deleted.
        """
        self._row_buffer.add(row, row_kind)

    def abort(self) -> None:
        """End the write, and delete what ``prepare_commit`` has not handed over."""
        self._writer.abort()

    def close(self) -> None:
        """Release everything, and delete what ``prepare_commit`` has not handed over."""
        self._writer.close()


class BatchTableWrite(TableWrite):
    """Writes for one commit."""

    _is_prepared = False

    def __init__(self, writer: RowsWriter, builder: BatchWriteBuilder) -> None:
        super().__init__(writer, builder.store)
        self._builder = builder

    def write_spark(
        self,
        df: "DataFrame",
        overwrite: bool | str = False,  # noqa: FBT001, FBT002
        concurrency: int | None = None,
        resource_profile: "ResourceProfile | Mapping[str, object] | None" = None,
    ) -> "SparkWriteResult":
        """Write a Spark DataFrame in parallel tasks, and commit it: there is nothing more to do.

        Args:
            df: The data; its columns are aligned with the table's by name, as in ``write_arrow``.
            overwrite: Replace instead of append. ``True``: like ``overwrite()`` of the builder,
                unless that was called already. ``"dynamic"``: the partitions of the data.
                ``"static"``: all partitions that match the one given to the builder, or the whole
                table, even by no rows. ``"all"``: the whole table.
            concurrency: The number of write tasks; by default Spark decides. Each bucket is written
                by one task, so some may have nothing to do.
            resource_profile: The resources of a write task: a ``ResourceProfile`` of Spark, or a
                dict such as ``{"cpus": 2, "memory": "4g"}``.

        Raises:
            DataMismatch: listing every column that does not fit; no task was started.
            Unsupported: the session's master does not support resource profiles.
            IncompleteJob: not every task reported what it wrote; nothing changes.
            CommitConflict: a concurrent change makes the commit wrong; nothing changes, unless the
                error says that a snapshot stands.
        """
        load_extra("pyspark", extra="spark")
        spark = load_extra("emberlake.spark.write", extra="spark")
        if self._is_prepared or self._writer.has_rows:
            raise InvalidState("write_spark makes a commit of its own; open a new writer for it")
        builder = self._builder
        replaces = builder.replaces
        if replaces is None or not isinstance(overwrite, bool):
            match = replaces.match if replaces else None
            replaces = Replacement.chosen(self._store.schema, match, overwrite=overwrite)
            builder = replace(builder, _replaces=replaces)
        job: WriteJob = spark.WriteJob(
            session=session_of(builder),
            write_columns=self._writer.write_columns,
            concurrency=concurrency,
            resource_profile=resource_profile,
        )
        result = job.run(df)
        self._is_prepared = True
        return result

    def prepare_commit(self) -> list[CommitMessage]:
        """Finish all files and describe them; once per writer."""
        if self._is_prepared:
            raise InvalidState("prepare_commit was called before; open a new writer for more data")
        messages = self._writer.prepare()
        self._is_prepared = True
        return messages


class StreamTableWrite(TableWrite):
    """Writes for many commits, one after the other."""

    def prepare_commit(self, commit_identifier: int) -> list[CommitMessage]:  # noqa: ARG002
        """Finish the files since the last call; the identifier is for the commit."""
        return self._writer.prepare()
