"""The session, as commands see it."""

from collections.abc import Mapping
from typing import Any, Protocol

from emberlake.catalog import Catalog
from emberlake.errors import TableNotFound
from emberlake.inspect import SystemTable
from emberlake.spec.identifier import Identifier
from emberlake.sql.names import TableName
from emberlake.sql.statements import Statement
from emberlake.sql.stored_views import StoredView
from emberlake.table import Table


class Settings(Protocol):
    """Holds the settings that SET changes."""

    def settings(self) -> Mapping[str, str]:
        """All settings."""

    def set_setting(self, key: str, value: str) -> None:
        """SET key = value."""

    def reset_setting(self, key: str | None) -> None:
        """RESET key; None: all of them."""


class Session(Protocol):
    """A catalog, its name in statements, the current database, and how names are resolved."""

    database: str

    @property
    def catalog(self) -> Catalog: ...

    @property
    def name(self) -> str: ...

    @property
    def engine(self) -> Settings: ...

    def run(self, statement: Statement, args: Mapping[str, Any]) -> object:
        """Carry out another statement."""

    def identify(self, name: TableName) -> Identifier | None:
        """The table that a name refers to; None if it cannot be a table of the lake."""

    def find(self, name: TableName) -> Table | SystemTable | None:
        """The table of that name; None if the lake has none."""

    def view(self, name: TableName) -> StoredView | None:
        """The view of that name that the catalog keeps; None if it has none."""

    def in_database(self, database: str) -> "Session":
        """The same session, as the query of a view sees it: in another database."""

    def table(self, name: TableName) -> Table:
        """The data table of that name."""

    def with_settings(self, table: Table) -> Table:
        """The table with the options that settings give."""

    def unknown_table(self, name: TableName) -> TableNotFound:
        """The error for a table that the lake does not have."""
