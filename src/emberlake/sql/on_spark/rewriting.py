"""A query of the lake becomes one of Spark: names of tables turn into scans of one snapshot.

The rest of the text stays the same. Names that the lake does not know are left to Spark: they may
be its own tables, or views of its session.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession

from emberlake.errors import InvalidSql
from emberlake.inspect import SystemTable
from emberlake.options import KNOWN_KEYS, SCAN_TIMESTAMP_MILLIS, SCAN_VERSION
from emberlake.predicates import Predicate
from emberlake.scan.travel import Between
from emberlake.spec.identifier import Identifier
from emberlake.spec.snapshot import Snapshot
from emberlake.sql.commands.types import quoted_if_needed
from emberlake.sql.cursor import Cursor
from emberlake.sql.engine import Args
from emberlake.sql.incremental import INCREMENTAL_FUNCTIONS, incremental_read
from emberlake.sql.lexer import Kind
from emberlake.sql.moments import seen_at
from emberlake.sql.names import TableName, quoted, spark_literal
from emberlake.sql.on_spark.derived import DERIVED, Derive
from emberlake.sql.on_spark.scans import Pinned, scan, system_rows
from emberlake.sql.on_spark.views import Views
from emberlake.sql.pruning import needed_columns, predicates_in
from emberlake.sql.references import (
    Call,
    Form,
    Found,
    Reference,
    text_of,
)
from emberlake.sql.replacing import Edit, edited, edits_of
from emberlake.sql.scanner import find_references
from emberlake.sql.session import SqlSession
from emberlake.sql.stored_views import StoredView
from emberlake.sql.system_database import system_table_rows
from emberlake.table import Table

_UNKNOWN_COLUMN: Final = "UNRESOLVED_COLUMN"
_MAX_PT: Final = ("sys", "max_pt")


@dataclass(frozen=True)
class Scanned:
    """A table of the lake in a statement: its rows, and the hidden columns among them."""

    rows: DataFrame
    hidden: tuple[str, ...] = ()


@dataclass
class Rewriter:
    """Rewrites the text of one statement; every table in it is read at one snapshot."""

    spark: SparkSession
    session: SqlSession
    views: Views
    frames: Mapping[str, DataFrame]  # those of the call, by names in lower case
    args: Args
    pins: dict[tuple[object, ...], Pinned] = field(default_factory=dict)
    reads_all: bool = False  # also columns that the statement does not name
    inside: frozenset[Identifier] = frozenset()  # views of the catalog around the text

    def frame(self, query: str) -> DataFrame:
        """The DataFrame of a query."""
        return self.run(query)

    def run(self, text: str, places: Mapping[int, DataFrame] | None = None) -> DataFrame:
        """Let Spark run a text that names tables of the lake.

        Args:
            text: The statement.
            places: Rows for some tables, by the place in the text where they are named.
        """
        try:
            return self._run(text, places)
        except AnalysisException as error:
            if self.reads_all or not (error.getCondition() or "").startswith(_UNKNOWN_COLUMN):
                raise
        # Spark suggests columns among those that it has seen: let it see all of them.
        return replace(self, reads_all=True)._run(text, places)  # noqa: SLF001

    def _run(self, text: str, places: Mapping[int, DataFrame] | None) -> DataFrame:
        found = find_references(text)
        scanned = self._scanned(found, places or {})
        calls = {call: value for call in found.calls if (value := self._called(call)) is not None}
        if not scanned and not calls:
            return self.spark.sql(text, self._bound)
        names = {reference: f"t{number}" for number, reference in enumerate(scanned)}
        marks = {name: f"\0{name}\0" for name in names.values()}
        around = (self.session.name, self.session.database)
        edits = list(edits_of(found, {ref: marks[name] for ref, name in names.items()}, around))
        edits += [Edit(call.start, call.end, value) for call, value in calls.items()]
        edits += _hiding(found, scanned)
        rewritten = edited(text, edits).replace("{", "{{").replace("}", "}}")
        for name, mark in marks.items():
            rewritten = rewritten.replace(mark, "{" + name + "}")
        if not scanned:
            return self.spark.sql(edited(text, edits), self._bound)
        frames = {names[reference]: item.rows for reference, item in scanned.items()}
        return self.spark.sql(rewritten, self._bound, **frames)

    def value(self, expression: str) -> Any:
        """The value of an expression without columns."""
        return self.run(f"SELECT {expression}").collect()[0][0]

    @property
    def _bound(self) -> dict[str, Any] | None:
        return dict(self.args) or None

    def snapshot_of(self, table: Table) -> Snapshot | None:
        """The snapshot of a table that the statement reads."""
        target = self.pins[table.identifier, None, None].target
        assert not isinstance(target, Between)
        return target

    # --- tables -----------------------------------------------------------------------------------

    def _scanned(self, found: Found, places: Mapping[int, DataFrame]) -> dict[Reference, Scanned]:
        """The rows of every table of the lake; other names are left to Spark."""
        known: dict[Reference, Pinned | Scanned] = {}
        for reference in found.references:
            given = places.get(reference.start)
            item = self._find(reference) if given is None else Scanned(given)
            if item is not None:
                known[reference] = item
        schemas = {r.start: p.schema for r, p in known.items() if isinstance(p, Pinned)}
        predicates = predicates_in(found.text, schemas, self.args)
        return {
            reference: item
            if isinstance(item, Scanned)
            else self._scan(item, found, predicates.get(reference.start))
            for reference, item in known.items()
        }

    def _scan(self, pinned: Pinned, found: Found, predicate: Predicate | None) -> Scanned:
        declared = {name.lower() for name in pinned.schema.field_names}
        hidden = tuple(
            name
            for name in pinned.hidden
            if name.lower() in found.words and name.lower() not in declared
        )
        columns = None if self.reads_all else needed_columns(found, pinned.schema)
        rows = scan(pinned, self.spark, hidden=hidden, columns=columns, predicate=predicate)
        return Scanned(rows, hidden)

    def _find(self, reference: Reference) -> Pinned | Scanned | None:
        """The table of a reference; None: it is left to Spark, which may report it as unknown."""
        if reference.form is Form.FUNCTION:
            return self._incremental(reference)
        name = reference.name
        if reference.form is Form.IDENTIFIER:
            name = self._identified(reference)
        if len(name.parts) == 1 and not self.inside:
            own = self.frames.get(name.parts[0].lower())
            if own is not None:
                return Scanned(own)
            if self.views.find(name.parts[0], self.frame):
                return None
        return self._table(name, reference)

    def _table(self, name: TableName, reference: Reference) -> Pinned | Scanned | None:
        """A table of the lake; None if it has none of that name."""
        system = system_table_rows(name, self.session.catalog)
        if system is not None:
            return Scanned(self.spark.createDataFrame(system))
        base, derive = self._derived(name)
        table = self.session.find(base)
        if table is None:
            stored = self.session.view(name)
            if stored is not None:
                stored.check_present(reference.version or reference.timestamp or reference.options)
                return Scanned(self._stored(stored))
            self.views.refuse_attached(name)
            return None
        travelled = self._travelled(table, reference)
        if not isinstance(travelled, Table):
            return Scanned(system_rows(travelled, self.spark))
        if derive is not None:
            return Scanned(derive(Pinned.now(travelled), self.spark))
        key = (travelled.identifier, reference.version, reference.timestamp, *reference.options)
        if key not in self.pins:
            self.pins[key] = Pinned.now(travelled)
        return self.pins[key]

    def _stored(self, view: StoredView) -> DataFrame:
        """The rows of a view of the catalog.

        Names in its query are those of its database; it sees no temporary views or variables.
        """
        if view.identifier in self.inside:
            raise InvalidSql(f"[RECURSIVE_VIEW] the view {view.identifier} uses itself")
        session = self.session.in_database(view.identifier.database)
        inside = self.inside | {view.identifier}
        rewriter = replace(self, session=session, frames={}, args={}, inside=inside)
        return rewriter.frame(view.query).toDF(*(f.name for f in view.fields))

    def _derived(self, name: TableName) -> tuple[TableName, Derive | None]:
        """The table that a derived system table reads, and how; otherwise the name itself."""
        identifier = self.session.identify(name)
        derive = None if identifier is None else DERIVED.get(identifier.system_table or "")
        if identifier is None or derive is None:
            return name, None
        base = Identifier(identifier.database, identifier.table, identifier.branch)
        return TableName((base.database, base.object_name)), derive

    def _identified(self, reference: Reference) -> TableName:
        value = self.value(", ".join(reference.arguments))
        return _table_name(str(value))

    def _travelled(self, table: Table | SystemTable, reference: Reference) -> Table | SystemTable:
        options = {key: value for key, value in reference.options if key in KNOWN_KEYS}
        if options:
            table = table.copy(options)
        if reference.version is not None:
            return seen_at(table, {SCAN_VERSION.key: reference.version})
        if reference.timestamp is None:
            return table
        millis = self.value(f"unix_millis(CAST({reference.timestamp} AS TIMESTAMP))")
        if millis is None:
            raise InvalidSql(f"TIMESTAMP AS OF {reference.timestamp}: this is not a timestamp")
        return seen_at(table, {SCAN_TIMESTAMP_MILLIS.key: str(millis)})

    def _incremental(self, reference: Reference) -> Pinned | Scanned | None:
        function = reference.name.last
        if function.lower() not in INCREMENTAL_FUNCTIONS or len(reference.name.parts) > 1:
            return None
        given = [self._text(argument) for argument in reference.arguments]
        name, options = incremental_read(function, given)
        base, derive = self._derived(_table_name(name))
        pinned = Pinned.now(self.session.table(base).copy(options))
        return pinned if derive is None else Scanned(derive(pinned, self.spark))

    def _text(self, argument: str) -> str:
        """The value of an argument as text."""
        text = text_of(argument)
        if text is not None:
            return text
        tokens = Cursor(argument).tokens[:-1]
        if len(tokens) == 1 and tokens[0].kind is Kind.NUMBER:
            return tokens[0].text
        return str(self.value(argument))

    def _called(self, call: Call) -> str | None:
        """The value of a function of the lake, as a literal; None: it is one of Spark's."""
        if len(call.name) == 1:
            is_catalog = call.name[0].upper() == "CURRENT_CATALOG"
            name = self.session.name if is_catalog else quoted_if_needed(self.session.database)
            return spark_literal(name)
        return self._max_pt(call) if _is_max_pt(call) else None

    def _max_pt(self, call: Call) -> str:
        """sys.max_pt('db.t'): the greatest value of the first partition column, as a literal."""
        if len(call.arguments) != 1:
            raise InvalidSql("sys.max_pt takes the name of a table")
        table = self.session.table(_table_name(self._text(call.arguments[0])))
        if not table.partition_keys:
            raise InvalidSql(f"sys.max_pt: {table.identifier} has no partitions")
        first = table.partition_keys[0]
        rows = scan(Pinned.now(table), self.spark, columns=[first])
        greatest = rows.selectExpr(f"CAST(max({quoted(first)}) AS STRING)").collect()[0][0]
        if greatest is None:
            raise InvalidSql(f"sys.max_pt: {table.identifier} has no partition with a value")
        return spark_literal(greatest)


def _table_name(text: str) -> TableName:
    """The name of a table that is given as text, such as ``db.`t$branch_b` ``."""
    cursor = Cursor(text)
    name = cursor.table()
    cursor.expect_end()
    return name


def _is_max_pt(call: Call) -> bool:
    return tuple(part.lower() for part in call.name)[-2:] == _MAX_PT


def _hiding(found: Found, scanned: Mapping[Reference, Scanned]) -> list[Edit]:
    """Stars do not include hidden columns."""
    edits: list[Edit] = []
    for star in found.stars:
        names = [
            f"{quoted(reference.called)}.{quoted(name)}"
            for reference, item in scanned.items()
            for name in item.hidden
            if reference.block == star.block
            and (star.qualifier is None or star.qualifier.lower() == reference.called.lower())
        ]
        if names:
            edits.append(Edit(star.end, star.end, f" EXCEPT ({', '.join(names)})"))
    return edits
