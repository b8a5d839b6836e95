"""Opens the table that keeps bad rows, and creates it if it is missing."""

import re
from typing import Final

from emberlake.catalog.catalog import Catalog
from emberlake.catalog.rules import as_identifier
from emberlake.errors import DatabaseNotFound, InvalidInput, TableNotFound
from emberlake.rowops.quarantine import QUARANTINE, check_quarantine
from emberlake.spec.identifier import Identifier
from emberlake.table import Table

_PATH: Final = re.compile(r"(?P<warehouse>.+)/(?P<database>[^/]+)\.db/(?P<table>[^/]+)/?")


def open_quarantine(target: str, catalog: Catalog) -> Table:
    """The table that keeps bad rows.

    Args:
        target: ``"db.t"``, or the path of a table, ``".../db.db/t"``.
        catalog: The catalog of the table; for a path, the catalog of its warehouse.

    Raises:
        DataMismatch: the table exists, but with other columns.
        InvalidInput: the path is not that of a table.
    """
    identifier = _identifier_of(target)
    try:
        table = catalog.get_table(identifier)
    except (TableNotFound, DatabaseNotFound):
        catalog.create_database(identifier.database, ignore_if_exists=True)
        table = catalog.create_table(identifier, QUARANTINE, ignore_if_exists=True)
    check_quarantine(target, table.table_schema)
    return table


def warehouse_of(target: str) -> str | None:
    """The warehouse of a path, which may be another one than that of the rows; None for a name."""
    return _path_of(target)["warehouse"] if "/" in target else None


def _identifier_of(target: str) -> Identifier:
    if "/" not in target:
        return as_identifier(target)
    found = _path_of(target)
    return Identifier(found["database"], found["table"])


def _path_of(target: str) -> re.Match[str]:
    found = _PATH.fullmatch(target)
    if found is None:
        raise InvalidInput(
            f"{target} is not the path of a table that can keep bad rows: it ends with the "
            "database and the table, as in /lake/ops.db/bad_rows"
        )
    return found
