"""What a terminal or a notebook needs of SQL: statements carried out one after the other."""

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
        """Stop what runs, from another thread; the next statement runs as if nothing had been."""
