"""DELETE, UPDATE and MERGE as queries of DuckDB, with subqueries, functions and joins of any kind.

Each statement becomes one query that decides what happens to which rows. The rows of the table
carry their places, where the changes are then made. Rows that change are held in memory; the others
are streamed.
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from functools import reduce

import pyarrow as pa
import pyarrow.compute as pc

from emberlake.errors import DataMismatch
from emberlake.expressions.assignments import field_at, with_fields
from emberlake.rowops.attempts import present, run_change
from emberlake.rowops.edits import Prepared as Written
from emberlake.rowops.isolation import isolated
from emberlake.rowops.row_actions import ACTION, DELETE, UPDATE, RowActions
from emberlake.session.write_session import WriteSession
from emberlake.spec.replacement import Replacement
from emberlake.spec.row_tracking import HIDDEN_FIELDS
from emberlake.spec.snapshot import Operation, Snapshot
from emberlake.sql.engine import Args
from emberlake.sql.merge_text import (
    CLAUSE,
    FIXED_COLUMNS,
    MATCHED,
    ClausePart,
    MergeText,
    repeated_match,
)
from emberlake.sql.names import quoted as quoted_name
from emberlake.sql.names import text_literal
from emberlake.sql.on_duckdb.assign import assigned, struct_fields
from emberlake.sql.on_duckdb.connection import Prepared
from emberlake.sql.on_duckdb.context import Local
from emberlake.sql.on_duckdb.decided import prepare_changes
from emberlake.sql.on_duckdb.dialect import parse_query
from emberlake.sql.on_duckdb.parameters import bind_parameters
from emberlake.sql.on_duckdb.references import replace_reference
from emberlake.sql.on_duckdb.target_rows import PLACE, TargetRows
from emberlake.sql.on_duckdb.types import duckdb_type, quoted
from emberlake.sql.on_duckdb.writing import value_or_default
from emberlake.sql.pruning import predicates_in
from emberlake.sql.row_texts import keeps_values, named, words_in, write_session
from emberlake.sql.statements import Delete, DeleteRow, InsertRow, Update
from emberlake.sql.targets import Target, changed_by, has_other_names, value_text
from emberlake.table import Table
from emberlake.types import DataField, DataType, RowType

_TARGET = "__lake_target"


@dataclass(frozen=True)
class Changing:
    """A statement that changes rows of a table."""

    engine: Local
    table: Table
    args: Args

    # --- statements -------------------------------------------------------------------------------

    def delete(self, statement: Delete) -> None:
        """Delete the rows for which the condition is true."""
        head = f"{statement.ctes} SELECT {PLACE}, {DELETE} AS {ACTION} FROM "
        text = f"{head}{_source(statement)}"

        def decide(rows: TargetRows) -> pa.Table:
            return self._run(self._inner(text, rows))

        self._change(text, decide, RowActions(deletes=True), at=len(head))

    def rewrite_without(self, statement: Delete) -> None:
        """Replace the table by the rows that remain, unless others write to it meanwhile."""
        replaces = Replacement.whole_table(self.table.store.schema)
        session = replace(write_session(self.table), replaces=replaces)
        current, snapshot = present(isolated(session, "serializable"))
        rows = self._rows(current, snapshot, "")
        source = f"FROM {named(statement.table, statement.alias)} WHERE"
        is_gone = f"({statement.where}\n)"
        some = self._inner(f"{statement.ctes} SELECT 1 AS one {source} {is_gone} LIMIT 1", rows)
        if not self._run(some).num_rows:
            return
        columns = ", ".join(map(quoted_name, self.table.field_names))
        staying = f"{statement.ctes} SELECT {columns} {source} NOT coalesce({is_gone}, false)"
        found = self.engine.database.stream(self._inner(staying, rows))
        with closing(current.new_writer(as_of=snapshot)) as writer:
            writer.write(found)
            current.commit_or_abort(writer.prepare())

    def update(self, statement: Update) -> None:
        """Set columns of the rows for which the condition is true."""
        targets = changed_by(statement, self.table)
        names = tuple(dict.fromkeys(target.field.name for target in targets))
        keeps_old = keeps_values(self.table)
        values = [f"{value_text(target)} AS _{n}" for n, target in enumerate(targets)]
        values += [f"{quoted_name(name)} AS _old_{n}" for n, name in enumerate(names)]
        head = f"{statement.ctes} SELECT {', '.join([PLACE, *values])} FROM "
        text = f"{head}{_source(statement)}"

        def decide(rows: TargetRows) -> pa.Table:
            inner = self._inner(text, rows)
            kinds = dict(self.engine.database.columns(inner))
            old = {name: f"_old_{n}" for n, name in enumerate(names)}
            outputs = [PLACE, f"{UPDATE} AS {ACTION}"]
            for name in names:
                mine = [(f"_{n}", t) for n, t in enumerate(targets) if t.field.name == name]
                value = self.new_value(mine, kinds, old[name])
                shown = f"coalesce({value}, {old[name]})" if keeps_old else value
                outputs.append(f"{shown} AS {quoted(name)}")
            return self._run(_selected(inner, outputs))

        self._change(text, decide, RowActions(sets=names), at=len(head))

    def merge(self, text: MergeText) -> None:
        """Bring the rows of a source into the table."""
        query, _ = text.query()
        merging = _Merging(self, text)
        actions = RowActions(text.sets, text.deletes, text.inserts)

        def decide(rows: TargetRows) -> pa.Table:
            self._check_scopes(text, rows)
            return merging.decide(self._inner(query, rows))

        self._change(query, decide, actions, operation=Operation.MERGE)

    def _check_scopes(self, text: MergeText, rows: TargetRows) -> None:
        """Find names that a clause does not see, by binding it to the side that it does see."""
        of_source, of_table = text.of_source_only(), text.of_table_only()
        database = self.engine.database
        if of_source is not None:
            database.columns(self.engine.prepare(of_source, self.args))
        if of_table is not None:
            database.columns(self._inner(of_table[0], rows))

    # --- rows -------------------------------------------------------------------------------------

    def _change(
        self,
        text: str,
        decide: Callable[[TargetRows], pa.Table],
        actions: RowActions,
        *,
        at: int | None = None,
        operation: Operation | None = None,
    ) -> None:
        def prepare(current: WriteSession, snapshot: Snapshot | None) -> Written:
            rows = self._rows(current, snapshot, text, at)
            return prepare_changes(current, snapshot, rows, decide(rows), actions)

        run_change(write_session(self.table), prepare, operation)

    def _rows(
        self, current: WriteSession, snapshot: Snapshot | None, text: str, at: int | None = None
    ) -> TargetRows:
        store = current.store
        words = words_in(text)
        hidden = [
            f for f in HIDDEN_FIELDS if store.schema.profile.tracks_rows and f.name.lower() in words
        ]
        found = {} if at is None else predicates_in(text, {at: store.schema}, self.args)
        predicate = None if at is None else found.get(at)
        return TargetRows(store, snapshot, (*store.schema.fields, *hidden), predicate)

    def _inner(self, text: str, rows: TargetRows) -> Prepared:
        """A query whose first table is the target."""
        tree = bind_parameters(parse_query(text), self.args)
        source = tree.args.get("from_") or tree.args["from"]
        replace_reference(source.this, _TARGET)
        return self.engine.prepare_tree(tree, {_TARGET: rows})

    def _run(self, prepared: Prepared) -> pa.Table:
        return self.engine.database.stream(prepared).read_all()

    def new_value(
        self,
        mine: Sequence[tuple[str, Target]],
        kinds: Mapping[str, str],
        old: str,
        *,
        is_merge: bool = False,
    ) -> str:
        """The new value of a column, from all assignments to it and to its fields."""
        value = old
        for column, target in mine:
            if target.path:
                value = with_field(value, target.field.type, target.path, column, kinds[column])
            else:
                value = self.value_of(target, column, kinds[column], is_merge=is_merge)
        return value

    def value_of(self, target: Target, column: str, kind: str, *, is_merge: bool = False) -> str:
        """A value that is set; NULL stays NULL unless the column has a default."""
        names = [name for name, _ in struct_fields(kind)] if kind.startswith("STRUCT(") else []
        by_place = is_merge and bool(names) and has_other_names(names, target.field.type)
        given = assigned(column, kind, target.field.type, by_name=not by_place)
        return value_or_default(self.engine, target.field, None if target.is_default else given)


def _source(statement: Delete | Update) -> str:
    where = "" if statement.where is None else f" WHERE ({statement.where}\n)"
    return f"{named(statement.table, statement.alias)}{where}"


def _selected(inner: Prepared, outputs: Sequence[str], where: str = "") -> Prepared:
    text = f"SELECT {', '.join(outputs)} FROM ({inner.text}) AS q{where}"
    return inner.with_text(text)


def with_field(struct: str, data_type: DataType, path: Sequence[str], value: str, kind: str) -> str:
    """The struct with another value in a field; if it is NULL, its other fields are NULL."""
    assert isinstance(data_type, RowType)
    new = assigned(value, kind, field_at(data_type, path).type, by_name=True)

    def old(at: Sequence[str], _: DataType) -> str:
        return reduce(lambda row, name: f"struct_extract({row}, {text_literal(name)})", at, struct)

    def row(row_type: RowType, parts: Sequence[str]) -> str:
        packed = (
            f"{quoted(field.name)} := CAST({part} AS {duckdb_type(field.type)})"
            for field, part in zip(row_type.fields, parts, strict=True)
        )
        return f"struct_pack({', '.join(packed)})"

    return with_fields(data_type, {tuple(path): new}, old, row)


class _Merging:
    """The values of one merge, from the columns of its query."""

    def __init__(self, changing: Changing, text: MergeText) -> None:
        self._changing, self._text = changing, text

    def decide(self, inner: Prepared) -> pa.Table:
        """What happens to which rows."""
        text, database = self._text, self._changing.engine.database
        kinds = dict(database.columns(inner))
        old = {name: f"_old_{n}" for n, name in enumerate(text.old_columns())}
        outputs = [PLACE, MATCHED, f"{self._action(kinds, old)} AS {ACTION}"]
        by_name = {f.name: f for f in text.table.fields}
        for name in dict.fromkeys((*text.sets, *text.inserts)):
            value = self._value(by_name[name], kinds, old)
            outputs.append(f"{value} AS {quoted(name)}")
        where = f" WHERE {CLAUSE} IS NOT NULL OR {MATCHED}"
        found = database.stream(_selected(inner, outputs, where)).read_all()
        if text.may_repeat:
            _refuse_repeated(found.filter(found.column(MATCHED)))
        return found.filter(pc.is_valid(found.column(ACTION)))

    def _mine(self, number: int) -> list[tuple[str, Target]]:
        numbered = enumerate(self._text.numbered())
        return [(f"_{n}", target) for n, (clause, target) in numbered if clause == number]

    def _action(self, kinds: Mapping[str, str], old: Mapping[str, str]) -> str:
        branches = []
        for number, part in enumerate(self._text.parts):
            action = str(part.action)
            for column, target in self._mine(number):
                if target in part.fixed:
                    new = self._changing.value_of(target, column, kinds[column])
                    same = f"{old[target.field.name]} IS NOT DISTINCT FROM {new}"
                    action = f"CASE WHEN {same} THEN {action} ELSE error('{FIXED_COLUMNS}') END"
            branches.append(f"WHEN {CLAUSE} = {number} THEN {action}")
        return f"CASE {' '.join(branches)} END"

    def _value(self, field: DataField, kinds: Mapping[str, str], old: Mapping[str, str]) -> str:
        branches = []
        for number, part in enumerate(self._text.parts):
            mine = [(c, t) for c, t in self._mine(number) if t.field.name == field.name]
            new = self._new_value(part, field, mine, kinds, old)
            if new is not None:
                branches.append(f"WHEN {CLAUSE} = {number} THEN {new}")
        wanted = duckdb_type(field.type)
        return f"CAST(CASE {' '.join(branches)} END AS {wanted})" if branches else "NULL"

    def _new_value(
        self,
        part: ClausePart,
        field: DataField,
        mine: Sequence[tuple[str, Target]],
        kinds: Mapping[str, str],
        old: Mapping[str, str],
    ) -> str | None:
        if isinstance(part.clause.action, DeleteRow):
            return None
        is_insert = isinstance(part.clause.action, InsertRow)
        if not mine:
            return self._lacking(field) if is_insert else old.get(field.name)
        value = self._changing.new_value(mine, kinds, old.get(field.name, "NULL"), is_merge=True)
        if not is_insert and keeps_values(self._text.table):
            return f"coalesce({value}, {old[field.name]})"
        return value

    def _lacking(self, field: DataField) -> str:
        if field.default_value is None and not field.type.nullable:
            raise DataMismatch(
                f"[NOT_NULL_ASSERT_VIOLATION] {field.name} is NOT NULL and has no default: give "
                "it a value"
            )
        return value_or_default(self._changing.engine, field, None)


def _refuse_repeated(matched: pa.Table) -> None:
    place = matched.column(PLACE).combine_chunks()
    keys = pa.table({name: pc.struct_field(place, name) for name in ("file", "pos")})
    counts = keys.group_by(["file", "pos"]).aggregate([([], "count_all")]).column("count_all")
    if matched.num_rows and pc.max(counts).as_py() > 1:
        raise repeated_match()
