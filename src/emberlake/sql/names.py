"""Names of tables as statements write them, and what they mean in a lake."""

from dataclasses import dataclass
from typing import Final

from emberlake.base.names import backquoted
from emberlake.errors import InvalidIdentifier
from emberlake.spec.identifier import Identifier

DEFAULT_DATABASE: Final = "default"  # for names with one part, until USE


@dataclass(frozen=True)
class TableName:
    """The parts of a name, without quotes: ``t``, ``db.t`` or ``paimon.db.t``."""

    parts: tuple[str, ...]

    def __str__(self) -> str:
        return ".".join(quoted(part) for part in self.parts)

    @property
    def last(self) -> str:
        """The name of the table itself, which qualifies its columns."""
        return self.parts[-1]


def quoted(name: str) -> str:
    """A name in backticks, as Spark reads it back."""
    return backquoted(name)


def spark_literal(text: str) -> str:
    """A string literal of Spark's SQL."""
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def text_literal(text: str) -> str:
    """A string literal of DuckDB's SQL and of our own filters: quotes are doubled."""
    return "'" + text.replace("'", "''") + "'"


def identify(name: TableName, *, catalog: str, database: str) -> Identifier | None:
    """The table of the lake that a name refers to; None if it cannot be one.

    Args:
        name: As it was written.
        catalog: What statements call the lake.
        database: Where names of one part are looked up.
    """
    match name.parts:
        case (table,):
            parts = (database, table)
        case (db, table):
            parts = (db, table)
        case (first, db, table) if first.lower() == catalog.lower():
            parts = (db, table)
        case _:
            return None
    try:
        return Identifier(*parts)
    except InvalidIdentifier:
        return None
