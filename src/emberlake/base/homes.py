"""Which database was meant by the name of a table that has none."""

from collections.abc import Sequence
from typing import Final, Protocol

from emberlake.base.names import nearest

_SUGGESTED: Final = 3
_LOOKED_INTO: Final = 20  # databases: a catalog may have thousands


class Listing(Protocol):
    """Knows the names of a catalog."""

    def list_databases(self) -> Sequence[str]:
        """All databases."""

    def list_tables(self, database_name: str, /) -> Sequence[str]:
        """All tables of a database."""


def with_database(table: str, listing: Listing) -> list[str]:
    """The full names that a name without a database may stand for."""
    found = []
    for database in listing.list_databases()[:_LOOKED_INTO]:
        near = nearest(table, listing.list_tables(database))
        found += [f"{database}.{name}" for name in near[:1]]
    return found[:_SUGGESTED]
