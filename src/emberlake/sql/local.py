"""``catalog.sql``: the session of a catalog in this process."""

import sys
from collections.abc import Mapping
from types import FrameType
from typing import Any

from emberlake.catalog import Catalog
from emberlake.read.sql_result import SqlResult
from emberlake.sql.on_duckdb.engine import DuckDbEngine
from emberlake.sql.parameters import Given
from emberlake.sql.session import SqlSession

__all__ = ["LocalSession", "SqlResult", "session_of"]


class LocalSession:
    """The session of one catalog: its current database, settings and temporary views."""

    def __init__(self, catalog: Catalog) -> None:
        self._engine = DuckDbEngine()
        self.session = SqlSession(catalog, self._engine)
        self._engine.session = self.session

    def execute(self, query: str, args: Given, caller: FrameType | None) -> SqlResult:
        """Carry out one statement; unknown names may be objects of the caller."""
        if caller is None:
            return self.run(query, args)
        return self.run(query, args, {**caller.f_globals, **caller.f_locals})

    def run(
        self,
        statement: str,
        args: Given = None,
        variables: Mapping[str, Any] | None = None,
    ) -> SqlResult:
        """Carry out one statement; unknown names may be variables."""
        known = variables or {}
        with self._engine.looking_up(lambda name: _rows_in(known.get(name))):
            result: SqlResult = self.session.execute(statement, args)
        return result

    def interrupt(self) -> None:
        """Stop the running statement, from another thread."""
        self._engine.database.interrupt()


def session_of(catalog: Catalog) -> LocalSession:
    """The session of a catalog object; all of its statements share it."""
    session: LocalSession | None = vars(catalog).get("_sql_session")
    if session is None:  # the first of several threads decides
        session = vars(catalog).setdefault("_sql_session", LocalSession(catalog))
    return session


def _rows_in(found: object | None) -> object | None:
    """The value of a variable, if it holds rows."""
    if found is None or hasattr(found, "__arrow_c_stream__"):
        return found
    pandas = sys.modules.get("pandas")
    return found if pandas is not None and isinstance(found, pandas.DataFrame) else None
