"""MERGE as one query: it decides what happens to which rows, on Spark and on DuckDB."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from emberlake.errors import DataMismatch, InvalidSql
from emberlake.rowops.row_actions import DELETE, INSERT, UPDATE
from emberlake.spec.row_tracking import HIDDEN_NAMES
from emberlake.sql.lexer import tokenize
from emberlake.sql.merge_scopes import qualified
from emberlake.sql.names import quoted
from emberlake.sql.row_texts import last_name, named, refuse_varying, words_in
from emberlake.sql.statements import (
    Assignment,
    DeleteRow,
    InsertRow,
    Merge,
    MergeClause,
    Rows,
    UpdateRow,
)
from emberlake.sql.targets import (
    Target,
    qualifiers_of,
    refuse_twice,
    target_of,
    targets_of,
    value_text,
)
from emberlake.table import Table
from emberlake.types import DataField

CLAUSE: Final = "__clause"
MATCHED: Final = "__matched"
FROM_SOURCE: Final = "__from_source"
# The problem with a clause that would change a column which identifies rows.
FIXED_COLUMNS: Final = (
    "columns of the primary key and of the partition cannot be updated, since they tell rows "
    "apart. Delete the rows and append them again"
)


@dataclass(frozen=True)
class ClausePart:
    """A clause whose targets are resolved: columns, or fields in them, with their new values."""

    clause: MergeClause
    targets: tuple[Target, ...]
    fixed: tuple[Target, ...] = ()  # columns that cannot change: their values must be as before

    @property
    def action(self) -> int:
        """The number of its action, as in ``rowops.row_actions``."""
        match self.clause.action:
            case DeleteRow():
                return DELETE
            case UpdateRow():
                return UPDATE
            case InsertRow():
                return INSERT


def columns_to_add(statement: Merge, given: Sequence[DataField]) -> list[DataField]:
    """The columns of the source that a table with an evolving schema may take.

    With ``*`` these are all of them, otherwise those that a clause sets.
    """
    actions = [clause.action for clause in statement.clauses]
    if any(action in (UpdateRow(None), InsertRow(None, None)) for action in actions):
        return list(given)
    said: set[str] = set()
    for action in actions:
        match action:
            case UpdateRow(assignments):
                said |= {item.column[-1].lower() for item in assignments or ()}
            case InsertRow(columns, _):
                said |= {column[-1].lower() for column in columns or ()}
            case _:
                pass
    return [field for field in given if field.name.lower() in said]


def refuse_varying_conditions(statement: Merge) -> None:
    """Refuse conditions that may change when they are evaluated again, as they are for values."""
    for condition in (statement.on, *(clause.condition for clause in statement.clauses)):
        refuse_varying(condition or "")


class MergeText:
    """One MERGE on a table: what its clauses set, and the query that decides.

    The query has the place of each row of the table, the number of the clause that is for it, and
    the values of all clauses, each computed only for rows of its clause.

    Args:
        statement: The merge.
        table: Its target.
        place: The column that says where a row of the table is.
        source_columns: The columns of the source.
        fills: Whether ``*`` may leave out columns that the source does not have: rows of the table
            keep them, new rows have their defaults.
    """

    def __init__(
        self,
        statement: Merge,
        table: Table,
        place: str,
        source_columns: Sequence[str],
        *,
        fills: bool = False,
    ) -> None:
        self.statement = statement
        self.table = table
        self._place = place
        self._source_columns = source_columns
        self.fills = fills
        self.parts = [self._part(self._scoped(clause)) for clause in statement.clauses]

    # --- what the clauses say ---------------------------------------------------------------------

    def _scoped(self, clause: MergeClause) -> MergeClause:
        """The clause with plain names qualified, where only one side has rows."""
        if clause.rows is Rows.MATCHED:
            return clause
        is_new = clause.rows is Rows.NOT_MATCHED
        sides = (self._source_name(), self._table_name)
        side = sides[0] if is_new else sides[1]
        both = {f.name.lower() for f in self.table.fields}
        both &= {name.lower() for name in self._source_columns}

        def scoped(text: str) -> str:
            return qualified(text, both, quoted(side), {name.lower() for name in sides})

        action = clause.action
        match action:
            case UpdateRow(assignments) if assignments is not None:
                pairs = tuple(Assignment(item.column, scoped(item.value)) for item in assignments)
                action = UpdateRow(pairs)
            case InsertRow(columns, values) if values is not None:
                action = InsertRow(columns, tuple(map(scoped, values)))
        condition = None if clause.condition is None else scoped(clause.condition)
        return replace(clause, action=action, condition=condition)

    @property
    def _table_name(self) -> str:
        return self.statement.alias or self.statement.table.last

    def _part(self, clause: MergeClause) -> ClausePart:
        match clause.action:
            case DeleteRow():
                return ClausePart(clause, ())
            case UpdateRow(None):
                return self._update_part(clause, self._all_columns("UPDATE"))
            case UpdateRow(assignments):
                qualifiers = qualifiers_of(self.statement.table, self.statement.alias)
                targets = targets_of(assignments or (), self.table, qualifiers)
                refuse_twice(targets)
                return self._update_part(clause, targets)
            case InsertRow(None, _):
                return ClausePart(clause, self._all_columns("INSERT"))
            case InsertRow(columns, values):
                qualifiers = qualifiers_of(self.statement.table, self.statement.alias)
                pairs = zip(columns or (), values or (), strict=True)
                targets = [
                    target_of(Assignment(column, value), self.table, qualifiers)
                    for column, value in pairs
                ]
                refuse_twice(targets)
                _refuse_fields(targets)
                return ClausePart(clause, tuple(targets))

    def _update_part(self, clause: MergeClause, targets: Sequence[Target]) -> ClausePart:
        """A row of a key table keeps its key, even if ``*`` names the key, too."""
        keys = self.table.table_schema.fixed_columns
        fixed = tuple(target for target in targets if target.field.name in keys)
        free = tuple(target for target in targets if target.field.name not in keys)
        return ClausePart(clause, free, fixed)

    def _all_columns(self, action: str) -> tuple[Target, ...]:
        """``*``: the columns of the table, from those of the source with the same names."""
        given = {name.lower(): name for name in self._source_columns}
        missing = [f.name for f in self.table.fields if f.name.lower() not in given]
        if missing and not self.fills:
            raise DataMismatch(f"{action} *: the source has no column {missing[0]}")
        source = quoted(self._source_name())
        return tuple(
            Target(f, (), f"{source}.{quoted(given[f.name.lower()])}")
            for f in self.table.fields
            if f.name.lower() in given
        )

    def _source_name(self) -> str:
        if self.statement.source_alias is not None:
            return self.statement.source_alias
        if self.statement.source.startswith("("):
            return FROM_SOURCE
        return tokenize(self.statement.source)[last_name(self.statement.source)].name

    def _source(self, *, is_marked: bool = False) -> str:
        """The source as part of FROM; if marked, its rows can be told from rows without a match."""
        statement = self.statement
        if statement.source_alias is None and not statement.source.startswith("("):
            alias = "" if not is_marked else f" AS {quoted(self._source_name())}"
        else:
            alias = f" AS {quoted(self._source_name())}"
        if is_marked:
            return f"(SELECT *, true AS {FROM_SOURCE} FROM {statement.source}){alias}"
        return f"{statement.source}{alias}"

    def columns(self) -> list[str] | None:
        """The columns of the table that are needed; None: all."""
        texts = [self.statement.on]
        texts += [part.clause.condition or "" for part in self.parts]
        texts += [target.value for part in self.parts for target in part.targets]
        hidden = [name for name in HIDDEN_NAMES if name.lower() in words_in(" ".join(texts))]
        if not self.table.store.schema.profile.tracks_rows or not hidden:
            return None
        return [*self.table.field_names, *hidden]

    @property
    def deletes(self) -> bool:
        return any(isinstance(part.clause.action, DeleteRow) for part in self.parts)

    @property
    def sets(self) -> tuple[str, ...]:
        """The columns that some clause sets in rows of the table."""
        found: dict[str, None] = {}
        is_changing = False
        for part in self.parts:
            if isinstance(part.clause.action, UpdateRow):
                found |= dict.fromkeys(target.field.name for target in part.targets)
                is_changing = True
        if is_changing and not found:  # only keys are set, to their old values: the row stays
            others = (n for n in self.table.field_names if n not in self.table.primary_keys)
            found |= dict.fromkeys(list(others)[:1])
        return tuple(found)

    @property
    def inserts(self) -> tuple[str, ...]:
        """The columns of new rows; none if there are no new rows."""
        is_inserting = any(isinstance(part.clause.action, InsertRow) for part in self.parts)
        return tuple(self.table.field_names) if is_inserting else ()

    # --- the query --------------------------------------------------------------------------------

    def of_source_only(self) -> str | None:
        """A query of the source alone, with everything that only sees the source; None: nothing.

        In the query that decides, columns of the table would be NULL there, and nobody would be
        told.
        """
        outputs = self._said_in(Rows.NOT_MATCHED)
        if not outputs:
            return None
        return f"{self.statement.ctes} SELECT {', '.join(outputs)} FROM {self._source()}"

    def of_table_only(self) -> tuple[str, int] | None:
        """The same for what only sees the table, and the place of the table in the text."""
        outputs = self._said_in(Rows.NOT_MATCHED_BY_SOURCE)
        if not outputs:
            return None
        head = f"{self.statement.ctes} SELECT {', '.join(outputs)} FROM "
        return f"{head}{named(self.statement.table, self.statement.alias)}", len(head)

    def _said_in(self, rows: Rows) -> list[str]:
        """The conditions and values of the clauses for these rows."""
        parts = [part for part in self.parts if part.clause.rows is rows]
        found = [f"({part.clause.condition}\n)" for part in parts if part.clause.condition]
        return found + [value_text(target) for part in parts for target in part.targets]

    @property
    def _join(self) -> str:
        kinds = {part.clause.rows for part in self.parts}
        is_left, is_right = Rows.NOT_MATCHED_BY_SOURCE in kinds, Rows.NOT_MATCHED in kinds
        if is_left and is_right:
            return "FULL OUTER"
        return "LEFT OUTER" if is_left else "RIGHT OUTER" if is_right else "INNER"

    def query(self) -> tuple[str, int]:
        """The query that decides, and the place of the table in its text."""
        statement, join = self.statement, self._join
        is_marked = join in ("FULL OUTER", "LEFT OUTER")
        outputs = [self._place, f"{self._clause()} AS {CLAUSE}", f"{self._matched()} AS {MATCHED}"]
        outputs += [
            f"{self._guarded(clause, value_text(target))} AS _{number}"
            for number, (clause, target) in enumerate(self.numbered())
        ]
        name = quoted(self._table_name)
        outputs += [
            f"{name}.{quoted(column)} AS _old_{n}" for n, column in enumerate(self.old_columns())
        ]
        head = f"{statement.ctes} SELECT {', '.join(outputs)} FROM "
        text = (
            f"{head}{named(statement.table, statement.alias)} {join} JOIN "
            f"{self._source(is_marked=is_marked)} ON ({statement.on}\n)"
        )
        return text, len(head)

    def numbered(self) -> list[tuple[int, Target]]:
        return [
            (n, target)
            for n, part in enumerate(self.parts)
            for target in (*part.targets, *part.fixed)
        ]

    def old_columns(self) -> list[str]:
        fixed = (target.field.name for part in self.parts for target in part.fixed)
        return list(dict.fromkeys((*self.sets, *fixed)))

    def _matched(self) -> str:
        source = f" AND {FROM_SOURCE}" if self._join in ("FULL OUTER", "LEFT OUTER") else ""
        return f"({self._place} IS NOT NULL{source})"

    def _test(self, part: ClausePart) -> str:
        """Whether a clause is for a row, and its condition is true."""
        match part.clause.rows:
            case Rows.MATCHED:
                test = self._matched()
            case Rows.NOT_MATCHED:
                test = f"({self._place} IS NULL)"
            case Rows.NOT_MATCHED_BY_SOURCE:
                test = f"({FROM_SOURCE} IS NULL)"
        condition = part.clause.condition
        return test if condition is None else f"({test} AND ({condition}\n))"

    def _clause(self) -> str:
        branches = [f"WHEN {self._test(part)} THEN {n}" for n, part in enumerate(self.parts)]
        return f"CASE {' '.join(branches)} END"

    def _guarded(self, clause: int, value: str) -> str:
        """A value of a clause, computed only for its rows."""
        earlier = [f"WHEN {self._test(part)} THEN NULL" for part in self.parts[:clause]]
        return f"CASE {' '.join(earlier)} WHEN {self._test(self.parts[clause])} THEN {value} END"

    @property
    def may_repeat(self) -> bool:
        """Whether to look for several rows of the source that match one row of the table.

        A plain update of all rows that match is checked where it is carried out.
        """
        matched = [part for part in self.parts if part.clause.rows is Rows.MATCHED]
        return any(
            not isinstance(part.clause.action, UpdateRow) or part.clause.condition is not None
            for part in matched
        )


def _refuse_fields(targets: Sequence[Target]) -> None:
    """Refuse fields of structs among the columns of new rows."""
    for target in targets:
        if target.path:
            raise InvalidSql(
                f"INSERT sets whole columns: give {target.field.name} a struct, instead of "
                f"{'.'.join((target.field.name, *target.path))}"
            )


def repeated_match() -> DataMismatch:
    """The error for a row that several rows of the source match."""
    return DataMismatch(
        "several rows of the source match the same row of the table, so it is not clear which of "
        "them counts. Keep one row for each key"
    )
