"""Carries out statements one after the other, for terminals and notebooks."""

from typing import Protocol

from emberlake.read.sql_result import SqlResult
from emberlake.sql.session import SqlSession


class Runner(Protocol):
    """Carries out statements."""

    @property
    def session(self) -> SqlSession:
        """The current database, the names and the settings."""

    def run(self, statement: str) -> SqlResult:
        """Carry out one statement. A query is read when its rows are asked for."""

    def interrupt(self) -> None:
        """Stop the running statement, from another thread; later statements are not affected."""
