"""The state that the actions of one run share."""

import importlib
import sys
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

from emberlake.base.homes import with_database
from emberlake.cli.config import Settings, load_catalog_options
from emberlake.cli.failures import Declined, UsageError
from emberlake.errors import InvalidIdentifier

if TYPE_CHECKING:
    from emberlake.catalog import Catalog
    from emberlake.inspect import SystemTable
    from emberlake.table import Table


@dataclass
class Session:
    """The settings of a run, and the catalog that they select."""

    settings: Settings = field(default_factory=Settings)

    @cached_property
    def catalog_options(self) -> dict[str, str]:
        """The options to open the catalog with."""
        return load_catalog_options(self.settings)

    @cached_property
    def catalog(self) -> "Catalog":
        """The catalog, opened on first use."""
        # The engine is loaded here: `emberlake --help` needs none of it.
        factory = importlib.import_module("emberlake.catalog").CatalogFactory
        catalog: Catalog = factory.create(self.catalog_options)
        return catalog

    def open(self, identifier: str) -> "Table | SystemTable":
        """A table, a branch of one, or a system table."""
        try:
            return self.catalog.get_table(identifier)
        except InvalidIdentifier as error:
            meant = [] if "." in identifier else with_database(identifier, self.catalog)
            if not meant:
                raise
            raise UsageError(f"{error}; did you mean {' or '.join(meant)}?") from error

    def table(self, identifier: str) -> "Table":
        """A table, or a branch of one.

        Raises:
            UsageError: it is the name of a system table.
        """
        found = self.open(identifier)
        if found.identifier.is_system_table():
            raise UsageError(f"{identifier} is a system table; it can only be read")
        return found  # type: ignore[return-value]

    def confirm(self, what: str, *, yes: bool) -> None:
        """Ask before something is destroyed.

        Args:
            what: What will happen, as a sentence without its full stop.
            yes: Do not ask: the user has already agreed.

        Raises:
            UsageError: there is no terminal to ask on, and ``--yes`` was not given.
            Declined: the answer was no.
        """
        if yes:
            return
        if not (sys.stdin.isatty() and sys.stderr.isatty()):
            raise UsageError(
                f"{what}; there is no terminal to ask on: use --yes to do it, or --dry-run to "
                "only look"
            )
        sys.stderr.write(f"{what}. Continue? [y/N] ")
        sys.stderr.flush()
        if sys.stdin.readline().strip().lower() not in ("y", "yes"):
            raise Declined("nothing was done: the answer was not yes")
