"""What a command may ask of the session that carries it out."""

from typing import Protocol

from emberlake.catalog import Catalog
from emberlake.inspect import SystemTable
from emberlake.spec.identifier import Identifier
from emberlake.sql.engine import Engine
from emberlake.sql.names import TableName
from emberlake.table import Table


class Context(Protocol):
    """A session, as commands see it."""

    catalog: Catalog
    engine: Engine  # evaluates expressions (value), and has the settings
    name: str  # what statements call the catalog
    database: str  # of names with one part; USE changes it

    def identify(self, name: TableName) -> Identifier | None:
        """The table that a name means; None if it cannot be one of the lake."""

    def find(self, name: TableName) -> Table | SystemTable | None:
        """The table of that name with the settings of the session; None if the lake has none."""

    def table(self, name: TableName) -> Table:
        """The data table of that name; raises TableNotFound if the lake has none."""
