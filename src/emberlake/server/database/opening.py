"""Opens the database that ``--database`` names."""

from typing import Final

from emberlake.base.extras import load_extra
from emberlake.server.database.database import Database
from emberlake.server.database.sqlite import SqliteDatabase, sqlite_path

_POSTGRES: Final = ("postgresql://", "postgres://")


def open_database(url: str, *, serving: bool = False, connections: int = 16) -> Database:
    """The database of a path or a URL, brought to the version of this program.

    Args:
        url: The path of a SQLite file, or ``postgresql://user:password@host/database``.
        serving: Whether a server uses it, not only a command.
        connections: The most connections to PostgreSQL at once.
    """
    if url.startswith(_POSTGRES):
        load_extra("psycopg", extra="postgres")
        load_extra("psycopg_pool", extra="postgres")
        postgres = load_extra("emberlake.server.database.postgres", extra="postgres")
        opened: Database = postgres.PostgresDatabase(url, connections)
        return opened
    database = SqliteDatabase(sqlite_path(url))
    if serving:
        database.serve_alone()
    return database
