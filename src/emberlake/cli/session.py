"""What the actions of one run of the command line share."""

import sys
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

from emberlake.cli.config import Settings, load_catalog_options
from emberlake.cli.failures import Declined, UsageError
from emberlake.cli.lazy import LazyModule

if TYPE_CHECKING:
    from emberlake import catalog as catalogs
    from emberlake.catalog import Catalog
    from emberlake.inspect import SystemTable
    from emberlake.table import Table
else:
    catalogs = LazyModule("emberlake.catalog")


@dataclass
class Session:
    """The settings of a run, and the catalog that they lead to."""

    settings: Settings = field(default_factory=Settings)

    @cached_property
    def catalog_options(self) -> dict[str, str]:
        """What the catalog is opened with."""
        return load_catalog_options(self.settings)

    @cached_property
    def catalog(self) -> "Catalog":
        """The catalog, opened when it is first asked for."""
        return catalogs.CatalogFactory.create(self.catalog_options)

    def open(self, identifier: str) -> "Table | SystemTable":
        """A table, a branch of one, or a system table."""
        return self.catalog.get_table(identifier)

    def table(self, identifier: str) -> "Table":
        """A table, or a branch of one.

        Raises:
            UsageError: the name is that of a system table.
        """
        found = self.open(identifier)
        if found.identifier.is_system_table():
            raise UsageError(f"{identifier} is a system table; it can only be read")
        return found  # type: ignore[return-value]

    def confirm(self, what: str, *, yes: bool) -> None:
        """Ask before something is destroyed.

        Args:
            what: What will happen, as a sentence without its full stop.
            yes: It was said beforehand that nobody needs to be asked.

        Raises:
            UsageError: nobody can be asked, and ``--yes`` was not given.
            Declined: the answer was no.
        """
        if yes:
            return
        if not (sys.stdin.isatty() and sys.stderr.isatty()):
            raise UsageError(
                f"{what}; nobody can be asked here: give --yes to do it, --dry-run to see it"
            )
        sys.stderr.write(f"{what}. Continue? [y/N] ")
        sys.stderr.flush()
        if sys.stdin.readline().strip().lower() not in ("y", "yes"):
            raise Declined("nothing was done: the answer was not yes")
