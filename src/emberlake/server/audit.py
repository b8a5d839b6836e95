"""The audit log: who did what, and with what result. Lines are only ever added.

Entries are written in batches, shortly after the answer: a server that is killed may lose the last
ones. While the database does not answer, they wait. A request that only reads is logged only if it
was refused.
"""

import contextlib
import json
import logging
import queue
import threading
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from emberlake.base.env import Env
from emberlake.errors import StorageError
from emberlake.server.database.database import Bulk, Database, TakenError

Row = tuple[object, ...]

_LONGEST: Final = 1000
# Keys of bodies that tell what was done to what.
_TOLD: Final = (
    *("name", "identifier", "path", "source", "destination"),
    *("resource", "access", "principal", "columns", "expireTime"),
    *("branch", "fromTag", "toBranch", "tagName", "snapshotId", "instant", "schemaId"),
    *("consumerId", "nextSnapshotId"),
)

LOG: Final = logging.getLogger("emberlake.server")
_WAITING: Final = 10_000
_BATCH: Final = 200
_AGAIN_S: Final = 1.0  # before a database that did not answer is tried again
_PAUSE_S: Final = 0.1  # in which entries gather: each batch costs a transaction
_COLUMNS: Final = (
    ("id", "TEXT"),
    ("at", "BIGINT"),
    ("principal", "TEXT"),
    ("request_id", "TEXT"),
    ("action", "TEXT"),
    ("catalog", "TEXT"),
    ("resource", "TEXT"),
    ("outcome", "INTEGER"),
)
_NAMES: Final = ", ".join(name for name, _ in _COLUMNS)
_INSERT: Final = Bulk(_COLUMNS, f"INSERT INTO audit_log ({_NAMES}) SELECT {_NAMES} FROM given")  # noqa: S608


@dataclass(frozen=True, slots=True)
class Entry:
    """One line of the log."""

    principal: str
    request_id: str
    action: str
    catalog: str
    resource: str
    outcome: int


def resource_text(names: Iterable[str], body: object) -> str:
    """What a request is about: the names in its path, and those in its body. Never an option."""
    path = ".".join(names)
    if not isinstance(body, dict):
        return path[:_LONGEST]
    said = {key: body[key] for key in _TOLD if body.get(key) is not None}
    snapshot = body.get("snapshot")
    if isinstance(snapshot, dict):
        said["snapshot"] = snapshot.get("id")
    try:
        text = f"{path} {json.dumps(said)}" if said else path
    except RecursionError:  # no meaningful body is nested this deeply
        text = path
    return text.strip()[:_LONGEST]


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
        """Add an entry. Nobody waits: if the database falls too far behind, the entry is lost."""
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
            self._keep([self._row(at, entry) for at, entry in batch])
            if is_over:
                return

    def _keep(self, rows: Sequence[Row]) -> None:
        """Write rows once the database answers; one that it refuses does not stop the others."""
        while True:
            try:
                with self._database.transaction() as session:
                    session.run_bulk(_INSERT, rows)
                return
            except TakenError:
                return  # an earlier try, whose answer was lost
            except StorageError:
                if self._is_ending.wait(_AGAIN_S):
                    LOG.exception("%d entries of the audit log are lost", len(rows))
                    return
            except Exception:
                if len(rows) == 1:
                    LOG.exception("an entry of the audit log is lost: %r", rows[0])
                    return
                for row in rows:
                    self._keep([row])
                return

    def _row(self, at: int, entry: Entry) -> Row:
        return (
            *(self._env.new_id(), at, entry.principal, entry.request_id, entry.action),
            *(entry.catalog, entry.resource, entry.outcome),
        )
