"""Clients that rename and roll back their tables behind servers that die.

Each has a table of its own, so that it knows exactly what must be there after every step. A request
whose answer is lost is sent again until there is one, as clients do.
"""

import json
import random
import threading
import uuid
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from catalog_server import snapshot
from server.races import TABLES, Connection


@dataclass
class Changer:
    """One table, as its only client knows it."""

    name: str
    folder: Path
    identity: str
    random: random.Random
    history: list[dict[str, Any]] = field(default_factory=list)
    renames: int = 0
    rollbacks: int = 0
    lost: int = 0
    wrong: list[str] = field(default_factory=list)

    def step(self, connection: Connection) -> None:
        """Do something to the table, and see what came of it."""
        for _ in range(self.random.randint(1, 4)):
            self.commit(connection)
        if self.random.random() < 0.5:
            self.rename(connection)
        else:
            self.roll_back(connection)
        self.check(connection)

    def commit(self, connection: Connection) -> None:
        base = self.history[-1]["uuid"] if self.history else None
        new = snapshot(len(self.history) + 1, self.identity, uuid=str(uuid.uuid4()))
        body = {"baseSnapshotUuid": base, "snapshot": new, "statistics": []}
        status, found, was_lost = connection.insist("POST", f"{TABLES}/{self.name}/commit", body)
        self.lost += was_lost
        self.history.append(new)
        if (status, found) != (200, {"success": True}):
            self.wrong.append(f"a commit of the only writer: {status} {found}")

    def rename(self, connection: Connection) -> None:
        old, new = self.name, f"{self.identity}_{self.renames + 1}"
        body = {
            "source": {"database": "db", "object": old},
            "destination": {"database": "db", "object": new},
        }
        status, found, was_lost = connection.insist("POST", "/v1/lake/tables/rename", body)
        self.lost += was_lost
        self.renames += 1
        self.name = new
        if status != 200 and not (was_lost and status == 404):  # the lost one has renamed it
            self.wrong.append(f"a rename: {status} {found}")
        if connection.insist("GET", f"{TABLES}/{old}")[0] != 404:
            self.wrong.append("a table has its old name, too")

    def roll_back(self, connection: Connection) -> None:
        target = self.random.randint(1, len(self.history))
        body = {"instant": {"type": "snapshot", "snapshotId": target}}
        status, found, was_lost = connection.insist("POST", f"{TABLES}/{self.name}/rollback", body)
        self.lost += was_lost
        self.rollbacks += 1
        del self.history[target:]
        if status != 200:
            self.wrong.append(f"a rollback: {status} {found}")

    def check(self, connection: Connection) -> None:
        """Compare what the server says, and what the files say, with what must be."""
        _, table, _ = connection.insist("GET", f"{TABLES}/{self.name}")
        _, head, _ = connection.insist("GET", f"{TABLES}/{self.name}/snapshot")
        files = {
            path.name: json.loads(path.read_text())
            for path in (self.folder / "snapshot").glob("snapshot-*")
        }
        if Path(table["path"].removeprefix("file://")) != self.folder:
            self.wrong.append(f"another table has the name: {table}")
        if head["snapshot"]["snapshot"] != self.history[-1]:
            self.wrong.append(f"the server says {head}, and it is {self.history[-1]}")
        if files != {f"snapshot-{each['id']}": each for each in self.history}:
            self.wrong.append(f"the files say {sorted(files)}, there are {len(self.history)}")


class Changes:
    """Clients side by side, for as long as servers die."""

    def __init__(self, ports: Sequence[int], tables: dict[str, Path]) -> None:
        self._ports = ports
        self._is_over = threading.Event()
        self.changers = [
            Changer(name, folder, name, random.Random(name)) for name, folder in tables.items()
        ]
        self._threads = [threading.Thread(target=self._run, args=(each,)) for each in self.changers]

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    def end(self) -> None:
        self._is_over.set()
        for thread in self._threads:
            thread.join(90)
            assert not thread.is_alive()

    def wrong(self) -> list[str]:
        return [f"{each.identity}: {text}" for each in self.changers for text in each.wrong]

    def count(self, name: str) -> int:
        return sum(getattr(each, name) for each in self.changers)

    def _run(self, changer: Changer) -> None:
        try:
            with Connection(self._ports) as connection:
                while not self._is_over.is_set() and not changer.wrong:
                    changer.step(connection)
        except Exception as error:  # noqa: BLE001 - a thread must not fail in silence
            changer.wrong.append(repr(error))
