"""One SQL session on a catalog: its database, names and settings, and where statements go."""

from collections.abc import Mapping
from typing import Any, Final

from emberlake.base.homes import with_database
from emberlake.base.names import did_you_mean
from emberlake.catalog import Catalog
from emberlake.errors import (
    BranchNotFound,
    DatabaseNotFound,
    InvalidInput,
    InvalidSql,
    TableNotFound,
    Unsupported,
)
from emberlake.inspect import SystemTable
from emberlake.inspect.java_form import as_in_java
from emberlake.options import KNOWN_KEYS
from emberlake.spec.identifier import SYSTEM_DATABASE, Identifier
from emberlake.sql.commands import run_command
from emberlake.sql.commands.run_alter import has_partition, partition_values
from emberlake.sql.commands.values import CreateTableLike
from emberlake.sql.create_as import create_table_as
from emberlake.sql.engine import Engine
from emberlake.sql.moments import at_present
from emberlake.sql.names import DEFAULT_DATABASE, TableName, identify
from emberlake.sql.parameters import (
    Given,
    with_identifiers,
    with_literals,
    with_named_parameters,
)
from emberlake.sql.parse import parse_statement
from emberlake.sql.statements import (
    Command,
    CreateTable,
    CreateTableAs,
    CreateTemporaryView,
    Delete,
    Foreign,
    Insert,
    Inserts,
    Merge,
    Query,
    Statement,
    Truncate,
    Update,
)
from emberlake.sql.stored_views import StoredView, find_view
from emberlake.table import Table

SETTING_PREFIX: Final = "spark.paimon."


class SqlSession:
    """Carries out statements: those that move rows by an engine, the others by the catalog."""

    def __init__(
        self,
        catalog: Catalog,
        engine: Engine,
        *,
        name: str = "paimon",
        database: str = DEFAULT_DATABASE,
    ) -> None:
        self.catalog = catalog
        self.engine = engine
        self.name = name  # what statements call the catalog
        self.database = database  # of names with one part; USE changes it

    def execute(self, text: str, args: Given = None) -> Any:
        """Carry out one statement, and return its rows in the form of the engine.

        Raises:
            InvalidSql: the text is not a statement.
            Unsupported: the statement is known, but cannot be carried out.
        """
        text, bound = with_named_parameters(text, args)
        text = with_literals(with_identifiers(text, bound), bound)
        statement = parse_statement(text)
        if self._is_foreign(statement):
            statement = Foreign(text=text)
        return self.run(statement, bound)

    def _is_foreign(self, statement: Statement) -> bool:
        """Whether a statement is about a table that only the engine knows."""
        name = getattr(statement, "table", None)
        if isinstance(statement, CreateTableAs):
            name = statement.create.table
        if not isinstance(name, TableName):
            return False
        if len(name.parts) > 2:
            return self.identify(name) is None and self.engine.owns(name)
        if isinstance(statement, CreateTable | CreateTableAs | CreateTableLike):
            return False
        return self.engine.owns(name) and self.find(name) is None

    def run(self, statement: Statement, args: Mapping[str, Any]) -> Any:  # noqa: C901, PLR0912 - a list
        """Carry out a statement that is parsed already."""
        self._refuse_views(statement)
        match statement:
            case Query():
                return self.engine.query(statement, args)
            case Insert():
                return self.engine.insert([statement], args)
            case Inserts():
                return self.engine.insert(statement.inserts, args)
            case Delete():
                return self.engine.delete(statement, args)
            case Update():
                return self.engine.update(statement, args)
            case Merge():
                return self.engine.merge(statement, args)
            case CreateTemporaryView():
                if statement.must_exist and not self.engine.owns(TableName((statement.view,))):
                    raise TableNotFound(
                        f"[TABLE_OR_VIEW_NOT_FOUND] there is no temporary view {statement.view}"
                    )
                return self.engine.create_view(statement, args)
            case Foreign():
                return self.engine.foreign(statement, args)
            case Truncate():
                self._truncate(statement, args)
                return self.engine.answer(None)
            case CreateTableAs():
                self._create_as(statement, args)
                return self.engine.answer(None)
            case Command():
                return self.engine.answer(run_command(statement, self))
            case _:
                raise Unsupported(f"{type(statement).__name__} cannot be carried out")

    def _refuse_views(self, statement: Statement) -> None:
        changes = statement.inserts if isinstance(statement, Inserts) else (statement,)
        for part in changes:
            if not isinstance(part, Insert | Delete | Update | Merge):
                continue
            if self.engine.is_view(part.table):
                raise InvalidSql(f"[EXPECT_TABLE_NOT_VIEW.NO_ALTERNATIVE] {part.table} is a view")

    def _truncate(self, statement: Truncate, args: Mapping[str, Any]) -> None:
        table = self.table(statement.table)
        if statement.partition is None:
            table.new_batch_write_builder().new_commit().truncate_table()
            return
        said = (
            (part.column, None if part.value is None else self.engine.value(part.value, args))
            for part in statement.partition
        )
        values = partition_values(table, tuple(said))
        # As in Java: a partition that is named as a whole need not be there.
        if len(values) == len(table.partition_keys) or has_partition(self, table, values):
            self.catalog.drop_partitions(self._identifier(statement.table), [values])

    def _create_as(self, statement: CreateTableAs, args: Mapping[str, Any]) -> None:
        if statement.create.if_not_exists and self.find(statement.create.table) is not None:
            return
        create_table_as(statement, lambda query: self.engine.rows_of(query, args), self)

    # --- names ------------------------------------------------------------------------------------

    def identify(self, name: TableName) -> Identifier | None:
        """The table that a name refers to; None if it cannot be a table of the lake."""
        return identify(name, catalog=self.name, database=self.database)

    def _identifier(self, name: TableName) -> Identifier:
        identifier = self.identify(name)
        assert identifier is not None  # table() has found it
        return identifier

    def find(self, name: TableName) -> Table | SystemTable | None:
        """The table of that name with the settings of the session; None if the lake has none."""
        identifier = self.identify(name)
        if identifier is None or identifier.database == SYSTEM_DATABASE:
            return None
        try:
            table = self.catalog.get_table(identifier)
        except (TableNotFound, DatabaseNotFound, BranchNotFound):
            return None
        found: Table | SystemTable = self.with_settings(table)
        return as_in_java(found) if isinstance(found, SystemTable) else found

    def with_settings(self, table: Table) -> Table:
        """The table with the options that settings give."""
        options = self.table_options(table.identifier)
        return table.copy(options) if options else table

    def view(self, name: TableName) -> StoredView | None:
        """The view of that name that the catalog keeps; None if it has none."""
        return find_view(self.catalog, self.identify(name))

    def in_database(self, database: str) -> "SqlSession":
        """The same session, as the query of a view sees it: in another database."""
        return SqlSession(self.catalog, self.engine, name=self.name, database=database)

    def table(self, name: TableName) -> Table:
        """The data table of that name, to be written or changed.

        Raises:
            TableNotFound: the lake has none.
            InvalidInput: it is a system table.
        """
        table = self.find(name)
        if table is None:
            raise self.unknown_table(name)
        if not isinstance(table, Table):
            raise InvalidInput(f"{name} is a system table: it can only be read")
        return at_present(table)

    def unknown_table(self, name: TableName) -> TableNotFound:
        """The error for a table that the lake does not have, with similar names."""
        identifier = self.identify(name)
        meant = "" if identifier is None else self._meant_instead(identifier)
        if not meant and len(name.parts) == 1:
            homes = with_database(name.last, self.catalog)
            meant = f"did you mean {' or '.join(homes)}?" if homes else ""
        return TableNotFound(
            f"[TABLE_OR_VIEW_NOT_FOUND] there is no table {name} in the catalog {self.name}"
            f"{meant and '; '}{meant} (names of tables and databases are case-sensitive)",
            identifier=identifier,
        )

    def _meant_instead(self, identifier: Identifier) -> str:
        try:
            tables = self.catalog.list_tables(identifier.database)
        except DatabaseNotFound:
            return did_you_mean([identifier.database], self.catalog.list_databases())
        return did_you_mean([identifier.table], tables)

    # --- settings ---------------------------------------------------------------------------------

    def table_options(self, identifier: Identifier) -> dict[str, str]:
        """Options for one table that settings give: ``spark.paimon.<option>`` for all tables,
        ``spark.paimon.<catalog>.<database>.<table>.<option>`` (or ``*``) for some.
        """  # noqa: D205
        options: dict[str, str] = {}
        narrow: dict[str, str] = {}
        names = (self.name, identifier.database, identifier.table)
        for key, value in self.engine.settings().items():
            if not key.startswith(SETTING_PREFIX):
                continue
            rest = key.removeprefix(SETTING_PREFIX)
            own = _narrowed(rest, names)
            if own is not None:
                narrow[own] = value
            else:
                options[rest] = value
        return {k: v for k, v in {**options, **narrow}.items() if k in KNOWN_KEYS}


def _narrowed(key: str, names: tuple[str, str, str]) -> str | None:
    """The option of ``catalog.database.table.option`` if it is for this table."""
    catalog, _, rest = key.partition(".")
    database, _, rest = rest.partition(".")
    table, _, option = rest.partition(".")
    given = (catalog, database, table)
    fits = all(part in ("*", name) for part, name in zip(given, names, strict=True))
    return option if option and fits else None
