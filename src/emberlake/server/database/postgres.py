"""The server's database in PostgreSQL, which several servers can share.

Locks are advisory locks of a connection: PostgreSQL releases those of a server that died. While a
thread holds one, its statements use the same connection.
"""

import re
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from typing import Any, Final

import psycopg
from psycopg import sql as composing
from psycopg_pool import ConnectionPool, PoolTimeout

from emberlake.errors import InvalidInput, StorageError
from emberlake.server.database.database import Bulk, Database, Rows, TakenError
from emberlake.server.database.keyed_locks import KeyedLocks
from emberlake.server.database.migrate import migrate
from emberlake.server.database.postgres_bulk import BulkConnection
from emberlake.server.database.postgres_reads import PostgresReads

_WAIT_S: Final = 30.0
_CONNECT_S: Final = 10
_MIGRATION_LOCK: Final = 4_201_337
_LOCK: Final = "SELECT pg_advisory_lock(hashtextextended(?, 0))"
_KEYS: Final = (("key", "TEXT"),)
_TRY_LOCKS: Final = Bulk(
    _KEYS, "SELECT key FROM given WHERE pg_try_advisory_lock(hashtextextended(key, 0))"
)
_UNLOCKS: Final = Bulk(_KEYS, "SELECT pg_advisory_unlock(hashtextextended(key, 0)) FROM given")
_VERSION: Final = "SELECT version FROM emberlake_schema_version"


class PostgresDatabase(Database):
    """A database of PostgreSQL 12 or newer."""

    lock_row = " FOR UPDATE"

    def __init__(self, url: str, connections: int) -> None:
        self._url = url
        self._locks = KeyedLocks()
        self._own = threading.local()
        self._reading: PostgresReads | None = None
        self._pool = ConnectionPool(
            url,
            connection_class=BulkConnection,
            min_size=1,
            max_size=connections,
            timeout=_WAIT_S,
            kwargs={
                "autocommit": True,
                "application_name": "emberlake",
                "client_encoding": "UTF8",
            },
            configure=_configure,
            open=False,
        )
        try:
            # The pool would try again for a while, and not say why it cannot connect.
            with psycopg.connect(url, connect_timeout=_CONNECT_S) as connection:
                _check_encoding(connection)
            self._pool.open(wait=True, timeout=_WAIT_S)
            self._migrate()
        except (psycopg.Error, PoolTimeout) as error:
            self._pool.close()
            raise StorageError(f"PostgreSQL cannot be used: {_told(error, url)}") from None

    async def start(self) -> None:
        self._reading = PostgresReads(self._url)

    async def stop(self) -> None:
        if self._reading is not None:
            await self._reading.close()
            self._reading = None

    async def fetch(self, sql: str, *arguments: object) -> Rows:
        assert self._reading is not None, "the database was not started"
        return await self._reading.fetch(_translated(sql), arguments)

    def run(self, sql: str, *arguments: object, durable: bool = True) -> Rows:
        if sql.startswith("SELECT"):
            return self._read(sql, arguments)
        if durable:
            with self.transaction() as session:
                return session.run(sql, *arguments)
        with self._connection() as connection:
            return _run(connection, sql, arguments)

    def _read(self, sql: str, arguments: tuple[object, ...]) -> Rows:
        try:
            with self._connection() as connection:
                return _run(connection, sql, arguments)
        except StorageError:
            if self._held() is not None:
                raise
        # A connection that was kept may have ended long ago; the pool has dropped it now.
        with self._connection() as connection:
            return _run(connection, sql, arguments)

    def run_bulk(self, bulk: Bulk, given: Rows) -> Rows:
        with self._connection() as connection:
            return connection.run_bulk(bulk, given)

    @contextmanager
    def transaction(self) -> Iterator["_Statements"]:
        with self._connection() as connection:
            try:
                with connection.transaction():
                    connection.execute("SET LOCAL synchronous_commit = on")
                    yield _Statements(connection)
            except psycopg.errors.IntegrityError as error:
                raise TakenError(str(error)) from error

    @contextmanager
    def lock(self, key: str) -> Iterator[None]:
        # Threads of this server wait here, where they need no connection.
        with self._locks.hold(key), self._connection() as connection:
            _run(connection, _LOCK, (key,))
            with self._locked(connection, [key]):
                yield

    @contextmanager
    def try_locks(self, keys: Sequence[str]) -> Iterator[frozenset[str]]:
        with self._locks.hold_free(keys) as free:
            if not free:
                yield free
                return
            with self._connection() as connection:
                held = [key for (key,) in connection.run_bulk(_TRY_LOCKS, [(key,) for key in free])]
                with self._locked(connection, held):
                    yield frozenset(held)

    def close(self) -> None:
        self._pool.close()

    @contextmanager
    def _locked(self, connection: BulkConnection, keys: Sequence[str]) -> Iterator[None]:
        before = self._held()
        self._own.connection = connection
        try:
            yield
        finally:
            self._own.connection = before  # of a lock around this one
            if keys and not connection.closed:  # otherwise the locks are gone with it
                connection.run_bulk(_UNLOCKS, [(key,) for key in keys])

    @contextmanager
    def _connection(self) -> Iterator[BulkConnection]:
        held = self._held()
        try:
            if held is not None:
                yield held
            else:
                with self._pool.connection() as connection:
                    yield connection
        except (psycopg.OperationalError, PoolTimeout) as error:
            raise StorageError("PostgreSQL does not answer") from error
        except psycopg.DataError as error:
            raise InvalidInput("a text has a character that cannot be stored") from error

    def _held(self) -> BulkConnection | None:
        """The connection that this thread has locked something with."""
        held: BulkConnection | None = getattr(self._own, "connection", None)
        return held

    def _migrate(self) -> None:
        with self._pool.connection() as connection, connection.transaction():
            # Servers that start together wait for one another.
            connection.execute("SELECT pg_advisory_xact_lock(%s)", (_MIGRATION_LOCK,))
            connection.execute(
                "CREATE TABLE IF NOT EXISTS emberlake_schema_version (version INTEGER NOT NULL)"
            )
            found = connection.execute(_VERSION).fetchone()
            newest = migrate(0 if found is None else found[0], _Statements(connection, ddl=True))
            connection.execute("DELETE FROM emberlake_schema_version")
            connection.execute("INSERT INTO emberlake_schema_version VALUES (%s)", (newest,))


def _told(error: Exception, url: str) -> str:
    """What the driver says, unless the address is malformed: then it has parts of the password."""
    text = " ".join(str(error).split())
    secret = url.rpartition("@")[0].partition("://")[2].partition(":")[2]
    pieces = re.split(r"[^A-Za-z0-9]+", secret)
    if any(len(piece) > 2 and piece in text for piece in pieces):
        return (
            "it does not understand the address, or does not reach it. What it said is not shown, "
            "since it has parts of the password: are its special characters percent-encoded?"
        )
    return text


def _check_encoding(connection: "psycopg.Connection[Any]") -> None:
    """Refuse a database that cannot store every text: a snapshot may be there before its row."""
    encoding = connection.info.parameter_status("server_encoding")
    if encoding not in _ENCODINGS:
        raise StorageError(
            f"PostgreSQL cannot be used: the database has the encoding {encoding}, which lacks "
            "characters that names may have. Create one with ENCODING 'UTF8' TEMPLATE template0"
        )


_ENCODINGS: Final = ("UTF8", "SQL_ASCII")  # the latter takes bytes as they come
_SETTINGS: Final = {
    # Most writes follow files, which are durable; transactions say that they are to be.
    "synchronous_commit": "off",
    # Rows are found by their keys. PostgreSQL cannot know how few of them a statement is given, and
    # would rather read a whole table.
    "enable_seqscan": "off",
    "enable_hashjoin": "off",
    "enable_mergejoin": "off",
    # A table that must be read whole now seems so costly that the statement would be compiled.
    "jit": "off",
    # A machine that is gone says nothing: without these, its locks would be held for hours.
    "tcp_keepalives_idle": "10",
    "tcp_keepalives_interval": "5",
    "tcp_keepalives_count": "4",
}


def _configure(connection: BulkConnection) -> None:
    named = "; ".join(f"SET {name} = {value}" for name, value in _SETTINGS.items())
    connection.execute(named)


class _Statements:
    def __init__(self, connection: BulkConnection, *, ddl: bool = False) -> None:
        self._connection = connection
        self._ddl = ddl

    def run(self, sql: str, *arguments: object) -> Rows:
        # Names are listed in the order of their bytes, whatever the language of the database.
        text = sql.replace(" TEXT", ' TEXT COLLATE "C"') if self._ddl else sql
        return _run(self._connection, text, arguments)

    def run_bulk(self, bulk: Bulk, given: Rows) -> Rows:
        return self._connection.run_bulk(bulk, given)


def _run(connection: BulkConnection, sql: str, arguments: tuple[object, ...]) -> Rows:
    return _rows(connection.execute(_translated(sql), arguments))


def _rows(cursor: "psycopg.Cursor[Any]") -> Rows:
    result = cursor.pgresult  # the cursor's description would be built for nothing
    rows: Rows = cursor.fetchall() if result is not None and result.nfields else []
    return rows


@cache
def _translated(sql: str) -> composing.SQL:
    """The statement with the placeholders of the driver."""
    return composing.SQL(sql.replace("%", "%%").replace("?", "%s"))
