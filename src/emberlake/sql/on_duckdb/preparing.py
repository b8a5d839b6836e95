"""From the tree of a query to text for DuckDB: every name becomes a scan of one snapshot."""

from collections.abc import Callable, Collection, Mapping, Sequence
from itertools import count
from typing import Any

import pyarrow as pa
from sqlglot import exp

from emberlake.errors import InvalidSql
from emberlake.inspect import SystemTable
from emberlake.spec.identifier import Identifier
from emberlake.spec.partition_match import partitions_of
from emberlake.spec.row_tracking import HIDDEN_FIELDS
from emberlake.sql.commands.context import Session
from emberlake.sql.commands.procedures.arguments import table_name
from emberlake.sql.commands.types import quoted_if_needed
from emberlake.sql.incremental import INCREMENTAL_FUNCTIONS, incremental_read
from emberlake.sql.moments import seen_at
from emberlake.sql.names import TableName
from emberlake.sql.on_duckdb.clauses import with_joined_columns_first
from emberlake.sql.on_duckdb.column_names import name_columns
from emberlake.sql.on_duckdb.connection import Database, FileView, Prepared
from emberlake.sql.on_duckdb.derived import DERIVED
from emberlake.sql.on_duckdb.dialect import parse_query, to_duckdb
from emberlake.sql.on_duckdb.hidden import PARTITION, PlacedSource, places_of
from emberlake.sql.on_duckdb.native_queries import NativeQueries
from emberlake.sql.on_duckdb.pinned import PinnedTable, Pins, TableSource
from emberlake.sql.on_duckdb.references import (
    drop_qualifiers,
    name_of,
    replace_reference,
    table_references,
)
from emberlake.sql.on_duckdb.target_rows import PLACE, TargetRows
from emberlake.sql.on_duckdb.typed_rules import apply_types
from emberlake.sql.on_duckdb.types import quoted
from emberlake.sql.stored_views import StoredView
from emberlake.sql.system_database import system_table_rows
from emberlake.table import Table
from emberlake.types import AtomicType, DataField, RowType, TypeRoot

Lookup = Callable[[str], object | None]
_MAX_PT = "max_pt"


class Preparation:
    """Collects what one query needs."""

    def __init__(
        self,
        session: Session,
        database: Database,
        native: NativeQueries,
        views: Mapping[str, exp.Expr | pa.Table],
        lookup: Lookup,
        pins: Pins | None = None,
    ) -> None:
        self._session = session
        self._database = database
        self._native = native
        self._known_views = views
        self._lookup = lookup
        self._pins = pins or Pins()
        self._number = count()
        self._sources: dict[str, object] = {}
        self._views: list[str] = []
        self._files: dict[str, FileView] = {}  # views by their names
        self._bits: dict[str, bytes] = {}  # variables of these views
        self._hidden: dict[str, tuple[str, ...]] = {}  # hidden columns of each stand-in
        self._fields: dict[str, Sequence[DataField]] = {}  # columns of each stand-in
        self._inside: list[Identifier] = []  # views of the catalog around the query
        self._targets: set[tuple[str, str]] = set()  # databases and names of tables that change

    def prepare(self, tree: exp.Expr, targets: Mapping[str, TargetRows]) -> Prepared:
        """Text for DuckDB; all tables of the query are pinned when this returns."""
        for name, rows in targets.items():
            self._fields[name] = rows.fields
            self._pins.hold(rows.store, rows.snapshot)
            identifier = rows.store.identity.identifier
            self._targets.add((identifier.database.lower(), identifier.object_name.lower()))
            self._show(name, rows, (*rows.fields, *_PLACES))
        tree = self._resolved(tree)
        files = tuple(self._files.values())
        return Prepared(to_duckdb(tree), self._sources, tuple(self._views), files, self._bits)

    def _resolved(self, tree: exp.Expr) -> exp.Expr:
        name_columns(tree)
        tree = tree.transform(self._rule, copy=False)
        mentioned = frozenset(
            part.name.lower() for column in tree.find_all(exp.Column) for part in column.parts
        )
        for node in list(tree.find_all(exp.Table)):
            if isinstance(node.this, exp.Anonymous):
                self._replace_function(node)
        for hint in list(tree.find_all(exp.Hint)):
            hint.pop()
        tables = set(self._targets)
        for node in table_references(tree):
            if not self._is_stand_in(node):
                tables.add(self._qualifier(node))
                self._replace(node, mentioned)
        for node in tree.find_all(exp.Table):
            _refuse_travel(node, TableName((node.alias_or_name,)))  # what is left: CTEs, functions
        drop_qualifiers(tree, tables)
        for select in tree.find_all(exp.Select):
            if self._hidden:
                self._without_hidden(select)
            with_joined_columns_first(select, self._fields)
        return apply_types(tree, self._fields, self._database.divider)

    def _qualifier(self, node: exp.Table) -> tuple[str, str]:
        """The database and name of a table, which may qualify its columns."""
        *database, name = name_of(node).parts
        return (database[-1] if database else self._session.database).lower(), name.lower()

    def _without_hidden(self, node: exp.Select) -> None:
        """Make ``*`` and ``t.*`` leave out the hidden columns that the query names elsewhere."""
        sources = [node.args.get("from_"), *(node.args.get("joins") or ())]
        tables = [s.this for s in sources if s is not None and isinstance(s.this, exp.Table)]
        hidden = {t.alias_or_name.lower(): self._hidden.get(t.name, ()) for t in tables}
        for selected in node.expressions:
            if isinstance(selected, exp.Star):
                names = {name for found in hidden.values() for name in found}
                _leave_out(selected, names)
            elif isinstance(selected, exp.Column) and isinstance(selected.this, exp.Star):
                _leave_out(selected.this, hidden.get(selected.table.lower(), ()))

    def _is_stand_in(self, node: exp.Table) -> bool:
        return node.name in self._sources or node.name.startswith(_STAND_IN)

    def _rule(self, node: exp.Expr) -> exp.Expr:
        match node:
            case exp.Dot(expression=exp.Anonymous() as call) if call.name.lower() == _MAX_PT:
                return self._max_partition(call)
            case exp.CurrentSchema() | exp.CurrentDatabase():
                return exp.Literal.string(quoted_if_needed(self._session.database))
            case exp.CurrentCatalog():
                return exp.Literal.string(self._session.name)
            case _:
                return node

    def _replace_function(self, node: exp.Table) -> None:
        match node.this.name.lower():
            case name if name in INCREMENTAL_FUNCTIONS:
                self._replace_incremental(node)
            case "identifier":
                name = table_name(str(self._constant(node.this.expressions[0])))
                parts = [exp.to_identifier(part, quoted=True) for part in name.parts]
                for key, part in zip(("this", "db", "catalog"), reversed(parts), strict=False):
                    node.set(key, part)
            case "range":
                alias = node.args.get("alias")
                if alias is None or not alias.args.get("columns"):
                    called = exp.to_identifier("r") if alias is None else alias.this
                    column = exp.to_identifier("id", quoted=True)
                    node.set("alias", exp.TableAlias(this=called, columns=[column]))
            case _:
                return

    # --- tables -----------------------------------------------------------------------------------

    def _replace(self, node: exp.Table, mentioned: frozenset[str]) -> None:
        name = name_of(node)
        is_temporary = len(name.parts) == 1 or name.parts[0].lower() == "global_temp"
        if is_temporary and not self._inside:
            view = self._known_views.get(".".join(name.parts).lower())
            if view is not None:
                _refuse_travel(node, name)
            if isinstance(view, pa.Table):
                self._replace_by_rows(node, view)
                return
            if view is not None:
                self._replace_by_view(node, view)
                return
        options = self._travel(node.args.get("version"))
        derived = self._derived(name, options)
        if derived is not None:
            replace_reference(node, derived)
            return
        rows = system_table_rows(name, self._session.catalog)
        if rows is not None:
            _refuse_travel(node, name)
            self._replace_by_rows(node, rows)
            return
        table = self._session.find(name)
        if table is None:
            stored = self._session.view(name)
            if stored is not None:
                stored.check_present(options)
                self._replace_by_stored(node, stored)
            else:
                self._replace_by_object(node, name)
            return
        found = seen_at(table, options) if options else table
        replace_reference(node, self._register(found, mentioned))

    def _derived(self, name: TableName, options: dict[str, str]) -> str | None:
        """The stand-in of a system table that is a read of its data table."""
        identifier = self._session.identify(name)
        kind = None if identifier is None else identifier.system_table
        if kind is None or kind not in DERIVED:
            return None
        own = name.last.removesuffix(f"${kind}")
        base = TableName((*name.parts[:-1], own))
        table = self._session.find(base)
        if not isinstance(table, Table):
            raise self._session.unknown_table(base)
        found = DERIVED[kind](seen_at(table, options) if options else table)
        stand_in = f"{_STAND_IN}{next(self._number)}"
        self._sources[f"{stand_in}_rows"] = found.source
        self._views.append(
            f"CREATE TEMP VIEW {stand_in} AS SELECT {found.columns} FROM {stand_in}_rows"
        )
        return stand_in

    def _register(self, table: Table | SystemTable, mentioned: frozenset[str] = frozenset()) -> str:
        stand_in = f"{_STAND_IN}{next(self._number)}"
        if isinstance(table, SystemTable):
            self._sources[stand_in] = table.to_arrow()
            return stand_in
        pinned = self._pins.of(table)
        schema = pinned.store.schema
        own = tuple(
            f for f in HIDDEN_FIELDS if schema.profile.tracks_rows and f.name.lower() in mentioned
        )
        pinned = pinned.showing(own)
        places = tuple(name for name in places_of(schema) if name in mentioned)
        native = None if places else self._native.find(pinned)
        if native is not None:
            view = self._database.view_of(native.text, f"{_STAND_IN}files_")
            stand_in = view.name
            self._files[stand_in] = view
            self._bits.update(native.bits)
        self._fields[stand_in] = pinned.fields
        if own or places:
            self._hidden[stand_in] = (*(f.name for f in own), *places)
        if places:
            self._show_places(stand_in, pinned, places)
        elif native is None:
            self._show(stand_in, TableSource(pinned), pinned.fields)
        return stand_in

    def _show_places(self, stand_in: str, pinned: PinnedTable, places: tuple[str, ...]) -> None:
        self._sources[f"{stand_in}_rows"] = PlacedSource(pinned, places)
        columns = [*map(_as_read, pinned.fields), *(n for n in places if n != PARTITION)]
        if PARTITION in places:
            keys = [quoted(key) for key in pinned.store.schema.partition_keys]
            packed = ", ".join(f"{key} := {key}" for key in keys)
            columns.append(f"{f'struct_pack({packed})' if keys else 'NULL'} AS {PARTITION}")
        text = f"CREATE TEMP VIEW {stand_in} AS SELECT {', '.join(columns)} FROM {stand_in}_rows"
        self._views.append(text)

    def _show(self, stand_in: str, source: object, fields: Sequence[DataField]) -> None:
        """Let a name stand for rows; CHAR(n) is filled with spaces, as Spark reads it."""
        if not any(map(_is_char, fields)):
            self._sources[stand_in] = source
            return
        self._sources[f"{stand_in}_rows"] = source
        columns = ", ".join(map(_as_read, fields))
        self._views.append(f"CREATE TEMP VIEW {stand_in} AS SELECT {columns} FROM {stand_in}_rows")

    def _replace_by_view(self, node: exp.Table, view: exp.Expr) -> None:
        alias = node.args.get("alias") or exp.TableAlias(
            this=exp.to_identifier(node.name, quoted=True)
        )
        node.replace(exp.Subquery(this=self._resolved(view.copy()), alias=alias))

    def _replace_by_stored(self, node: exp.Table, stored: StoredView) -> None:
        """A view of the catalog.

        Names in its query are those of its own database; it sees no temporary views or variables.
        """
        if stored.identifier in self._inside:
            raise InvalidSql(f"[RECURSIVE_VIEW] the view {stored.identifier} uses itself")
        outer = self._session
        self._session = outer.in_database(stored.identifier.database)
        self._inside.append(stored.identifier)
        try:
            query = self._resolved(parse_query(stored.query))
        finally:
            self._session = outer
            self._inside.pop()
        columns = [exp.to_identifier(f.name, quoted=True) for f in stored.fields]
        said = node.args.get("alias")
        name = said.this if said is not None else exp.to_identifier(node.name, quoted=True)
        named = said.args.get("columns") if said is not None else None
        alias = exp.TableAlias(this=name, columns=named or columns)
        node.replace(exp.Subquery(this=query, alias=alias))

    def _replace_by_object(self, node: exp.Table, name: TableName) -> None:
        is_variable = len(name.parts) == 1 and not self._inside
        found = self._lookup(name.last) if is_variable else None
        if found is None:
            raise self._session.unknown_table(name)
        _refuse_travel(node, name)
        self._replace_by_rows(node, found)

    def _replace_by_rows(self, node: exp.Table, rows: object) -> None:
        stand_in = f"{_STAND_IN}{next(self._number)}"
        self._sources[stand_in] = rows
        replace_reference(node, stand_in)

    # --- time travel ------------------------------------------------------------------------------

    def _travel(self, version: exp.Expr | None) -> dict[str, str]:
        if version is None:
            return {}
        said = version.expression
        if said is None:
            raise InvalidSql(f"[PARSE_SYNTAX_ERROR] {version.name} AS OF needs a value")
        if version.name.upper() == "VERSION":
            if not isinstance(said, exp.Literal):
                raise InvalidSql(
                    f"VERSION AS OF takes a snapshot or a tag, not {said.sql('spark')}"
                )
            return {"scan.version": said.name}
        return {"scan.timestamp-millis": str(self._millis(said))}

    def _millis(self, said: exp.Expr) -> int:
        text = to_duckdb(said)
        if isinstance(said, exp.Literal) and not said.is_string:
            text = f"to_timestamp({text})"  # a number counts seconds
        millis = self._moment(said, text)
        if not isinstance(millis, int):
            raise InvalidSql(f"TIMESTAMP AS OF takes a moment, not {said.sql('spark')}")
        return millis

    def _moment(self, said: exp.Expr, text: str) -> Any:
        """The milliseconds of an expression, which may be a query of other tables."""
        millis = "epoch_ms(CAST({} AS TIMESTAMP WITH TIME ZONE))"
        if said.find(exp.Table) is None:
            return self._database.value(millis.format(text))
        inner = Preparation(
            self._session, self._database, self._native, self._known_views, self._lookup, self._pins
        )
        prepared = inner.prepare(exp.select(said.copy()), {})
        query = prepared.with_text(f"SELECT {millis.format(f'({prepared.text})')}")
        return self._database.stream(query).read_all().column(0)[0].as_py()

    def _replace_incremental(self, node: exp.Table) -> None:
        given = [str(self._constant(argument)) for argument in node.this.expressions]
        name, options = incremental_read(node.this.name, given)
        stand_in = self._derived(table_name(name), options)
        if stand_in is None:
            stand_in = self._register(self._session.table(table_name(name)).copy(options))
        node.set("this", exp.to_identifier(stand_in, quoted=True))

    def _constant(self, node: exp.Expr) -> Any:
        return self._database.value(to_duckdb(node))

    def _max_partition(self, call: exp.Anonymous) -> exp.Expr:
        if len(call.expressions) != 1:
            raise InvalidSql("max_pt takes the name of a table")
        table = self._session.table(table_name(str(self._constant(call.expressions[0]))))
        if not table.partition_keys:
            raise InvalidSql(f"{table.identifier} is not partitioned")
        listed = self._session.catalog.list_partitions_paged(table.identifier).elements
        first = table.partition_keys[0]
        # Ordered by value, not by text: 10 comes after 9.
        texts: dict[Any, str] = {
            partitions_of(table.table_schema, {first: p.spec[first]}).values[0][1]: p.spec[first]
            for p in listed
        }
        texts.pop(None, None)
        if not texts:
            raise InvalidSql(f"sys.max_pt: {table.identifier} has no partition with a value")
        return exp.Literal.string(texts[max(texts)])


_STAND_IN = "__lake_"
_PLACES = (DataField(0, PLACE, RowType(True, ())),)  # a column that rows of targets have


def _refuse_travel(node: exp.Table, name: TableName) -> None:
    """Refuse another version of rows that have none."""
    if node.args.get("version") is not None:
        raise InvalidSql(
            f"[UNSUPPORTED_FEATURE.TIME_TRAVEL] {name} has no versions: only tables have them"
        )


def _is_char(field: DataField) -> bool:
    return isinstance(field.type, AtomicType) and field.type.root is TypeRoot.CHAR


def _as_read(field: DataField) -> str:
    """CHAR(n) is filled with spaces, as Spark reads it."""
    name = quoted(field.name)
    if not (isinstance(field.type, AtomicType) and _is_char(field)):
        return name
    return f"rpad({name}, greatest(length({name}), {field.type.length})::INTEGER, ' ') AS {name}"


def _leave_out(star: exp.Star, names: Collection[str]) -> None:
    if names:
        own = star.args.get("except_") or []
        star.set("except_", [*own, *(exp.to_identifier(n, quoted=True) for n in sorted(names))])
