"""Writers, a reader and a referee for one table behind servers that die.

A writer reads the head and posts the next snapshot. When an answer is lost, it posts the same body
again until it has one, as clients do. The reader watches the folder, as streaming readers do.
"""

import json
import random
import threading
import time
import uuid
from collections.abc import Sequence
from dataclasses import dataclass, field
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from typing import Any, Self

from catalog_server import TOKEN, snapshot

_PATH = "/v1/lake/databases/db/tables/t"


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

    def __init__(self, ports: Sequence[int], table: Path, writers: int) -> None:
        self.outcome = Outcome()
        self._ports = ports
        self._folder = table / "snapshot"
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

    def _guarded(self, work: Any) -> None:
        try:
            work()
        except Exception as error:  # noqa: BLE001 - a thread must not fail in silence
            self.outcome.failures.append(repr(error))

    def _write(self) -> None:
        with Connection(self._ports) as connection:
            self._write_by(connection)

    def _write_by(self, connection: Connection) -> None:
        user = str(uuid.uuid4())
        while not self._is_over.is_set():
            status, found, _ = connection.insist("GET", f"{_PATH}/snapshot")
            head = found["snapshot"]["snapshot"] if status == 200 else None
            number = 1 if head is None else head["id"] + 1
            new = snapshot(number, user, uuid=str(uuid.uuid4()))
            body = {
                "tableId": None,
                "baseSnapshotUuid": None if head is None else head["uuid"],
                "snapshot": new,
                "statistics": [],
            }
            status, found, was_lost = connection.insist("POST", f"{_PATH}/commit", body)
            self.outcome.lost += was_lost
            if status != 200:
                raise AssertionError(f"{status}: {found}")
            if found["success"]:
                self.outcome.acknowledged.append(new)
            elif was_lost:
                self.outcome.refused_after_loss.append(new)
            else:
                self.outcome.refused.append(new)

    def _watch(self) -> None:
        while not self._is_over.is_set():
            for path in self._folder.glob("snapshot-*"):
                number = int(path.name.partition("-")[2])
                found = json.loads(path.read_text())
                if self.outcome.seen.setdefault(number, found) != found:
                    self.outcome.changed.append(number)
            time.sleep(0.02)


def violations(outcome: Outcome, table: Path, ports: Sequence[int]) -> list[str]:
    """What must not be, after a race; the servers that answer must be there."""
    history = {
        int(path.name.partition("-")[2]): json.loads(path.read_text())
        for path in (table / "snapshot").glob("snapshot-*")
    }
    by_uuid = [each["uuid"] for each in history.values()]
    with Connection(ports) as connection:
        _, found, _ = connection.insist("GET", f"{_PATH}/snapshot")
    head = found["snapshot"]["snapshot"]
    refused = {each["uuid"] for each in outcome.refused}
    wrong = [*outcome.failures]
    wrong += [f"acknowledged, and not in the history: {each['id']}"
              for each in outcome.acknowledged if history.get(each["id"]) != each]  # fmt: skip
    if sorted(history) != list(range(1, len(history) + 1)):
        wrong.append(f"the history has gaps: {sorted(history)}")
    if len(set(by_uuid)) != len(by_uuid):
        wrong.append("a snapshot is in the history twice")
    wrong += [f"refused, and in the history: {each}" for each in by_uuid if each in refused]
    if head != history[max(history)]:
        wrong.append(f"the server says {head['id']}, the files say {max(history)}")
    wrong += [f"the reader saw snapshot {number} change" for number in outcome.changed]
    wrong += [f"the reader saw a snapshot {number} that never was"
              for number, each in outcome.seen.items() if history.get(number) != each]  # fmt: skip
    return wrong
