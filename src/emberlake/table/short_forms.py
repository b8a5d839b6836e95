"""The short forms of a table: one call is one read, or one commit.

The builders are for programs in which many processes write for one commit or read one plan.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from emberlake import rowops
from emberlake.base.lazy import LazyModule
from emberlake.commit.change import CommitResult
from emberlake.predicates import Predicate, columns_of
from emberlake.read.key_read import may_retract
from emberlake.read.scan import Scan
from emberlake.read.short_reads import ShortReads, asked_for
from emberlake.rowops.quarantine import FAIL
from emberlake.scan.explanation import Explanation
from emberlake.scan.splits import DataSplit
from emberlake.spec.replacement import Replacement
from emberlake.store.table_store import TableStore
from emberlake.table.read_builder import ReadBuilder

if TYPE_CHECKING:
    from emberlake.rowops.merge_builder import MergeBuilder
    from emberlake.rowops.result import RowChangeResult, WriteResult
    from emberlake.rowops.short_writes import ShortWrite
    from emberlake.session.write_session import WriteSession
    from emberlake.table import write_builder
    from emberlake.table.write_builder import BatchWriteBuilder
else:
    write_builder = LazyModule("emberlake.table.write_builder")


class FileScan(Scan[ReadBuilder]):
    """A scan of data files; it can say which of them it reads, and why."""

    def explain(self, verbose: bool = False) -> Explanation:  # noqa: FBT001, FBT002
        """Which files it would open now, which it skips, and why."""
        return self._builder.explain(verbose)

    def _repr_html_(self) -> str:
        if self._builder.store.is_guarded:  # what is skipped, and why, tells of hidden rows
            return super()._repr_html_()
        return self.explain()._repr_html_()


class ShortForms(ShortReads):
    """What a table can do in one call; ``Table`` inherits it."""

    store: TableStore

    if TYPE_CHECKING:

        def new_read_builder(self) -> ReadBuilder: ...
        def new_batch_write_builder(self) -> "BatchWriteBuilder": ...

    # --- writing ----------------------------------------------------------------------------------

    def append(
        self,
        data: object,
        *,
        merge_schema: bool = False,
        on_bad_rows: "str | ShortForms" = FAIL,
    ) -> "WriteResult":
        """Add rows, in one commit.

        In a table with a primary key, a row replaces or merges with the row that has its key.

        Args:
            data: An Arrow table or batch, a pandas or Polars DataFrame, or anything with
                ``__arrow_c_stream__``; its columns are found by name.
            merge_schema: Whether the table gets the columns that it lacks, and wider types for
                numbers, together with the rows. This object has them from then on; others of the
                same table have them when they are opened again.
            on_bad_rows: ``"fail"``: one row that does not fit fails the write. ``"skip"``: such
                rows are left out. A table, its name or its path: they go there, with the reason;
                it is created if it does not exist. The result counts them (``rows_rejected``).
                Except with ``"fail"``, text is read as values of the table's types.

        Raises:
            DataMismatch: lists every column that does not fit; nothing was written.
            CommitConflict: a concurrent change makes the commit wrong; nothing changes, unless
                the error says that a snapshot stands.
        """
        write = self._short_write(self.new_batch_write_builder(), merge_schema, on_bad_rows)
        return self._take(write.run(_rows_of(data)))

    def upsert(
        self,
        data: object,
        on: Sequence[str] | None = None,
        *,
        merge_schema: bool = False,
        on_bad_rows: "str | ShortForms" = FAIL,
    ) -> "WriteResult":
        """Replace the rows that have the same keys, and add the others, in one commit.

        Args:
            data: As for ``append``.
            on: The columns that identify a row. For a table with a primary key that is the key,
                and can be left out. In a table without one, all rows that are equal in these
                columns are replaced; null equals nothing.
            merge_schema: As for ``append``.
            on_bad_rows: As for ``append``.

        Raises:
            Unsupported: the table has no primary key, and ``on`` is not given.
            DataMismatch: rows that do not fit, or several with the same values in ``on``.
        """
        schema, rows = self.store.schema, _rows_of(data)
        by_merge = bool(on) and not schema.primary_keys
        if not by_merge:
            rowops.keys.check_upsert(schema, on)
        write = self._short_write(self.new_batch_write_builder(), merge_schema, on_bad_rows)
        return self._take(write.upsert_by(rows, on or ()) if by_merge else write.run(rows))

    def merge(
        self,
        source: object,
        on: "str | Sequence[str] | Mapping[str, str]",
        *,
        source_alias: str = "s",
        target_alias: str = "t",
        merge_schema: bool = False,
        isolation: str = "snapshot",
    ) -> "MergeBuilder":
        """Start a merge: what happens to rows that match, and to those that do not.

        Args:
            source: As for ``append``, or another table; it is read into memory at once.
            on: When rows match: ``"t.id = s.id"``, the columns that are equal (``["id"]``), or
                those of the table and of the source (``{"id": "key"}``).
            source_alias: The prefix of columns of the source in expressions.
            target_alias: The prefix of columns of the table.
            merge_schema: Whether clauses for all columns add the columns that only the source
                has, and widen numbers to its types. The source may then lack some columns.
            isolation: ``"snapshot"``: rows that others add meanwhile are not seen.
                ``"serializable"``: then the merge is done again, on top of them.

        Raises:
            InvalidInput: the source is not tabular data, or an argument is wrong.
        """
        builder = rowops.merge_builder.new_merge(
            self._session(),
            _rows_of(source),
            on,
            source_alias=source_alias,
            target_alias=target_alias,
            merge_schema=merge_schema,
            isolation=isolation,
        )
        return rowops.merge_builder.watched(builder, self._have)

    def overwrite(
        self,
        data: object,
        partition: Mapping[str, object] | None = None,
        *,
        merge_schema: bool = False,
        on_bad_rows: "str | ShortForms" = FAIL,
    ) -> "WriteResult":
        """Replace existing rows, in one commit.

        Args:
            data: As for ``append``.
            partition: What is replaced: by default the partitions of the new rows, or the whole
                table if it has no partitions; ``{"dt": "2026-06-26"}`` all partitions that match,
                even if there are no new rows; ``{}`` the whole table.
            merge_schema: As for ``append``.
            on_bad_rows: As for ``append``; a row outside of ``partition`` always fails it.

        Raises:
            DataMismatch: rows that do not fit the table, or outside of ``partition``.
        """
        schema = self.store.schema
        if partition is not None:
            replaced = Replacement.static(schema, partition)
        elif schema.partition_keys:
            replaced = Replacement.dynamic(schema)
        else:
            replaced = Replacement.whole_table(schema)
        builder = self.new_batch_write_builder().overwrite(replaced)
        write = self._short_write(builder, merge_schema, on_bad_rows)
        return self._take(write.run(_rows_of(data)))

    def delete(self, where: Predicate | str) -> "RowChangeResult":
        """Delete the rows that match, in one commit.

        Args:
            where: A condition in text, such as ``"price * quantity > 100"``, or a predicate. Rows
                for which it is unknown, because of a null, stay.

        Raises:
            InvalidExpression, InvalidPredicate, ColumnNotFound: the condition does not fit.
            Unsupported: rows of this table cannot be deleted.
            CommitConflict: other writers changed the same rows, again and again.
        """
        return rowops.change.delete_rows(self._session(), where)

    def update(
        self,
        set: Mapping[str, object],  # noqa: A002
        where: Predicate | str | None = None,
    ) -> "RowChangeResult":
        """Change columns of the rows that match, in one commit.

        Args:
            set: For each column its new value: text is an expression (``"price * 1.1"``),
                ``lit("rome")`` and everything else is a value.
            where: As for ``delete``; without it all rows change.

        Raises:
            InvalidExpression, InvalidPredicate, ColumnNotFound: an expression does not fit.
            DataMismatch: a new value cannot be computed, or does not fit; nothing changes.
            Unsupported: rows of this table cannot be updated, or not in these columns.
            CommitConflict: other writers changed the same rows, again and again.
        """
        return rowops.change.update_rows(self._session(), set, where)

    def delete_keys(self, data: object) -> CommitResult:
        """Delete the rows that have these keys, in one commit; unknown keys delete nothing.

        Args:
            data: The primary key of every row to delete, its partition, and the column that orders
                records (``sequence.field``). Columns that the table does not have are ignored.

        Raises:
            Unsupported: the table has no primary key, or a delete does not remove its row.
        """
        return rowops.keys.delete_keys(self._session(), data)

    def _short_write(
        self,
        builder: "BatchWriteBuilder",
        merge_schema: bool,  # noqa: FBT001
        on_bad_rows: "str | ShortForms",
    ) -> "ShortWrite":
        quarantine = on_bad_rows.store if isinstance(on_bad_rows, ShortForms) else on_bad_rows
        target = rowops.short_writes.BadRowTarget.of(self.store, quarantine)
        session = write_builder.session_of(builder)
        return rowops.short_writes.ShortWrite(session, merge_schema, target)

    def _session(self) -> "WriteSession":
        return write_builder.session_of(self.new_batch_write_builder())

    def _take(self, done: "tuple[WriteResult, TableStore]") -> "WriteResult":
        """The result of a write; from then on, this object has the new columns of the table."""
        result, store = done
        self._have(store)
        return result

    def _have(self, store: TableStore) -> None:
        """Take over the columns that a write has left."""
        # A merge was allowed to see all rows; that holds for no later read.
        object.__setattr__(self, "store", replace(store, allowed=None) if store.allowed else store)

    # --- reading ----------------------------------------------------------------------------------

    def scan(
        self,
        columns: Sequence[str] | None = None,
        filter: Predicate | str | None = None,  # noqa: A002
        limit: int | None = None,
        snapshot: int | None = None,
        tag: str | None = None,
    ) -> FileScan:
        """Say what to read, for libraries that take Arrow streams: DuckDB, Polars, pandas 3.

        Nothing is read before they ask; each read returns the rows of that time. The arguments
        are those of ``to_arrow``. ``explain()`` says which files it reads.
        """
        builder: ReadBuilder = self._reading(columns, filter, limit, snapshot, tag)
        given = asked_for(columns, filter, limit, snapshot, tag)
        return FileScan(str(self.identifier), builder, given)

    def count(self, filter: Predicate | str | None = None) -> int:  # noqa: A002
        """The number of rows, or of those that match.

        Metadata answers it for files whose rows need no merging and match all or not at all. The
        other files are read.
        """
        builder = self.new_read_builder().with_filter(filter)
        # One column is enough, and those of the filter must be read anyway.
        predicate = builder.new_scan().predicate
        asked = sorted(columns_of(predicate)) if predicate else []
        names = asked or list(self.store.schema.field_names)
        builder = builder.with_projection(names[:1])
        splits = builder.new_scan().plan().splits()
        has_keys = self.store.schema.profile.has_keys
        counts = [_known_row_count(split, has_keys=has_keys) for split in splits]
        unknown = [split for split, rows in zip(splits, counts, strict=True) if rows is None]
        counted = sum(rows for rows in counts if rows is not None)
        if not unknown:
            return counted
        batches = builder.new_read().to_arrow_batch_reader(unknown)
        rows: int = sum(batch.num_rows for batch in batches)
        return counted + rows


def _rows_of(data: object) -> object:
    """Data to write; a table stands for its rows."""
    return data.to_arrow() if isinstance(data, ShortReads) else data


def _known_row_count(split: DataSplit, *, has_keys: bool) -> int | None:
    """The number of rows of a split, if metadata is enough to know it."""
    if not all(split.is_exact) or (has_keys and any(map(may_retract, split.files))):
        return None
    return split.merged_row_count()
