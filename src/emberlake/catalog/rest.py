"""A catalog behind a server that speaks Paimon's REST protocol.

The server has the names, the schemas and the latest snapshot of every table, and decides which
commit wins. Data and metadata files are read and written here, in the folder that the server names.
"""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Final

from emberlake.base.env import SYSTEM_ENV, Env
from emberlake.base.option_texts import parse_bool
from emberlake.catalog import rules
from emberlake.catalog.catalog import Catalog, Database
from emberlake.catalog.declarations import Declaration, declared_schema
from emberlake.catalog.filesystem import FileSystemCatalog
from emberlake.catalog.rules import as_identifier, plain_table
from emberlake.catalog.served import WAREHOUSE, ServedCatalog
from emberlake.errors import (
    BranchNotFound,
    DatabaseAlreadyExists,
    DatabaseNotFound,
    InvalidIdentifier,
    InvalidOption,
    NotFound,
    TableAlreadyExists,
    TableNotFound,
    Unsupported,
)
from emberlake.io import open_storage
from emberlake.io.durable import durable
from emberlake.io.object.spellings import is_of_this_machine
from emberlake.io.rest.api import RestApi
from emberlake.io.rest.data_tokens import TokenSource
from emberlake.io.rest.options import headers_of, parse_session
from emberlake.io.rest.vended import takes_tokens, vended_options
from emberlake.io.routed import RoutedStorage
from emberlake.options import PARTITION_DEFAULT_NAME, PARTITION_LEGACY_NAME, QUERY_AUTH
from emberlake.rest.option_names import DATA_TOKEN, PREFIX, without_secrets
from emberlake.rest.statistics import PartitionNames
from emberlake.rest.values import Config, DatabaseChanges, RemoteTable
from emberlake.scan.levels import check_one_level, reads_levels_alike
from emberlake.spec.identifier import MAIN_BRANCH, Identifier, NameKind, check_name
from emberlake.spec.layout import TableLayout
from emberlake.spec.schema import Schema, TableSchema
from emberlake.spec.schema_change import SchemaChange
from emberlake.store.publishing import Publisher, TableIdentity
from emberlake.store.rest_snapshots import RestPublisher, RestRowAccess
from emberlake.store.snapshots import FILE_PUBLISHER
from emberlake.store.table_store import TableStore
from emberlake.table import Table

_COMMENT: Final = "comment"


class RestCatalog(ServedCatalog):
    """Databases and tables of one warehouse of a server."""

    @staticmethod
    def connect(options: Mapping[str, object], env: Env = SYSTEM_ENV) -> "RestCatalog":
        """Open a catalog: ask its server for the config.

        Raises:
            InvalidOption: an option is missing or cannot be used.
            ServerError: the server cannot be reached, or refuses.
        """
        texts = {key: value for key, value in options.items() if isinstance(value, str)}
        session = parse_session(texts)
        config = RestApi(session, env).config(texts.get(WAREHOUSE, ""))
        _check_config(config, texts)
        merged = config.merged(texts)
        ready = session.with_prefix(merged.get(PREFIX, ""), headers_of(merged))
        return RestCatalog(ready, {**options, **merged}, env)

    @property
    def options(self) -> dict[str, str]:
        """The options of the user and of the server, without secrets."""
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
                # A server drops a database with everything in it, so this is the only check.
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
        """Register the folder of a table. The table is external, so dropping it keeps its files.

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

    def replace_table(self, identifier: str | Identifier, schema: Schema) -> Table:
        """Give a table other columns and options, and no rows, if the server can."""
        identifier = plain_table(identifier, "replaced")
        current = self._find(identifier).table_schema()
        texts = {key: value for key, value in self._options.items() if isinstance(value, str)}
        first = rules.first_schema(identifier, schema, texts, self.env.now_ms())
        rules.check_replaceable(identifier, current, first)
        try:
            self._api.replace_table(identifier, first)
        except (TableNotFound, DatabaseNotFound) as error:
            raise self._table_not_found(identifier) from error
        except (NotFound, Unsupported):  # few servers can do that
            return super().replace_table(identifier, schema)
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
        changes: SchemaChange | Sequence[SchemaChange],
        ignore_if_not_exists: bool = False,  # noqa: FBT001, FBT002
    ) -> None:
        """Change a table's schema: the server makes all changes, or none."""
        identifier = as_identifier(identifier)
        if identifier.system_table is not None:
            raise InvalidIdentifier(f"{identifier} is a system table; it cannot be altered")
        wanted = rules.as_changes(changes)
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
            wanted,
            has_snapshots=has_snapshots,
            time_millis=self.env.now_ms(),
        )
        if not reads_levels_alike(current, changed):
            store = self._load_store(identifier)
            with rules.about(identifier):
                check_one_level(store, store.latest_snapshot())
        if changed.id != current.id:
            self._api.alter_table(identifier, wanted)

    def elsewhere(self, warehouse: str) -> Catalog:
        """The tables below a folder that no server keeps, on storages with the same options."""
        texts = {key: value for key, value in self._options.items() if isinstance(value, str)}
        return FileSystemCatalog.open(warehouse, self._options, texts)

    # --- opening ----------------------------------------------------------------------------------

    def _load_store(self, identifier: Identifier) -> TableStore:
        found = self._find(identifier)
        schema = found.table_schema()
        storage, root = open_storage(found.path, self._storage_options(identifier, found))
        publisher: Publisher = FILE_PUBLISHER
        if not found.is_external:
            publisher = RestPublisher(self._api.session, _partition_names(schema), self.env)
            storage = durable(storage)
        is_guarded = schema.options.value(QUERY_AUTH)  # as the server says, whatever files say
        store = TableStore(
            RoutedStorage(storage, root, self._options),
            TableLayout(root.rstrip("/"), identifier.branch or MAIN_BRANCH),
            schema,
            self.env,
            identity=TableIdentity(identifier, found.id),
            publisher=publisher,
            access=RestRowAccess(self._api.session, self.env) if is_guarded else None,
            siblings=self.siblings,
        )
        store.schemas.know(schema)
        return store

    def _storage_options(self, identifier: Identifier, table: RemoteTable) -> dict[str, object]:
        """How to reach the folder of a table, with the catalog's options or its own tokens."""
        text = str(self._options.get(DATA_TOKEN, "false"))
        try:
            has_tokens = parse_bool(text)
        except ValueError as error:
            raise InvalidOption(f"{DATA_TOKEN}={text!r}: {error}") from error
        if not has_tokens or table.is_external or not takes_tokens(table.path):
            return self._options
        named = Identifier(identifier.database, identifier.table, identifier.branch)
        source = TokenSource(self._api.session, named, env=self.env)
        return vended_options(table.path, self._options, source)

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


def _check_config(config: Config, options: Mapping[str, str]) -> None:
    """Refuse a server that names code or files of the client's machine."""
    for key, text in config.merged(options).items():
        if is_of_this_machine(key) and options.get(key) != text:
            raise InvalidOption(
                f"the server wants {key}, which names code or files of this machine: only you may "
                "set it"
            )


def _partition_names(schema: TableSchema) -> PartitionNames:
    return PartitionNames(
        schema.partition_fields,
        schema.options.value(PARTITION_DEFAULT_NAME),
        schema.options.value(PARTITION_LEGACY_NAME),
    )
