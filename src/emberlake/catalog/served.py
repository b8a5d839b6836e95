"""The parts of a REST catalog besides databases and tables: tags, views, functions, and errors."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import timedelta
from typing import Final

from emberlake.base.env import SYSTEM_ENV, Env
from emberlake.catalog import rules
from emberlake.catalog.catalog import GetTagResponse, check_page_size, data_table
from emberlake.catalog.opening import OpeningCatalog
from emberlake.catalog.rules import plain_table
from emberlake.errors import (
    DatabaseNotFound,
    EmberlakeError,
    NotFound,
    TableNotFound,
    TagAlreadyExists,
    TagNotFound,
    Unsupported,
)
from emberlake.io.rest.api import RestApi
from emberlake.io.rest.sending import Session
from emberlake.rest.objects import Function, View
from emberlake.spec.identifier import Identifier
from emberlake.spec.listing import PagedList
from emberlake.store.tags import check_tag_name

WAREHOUSE: Final = "warehouse"


class ServedCatalog(OpeningCatalog):
    """A catalog whose server is asked for everything but the files of tables."""

    def __init__(
        self, session: Session, options: Mapping[str, object], env: Env = SYSTEM_ENV
    ) -> None:
        """A catalog whose server has given its config; ``connect`` asks for that.

        Args:
            session: The server, with its prefix.
            options: The options of the user, merged with those of the server.
            env: The clock and randomness.
        """
        self._api = RestApi(session, env)
        self._options = dict(options)
        self.env = env

    # --- tags -------------------------------------------------------------------------------------
    # Tables keep their tags as files, which servers read. Some servers also have tags of their own,
    # and create branches only from those.

    def create_tag(
        self,
        identifier: str | Identifier,
        tag_name: str,
        snapshot_id: int | None = None,
        time_retained: str | timedelta | None = None,
        ignore_if_exists: bool = False,  # noqa: FBT001, FBT002
    ) -> None:
        """Ask the server to keep a snapshot, the latest by default, under a name."""
        check_tag_name(tag_name)
        retained = time_retained
        if isinstance(retained, timedelta):
            retained = f"{retained.total_seconds():.0f} s"
        try:
            with self._about_tags(identifier) as table:
                self._api.create_tag(table, tag_name, snapshot_id, retained)
        except TagAlreadyExists:
            if not ignore_if_exists:
                raise
        except _HasNoTags:
            super().create_tag(identifier, tag_name, snapshot_id, time_retained, ignore_if_exists)

    def get_tag(self, identifier: str | Identifier, tag_name: str) -> GetTagResponse:
        """A tag of a table."""
        try:
            with self._about_tags(identifier, tag_name) as table:
                tag = self._api.get_tag(table, tag_name)
        except _HasNoTags:
            return super().get_tag(identifier, tag_name)
        return GetTagResponse(tag.name, tag.snapshot, tag.create_time, tag.time_retained)

    def delete_tag(self, identifier: str | Identifier, tag_name: str) -> None:
        """Delete a tag of a table."""
        try:
            with self._about_tags(identifier, tag_name) as table:
                self._api.delete_tag(table, tag_name)
        except _HasNoTags:
            super().delete_tag(identifier, tag_name)

    def list_tags_paged(
        self,
        identifier: str | Identifier,
        max_results: int | None = None,
        page_token: str | None = None,
        tag_name_prefix: str | None = None,
    ) -> PagedList[str]:
        """The names of a table's tags, a page at a time."""
        check_page_size(max_results)
        asked = {
            "maxResults": max_results,
            "pageToken": page_token,
            "tagNamePrefix": tag_name_prefix,
        }
        query = {key: str(value) for key, value in asked.items() if value is not None}
        try:
            with self._about_tags(identifier) as table:
                return self._api.list_tags(table, query)
        except _HasNoTags:
            return super().list_tags_paged(identifier, max_results, page_token, tag_name_prefix)

    @contextmanager
    def _about_tags(
        self, identifier: str | Identifier, tag_name: str | None = None
    ) -> Iterator[Identifier]:
        """The table whose tags are asked for; errors name the table or the tag."""
        identifier = data_table(identifier)
        try:
            yield identifier
        except (TableNotFound, DatabaseNotFound) as error:
            raise self._table_not_found(identifier) from error
        except TagNotFound as error:
            raise TagNotFound(f"{identifier}: {error}", tag=tag_name) from error
        except EmberlakeError as error:
            if isinstance(error, Unsupported) or type(error) is NotFound:
                raise _HasNoTags from error
            raise

    # --- views and functions ----------------------------------------------------------------------

    def list_views(self, database_name: str) -> list[str]:
        """The names of the views of a database, sorted; SQL queries can read them."""
        with self._about_database(database_name):
            return sorted(self._api.list_views(database_name))

    def get_view(self, identifier: str | Identifier) -> View:
        """A view: its columns, and its query in the dialects of other engines.

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

    # --- errors -----------------------------------------------------------------------------------

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
        except EmberlakeError:  # this user may not be allowed to list
            names = []
        return rules.table_not_found(identifier, self._where, names)

    @contextmanager
    def _about_database(self, name: str) -> Iterator[None]:
        """If there is no database with this name, the error lists the existing ones."""
        try:
            yield
        except DatabaseNotFound as error:
            databases: list[str] = []
            with suppress(EmberlakeError):
                databases = self._api.list_databases()
            raise rules.database_not_found(name, self._where, databases) from error

    @property
    def _where(self) -> str:
        warehouse = self._options.get(WAREHOUSE)
        return f"{self._api.session.uri}/{warehouse}" if warehouse else self._api.session.uri


class _HasNoTags(Exception):
    """The server does not know tags; they are in the files of the table."""
