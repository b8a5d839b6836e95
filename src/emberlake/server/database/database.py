"""The interface of the server's database.

Statements are written once, with ``?`` for their arguments. Reads that many clients wait for run on
the event loop (``fetch``); everything else runs in threads.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import Any, Protocol

Rows = Sequence[tuple[Any, ...]]


@dataclass(frozen=True, slots=True)
class Bulk:
    """A statement about many rows, which it finds in a table that is called ``given``.

    It does the same to each of these rows, whatever the others are.
    """

    columns: tuple[tuple[str, str], ...]  # of ``given``: names and types
    sql: str

    @property
    def names(self) -> str:
        """The columns of ``given``, as SQL lists them."""
        return ", ".join(name for name, _ in self.columns)


class Statements(Protocol):
    """What can be asked inside of a transaction."""

    def run(self, sql: str, *arguments: object) -> Rows:
        """The rows of a statement; none if it has no result."""

    def run_bulk(self, bulk: Bulk, given: Rows) -> Rows:
        """The rows of a statement about many rows, in one trip."""


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
    def run_bulk(self, bulk: Bulk, given: Rows) -> Rows:
        """The rows of a statement about many rows, in one trip.

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
