"""Statements about many rows, run by libpq alone.

Rows are given as one JSON text. What the driver does for each statement and each array costs
several times as much as the trip to PostgreSQL.
"""

from functools import cache
from itertools import count
from typing import Any, Final

import psycopg
from psycopg.adapt import Transformer
from psycopg.errors import error_from_result
from psycopg.pq import ConnStatus, ExecStatus
from psycopg.pq.abc import PGresult

from emberlake.rest.reading import encode_json
from emberlake.server.database.database import Bulk, Rows

_DONE: Final = frozenset({ExecStatus.COMMAND_OK, ExecStatus.TUPLES_OK})
_NUMBERS: Final = count()


class BulkConnection(psycopg.Connection[Any]):
    """A connection that prepares each statement about many rows once."""

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self._known: set[bytes] = set()

    def run_bulk(self, bulk: Bulk, given: Rows) -> Rows:
        """The rows of a statement about many rows.

        Raises:
            InvalidInput: a text has something that is no character.
        """
        if not given:
            return []
        name, text = _statement(bulk)
        rows = encode_json(given)
        if name not in self._known:
            self._checked(self.pgconn.prepare(name, text))
            self._known.add(name)
        result = self._checked(self.pgconn.exec_prepared(name, [rows]))
        reading = Transformer(self)
        reading.set_pgresult(result)
        return reading.load_rows(0, result.ntuples, tuple)

    def _checked(self, result: PGresult) -> PGresult:
        if result.status in _DONE:
            return result
        if self.pgconn.status == ConnStatus.BAD:
            raise psycopg.OperationalError(result.get_error_message())
        raise error_from_result(result)


@cache
def _statement(bulk: Bulk) -> tuple[bytes, bytes]:
    """A name for a statement, and its text."""
    values = ", ".join(f"(item->>{at})::{kind}" for at, (_, kind) in enumerate(bulk.columns))
    given = f"SELECT {values} FROM jsonb_array_elements($1::jsonb) AS item"  # noqa: S608
    text = f"WITH given ({bulk.names}) AS ({given}) {bulk.sql}"
    return b"bulk_%d" % next(_NUMBERS), text.encode()
