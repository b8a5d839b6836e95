"""The builder of a merge: clauses are collected, then explained or executed as one commit."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Self

import pyarrow as pa

from emberlake.base.names import listed
from emberlake.errors import InvalidInput, Unsupported
from emberlake.expressions import Scope, Source, lit
from emberlake.predicates import Predicate
from emberlake.rowops.attempts import Grow, present, run_change
from emberlake.rowops.change import check_changes, tally_of
from emberlake.rowops.clauses import Action
from emberlake.rowops.edits import Prepared, write_edits
from emberlake.rowops.isolation import isolated
from emberlake.rowops.key_changes import Chosen, check_new_keys, write_key_changes
from emberlake.rowops.locate import file_places
from emberlake.rowops.merge import Merge, find_merge_edits
from emberlake.rowops.merge_plan import AskedClause, MergePlan, On, Rows, plan_merge, quoted
from emberlake.rowops.result import RowChangeResult, Tally, strategy_of
from emberlake.rowops.schema_growth import columns_to_grow, growing, grown, grown_fields
from emberlake.rowops.source import source_rows
from emberlake.rowops.source_values import check_new_rows, check_source_values
from emberlake.scan.plan import plan_target
from emberlake.session.write_session import WriteSession
from emberlake.spec.row_tracking import ROW_ID, readable_fields
from emberlake.spec.schema import TableSchema
from emberlake.spec.snapshot import Operation, Snapshot
from emberlake.store.table_store import TableStore
from emberlake.types import DataField, from_arrow_schema
from emberlake.wire import CommitMessage
from emberlake.write.align import align


@dataclass(repr=False)
class MergeBuilder:
    """Collects what a merge does with rows that match and with those that do not.

    For each kind of row the first clause whose condition is true decides; rows without a clause
    stay as they are. In expressions, columns of the table and of the source are told apart by the
    aliases ``t`` and ``s``, or others that were given. ``execute`` does it in one commit.
    """

    _session: WriteSession
    _source: pa.Table
    _on: On
    _aliases: tuple[str, str] = ("t", "s")
    _merges_schema: bool = False
    _refuses_repeated: bool = False
    _needs_matches: bool = False
    _grow: Grow | None = None
    _when_grown: Callable[[TableStore], None] | None = None
    _clauses: list[AskedClause] = field(default_factory=list)

    def __repr__(self) -> str:
        table = self._session.store.identity.identifier
        clauses = "".join(f", {clause.name}" for clause in self._clauses)
        return f"{type(self).__name__}({table}, on={self._on!r}{clauses})"

    # --- clauses ----------------------------------------------------------------------------------

    def when_matched_update(self, set: Mapping[str, object], where: Any = None) -> Self:  # noqa: A002
        """Change columns of rows that match; text is an expression, ``lit("x")`` a value."""
        return self._add(Rows.MATCHED, Action.UPDATE, where, _given(set))

    def when_matched_update_all(
        self, where: Any = None, except_columns: Sequence[str] = ()
    ) -> Self:
        """Set every column of rows that match to that of the source with the same name."""
        return self._add(Rows.MATCHED, Action.UPDATE, where, None, except_columns)

    def when_matched_delete(self, where: Any = None) -> Self:
        """Delete rows that match."""
        return self._add(Rows.MATCHED, Action.DELETE, where)

    def when_not_matched_insert(self, values: Mapping[str, object], where: Any = None) -> Self:
        """Insert rows for those of the source that match nothing; columns left out are null."""
        return self._add(Rows.NEW, Action.INSERT, where, _given(values))

    def when_not_matched_insert_all(
        self, where: Any = None, except_columns: Sequence[str] = ()
    ) -> Self:
        """Insert the rows of the source that match nothing."""
        return self._add(Rows.NEW, Action.INSERT, where, None, except_columns)

    def when_not_matched_by_source_update(
        self,
        set: Mapping[str, object],  # noqa: A002
        where: Any = None,
    ) -> Self:
        """Change columns of the rows of the table that match nothing."""
        return self._add(Rows.ORPHANED, Action.UPDATE, where, _given(set))

    def when_not_matched_by_source_delete(self, where: Any = None) -> Self:
        """Delete the rows of the table that match nothing."""
        return self._add(Rows.ORPHANED, Action.DELETE, where)

    def _add(
        self,
        rows: Rows,
        action: Action,
        where: Any,
        values: Mapping[str, object] | None = None,
        leaves_out: Sequence[str] = (),
    ) -> Self:
        if isinstance(leaves_out, str):
            raise InvalidInput(f"except_columns is a list of columns, as in [{leaves_out!r}]")
        self._check_where(where)
        self._clauses.append(AskedClause(rows, action, where, values, tuple(leaves_out)))
        return self

    def _check_where(self, where: Any) -> None:
        if where is not None and not isinstance(where, str):
            raise InvalidInput(f"the condition of a clause is text, not {where!r}")

    # --- running ----------------------------------------------------------------------------------

    def execute(self) -> RowChangeResult:
        """Do it, in one commit.

        Raises:
            InvalidExpression, InvalidInput, ColumnNotFound: a clause does not fit; no row was read.
            DataMismatch: several rows of the source would change one row, or a value does not fit;
                nothing changes.
            Unsupported: the table does not take such changes.
            CommitConflict: other writers changed the same rows, again and again.
        """
        if not self._merges_schema:
            return run_change(self._session, self._prepare, Operation.MERGE, self._grow)
        self._check(present(self._session)[0].store.schema)  # before any row is read
        tried: list[TableStore] = []

        def grow(store: TableStore) -> TableStore:
            tried.append(self._growing(store))
            return tried[-1]

        done = run_change(self._session, self._prepare, Operation.MERGE, grow)
        if done.snapshot_id is not None and self._when_grown is not None:
            self._when_grown(grown(tried[-1]))
        return done

    @property
    def _growth(self) -> Grow | None:
        return self._growing if self._merges_schema else self._grow

    def _growing(self, store: TableStore) -> TableStore:
        """The table with the columns that only the source has, and its wider numbers."""
        columns = self._brought_columns()
        return growing(store, columns) if columns else store

    def _messages(self) -> list[CommitMessage]:
        """Messages for a commit of its own."""
        current, snapshot = present(self._session)
        with current.store.decoding_rows():
            return list(self._prepare(current, snapshot).messages)

    def dry_run(self) -> RowChangeResult:
        """Count what ``execute`` would change, without changing it."""
        current, snapshot = present(self._session)
        if self._growth is not None:
            current = replace(current, store=self._growth(current.store))
        with current.store.decoding_rows():
            prepared = self._prepare(current, snapshot, is_dry=True)
        return prepared.tally.result(strategy_of(current.store.schema), None)

    def explain(self) -> str:
        """What the merge would do: how rows are changed, and which files may be touched."""
        current, snapshot = present(self._session)
        store = current.store
        outline = self._outline(current)
        pruning = outline.pruning
        if store.schema.profile.has_keys:
            splits = plan_target(store, snapshot, pruning, None).splits
            total = plan_target(store, snapshot, None, None).splits
            touched, files = (sum(len(s.entries) for s in some) for some in (splits, total))
        else:
            touched = len(file_places(store, snapshot, pruning))
            files = len(file_places(store, snapshot, None))
        columns = sorted(outline.sets)
        lines = [
            f"merge on {outline.on}",
            f"  strategy: {strategy_of(store.schema)}",
            f"  source: {outline.source_rows} rows",
            f"  files that may be touched: {touched} of {files}",
            *([f"  only rows with: {str(pruning)[:200]}"] if pruning is not None else []),
            *([f"  columns that matched rows may change: {listed(columns)}"] if columns else []),
        ]
        for clause in self._clauses:
            where = "" if clause.where is None else f" where {clause.where}"
            lines.append(f"  {clause.name}{where}")
        return "\n".join(lines)

    def _outline(self, current: WriteSession) -> "Outline":
        merge = self._merge(current)
        return Outline.of(merge.plan, merge.pruning(), merge.source.num_rows)

    def _prepare(
        self, current: WriteSession, snapshot: Snapshot | None, *, is_dry: bool = False
    ) -> Prepared:
        store = current.store
        merge = self._merge(current)
        if self._refuses_repeated and not merge.index.is_unique:
            raise merge.ambiguous(merge.index.repeated(100))
        if store.schema.profile.has_keys:

            def choose(rows: pa.Table) -> Chosen:
                found = merge.choose(rows)
                return found.places, found.clauses, found.matches

            def inserts() -> Sequence[pa.Table]:
                made = merge.inserts()
                check_new_keys(store.schema, made)
                return made

            return write_key_changes(
                current, snapshot, merge.editor, merge.pruning(), choose,
                inserts=inserts, is_dry=is_dry,
            )  # fmt: skip
        edits = find_merge_edits(store, snapshot, merge)
        if self._needs_matches:
            merge.check_all_matched()
        inserts_made = merge.inserts()
        if is_dry or not (edits or inserts_made):
            new = Tally(inserted=sum(rows.num_rows for rows in inserts_made))
            return Prepared((), tally_of(edits, merge.editor, current) + new)
        check_source_values(merge.editor, edits, store.schema.fields)
        check_new_rows(inserts_made, store.schema.fields)
        return write_edits(current, snapshot, merge.editor, edits, inserts_made)

    def _merge(self, current: WriteSession) -> Merge:
        plan = self._plan(current.store.schema)
        source = align(self._source, self._source_fields)
        return Merge(plan, source, current.store.env.now_ms())

    def _check(self, schema: TableSchema) -> None:
        """Refuse clauses that do not fit."""
        self._plan(schema)

    def _scope(self, schema: TableSchema) -> Scope:
        """The columns of both sides."""
        aliases = self._aliases
        return Scope(
            (Source(aliases[0], readable_fields(schema)), Source(aliases[1], self._source_fields))
        )

    def _fields(self, schema: TableSchema) -> tuple[DataField, ...]:
        """The columns of the table, as they are when it has grown."""
        return (
            grown_fields(schema, self._brought_columns()) if self._merges_schema else schema.fields
        )

    def _plan(self, schema: TableSchema) -> MergePlan:
        scope, fields = self._scope(schema), self._fields(schema)
        plan = plan_merge(scope, fields, self._on, self._clauses, may_lack=self._merges_schema)
        actions = {clause.action for clause in plan.for_table}
        assigned = frozenset(name for clause in plan.for_table for name in clause.values)
        check_changes(
            schema,
            updates=Action.UPDATE in actions,
            deletes=Action.DELETE in actions,
            assigned=assigned,
        )
        return plan

    def _brought_columns(self) -> tuple[DataField, ...]:
        """The columns of the source that clauses for all columns bring along."""
        is_all = [c for c in self._clauses if c.values is None and c.action is not Action.DELETE]
        used = {c for c in self._source.column_names for a in is_all if c not in a.leaves_out}
        keys = set(self._on.values()) if isinstance(self._on, Mapping) else set()
        fields = columns_to_grow(self._source.schema, self._session.store.schema)
        return tuple(f for f in fields if f.name in used - keys)

    @property
    def _source_fields(self) -> tuple[DataField, ...]:
        fields = from_arrow_schema(self._source.schema)
        return tuple(
            DataField(f.id, f.name, f.type.with_nullable(True), f.description) for f in fields
        )


@dataclass(frozen=True)
class Outline:
    """What is known of a merge before it runs."""

    on: str
    sets: frozenset[str]  # columns that rows of the table may change
    pruning: Predicate | None  # what rows of the table must satisfy to be touched
    source_rows: int

    @staticmethod
    def of(plan: MergePlan, pruning: Predicate | None, source_rows: int) -> "Outline":
        """The outline of a plan."""
        sets = frozenset(name for clause in plan.for_table for name in clause.values)
        return Outline(plan.on.text, sets, pruning, source_rows)


def new_merge(
    session: WriteSession,
    source: Any,
    on: On,
    *,
    source_alias: str = "s",
    target_alias: str = "t",
    merge_schema: bool = False,
    isolation: str = "snapshot",
) -> MergeBuilder:
    """Start a merge of a source into a table.

    Raises:
        InvalidInput: the source is not tabular data, or an argument is wrong.
        DataMismatch: the source has columns of the same name.
    """
    session = isolated(session, isolation)
    if source_alias == target_alias:
        raise InvalidInput(f"both sides have the alias {source_alias!r}")
    rows = source_rows(source, session.store.schema)
    return MergeBuilder(session, rows, on, (target_alias, source_alias), merge_schema)


def watched(builder: MergeBuilder, when_grown: Callable[[TableStore], None]) -> MergeBuilder:
    """The same merge; after a commit that added columns, it passes on the table with them."""
    builder._when_grown = when_grown  # noqa: SLF001
    return builder


def upsert_by(
    session: WriteSession, source: Any, on: Sequence[str], *, merge_schema: bool = False
) -> RowChangeResult:
    """Replace the rows that have the same values in some columns, and add the others.

    Args:
        session: The write.
        source: The rows, as for a merge.
        on: The columns.
        merge_schema: Whether the table grows to the columns of the source.

    Raises:
        InvalidInput: ``on`` is not a list of columns.
        DataMismatch: rows of the source have the same keys, or do not fit; nothing changes.
    """
    if isinstance(on, str):
        raise InvalidInput(f"`on` is a list of columns, as in [{on!r}]")
    builder = new_merge(session, source, list(on))
    builder._refuses_repeated = True  # noqa: SLF001 - a merge would insert both
    if merge_schema:
        rows = builder._source.schema  # noqa: SLF001

        def grow(store: TableStore) -> TableStore:
            return growing(store, columns_to_grow(rows, store.schema))

        builder._grow = grow  # noqa: SLF001
    return builder.when_matched_update_all().when_not_matched_insert_all().execute()


def prepare_upsert(
    session: WriteSession, source: Any, on: Sequence[str], columns: Sequence[str] | None = None
) -> list[CommitMessage]:
    """The messages of an upsert by some columns; only the given columns of known rows change."""
    builder = new_merge(session, source, list(on))
    builder._refuses_repeated = True  # noqa: SLF001
    left_out = [] if columns is None else _others(session.store.schema, columns)
    builder.when_matched_update_all(except_columns=left_out).when_not_matched_insert_all()
    return builder._messages()  # noqa: SLF001


def prepare_by_row_id(
    session: WriteSession, source: pa.Table, columns: Sequence[str] | None
) -> list[CommitMessage]:
    """Messages that change the rows with these ids: set columns, or delete them (no columns).

    Raises:
        Unsupported: the rows of the table have no ids.
        InvalidInput: ids that are null, repeated or unknown.
    """
    if not session.store.schema.profile.tracks_rows:
        raise Unsupported(
            "rows of this table have no ids: row-tracking.enabled=true is set when a table is "
            "created"
        )
    if ROW_ID not in source.column_names:
        raise InvalidInput(f"the data has no column {ROW_ID}, which tells its rows apart")
    if source.column(ROW_ID).null_count:
        raise InvalidInput(f"{ROW_ID} holds {source.column(ROW_ID).null_count} nulls")
    if not source.num_rows:
        return []
    builder = new_merge(session, source, [ROW_ID])
    builder._refuses_repeated = builder._needs_matches = True  # noqa: SLF001
    if columns is None:
        builder.when_matched_delete()
    else:
        builder.when_matched_update({name: column_of("s", name) for name in columns})
    return builder._messages()  # noqa: SLF001


def plain_value(value: object) -> object:
    """A value that stands for itself, even if it is text."""
    return lit(value) if isinstance(value, str) else value


def column_of(alias: str, name: str) -> str:
    """The expression of a column, whatever characters its name has."""
    return f"{alias}.{quoted(name)}"


def matched_clause(spec: Mapping[str, object] | str | None, where: str | None) -> AskedClause:
    """A clause for rows that match: set these columns, all (``"*"``), or delete them (None)."""
    if spec is None:
        return AskedClause(Rows.MATCHED, Action.DELETE, where)
    values = None if isinstance(spec, str) else _given(spec)
    return AskedClause(Rows.MATCHED, Action.UPDATE, where, values)


def insert_clause(spec: Mapping[str, object] | str | None, where: str | None) -> AskedClause:
    """A clause for rows of the source that match nothing."""
    values = None if spec is None or isinstance(spec, str) else _given(spec)
    return AskedClause(Rows.NEW, Action.INSERT, where, values)


def prepare_merge(
    session: WriteSession, source: Any, on: On, clauses: Sequence[AskedClause]
) -> list[CommitMessage]:
    """The messages of a merge with these clauses."""
    builder = new_merge(session, source, on)
    builder._clauses += clauses  # noqa: SLF001
    return builder._messages()  # noqa: SLF001


def _others(schema: TableSchema, columns: Sequence[str]) -> list[str]:
    return [name for name in schema.field_names if name not in columns]


def _given(values: Mapping[str, object]) -> Mapping[str, object]:
    if not values:
        raise InvalidInput(
            "say what to set: a dictionary of columns and their values, such as "
            '{"price": "s.price"}'
        )
    return dict(values)
