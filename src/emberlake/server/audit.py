"""The audit log: who did what, and what came of it. Lines are only ever added.

Entries are written in batches, shortly after the answer: a server that is killed may lose the last
ones. What reads changes nothing is logged only when it was refused.
"""

import contextlib
import queue
import threading
from dataclasses import dataclass
from typing import Final

from emberlake.base.env import Env
from emberlake.errors import EmberlakeError
from emberlake.server.database.database import Database
from emberlake.server.records import insert

_WAITING: Final = 10_000
_BATCH: Final = 200
_PAUSE_S: Final = 0.1  # in which entries gather: each batch costs a transaction
_COLUMNS: Final = (
    "id",
    "at",
    "principal",
    "request_id",
    "action",
    "catalog",
    "resource",
    "outcome",
)
_INSERT: Final = insert("audit_log", dict.fromkeys(_COLUMNS))[0]


@dataclass(frozen=True, slots=True)
class Entry:
    """One line of the log."""

    principal: str
    request_id: str
    action: str
    catalog: str
    resource: str
    outcome: int


class AuditLog:
    """Writes entries in a thread of its own."""

    def __init__(self, database: Database, env: Env) -> None:
        self._database = database
        self._env = env
        self._queue: queue.Queue[tuple[int, Entry] | None] = queue.Queue(_WAITING)
        self._thread: threading.Thread | None = None
        self._is_ending = threading.Event()

    def start(self) -> None:
        """Begin to write."""
        self._thread = threading.Thread(target=self._write, name="audit", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Write what is left."""
        if self._thread is not None:
            self._is_ending.set()
            self._queue.put(None)
            self._thread.join(10)

    def add(self, entry: Entry) -> None:
        """Add an entry; if the database cannot follow, the caller waits for nothing."""
        with contextlib.suppress(queue.Full):
            self._queue.put_nowait((self._env.now_ms(), entry))

    def _write(self) -> None:
        while (first := self._queue.get()) is not None:
            self._is_ending.wait(_PAUSE_S)
            batch, is_over = [first], False
            while len(batch) < _BATCH:
                try:
                    following = self._queue.get_nowait()
                except queue.Empty:
                    break
                if following is None:
                    is_over = True
                    break
                batch.append(following)
            with contextlib.suppress(EmberlakeError):  # metrics tell of a database that fails
                self._insert(batch)
            if is_over:
                return

    def _insert(self, batch: list[tuple[int, Entry]]) -> None:
        rows = [
            (
                *(self._env.new_id(), at, entry.principal, entry.request_id, entry.action),
                *(entry.catalog, entry.resource, entry.outcome),
            )
            for at, entry in batch
        ]
        with self._database.transaction() as session:
            session.run_each(_INSERT, rows)
