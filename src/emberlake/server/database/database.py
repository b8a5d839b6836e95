"""The interface of the server's database.

Statements are written once, with ``?`` for their arguments. Reads that many clients wait for run on
the event loop (``fetch``); everything else runs in threads.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Any, Protocol

Rows = Sequence[tuple[Any, ...]]


class Statements(Protocol):
    """What can be asked inside of a transaction."""

    def run(self, sql: str, *arguments: object) -> Rows:
        """The rows of a statement; none if it has no result."""

    def run_each(self, sql: str, arguments: Sequence[tuple[object, ...]]) -> None:
        """Run one statement for each of several arguments, in one trip."""


class TakenError(Exception):
    """Something that must be unique is there already; the transaction has had no effect."""


class Database(ABC):
    """Names, schemas, heads and grants. Safe to use from many threads."""

    lock_row: str  # appended to a SELECT whose row must not change before the transaction ends

    @abstractmethod
    async def start(self) -> None:
        """Get ready to ``fetch`` on the event loop that runs."""

    @abstractmethod
    async def stop(self) -> None:
        """End what ``start`` began."""

    @abstractmethod
    async def fetch(self, sql: str, *arguments: object) -> Rows:
        """The rows of a SELECT, on the event loop."""

    @abstractmethod
    def run(self, sql: str, *arguments: object, durable: bool = True) -> Rows:
        """The rows of one statement, which is a transaction of its own.

        Args:
            sql: The statement.
            arguments: For its question marks.
            durable: Whether its effect must survive a power failure. What can be found again in the
                files of a table need not.
        """

    @abstractmethod
    def run_each(self, sql: str, arguments: Sequence[tuple[object, ...]]) -> list[Rows]:
        """The rows of one statement for each of several arguments, in one trip.

        What it changes takes effect together, or not at all, and need not survive a power failure.
        """

    @abstractmethod
    def transaction(self) -> AbstractContextManager[Statements]:
        """Statements that take effect together, durably, at the end of the block, or never.

        Raises:
            TakenError: something that must be unique is there already.
        """

    @abstractmethod
    def lock(self, key: str) -> AbstractContextManager[None]:
        """Keep out all others who lock the same key, in all servers that share the database."""

    @abstractmethod
    def try_locks(self, keys: Sequence[str]) -> AbstractContextManager[frozenset[str]]:
        """The same for those of several keys that are free; it does not wait for the others."""

    @contextmanager
    def try_lock(self, key: str) -> Iterator[bool]:
        """The same for one key; False instead of waiting."""
        with self.try_locks([key]) as held:
            yield key in held

    @abstractmethod
    def close(self) -> None:
        """Close all connections."""
