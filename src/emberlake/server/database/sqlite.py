"""The server's database in a SQLite file: one server, nothing to install."""

import fcntl
import sqlite3
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import IO, Final

from emberlake.errors import InvalidInput, InvalidState, StorageError
from emberlake.server.database.database import Bulk, Database, Rows, TakenError
from emberlake.server.database.keyed_locks import KeyedLocks
from emberlake.server.database.migrate import migrate

_WAIT_S: Final = 30.0  # for other programs that write, such as `emberlake serve grant`


class SqliteDatabase(Database):
    """A SQLite file. Each thread has a connection; one of them writes at a time."""

    lock_row = ""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._locks = KeyedLocks()
        self._writing = threading.Lock()
        self._own = threading.local()
        self._opened: list[sqlite3.Connection] = []
        self._loop: sqlite3.Connection | None = None
        self._serving: IO[bytes] | None = None
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._migrate()
        except (OSError, sqlite3.Error) as error:
            raise StorageError(f"{path} cannot be opened as a SQLite database: {error}") from error

    def serve_alone(self) -> None:
        """Refuse to serve next to another server, whose locks this one would not see."""
        handle = self._path.with_name(f"{self._path.name}.lock").open("wb")
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            handle.close()
            raise InvalidState(
                f"another server uses {self._path}; several servers need PostgreSQL "
                "(--database postgresql://...)"
            ) from error
        self._serving = handle

    async def start(self) -> None:
        self._loop = self._connect()

    async def stop(self) -> None:
        if self._loop is not None:
            self._loop.close()
            self._loop = None

    async def fetch(self, sql: str, *arguments: object) -> Rows:
        assert self._loop is not None, "the database was not started"
        return self._loop.execute(sql, arguments).fetchall()

    def run(self, sql: str, *arguments: object, durable: bool = True) -> Rows:
        connection = self._connection()
        if sql.startswith("SELECT"):
            return connection.execute(sql, arguments).fetchall()
        with self._write(connection, durable=durable):
            return connection.execute(sql, arguments).fetchall()

    def run_bulk(self, bulk: Bulk, given: Rows) -> Rows:
        connection = self._connection()
        if bulk.sql.startswith("SELECT"):
            return _run_bulk(connection, bulk, given)
        with self._write(connection, durable=False):
            return _run_bulk(connection, bulk, given)

    @contextmanager
    def transaction(self) -> Iterator["_Statements"]:
        connection = self._connection()
        with self._write(connection, durable=True):
            yield _Statements(connection)

    @contextmanager
    def lock(self, key: str) -> Iterator[None]:
        with self._locks.hold(key):
            yield

    @contextmanager
    def try_locks(self, keys: Sequence[str]) -> Iterator[frozenset[str]]:
        with self._locks.hold_free(keys) as held:
            yield held

    def close(self) -> None:
        for connection in self._opened:
            with suppress(sqlite3.Error):
                connection.close()
        if self._serving is not None:
            self._serving.close()

    @contextmanager
    def _write(self, connection: sqlite3.Connection, *, durable: bool) -> Iterator[None]:
        with self._writing:
            try:
                connection.execute(f"PRAGMA synchronous = {'FULL' if durable else 'NORMAL'}")
                connection.execute("BEGIN IMMEDIATE")
                yield
                connection.execute("COMMIT")
            except BaseException as error:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
                if isinstance(error, sqlite3.IntegrityError):
                    raise TakenError(str(error)) from error
                if isinstance(error, sqlite3.OperationalError):
                    raise StorageError(f"the server's database failed: {error}") from error
                raise

    def _connection(self) -> sqlite3.Connection:
        found: sqlite3.Connection | None = getattr(self._own, "connection", None)
        if found is None:
            found = self._own.connection = self._connect()
        return found

    def _connect(self) -> sqlite3.Connection:
        connection = sqlite3.connect(
            self._path, timeout=_WAIT_S, isolation_level=None, check_same_thread=False
        )
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA foreign_keys = ON")
        self._opened.append(connection)
        return connection

    def _migrate(self) -> None:
        connection = self._connection()
        with self._write(connection, durable=True):
            (version,) = connection.execute("PRAGMA user_version").fetchone()
            newest = migrate(version, _Statements(connection))
            connection.execute(f"PRAGMA user_version = {newest:d}")


class _Statements:
    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def run(self, sql: str, *arguments: object) -> Rows:
        return self._connection.execute(sql, arguments).fetchall()

    def run_bulk(self, bulk: Bulk, given: Rows) -> Rows:
        return _run_bulk(self._connection, bulk, given)


def _run_bulk(connection: sqlite3.Connection, bulk: Bulk, given: Rows) -> Rows:
    sql = _with_one(bulk)  # a trip costs nothing, so the rows are given one by one
    return [row for each in given for row in connection.execute(sql, each).fetchall()]


@cache
def _with_one(bulk: Bulk) -> str:
    marks = ", ".join("?" * len(bulk.columns))
    return f"WITH given ({bulk.names}) AS (VALUES ({marks})) {bulk.sql}"


def sqlite_path(url: str) -> Path:
    """The file of ``sqlite:///folder/file`` or of a plain path."""
    path = url.removeprefix("sqlite:///") if url.startswith("sqlite:///") else url
    if not path.strip() or "://" in path:
        raise InvalidInput(
            f"{url} is not a database: give the path of a SQLite file, or postgresql://..."
        )
    return Path(path)
