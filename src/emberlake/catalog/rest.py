"""A catalog behind a server that speaks Paimon's REST protocol.

The server has the names, the schemas and the latest snapshot of every table, and decides which
commit wins. Data and metadata files are read and written here, in the folder that it names.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Final

from emberlake.base.env import SYSTEM_ENV, Env
from emberlake.catalog import rules
from emberlake.catalog.catalog import Database
from emberlake.catalog.declarations import Declaration, declared_schema
from emberlake.catalog.opening import OpeningCatalog
from emberlake.catalog.rules import as_identifier, plain_table
from emberlake.errors import (
    BranchNotFound,
    DatabaseAlreadyExists,
    DatabaseNotFound,
    EmberlakeError,
    InvalidIdentifier,
    NotFound,
    TableAlreadyExists,
    TableNotFound,
    Unsupported,
)
from emberlake.io import open_storage
from emberlake.io.durable import durable
from emberlake.io.rest.api import RestApi
from emberlake.io.rest.options import (
    PREFIX,
    headers_of,
    parse_session,
    without_secrets,
)
from emberlake.io.rest.sending import Session
from emberlake.io.routed import RoutedStorage
from emberlake.options import PARTITION_DEFAULT_NAME, PARTITION_LEGACY_NAME
from emberlake.rest.objects import Function, View
from emberlake.rest.statistics import PartitionNames
from emberlake.rest.values import DatabaseChanges, RemoteTable
from emberlake.spec.identifier import MAIN_BRANCH, Identifier, NameKind, check_name
from emberlake.spec.layout import TableLayout
from emberlake.spec.schema import TableSchema
from emberlake.spec.schema_change import SchemaChange
from emberlake.store.publishing import Publisher, TableIdentity
from emberlake.store.rest_snapshots import RestPublisher
from emberlake.store.snapshots import FILE_PUBLISHER
from emberlake.store.table_store import TableStore
from emberlake.table import Table

_COMMENT: Final = "comment"
_WAREHOUSE: Final = "warehouse"


class RestCatalog(OpeningCatalog):
    """Databases and tables of one warehouse of a server."""

    def __init__(
        self, session: Session, options: Mapping[str, object], env: Env = SYSTEM_ENV
    ) -> None:
        """A catalog whose server has been asked for its config; ``connect`` asks it.

        Args:
            session: The server, with its prefix.
            options: Those of the user, merged with those of the server.
            env: Clock and chance.
        """
        self._api = RestApi(session, env)
        self._options = dict(options)
        self.env = env

    @staticmethod
    def connect(options: Mapping[str, object], env: Env = SYSTEM_ENV) -> "RestCatalog":
        """Open a catalog: ask its server for the config.

        Raises:
            InvalidOption: an option is missing or cannot be used.
            ServerError: the server cannot be reached, or refuses.
        """
        texts = {key: value for key, value in options.items() if isinstance(value, str)}
        session = parse_session(texts)
        config = RestApi(session, env).config(texts.get(_WAREHOUSE, ""))
        merged = config.merged(texts)
        ready = session.with_prefix(merged.get(PREFIX, ""), headers_of(merged))
        return RestCatalog(ready, {**options, **merged}, env)

    @property
    def options(self) -> dict[str, str]:
        """The options of the user and of the server; without those that are secret."""
        texts = {key: value for key, value in self._options.items() if isinstance(value, str)}
        return without_secrets(texts)

    def __repr__(self) -> str:
        return f"RestCatalog({self._where!r})"

    def __reduce__(self) -> tuple[object, ...]:
        return RestCatalog, (self._api.session, self._options)

    # --- databases --------------------------------------------------------------------------------

    def list_databases(self) -> list[str]:
        """The names of all databases, sorted."""
        return sorted(self._api.list_databases())

    def get_database(self, name: str) -> Database:
        """The database with that name."""
        check_name(NameKind.DATABASE, name)
        with self._about_database(name):
            found = self._api.get_database(name)
        options = dict(found.options)
        return Database(name, options, options.get(_COMMENT))

    def create_database(
        self,
        name: str,
        ignore_if_exists: bool = False,  # noqa: FBT001, FBT002
        properties: Mapping[str, str] | None = None,
    ) -> None:
        """Create a database."""
        check_name(NameKind.DATABASE, name)
        try:
            self._api.create_database(name, dict(properties or {}))
        except DatabaseAlreadyExists as error:
            if not ignore_if_exists:
                raise rules.database_exists(name, self._where) from error

    def alter_database(
        self,
        name: str,
        updates: Mapping[str, str] | None = None,
        removals: Sequence[str] = (),
    ) -> None:
        """Set and remove options of a database.

        Raises:
            DatabaseNotFound: there is none.
        """
        check_name(NameKind.DATABASE, name)
        with self._about_database(name):
            self._api.alter_database(name, DatabaseChanges(tuple(removals), dict(updates or {})))

    def drop_database(
        self,
        name: str,
        ignore_if_not_exists: bool = False,  # noqa: FBT001, FBT002
        cascade: bool = False,  # noqa: FBT001, FBT002
    ) -> None:
        """Drop a database; with ``cascade`` also everything in it."""
        check_name(NameKind.DATABASE, name)
        try:
            with self._about_database(name):
                # A server drops a database with all that is in it, so this is the only check.
                content = [] if cascade else self._content_of(name)
                if content:
                    raise rules.database_not_empty(name, content)
                self._api.drop_database(name)
        except DatabaseNotFound:
            if not ignore_if_not_exists:
                raise

    def _content_of(self, database: str) -> list[str]:
        content = self._api.list_tables(database)
        for names in (self._api.list_views, self._api.list_functions):
            try:
                content += names(database)
            except DatabaseNotFound:
                raise
            except (NotFound, Unsupported):  # not every server has them
                continue
        return sorted(content)

    # --- tables -----------------------------------------------------------------------------------

    def list_tables(self, database_name: str) -> list[str]:
        """The names of the tables of a database, sorted."""
        check_name(NameKind.DATABASE, database_name)
        with self._about_database(database_name):
            return sorted(self._api.list_tables(database_name))

    def create_table(
        self,
        identifier: str | Identifier,
        schema: Declaration,
        ignore_if_exists: bool = False,  # noqa: FBT001, FBT002
        *,
        partition_keys: Sequence[str] | None = None,
        primary_keys: Sequence[str] | None = None,
        options: Mapping[str, str] | None = None,
        comment: str | None = None,
    ) -> Table:
        """Create a table, unless anything about it is wrong, and return it."""
        identifier = plain_table(identifier, "created")
        check_name(NameKind.DATABASE, identifier.database)
        with rules.about(identifier):
            declared = declared_schema(schema, partition_keys, primary_keys, options, comment)
        if ignore_if_exists:
            with suppress(TableNotFound):
                return self.get_table(identifier)
        texts = {key: value for key, value in self._options.items() if isinstance(value, str)}
        first = rules.first_schema(identifier, declared, texts, self.env.now_ms())
        sent = self._api.create_table(identifier, first)
        try:
            with self._about_database(identifier.database):
                sent.body()
        except TableAlreadyExists as error:
            is_ours = sent.is_repeated and self._has_schema(identifier, first)
            if not (ignore_if_exists or is_ours):
                raise rules.table_exists(identifier) from error
        return self.get_table(identifier)

    def _has_schema(self, identifier: Identifier, schema: TableSchema) -> bool:
        found = self._api.get_table(identifier).schema
        ours = (schema.fields, schema.partition_keys, schema.primary_keys, schema.comment)
        return (found.fields, found.partition_keys, found.primary_keys, found.comment) == ours

    def register_table(self, identifier: str | Identifier, path: str) -> Table:
        """Make a table of a folder that holds one; it is external, so dropping it keeps its files.

        Raises:
            DatabaseNotFound: the database does not exist.
            TableAlreadyExists: the name is taken.
        """
        identifier = plain_table(identifier, "registered")
        try:
            with self._about_database(identifier.database):
                self._api.register_table(identifier, path)
        except TableAlreadyExists as error:
            raise rules.table_exists(identifier) from error
        return self.get_table(identifier)

    def drop_table(
        self,
        identifier: str | Identifier,
        ignore_if_not_exists: bool = False,  # noqa: FBT001, FBT002
    ) -> None:
        """Drop a table; the server deletes its files, unless it is external."""
        identifier = plain_table(identifier, "dropped")
        try:
            self._api.drop_table(identifier)
        except (TableNotFound, DatabaseNotFound) as error:
            if not ignore_if_not_exists:
                raise self._table_not_found(identifier) from error

    def rename_table(
        self, source_identifier: str | Identifier, target_identifier: str | Identifier
    ) -> None:
        """Give a table another name, in the same database or in another one."""
        source = plain_table(source_identifier, "renamed")
        target = plain_table(target_identifier, "renamed to")
        sent = self._api.rename_table(source, target)
        try:
            with self._about_database(target.database):
                sent.body()
        except TableAlreadyExists as error:
            raise rules.table_exists(target) from error
        except TableNotFound as error:
            if not (sent.is_repeated and self._is_there(target)):
                raise self._table_not_found(source) from error

    def alter_table(
        self,
        identifier: str | Identifier,
        changes: Sequence[SchemaChange],
        ignore_if_not_exists: bool = False,  # noqa: FBT001, FBT002
    ) -> None:
        """Change a table's schema: the server makes all changes, or none."""
        identifier = as_identifier(identifier)
        if identifier.system_table is not None:
            raise InvalidIdentifier(f"{identifier} is a system table; it cannot be altered")
        try:
            current = self._find(identifier).table_schema()
        except TableNotFound:
            if ignore_if_not_exists:
                return
            raise
        # The rules are checked here first: not every server is as careful.
        has_snapshots = self._api.latest_snapshot(identifier) is not None
        changed = rules.altered_schema(
            identifier,
            current,
            changes,
            has_snapshots=has_snapshots,
            time_millis=self.env.now_ms(),
        )
        if changed.id != current.id:
            self._api.alter_table(identifier, changes)

    # --- views and functions ----------------------------------------------------------------------

    def list_views(self, database_name: str) -> list[str]:
        """The names of the views of a database, sorted; emberlake does not run them."""
        with self._about_database(database_name):
            return sorted(self._api.list_views(database_name))

    def get_view(self, identifier: str | Identifier) -> View:
        """A view: its columns, and its query in the words of other engines.

        Raises:
            ViewNotFound: there is no such view.
        """
        identifier = plain_table(identifier, "shown as a view")
        return self._api.get_view(identifier.database, identifier.table)

    def list_functions(self, database_name: str) -> list[str]:
        """The names of the functions of a database, sorted; emberlake does not run them."""
        with self._about_database(database_name):
            return sorted(self._api.list_functions(database_name))

    def get_function(self, identifier: str | Identifier) -> Function:
        """A function: its parameters, and its definitions for other engines.

        Raises:
            FunctionNotFound: there is no such function.
        """
        identifier = plain_table(identifier, "shown as a function")
        return self._api.get_function(identifier.database, identifier.table)

    # --- opening ----------------------------------------------------------------------------------

    def _load_store(self, identifier: Identifier) -> TableStore:
        found = self._find(identifier)
        schema = found.table_schema()
        storage, root = open_storage(found.path, self._options)
        publisher: Publisher = FILE_PUBLISHER
        if not found.is_external:
            publisher = RestPublisher(self._api.session, _partition_names(schema), self.env)
            storage = durable(storage)
        store = TableStore(
            RoutedStorage(storage, root, self._options),
            TableLayout(root.rstrip("/"), identifier.branch or MAIN_BRANCH),
            schema,
            self.env,
            identity=TableIdentity(identifier, found.id),
            publisher=publisher,
        )
        store.schemas.know(schema)
        return store

    def _find(self, identifier: Identifier) -> RemoteTable:
        try:
            return self._api.get_table(identifier)
        except (TableNotFound, DatabaseNotFound, BranchNotFound) as error:
            if identifier.branch is not None:
                main = Identifier(identifier.database, identifier.table)
                if self._is_there(main):
                    names = self._api.list_branches(main)
                    raise rules.branch_not_found(identifier, names) from error
            raise self._table_not_found(identifier) from error

    def _is_there(self, identifier: Identifier) -> bool:
        try:
            self._api.get_table(identifier)
        except NotFound:
            return False
        return True

    def _table_not_found(self, identifier: Identifier) -> TableNotFound:
        try:
            names = self._api.list_tables(identifier.database)
        except DatabaseNotFound:
            databases = self._api.list_databases()
            return rules.table_without_database(identifier, self._where, databases)
        except EmberlakeError:  # who asks may not be allowed to list
            names = []
        return rules.table_not_found(identifier, self._where, names)

    @contextmanager
    def _about_database(self, name: str) -> Iterator[None]:
        """Tell which databases there are, if there is none of that name."""
        try:
            yield
        except DatabaseNotFound as error:
            databases: list[str] = []
            with suppress(EmberlakeError):
                databases = self._api.list_databases()
            raise rules.database_not_found(name, self._where, databases) from error

    @property
    def _where(self) -> str:
        warehouse = self._options.get(_WAREHOUSE)
        return f"{self._api.session.uri}/{warehouse}" if warehouse else self._api.session.uri


def _partition_names(schema: TableSchema) -> PartitionNames:
    return PartitionNames(
        schema.partition_fields,
        schema.options.value(PARTITION_DEFAULT_NAME),
        schema.options.value(PARTITION_LEGACY_NAME),
    )
