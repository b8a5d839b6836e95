"""The steps that all catalogs share once they have found a table."""

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import cast

from emberlake.catalog import rules
from emberlake.catalog.catalog import Catalog
from emberlake.catalog.partitions import check_partition_specs, list_partition_page
from emberlake.catalog.quarantine import open_quarantine, warehouse_of
from emberlake.catalog.rules import as_identifier
from emberlake.commit.change import CommitResult
from emberlake.errors import InvalidIdentifier
from emberlake.expressions.query_auth import seeing_all
from emberlake.inspect import SystemTable, open_system_table
from emberlake.inspect.tables import ROW_TRACKING
from emberlake.spec.identifier import Identifier
from emberlake.spec.listing import PagedList, Partition
from emberlake.store.table_store import Siblings, TableStore
from emberlake.table import Table
from emberlake.table.row_tracking_table import open_row_tracking
from emberlake.table.table import table_of


@dataclass(frozen=True)
class CatalogSiblings:
    """Opens other tables for a table of a catalog."""

    catalog: "OpeningCatalog"

    def quarantine(self, target: str) -> TableStore:
        """The table that keeps bad rows, by its name or its path; created if it is missing."""
        found = warehouse_of(target)
        catalog = self.catalog if found is None else self.catalog.elsewhere(found)
        return open_quarantine(target, catalog).store


class OpeningCatalog(Catalog):
    """A catalog that finds the store of a table by its name; the rest follows from that."""

    @abstractmethod
    def _load_store(self, identifier: Identifier) -> TableStore:
        """The store of a table or a branch.

        Raises:
            TableNotFound: there is no such table.
            BranchNotFound: the table has no such branch.
        """

    @abstractmethod
    def elsewhere(self, warehouse: str) -> Catalog:
        """The tables below another folder, on storages with the same options."""

    @property
    def siblings(self) -> Siblings:
        """Opens other tables for a table of this catalog."""
        return CatalogSiblings(self)

    def get_table(self, identifier: str | Identifier) -> Table:
        """Open a table, a branch of one or a system table."""
        identifier = as_identifier(identifier)
        if identifier.system_table is not None:
            return cast("Table", self.get_system_table(identifier))
        return table_of(self._load_table(identifier))

    def get_system_table(self, identifier: str | Identifier) -> SystemTable:
        """Open a system table."""
        identifier = as_identifier(identifier)
        if identifier.system_table is None:
            raise InvalidIdentifier(
                f"{identifier} is not a system table; {identifier}$files would be one"
            )
        store = self._load_table(identifier)
        if identifier.system_table.lower() == ROW_TRACKING:
            return open_row_tracking(identifier, store)
        return open_system_table(identifier.system_table, identifier, store)

    def list_partitions_paged(
        self,
        identifier: str | Identifier,
        max_results: int | None = None,
        page_token: str | None = None,
        partition_name_pattern: str | None = None,
    ) -> PagedList[Partition]:
        """The partitions of a table by name, a page at a time."""
        store = self._open_store(as_identifier(identifier))
        store = seeing_all(store, "listed by partition", store.schema.partition_keys)
        return list_partition_page(store, max_results, page_token, partition_name_pattern)

    def drop_partitions(
        self, identifier: str | Identifier, partitions: Sequence[Mapping[str, object]]
    ) -> CommitResult:
        """Delete all data of partitions, in one commit."""
        identifier = as_identifier(identifier)
        store = self._open_store(identifier)
        check_partition_specs(identifier, store.schema, partitions)
        return (
            table_of(store).new_batch_write_builder().new_commit().truncate_partitions(partitions)
        )

    def _load_table(self, identifier: Identifier) -> TableStore:
        store = self._load_store(identifier)
        rules.check_kind(identifier, store.schema)
        return store

    def _open_store(self, identifier: Identifier) -> TableStore:
        if identifier.system_table is not None:
            raise InvalidIdentifier(f"{identifier} is a system table; it has no partitions")
        return self._load_store(identifier)
