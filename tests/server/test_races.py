"""Servers that are killed at any point lose no commit and show none that did not happen."""

import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from catalog_server import SCHEMA
from server.changes import Changes
from server.races import TABLES, Connection, Race
from servers import dying_with_parent, free_ports

MORTAL = Path(__file__).with_name("mortal.py")
CHANGING = ("in-transaction", "after-transaction", "in-rollback", "anywhere")
POINTS = ("before-file", "after-file", "after-database", "anywhere")
# One server on SQLite is tried at half of the points; two on PostgreSQL, at all of them.
ON_SQLITE = ("after-database", "in-transaction", "anywhere")


def on_sqlite(points: Sequence[str]) -> list[Any]:
    slow = pytest.mark.slow
    return [point if point in ON_SQLITE else pytest.param(point, marks=slow) for point in points]


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


def race(
    folder: Path,
    database: str,
    point: str,
    *,
    kills: int,
    servers: int = 1,
    tables: int = 1,
    writers: int = 4,
) -> None:
    """Let writers race until so many servers were killed, then compare everything."""
    # Fewer commits of each table pass the points where servers die, but there are more of them.
    chance = 0.05 if tables < 100 else 0.01
    with mortals(folder, database, point, servers, chance) as running:
        racing = Race(running.ports, dict(new_tables(running.ports, tables)), writers)
        began = running.count()
        racing.start()
        deadline = time.monotonic() + 60 + 15 * kills
        while running.count() - began < kills and time.monotonic() < deadline:
            time.sleep(0.05)
        racing.end()
        killed = running.count() - began

        assert list(racing.violations()) == []
        print(  # noqa: T201 - for the figures of docs/server.md: pytest -rP
            f"{point}: {killed} kills, {racing.acknowledged:,} commits to {tables:,} tables, "
            f"{racing.lost} answers lost, no violation"
        )
        assert killed >= kills
        assert racing.acknowledged > kills / 2
        assert racing.lost > 0


def new_tables(ports: Sequence[int], count: int) -> Iterator[tuple[str, Path]]:
    """Create tables, however often servers die; their names and folders."""
    with Connection(ports) as connection:
        connection.insist("POST", "/v1/lake/databases", {"name": "db", "options": {}})
        for name in (f"t{number}" for number in range(count)):
            body = {"identifier": {"database": "db", "object": name}, "schema": SCHEMA}
            connection.insist("POST", TABLES, body)
            # A server that died while it created the table has left another folder behind.
            _, found, _ = connection.insist("GET", f"{TABLES}/{name}")
            yield name, Path(found["path"].removeprefix("file://"))


# Of few tables some commits race for one table, and some are made together.
FEW = {"tables": 3, "writers": 6}


@pytest.mark.thorough
@pytest.mark.parametrize("point", on_sqlite(POINTS))
def test_a_killed_server_on_sqlite_loses_nothing(tmp_path: Path, point: str) -> None:
    race(tmp_path, str(tmp_path / "server.db"), point, kills=5, **FEW)


@pytest.mark.slow
@pytest.mark.timeout(1500)
@pytest.mark.parametrize("tables", [1, 3])
@pytest.mark.parametrize("point", POINTS)
def test_many_kills_of_a_server_on_sqlite_lose_nothing(
    tmp_path: Path, point: str, tables: int
) -> None:
    race(tmp_path, str(tmp_path / "server.db"), point, kills=30, tables=tables, writers=6)


@pytest.mark.thorough
@pytest.mark.parametrize("point", POINTS)
def test_two_killed_servers_on_postgresql_lose_nothing(
    tmp_path: Path, postgres_database: str, point: str
) -> None:
    race(tmp_path, postgres_database, point, kills=6, servers=2, **FEW)


@pytest.mark.slow
@pytest.mark.timeout(1500)
@pytest.mark.parametrize("tables", [1, 3])
@pytest.mark.parametrize("point", POINTS)
def test_many_kills_of_two_servers_on_postgresql_lose_nothing(
    tmp_path: Path, postgres_database: str, point: str, tables: int
) -> None:
    race(tmp_path, postgres_database, point, kills=30, servers=2, tables=tables, writers=6)


@pytest.mark.slow
@pytest.mark.timeout(1500)
@pytest.mark.parametrize("point", ["after-file", "anywhere"])
@pytest.mark.parametrize("place", ["sqlite", "postgresql"])
def test_kills_under_64_clients_of_1000_tables_lose_nothing(
    tmp_path: Path, request: pytest.FixtureRequest, place: str, point: str
) -> None:
    is_shared = place == "postgresql"
    database = (
        request.getfixturevalue("postgres_database") if is_shared else str(tmp_path / "server.db")
    )
    servers = 2 if is_shared else 1
    race(tmp_path, database, point, kills=15, servers=servers, tables=1000, writers=64)


def change(folder: Path, database: str, point: str, *, kills: int, servers: int = 1) -> None:
    """Let clients rename and roll back tables until so many servers were killed."""
    with mortals(folder, database, point, servers, 0.1) as running:
        changes = Changes(running.ports, dict(new_tables(running.ports, 4)))
        began = running.count()
        changes.start()
        deadline = time.monotonic() + 60 + 15 * kills
        while running.count() - began < kills and time.monotonic() < deadline:
            time.sleep(0.05)
        changes.end()
        killed = running.count() - began

        assert changes.wrong() == []
        print(  # noqa: T201 - for the figures of docs/server.md: pytest -rP
            f"{point}: {killed} kills, {changes.count('renames')} renames, "
            f"{changes.count('rollbacks')} rollbacks, {changes.count('lost')} answers lost, "
            "no violation"
        )
        assert killed >= kills
        assert min(changes.count("renames"), changes.count("rollbacks")) > kills / 4
        assert changes.count("lost") > 0


@pytest.mark.thorough
@pytest.mark.parametrize("point", on_sqlite(CHANGING))
def test_renames_and_rollbacks_of_a_killed_server_on_sqlite_happen_once(
    tmp_path: Path, point: str
) -> None:
    change(tmp_path, str(tmp_path / "server.db"), point, kills=5)


@pytest.mark.thorough
@pytest.mark.parametrize("point", CHANGING)
def test_renames_and_rollbacks_of_two_killed_servers_on_postgresql_happen_once(
    tmp_path: Path, postgres_database: str, point: str
) -> None:
    change(tmp_path, postgres_database, point, kills=5, servers=2)


@pytest.mark.slow
@pytest.mark.timeout(1500)
@pytest.mark.parametrize("point", CHANGING)
@pytest.mark.parametrize("place", ["sqlite", "postgresql"])
def test_many_kills_during_renames_and_rollbacks_lose_nothing(
    tmp_path: Path, request: pytest.FixtureRequest, place: str, point: str
) -> None:
    is_shared = place == "postgresql"
    database = (
        request.getfixturevalue("postgres_database") if is_shared else str(tmp_path / "server.db")
    )
    change(tmp_path, database, point, kills=30, servers=2 if is_shared else 1)
