"""A merge that Spark evaluates, because one of its expressions is a Column.

Rows of the table and of the source are joined by the condition, as a whole or by a broadcast of the
source; the first clause whose condition is true decides, and its values come with the row. The
result is changes (``changes``), like those of any other query.
"""

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import cached_property, reduce
from typing import Any, Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sql

from emberlake.base.names import backquoted
from emberlake.errors import ColumnNotFound, InvalidInput, with_context
from emberlake.expressions import Scope
from emberlake.expressions.assignments import check_whole
from emberlake.rowops.clauses import Action
from emberlake.rowops.edits import Prepared
from emberlake.rowops.merge_plan import (
    AskedClause,
    KeyPair,
    Outline,
    Rows,
    all_columns,
    bind_on,
    check_reachable,
)
from emberlake.rowops.row_actions import ACTION, DELETE, INSERT, UPDATE, RowActions
from emberlake.session.write_session import WriteSession
from emberlake.spark.changes import prepare_changes
from emberlake.spark.column_changes import condition, new_values
from emberlake.spark.kept import kept
from emberlake.spark.key_ranges import KeyRanges, key_ranges
from emberlake.spark.located import PLACE, LocatedRows, located_rows
from emberlake.spark.merge_tasks import native_key
from emberlake.spec.schema import TableSchema
from emberlake.spec.snapshot import Snapshot
from emberlake.types import DataField

_MOST_SENT: Final = 200_000  # with more rows in the source, Spark may shuffle them
_ROW: Final = "__source_row"  # the number of a row of the source
_CHOSEN: Final = "__clause"


@dataclass(frozen=True)
class ColumnMerge:
    """A merge of a DataFrame.

    Args:
        df: The source.
        on: When rows match: a Column, text, columns that are equal, or a dictionary of them.
        clauses: What happens, in order.
        scope: The columns of both sides, with their aliases.
        fields: The columns of the table.
        may_lack: Whether clauses that set all columns may leave some out.
    """

    df: DataFrame
    on: Any
    clauses: tuple[AskedClause, ...]
    scope: Scope
    fields: tuple[DataField, ...]
    may_lack: bool

    # --- what is asked for ------------------------------------------------------------------------

    @cached_property
    def keys(self) -> tuple[KeyPair, ...]:
        """The equalities of the condition that are known; those of a Column are not."""
        return known_keys(self.on, self.scope)

    @cached_property
    def actions(self) -> RowActions:
        """What the clauses do.

        Raises:
            InvalidInput, ColumnNotFound: a clause does not fit; names it.
        """
        if not self.clauses:
            raise InvalidInput(
                "a merge needs at least one clause, such as when_matched_update_all() or "
                "when_not_matched_insert_all()"
            )
        check_reachable(self.clauses)
        sets: dict[str, None] = {}
        inserts: dict[str, None] = {}
        for clause in self.clauses:
            into = inserts if clause.action is Action.INSERT else sets
            into.update(dict.fromkeys(self.values(clause)))
        deletes = any(clause.action is Action.DELETE for clause in self.clauses)
        return RowActions(tuple(sets), deletes, tuple(inserts))

    def values(self, clause: AskedClause) -> Mapping[str, Column]:
        """What a clause sets, by column."""
        if clause.action is Action.DELETE:
            return {}
        try:
            if clause.values is None:
                named = all_columns(
                    clause, self.scope, self.fields, self.keys, may_lack=self.may_lack
                )
                alias = self.scope.sources[1].alias
                return {name: _column(alias, origin) for name, origin in named}
            if clause.action is Action.INSERT:
                check_whole(clause.values, self.fields)
            table = self.scope.sources[0].alias
            return new_values(clause.values, self.fields, lambda name: _column(table, name))
        except (InvalidInput, ColumnNotFound) as error:
            raise with_context(error, clause.name) from error

    def of(self, *rows: Rows) -> list[AskedClause]:
        """The clauses for some rows."""
        return [clause for clause in self.clauses if clause.rows in rows]

    @cached_property
    def condition(self) -> Column:
        """When rows match."""
        if isinstance(self.on, Column | str):
            return condition(self.on)
        table, source = (side.alias for side in self.scope.sources)
        pairs = self.on if isinstance(self.on, Mapping) else {name: name for name in self.on}
        equal = [_column(table, t) == _column(source, s) for t, s in pairs.items()]
        return reduce(lambda left, right: left & right, equal)

    def outline(self) -> Outline:
        """What is known before it runs."""
        with kept(self.df.withColumn(_ROW, sql.lit(0))) as source:
            ranges = self._ranges(source)
        pruning = None if self.of(Rows.ORPHANED) else ranges.predicate
        on = str(self.on) if isinstance(self.on, Column | str) else str(self.condition)
        return Outline(on, frozenset(self.actions.sets), pruning, ranges.count)

    # --- running ----------------------------------------------------------------------------------

    def prepare(
        self, session: WriteSession, snapshot: Snapshot | None, *, is_dry: bool
    ) -> Prepared:
        """Join, decide, and write what changes."""
        schema = session.store.schema
        self.actions.check(schema)
        numbered = self.df.withColumn(_ROW, sql.monotonically_increasing_id())
        with ExitStack() as stack:
            source = stack.enter_context(kept(numbered))
            ranges = self._ranges(source)
            pruning = None if self.of(Rows.ORPHANED) else ranges.predicate
            located = located_rows(session, snapshot, source.sparkSession, predicate=pruning)
            pairs = self._pairs(located, source, is_small=ranges.count <= _MOST_SENT)
            if self.actions.inserts:
                pairs = stack.enter_context(kept(pairs))  # they are used twice
            changes = pairs.filter(sql.col(ACTION).isNotNull()).drop(_ROW)
            if self.actions.inserts:
                matched = pairs.filter(sql.col(_ROW).isNotNull()).select(_ROW)
                new = self._new(source, matched, located)
                changes = changes.unionByName(new, allowMissingColumns=True)
            return prepare_changes(
                located, changes, self.actions, keys=self._key_columns(schema), is_dry=is_dry
            )

    def _ranges(self, source: DataFrame) -> KeyRanges:
        """What the keys of the source say about rows that match."""
        sides = ((pair, native_key(pair.source)) for pair in self.keys)
        plain = [(pair, field) for pair, field in sides if field is not None]
        keys = [sql.col(backquoted(field.name)) for _, field in plain]
        return key_ranges([pair for pair, _ in plain], source, keys)

    def _key_columns(self, schema: TableSchema) -> list[str]:
        """The columns that identify rows of the table."""
        pairs = (pair.columns for pair in self.keys)
        return [pair[0] for pair in pairs if pair is not None and pair[0] in schema.field_by_name]

    def _pairs(self, located: LocatedRows, source: DataFrame, *, is_small: bool) -> DataFrame:
        """Rows of the table that a clause may change, with what it does."""
        table, other = (side.alias for side in self.scope.sources)
        clauses = self.of(Rows.MATCHED, Rows.ORPHANED)
        right = source.alias(other)
        if is_small:
            right = sql.broadcast(right)
        how = "left" if self.of(Rows.ORPHANED) else "inner"
        joined = located.rows.alias(table).join(right, self.condition, how)
        is_matched = sql.col(_ROW).isNotNull()
        tests = [
            _and(is_matched if clause.rows is Rows.MATCHED else ~is_matched, clause)
            for clause in clauses
        ]
        joined = joined.withColumn(_CHOSEN, _first(tests))
        values = [
            self._value(name, clauses, _column(table, name)).alias(name)
            for name in self.actions.sets
        ]
        return joined.select(PLACE, _ROW, _action(clauses).alias(ACTION), *values)

    def _new(self, source: DataFrame, matched: DataFrame, located: LocatedRows) -> DataFrame:
        """New rows for those of the source that match nothing."""
        clauses = self.of(Rows.NEW)
        alone = source.join(matched, _ROW, "left_anti").alias(self.scope.sources[1].alias)
        alone = alone.withColumn(_CHOSEN, _first([_and(sql.lit(True), c) for c in clauses]))
        values = [
            self._value(name, clauses, sql.lit(None)).alias(name) for name in self.actions.inserts
        ]
        place = sql.lit(None).cast(located.rows.schema[PLACE].dataType).alias(PLACE)
        some = alone.filter(sql.col(_CHOSEN).isNotNull())
        return some.select(place, sql.lit(INSERT).alias(ACTION), *values)

    def _value(self, name: str, clauses: Sequence[AskedClause], other: Column) -> Column:
        """The value that the clause of a row sets for a column; ``other`` if it sets none."""
        found: Column | None = None
        is_set = [name in self.values(clause) for clause in clauses]
        for number, clause in enumerate(clauses):
            if is_set[number]:
                is_it = sql.col(_CHOSEN) == number
                value = self.values(clause)[name]
                found = sql.when(is_it, value) if found is None else found.when(is_it, value)
        assert found is not None
        sets_all = all(
            done or clause.action is Action.DELETE
            for done, clause in zip(is_set, clauses, strict=True)
        )
        return found if sets_all else found.otherwise(other)


def known_keys(on: Any, scope: Scope) -> tuple[KeyPair, ...]:
    """The equalities of a condition that are known; those of a Column are not.

    Raises:
        InvalidInput, ColumnNotFound: columns that are to be equal do not fit.
    """
    if isinstance(on, Column):
        return ()
    try:
        return bind_on(on, scope).keys
    except (InvalidInput, ColumnNotFound):
        if isinstance(on, str):
            return ()  # Spark understands more than we do
        raise


def _column(alias: str, name: str) -> Column:
    return sql.col(f"{backquoted(alias)}.{backquoted(name)}")


def _and(test: Column, clause: AskedClause) -> Column:
    return test if clause.where is None else test & condition(clause.where)


def _first(tests: Sequence[Column]) -> Column:
    """The number of the first test that is true; null if none is."""
    found: Column | None = None
    for number, test in enumerate(tests):
        found = sql.when(test, number) if found is None else found.when(test, number)
    return sql.lit(None).cast("int") if found is None else found


def _action(clauses: Sequence[AskedClause]) -> Column:
    """What the clause of a row does."""
    is_update = sql.lit(False)
    for number, clause in enumerate(clauses):
        if clause.action is Action.UPDATE:
            is_update = is_update | (sql.col(_CHOSEN) == number)
    action = sql.when(is_update, UPDATE).otherwise(DELETE)
    return sql.when(sql.col(_CHOSEN).isNotNull(), action)
