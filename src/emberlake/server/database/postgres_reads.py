"""Reads of many clients at once, with few trips to PostgreSQL.

Queries that come while all connections are busy wait, and the next connection that is free sends
all of them at once. So a busy server needs fewer trips for each, and a quiet one waits for nothing.
"""

import asyncio
from collections import deque
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final

import psycopg
from psycopg import AsyncConnection
from psycopg.sql import SQL

from emberlake.errors import StorageError
from emberlake.server.database.database import Rows

_CONNECTIONS: Final = 4
_AT_ONCE: Final = 64
_CONNECT_S: Final = 10


@dataclass(frozen=True, slots=True)
class _Query:
    sql: SQL
    arguments: tuple[object, ...]
    answer: "asyncio.Future[Rows]"


class PostgresReads:
    """Runs SELECT statements on the event loop."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._waiting: deque[_Query] = deque()
        self._has_work = asyncio.Event()
        self._tasks = [asyncio.create_task(self._serve()) for _ in range(_CONNECTIONS)]

    async def fetch(self, sql: SQL, arguments: tuple[object, ...]) -> Rows:
        """The rows of a statement.

        Raises:
            StorageError: PostgreSQL does not answer.
        """
        answer: asyncio.Future[Rows] = asyncio.get_running_loop().create_future()
        self._waiting.append(_Query(sql, arguments, answer))
        self._has_work.set()
        return await answer

    async def close(self) -> None:
        """End all connections."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _serve(self) -> None:
        connection: AsyncConnection[Any] | None = None
        try:
            while True:
                await self._has_work.wait()
                batch = self._take()
                if not batch:
                    continue
                try:
                    connection = await self._answer(connection, batch)
                except asyncio.CancelledError:
                    _fail(batch, "the server is stopping")
                    raise
                except Exception:  # noqa: BLE001 - the next caller must be answered
                    await self._give_up(connection)
                    connection = None
                    _fail(batch, "PostgreSQL does not answer")
        finally:
            await self._give_up(connection)

    async def _answer(
        self, kept: "AsyncConnection[Any] | None", batch: list[_Query]
    ) -> "AsyncConnection[Any]":
        """Answer queries; the connection to keep for the next ones."""
        if kept is not None:
            try:
                await _run(kept, batch)
                return kept
            except psycopg.OperationalError:  # it may have ended long ago
                await self._give_up(kept)
        connection = await self._connect()
        try:
            await _run(connection, batch)
        except BaseException:
            await self._give_up(connection)
            raise
        return connection

    def _take(self) -> list[_Query]:
        batch: list[_Query] = []
        while self._waiting and len(batch) < _AT_ONCE:
            query = self._waiting.popleft()
            if not query.answer.done():  # the request may have been given up
                batch.append(query)
        if not self._waiting:
            self._has_work.clear()
        return batch

    async def _connect(self) -> "AsyncConnection[Any]":
        return await AsyncConnection.connect(
            self._url,
            autocommit=True,
            application_name="emberlake",
            connect_timeout=_CONNECT_S,
        )

    async def _give_up(self, connection: "AsyncConnection[Any] | None") -> None:
        if connection is not None:
            with suppress(psycopg.Error, OSError):
                await connection.close()


async def _run(connection: "AsyncConnection[Any]", batch: list[_Query]) -> None:
    async with connection.pipeline() as pipeline:
        cursors = []
        for query in batch:
            cursor = connection.cursor()
            await cursor.execute(query.sql, query.arguments)
            cursors.append(cursor)
        await pipeline.sync()
        for query, cursor in zip(batch, cursors, strict=True):
            rows = await cursor.fetchall()
            if not query.answer.done():
                query.answer.set_result(rows)


def _fail(batch: list[_Query], message: str) -> None:
    for query in batch:
        if not query.answer.done():
            query.answer.set_exception(StorageError(message, had_no_effect=True))
