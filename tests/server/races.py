"""Writers, a reader and a referee for tables behind servers that die.

A writer reads the head of some table and posts the next snapshot. When an answer is lost, it posts
the same body again until it has one, as clients do. The reader watches folders, as streaming
readers do.
"""

import json
import random
import threading
import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from typing import Any, Self

from catalog_server import TOKEN, snapshot

TABLES = "/v1/lake/databases/db/tables"
_WATCHED = 20  # tables whose folders the reader looks into


class Lost(Exception):
    """No answer came."""


@dataclass
class Connection:
    """Asks servers by turns, over connections that are kept."""

    ports: Sequence[int]
    kept: dict[int, HTTPConnection] = field(default_factory=dict)

    def ask(self, port: int, method: str, path: str, body: object = None) -> tuple[int, Any]:
        connection = self.kept.setdefault(port, HTTPConnection("127.0.0.1", port, timeout=20))
        data = None if body is None else json.dumps(body).encode()
        try:
            connection.request(method, path, data, {"Authorization": f"Bearer {TOKEN}"})
            answer = connection.getresponse()
            raw = answer.read()
            return answer.status, json.loads(raw) if raw else None
        except (OSError, HTTPException, ValueError) as error:
            connection.close()
            del self.kept[port]
            raise Lost from error

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for connection in self.kept.values():
            connection.close()

    def insist(self, method: str, path: str, body: object = None) -> tuple[int, Any, bool]:
        """Ask until somebody answers; whether an answer was lost before."""
        was_lost, deadline = False, time.monotonic() + 60
        while True:
            try:
                status, found = self.ask(random.choice(self.ports), method, path, body)
            except Lost:
                was_lost = True
            else:
                if status < 500:
                    return status, found, was_lost
                was_lost = True
            assert time.monotonic() < deadline, "no server answers"
            time.sleep(0.01)


@dataclass
class Outcome:
    """What writers were told, and what the reader saw."""

    acknowledged: list[dict[str, Any]] = field(default_factory=list)
    refused: list[dict[str, Any]] = field(default_factory=list)
    refused_after_loss: list[dict[str, Any]] = field(default_factory=list)
    seen: dict[int, dict[str, Any]] = field(default_factory=dict)
    changed: list[int] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)
    lost: int = 0


class Race:
    """Writers and a reader, for as long as the race goes on."""

    def __init__(self, ports: Sequence[int], tables: Mapping[str, Path], writers: int) -> None:
        self.outcomes = {name: Outcome() for name in tables}
        self._ports = ports
        self._tables = tables
        self._is_over = threading.Event()
        self._threads = [
            threading.Thread(target=self._guarded, args=(self._write,)) for _ in range(writers)
        ]
        self._threads.append(threading.Thread(target=self._guarded, args=(self._watch,)))

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    def end(self) -> None:
        self._is_over.set()
        for thread in self._threads:
            thread.join(90)
            assert not thread.is_alive()

    @property
    def acknowledged(self) -> int:
        return sum(len(each.acknowledged) for each in self.outcomes.values())

    @property
    def lost(self) -> int:
        return sum(each.lost for each in self.outcomes.values())

    def violations(self) -> Iterator[str]:
        """What must not be, after the race; the servers that answer must be there."""
        with Connection(self._ports) as connection:
            for name, outcome in self.outcomes.items():
                for each in violations(outcome, name, self._tables[name], connection):
                    yield f"{name}: {each}"

    def _guarded(self, work: Any) -> None:
        try:
            work()
        except Exception as error:  # noqa: BLE001 - a thread must not fail in silence
            next(iter(self.outcomes.values())).failures.append(repr(error))

    def _write(self) -> None:
        user, names = str(uuid.uuid4()), list(self._tables)
        with Connection(self._ports) as connection:
            while not self._is_over.is_set():
                self._commit(connection, user, random.choice(names))

    def _commit(self, connection: Connection, user: str, name: str) -> None:
        outcome, path = self.outcomes[name], f"{TABLES}/{name}"
        status, found, _ = connection.insist("GET", f"{path}/snapshot")
        head = found["snapshot"]["snapshot"] if status == 200 else None
        number = 1 if head is None else head["id"] + 1
        new = snapshot(number, user, uuid=str(uuid.uuid4()))
        body = {
            "tableId": None,
            "baseSnapshotUuid": None if head is None else head["uuid"],
            "snapshot": new,
            "statistics": [],
        }
        status, found, was_lost = connection.insist("POST", f"{path}/commit", body)
        outcome.lost += was_lost
        if status != 200:
            raise AssertionError(f"{status}: {found}")
        if found["success"]:
            outcome.acknowledged.append(new)
        elif was_lost:
            outcome.refused_after_loss.append(new)
        else:
            outcome.refused.append(new)

    def _watch(self) -> None:
        watched = list(self._tables)[:_WATCHED]
        while not self._is_over.is_set():
            for name in watched:
                self._look(self.outcomes[name], self._tables[name])
            time.sleep(0.02)

    def _look(self, outcome: Outcome, table: Path) -> None:
        for path in (table / "snapshot").glob("snapshot-*"):
            number = int(path.name.partition("-")[2])
            found = json.loads(path.read_text())
            if outcome.seen.setdefault(number, found) != found:
                outcome.changed.append(number)


def violations(outcome: Outcome, name: str, table: Path, connection: Connection) -> list[str]:
    """What must not be of one table."""
    history = {
        int(path.name.partition("-")[2]): json.loads(path.read_text())
        for path in (table / "snapshot").glob("snapshot-*")
    }
    by_uuid = [each["uuid"] for each in history.values()]
    status, found, _ = connection.insist("GET", f"{TABLES}/{name}/snapshot")
    head = found["snapshot"]["snapshot"] if status == 200 else None
    refused = {each["uuid"] for each in outcome.refused}
    wrong = [*outcome.failures]
    wrong += [f"acknowledged, and not in the history: {each['id']}"
              for each in outcome.acknowledged if history.get(each["id"]) != each]  # fmt: skip
    if sorted(history) != list(range(1, len(history) + 1)):
        wrong.append(f"the history has gaps: {sorted(history)}")
    if len(set(by_uuid)) != len(by_uuid):
        wrong.append("a snapshot is in the history twice")
    wrong += [f"refused, and in the history: {each}" for each in by_uuid if each in refused]
    if head != history.get(max(history, default=0)):
        wrong.append(f"the server says {head}, the files say {max(history, default=0)}")
    wrong += [f"the reader saw snapshot {number} change" for number in outcome.changed]
    wrong += [f"the reader saw a snapshot {number} that never was"
              for number, each in outcome.seen.items() if history.get(number) != each]  # fmt: skip
    return wrong
