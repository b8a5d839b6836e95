"""Change rows in two steps, with the names that pypaimon uses: messages, then a commit.

``table.update``, ``delete`` and ``merge`` do the same in one call, and again if others have changed
what they read.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

import pyarrow as pa

from emberlake import rowops
from emberlake.base.closing import Closing
from emberlake.base.names import choices, listed
from emberlake.errors import ColumnNotFound, InvalidInput, Unsupported
from emberlake.predicates import Predicate, PredicateBuilder
from emberlake.scan.share import Shard
from emberlake.session.write_session import WriteSession
from emberlake.spec.row_tracking import ROW_ID, readable_fields
from emberlake.wire import CommitMessage

if TYPE_CHECKING:
    from emberlake.rowops.shards import ShardedState, ShardUpdate


@dataclass(frozen=True)
class SourceColumn:
    """A column of the source of a merge."""

    column: str


@dataclass(frozen=True)
class TargetColumn:
    """A column of the table."""

    column: str


def source_col(name: str) -> SourceColumn:
    """A column of the source, as a value of ``merge_into``."""
    return SourceColumn(name)


def target_col(name: str) -> TargetColumn:
    """A column of the table, as a value of ``merge_into``."""
    return TargetColumn(name)


Spec = str | Mapping[str, object]


class WhenMatched:
    """A clause of ``merge_into`` for rows that match, made by ``update`` or ``delete``."""

    def __init__(self, spec: Spec | None, condition: str | None = None) -> None:
        self.spec = spec  # None: delete
        self.condition = condition

    @classmethod
    def update(cls, update: Spec = "*", condition: str | None = None) -> "WhenMatched":
        """Set columns: ``{"n": source_col("n")}``, or ``"*"`` for all."""
        return cls(update, condition)

    @classmethod
    def delete(cls, condition: str | None = None) -> "WhenMatched":
        """Delete the rows."""
        return cls(None, condition)


@dataclass(frozen=True)
class WhenNotMatched:
    """A clause of ``merge_into`` for rows of the source that match nothing."""

    insert: Spec
    condition: str | None = None


class BatchTableUpdate:
    """Changes rows of an append table; each call returns messages for one commit."""

    def __init__(self, session: WriteSession) -> None:
        self._session = session
        self._columns: tuple[str, ...] | None = None
        self._read_columns: tuple[str, ...] | None = None
        self._sharded: ShardedState | None = None
        if session.store.schema.profile.has_keys:
            raise Unsupported(
                "new_update() is for tables without a primary key; use update(), delete() and "
                "merge() of the table"
            )

    def with_update_type(self, update_cols: Sequence[str]) -> Self:
        """Updates may write only these columns.

        Raises:
            ColumnNotFound: the table does not have one of them.
        """
        names = self._session.store.schema.field_names
        unknown = [name for name in update_cols if name not in names]
        if unknown:
            raise ColumnNotFound(
                f"no such columns: {listed(unknown)}; {choices(unknown, names, 'the table has')}"
            )
        self._columns = tuple(update_cols)
        return self

    def with_read_projection(self, projection: Sequence[str]) -> Self:
        """Shards are read with these columns; row ids may be among them."""
        self._read_columns = tuple(projection)
        return self

    def new_predicate_builder(self) -> PredicateBuilder:
        """A builder of predicates on the columns of the table, and on row ids."""
        return PredicateBuilder(list(readable_fields(self._session.store.schema)))

    def update_by_arrow_with_row_id(self, table: pa.Table) -> list[CommitMessage]:
        """Give the rows with these ids (``_ROW_ID``) new values in the other columns.

        Raises:
            InvalidInput: ids that are null, given twice, or of no row.
        """
        names = [name for name in table.column_names if name != ROW_ID]
        self._check_columns(names)
        if not names:
            raise InvalidInput("there are no columns to write")
        return rowops.merge_builder.prepare_by_row_id(self._session, table, names)

    def update_by_arrow_batches_with_row_id(
        self, tables: Iterable[pa.Table]
    ) -> list[CommitMessage]:
        """The same for several tables with the same columns."""
        parts = list(tables)
        return self.update_by_arrow_with_row_id(pa.concat_tables(parts)) if parts else []

    def update_by_predicate(
        self, predicate: Predicate | str | None, assignments: Mapping[str, object]
    ) -> list[CommitMessage]:
        """Set columns of the rows that match to values; None: of all rows."""
        self._check_columns(list(assignments))
        values = {name: _value(value) for name, value in assignments.items()}
        return list(rowops.change.prepare_change(self._session, predicate, values).messages)

    def upsert_by_arrow_with_key(
        self, table: pa.Table, upsert_keys: Sequence[str]
    ) -> list[CommitMessage]:
        """Replace the rows that are equal in the keys, and add the others.

        Raises:
            DataMismatch: rows of the data have the same keys.
        """
        columns = self._columns
        return rowops.merge_builder.prepare_upsert(self._session, table, upsert_keys, columns)

    def delete_by_predicate(self, predicate: Predicate | str | None) -> list[CommitMessage]:
        """Delete the rows that match; None: all rows."""
        return list(rowops.change.prepare_change(self._session, predicate, None).messages)

    def delete_by_row_id(self, row_ids: Sequence[int]) -> list[CommitMessage]:
        """Delete the rows with these ids.

        Raises:
            InvalidInput: ids that are null, given twice, or of no row.
        """
        ids = pa.table({ROW_ID: pa.array(row_ids, pa.int64())})
        return rowops.merge_builder.prepare_by_row_id(self._session, ids, None)

    def merge_into(
        self,
        source: object,
        *,
        on: Sequence[str] | Mapping[str, str],
        when_matched: Sequence[WhenMatched] = (),
        when_not_matched: Sequence[WhenNotMatched] = (),
    ) -> list[CommitMessage]:
        """Merge a source; in conditions ``s.`` is the source and ``t.`` the table."""
        clauses = [
            rowops.merge_builder.matched_clause(_spec(c.spec), c.condition) for c in when_matched
        ]
        clauses += [
            rowops.merge_builder.insert_clause(_spec(c.insert), c.condition)
            for c in when_not_matched
        ]
        return rowops.merge_builder.prepare_merge(self._session, source, on, clauses)

    def new_shard_updator(self, shard_num: int, total_shard_count: int) -> "ShardTableUpdator":
        """An updator that gives all rows of a shard new values, in the order of its reader.

        All shards of one ``new_update()`` are parts of the same snapshot. Updators pickle, so a
        driver makes them, workers use them, and the driver commits the messages of all.

        Raises:
            InvalidInput: there is no such shard.
            ColumnNotFound: ``with_read_projection`` names a column that does not exist.
        """
        shard = Shard(shard_num, total_shard_count)
        if self._sharded is None:
            self._sharded = rowops.shards.ShardedState.of(self._session)
        return ShardTableUpdator(
            rowops.shards.ShardUpdate(self._sharded, shard, self._columns, self._read_columns)
        )

    def _check_columns(self, names: Sequence[str]) -> None:
        outside = [name for name in names if self._columns and name not in self._columns]
        if outside:
            raise InvalidInput(f"with_update_type does not name {listed(outside)}")


class ShardTableUpdator(Closing):
    """Gives all rows of one shard new values; made by ``new_shard_updator``."""

    def __init__(self, update: "ShardUpdate") -> None:
        self._update = update

    def arrow_reader(self) -> pa.RecordBatchReader:
        """The rows of the shard; deleted ones are left out."""
        return self._update.reader()

    def update_by_arrow_batch(self, data: pa.RecordBatch | pa.Table) -> None:
        """Give the next rows of the shard new values: one row for each that the reader returns.

        Raises:
            InvalidInput: the columns are not those to be updated, or there are too many rows.
            InvalidExpression, DataMismatch: values do not fit their columns.
            Unsupported: the table does not take new values for these columns.
        """
        self._update.update(
            pa.Table.from_batches([data]) if isinstance(data, pa.RecordBatch) else data
        )

    def prepare_commit(self) -> list[CommitMessage]:
        """The messages of the shard, once; none if no new values were given at all.

        Raises:
            InvalidInput: new values were given for some of the rows only.
        """
        return self._update.prepare()

    def abort(self) -> None:
        """End the update, and delete what ``prepare_commit`` has not handed over."""
        self._update.abort()

    def close(self) -> None:
        """The same as ``abort``."""
        self._update.abort()


def _spec(spec: Spec | None) -> Mapping[str, object] | str | None:
    if not isinstance(spec, Mapping):
        if spec is not None and spec != "*":
            raise InvalidInput(f"give '*' or a dictionary of columns and values, not {spec!r}")
        return spec
    return {name: _value(value) for name, value in spec.items()}


def _value(value: object) -> object:
    """A value in the form that expressions take: text stands for itself here."""
    if isinstance(value, SourceColumn):
        return rowops.merge_builder.column_of("s", value.column)
    if isinstance(value, TargetColumn):
        return rowops.merge_builder.column_of("t", value.column)
    if callable(value) or isinstance(value, pa.Array | pa.ChunkedArray):
        raise Unsupported(
            "values that are computed row by row are expressions: "
            'table.update({"price": "price * 2"}, where)'
        )
    return rowops.merge_builder.plain_value(value)
