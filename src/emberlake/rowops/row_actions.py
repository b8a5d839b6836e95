"""What a query may decide about the rows of a table: the actions, and the columns that they set.

Back ends of SQL, and operations with Spark's expressions, compute for each changed row the number
of its action (``ACTION``) and new values of columns. ``RowActions`` says which actions and columns
may occur, so that a table can refuse them before anything is read.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from emberlake.base.names import choices, listed
from emberlake.errors import ColumnNotFound, InvalidExpression
from emberlake.expressions import Expression
from emberlake.expressions.typed import Column
from emberlake.rowops.change import check_changes
from emberlake.rowops.clauses import SOURCE, Action, Clause
from emberlake.spec.schema import TableSchema
from emberlake.types import DataField

ACTION: Final = "__action"  # what happens to a row:
UPDATE: Final = 0
DELETE: Final = 1
INSERT: Final = 2


@dataclass(frozen=True)
class RowActions:
    """What changes may do.

    Args:
        sets: The columns that updates set.
        deletes: Whether rows are deleted.
        inserts: The columns that new rows have; those that are left out become null, or their
            default value.
    """

    sets: tuple[str, ...] = ()
    deletes: bool = False
    inserts: tuple[str, ...] = ()

    def check(self, schema: TableSchema) -> None:
        """Refuse what a table does not take, before anything is read.

        Raises:
            ColumnNotFound: there is no such column.
            InvalidExpression: new rows would lack a NOT NULL column.
            Unsupported: columns that cannot be set, or rows that cannot be updated or deleted.
        """
        unknown = [n for n in (*self.sets, *self.inserts) if n not in schema.field_by_name]
        if unknown:
            known = choices(unknown, list(schema.field_names), "the table has")
            raise ColumnNotFound(f"no such columns: {listed(sorted(set(unknown)))}; {known}")
        check_changes(
            schema, updates=bool(self.sets), deletes=self.deletes, assigned=frozenset(self.sets)
        )
        lacking = [
            f.name
            for f in schema.fields
            if f.name not in self.inserts and not f.type.nullable and f.default_value is None
        ]
        if self.inserts and lacking:
            raise InvalidExpression(f"{listed(lacking)}: NOT NULL, but no value is given")

    def fields(self, schema: TableSchema) -> tuple[DataField, ...]:
        """The columns whose values come with changes; null where only other rows have one."""
        names = {*self.sets, *self.inserts}
        used = (f for f in schema.fields if f.name in names)
        return tuple(replace(f, type=f.type.with_nullable(True), default_value=None) for f in used)

    def clauses(self, given: Sequence[DataField]) -> tuple[Clause, Clause, Clause]:
        """What each action does; values are those of the given columns, which come with a row."""

        def values(names: Sequence[str]) -> dict[str, Expression]:
            found = (f for f in given if f.name in names)
            return {f.name: Expression(Column(SOURCE, f, (), f.type), f.name) for f in found}

        return (
            Clause(Action.UPDATE, values=values(self.sets)),
            Clause(Action.DELETE),
            Clause(Action.INSERT, values=values(self.inserts)),
        )
