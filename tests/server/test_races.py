"""Servers that are killed at any point lose no commit and show none that did not happen."""

import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from catalog_server import SCHEMA
from server.races import Connection, Race, violations
from servers import dying_with_parent, free_ports

MORTAL = Path(__file__).with_name("mortal.py")
POINTS = ("before-file", "after-file", "after-database", "anywhere")


@dataclass(frozen=True)
class Mortals:
    """Servers of one warehouse and one database."""

    ports: Sequence[int]
    deaths: Sequence[Path]

    def count(self) -> int:
        return sum(path.stat().st_size for path in self.deaths if path.exists())


@contextmanager
def mortals(
    folder: Path, database: str, point: str, count: int, chance: float
) -> Iterator[Mortals]:
    ports = free_ports(count)
    deaths = [folder / f"deaths-{port}" for port in ports]
    with ExitStack() as stack:
        for port, log in zip(ports, deaths, strict=True):
            arguments = [port, folder / "lake", database, point, chance, log, port % count]
            command = [sys.executable, str(MORTAL), *map(str, arguments)]
            process = subprocess.Popen(dying_with_parent(command))
            stack.callback(process.wait, 20)
            stack.callback(process.terminate)
        yield Mortals(ports, deaths)


def race(folder: Path, database: str, point: str, *, kills: int, servers: int = 1) -> None:
    """Let writers race until so many servers were killed, then compare everything."""
    with mortals(folder, database, point, servers, chance=0.05) as running:
        with Connection(running.ports) as connection:
            connection.insist("POST", "/v1/lake/databases", {"name": "db", "options": {}})
            body = {"identifier": {"database": "db", "object": "t"}, "schema": SCHEMA}
            connection.insist("POST", "/v1/lake/databases/db/tables", body)
            # A server that died while it created the table has left another folder behind.
            _, found, _ = connection.insist("GET", "/v1/lake/databases/db/tables/t")
        table = Path(found["path"].removeprefix("file://"))
        racing = Race(running.ports, table, writers=4)
        racing.start()
        deadline = time.monotonic() + 60 + 15 * kills
        while running.count() < kills and time.monotonic() < deadline:
            time.sleep(0.05)
        racing.end()

        assert violations(racing.outcome, table, running.ports) == []
        assert running.count() >= kills
        assert len(racing.outcome.acknowledged) > kills / 2
        assert racing.outcome.lost > 0


@pytest.mark.thorough
@pytest.mark.parametrize("point", POINTS)
def test_a_killed_server_on_sqlite_loses_nothing(tmp_path: Path, point: str) -> None:
    race(tmp_path, str(tmp_path / "server.db"), point, kills=5)


@pytest.mark.slow
@pytest.mark.timeout(1500)
@pytest.mark.parametrize("point", POINTS)
def test_many_kills_of_a_server_on_sqlite_lose_nothing(tmp_path: Path, point: str) -> None:
    race(tmp_path, str(tmp_path / "server.db"), point, kills=60)


@pytest.mark.thorough
@pytest.mark.parametrize("point", POINTS)
def test_two_killed_servers_on_postgresql_lose_nothing(
    tmp_path: Path, postgres_database: str, point: str
) -> None:
    race(tmp_path, postgres_database, point, kills=6, servers=2)


@pytest.mark.slow
@pytest.mark.timeout(1500)
@pytest.mark.parametrize("point", POINTS)
def test_many_kills_of_two_servers_on_postgresql_lose_nothing(
    tmp_path: Path, postgres_database: str, point: str
) -> None:
    race(tmp_path, postgres_database, point, kills=60, servers=2)
