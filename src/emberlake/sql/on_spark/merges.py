"""MERGE: one query decides what happens to which rows, with any expression of Spark.

The rows of the table carry the place where they are, as in DELETE and UPDATE.
"""

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql import types as T  # noqa: N812

from emberlake.rowops.row_actions import ACTION, RowActions
from emberlake.spark.changes import change_rows
from emberlake.spark.located import PLACE, LocatedRows
from emberlake.spark.types import to_spark_type
from emberlake.sql.evolving import is_evolving, with_new_columns
from emberlake.sql.merge_text import (
    CLAUSE,
    FIXED_COLUMNS,
    MATCHED,
    ClausePart,
    MergeText,
    columns_to_add,
    refuse_varying_conditions,
    repeated_match,
)
from emberlake.sql.on_spark.assignment import Filling, given_fields, lacking
from emberlake.sql.on_spark.rewriting import Rewriter
from emberlake.sql.on_spark.target_rows import shown_rows
from emberlake.sql.on_spark.targets import value_of, with_field
from emberlake.sql.row_texts import keeps_values, write_session
from emberlake.sql.statements import DeleteRow, InsertRow, Merge, UpdateRow
from emberlake.sql.targets import Target, by_lower_name, has_other_names
from emberlake.table import Table
from emberlake.types import DataField


def merge_rows(statement: Merge, table: Table, rewriter: Rewriter) -> None:
    """Bring the rows of a source into the table."""
    refuse_varying_conditions(statement)
    given = source_frame(statement, rewriter).schema
    evolves = statement.evolves_schema or is_evolving(rewriter.session)
    if evolves:
        wanted = columns_to_add(statement, given_fields(given, table.fields))
        table = with_new_columns(table, statement.table, wanted, rewriter.session, nested=True)
    text = MergeText(statement, table, PLACE, given.names, fills=evolves)
    merge = _Merge(text, rewriter)
    session = write_session(table)
    change_rows(session, rewriter.spark, merge.decide, merge.actions, columns=text.columns())


def source_frame(statement: Merge, rewriter: Rewriter) -> DataFrame:
    """The rows of the source."""
    return rewriter.run(f"{statement.ctes} SELECT * FROM {statement.source}")


class _Merge:
    def __init__(self, text: MergeText, rewriter: Rewriter) -> None:
        self.text = text
        self.rewriter = rewriter

    @property
    def actions(self) -> RowActions:
        """What the changes may do."""
        text = self.text
        return RowActions(sets=text.sets, deletes=text.deletes, inserts=text.inserts)

    def decide(self, located: LocatedRows) -> DataFrame:
        """What happens to which rows."""
        rows = shown_rows(located)
        self._check_scopes(rows)
        query, at = self.text.query()
        found = self.rewriter.run(query, {at: rows})
        self._refuse_several(found)
        old = self.text.old_columns()
        return self._changes(found.filter(F.col(CLAUSE).isNotNull()), old)

    def _check_scopes(self, rows: DataFrame) -> None:
        """Let Spark find names that a clause does not see: it analyses a query that it is given."""
        of_source, of_table = self.text.of_source_only(), self.text.of_table_only()
        if of_source is not None:
            self.rewriter.run(of_source)
        if of_table is not None:
            query, at = of_table
            self.rewriter.run(query, {at: rows})

    def _refuse_several(self, found: DataFrame) -> None:
        """Refuse several rows of the source for one row of the table."""
        if not self.text.may_repeat:
            return
        places = found.filter(MATCHED).groupBy(PLACE).count().filter("count > 1")
        if places.limit(1).count():
            raise repeated_match()

    def _changes(self, found: DataFrame, old: Sequence[str]) -> DataFrame:
        numbers = [
            (number, clause, target) for number, (clause, target) in enumerate(self.text.numbered())
        ]
        given = {field.name: field.dataType for field in found.schema}
        known = {name: F.col(f"_old_{n}") for n, name in enumerate(old)}
        actions = self.actions
        action = F.lit(None).cast("int")
        for n, part in enumerate(self.text.parts):
            mine = [(k, t) for k, c, t in numbers if c == n and t in part.fixed]
            checked = _checked(F.lit(part.action), mine, given, known)
            action = F.when(F.col(CLAUSE) == n, checked).otherwise(action)
        outputs: list[Column] = [F.col(PLACE), action.alias(ACTION)]
        for name in dict.fromkeys((*actions.sets, *actions.inserts)):
            field = by_lower_name(self.text.table.fields)[name.lower()]
            value = F.lit(None).cast(to_spark_type(field.type))
            for n, part in enumerate(self.text.parts):
                mine = [(k, t) for k, c, t in numbers if c == n and t.field.name == name]
                new = self._new_value(part, field, mine, given, known)
                if new is not None:
                    value = F.when(F.col(CLAUSE) == n, new).otherwise(value)
            outputs.append(value.alias(name))
        return found.select(*outputs)

    def _new_value(
        self,
        part: ClausePart,
        field: DataField,
        mine: Sequence[tuple[int, Target]],
        given: dict[str, T.DataType],
        known: dict[str, Column],
    ) -> Column | None:
        if isinstance(part.clause.action, DeleteRow):
            return None
        is_insert = isinstance(part.clause.action, InsertRow)
        if not mine:
            return lacking(field) if is_insert else known.get(field.name)
        value: Column | None = None
        for number, target in mine:
            column, kind = F.col(f"_{number}"), given[f"_{number}"]
            if target.path:
                before = known[field.name] if value is None else value
                value = with_field(before, field.type, target.path, column, kind)
            else:
                filling = self._filling(part, known.get(field.name))
                by_place = isinstance(kind, T.StructType) and has_other_names(
                    kind.names, field.type
                )
                value = value_of(
                    field,
                    column,
                    kind,
                    is_default=target.is_default,
                    by_name=not by_place,
                    filling=filling,
                )
        if value is not None and not is_insert and keeps_values(self.text.table):
            value = F.coalesce(value, known[field.name])
        return value

    def _filling(self, part: ClausePart, old: Column | None) -> Filling | None:
        """What fields are that a struct of the source lacks: UPDATE SET * keeps them."""
        if not self.text.fills:
            return None
        return Filling(old) if part.clause.action == UpdateRow(None) else Filling()


def _checked(
    action: Column,
    fixed: Sequence[tuple[int, Target]],
    given: dict[str, T.DataType],
    known: dict[str, Column],
) -> Column:
    """The action, or an error if it would change a column that tells rows apart."""
    for number, target in fixed:
        name = target.field.name
        new = value_of(
            target.field, F.col(f"_{number}"), given[f"_{number}"], is_default=target.is_default
        )
        problem = F.lit(f"{name}: {FIXED_COLUMNS}")
        action = F.when(known[name].eqNullSafe(new), action).otherwise(
            F.raise_error(problem).cast("int")
        )
    return action
