"""Load on a REST catalog server: how many requests a second, how long they take, what they cost.

    python bench/rest_load.py                       starts `emberlake serve` on SQLite
    python bench/rest_load.py --postgres            on a PostgreSQL that ends with it
    python bench/rest_load.py --database postgresql://...
    python bench/rest_load.py --rate 1500           at a fixed rate, instead of as fast as it goes
    python bench/rest_load.py --requests 100000     how much memory the server has after so many

Each job runs as fast as it goes, and then at half of that rate.

Clients are one process with its own connections, so that on two cores the server has one for
itself. CPU times are those of the server's process; with PostgreSQL its own processes come on top.
"""

import argparse
import asyncio
import json
import os
import random
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
import uuid
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))
TOKEN = "token-of-the-load-generator"
BASE = "/v1/lake/databases/db/tables"
SCHEMA = {
    "fields": [
        {"id": number, "name": f"c{number}", "type": "BIGINT" if number else "BIGINT NOT NULL"}
        for number in range(20)
    ],
    "partitionKeys": [],
    "primaryKeys": [],
    "options": {"bucket": "-1"},
}


@dataclass
class Result:
    """What one run measured."""

    seconds: float = 0
    times: list[float] = field(default_factory=list)
    failures: int = 0
    cpu: float = 0

    def line(self, name: str) -> str:
        count = len(self.times)
        ordered = sorted(self.times) or [0.0]
        p50, p99 = (1000 * ordered[int(len(ordered) * part)] for part in (0.5, 0.99))
        each = 1000 * self.cpu / max(count, 1)
        return (
            f"{name:<14} {count / self.seconds:8,.0f} /s   p50 {p50:6.1f} ms   p99 {p99:6.1f} ms   "
            f"{each:.2f} ms of CPU each   {self.failures} failures"
        )


@dataclass
class Client:
    """One connection that is kept."""

    port: int
    reader: asyncio.StreamReader | None = None
    writer: asyncio.StreamWriter | None = None

    async def ask(self, method: str, path: str, body: bytes = b"") -> tuple[int, bytes]:
        if self.writer is None or self.reader is None:
            self.reader, self.writer = await asyncio.open_connection("127.0.0.1", self.port)
        head = (
            f"{method} {path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {TOKEN}\r\n"
            f"Content-Length: {len(body)}\r\n\r\n"
        )
        self.writer.write(head.encode() + body)
        answer = await self.reader.readuntil(b"\r\n\r\n")
        size = int(answer.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0] or 0)
        return int(answer[9:12]), await self.reader.readexactly(size)


async def drive(clients: int, port: int, seconds: float, rate: float | None, work) -> Result:  # noqa: ANN001
    """Let clients work side by side for a time."""
    result, end = Result(), time.perf_counter() + seconds

    async def one(number: int) -> None:
        client, turn = Client(port), 0
        begin = time.perf_counter() + (number / rate if rate else 0)
        while time.perf_counter() < end:
            if rate:
                due = begin + turn * clients / rate
                await asyncio.sleep(max(0, due - time.perf_counter()))
            started = time.perf_counter()
            is_good = await work(client, number, turn)
            result.times.append(time.perf_counter() - started)
            result.failures += not is_good
            turn += 1
        if client.writer is not None:
            client.writer.close()

    began = time.perf_counter()
    await asyncio.gather(*(one(number) for number in range(clients)))
    result.seconds = time.perf_counter() - began
    return result


async def get_table(client: Client, *_: int) -> bool:
    status, _ = await client.ask("GET", f"{BASE}/t{random.randrange(TABLES)}")
    return status == 200


async def get_snapshot(client: Client, *_: int) -> bool:
    status, _ = await client.ask("GET", f"{BASE}/t{random.randrange(TABLES)}/snapshot")
    return status in (200, 404)


class Committer:
    """Every client has tables of its own: nobody loses a race."""

    def __init__(self, clients: int) -> None:
        self._heads: dict[int, tuple[int, str | None]] = {}
        self._clients = clients

    async def start(self, port: int) -> None:
        client = Client(port)
        for table in range(TABLES):
            status, body = await client.ask("GET", f"{BASE}/t{table}/snapshot")
            found = json.loads(body)["snapshot"]["snapshot"] if status == 200 else None
            self._heads[table] = (0, None) if found is None else (found["id"], found["uuid"])
        if client.writer is not None:
            client.writer.close()

    async def __call__(self, client: Client, number: int, turn: int) -> bool:
        own = range(number % TABLES, TABLES, self._clients)
        table = own[turn % len(own)]
        head, base = self._heads[table]
        new = str(uuid.uuid4())
        statistics = {
            "spec": {},
            "recordCount": 1,
            "fileSizeInBytes": 1000,
            "fileCount": 1,
            "lastFileCreationTime": 1,
        }
        snapshot = {
            "version": 3,
            "uuid": new,
            "id": head + 1,
            "schemaId": 0,
            "baseManifestList": f"manifest-list-{new}-0",
            "deltaManifestList": f"manifest-list-{new}-1",
            "commitUser": "load",
            "commitIdentifier": 2**63 - 1,
            "commitKind": "APPEND",
            "timeMillis": 1,
            "totalRecordCount": 1,
            "deltaRecordCount": 1,
        }
        body = {"baseSnapshotUuid": base, "snapshot": snapshot, "statistics": [statistics]}
        status, answer = await client.ask(
            "POST", f"{BASE}/t{table}/commit", json.dumps(body).encode()
        )
        is_good = status == 200 and json.loads(answer) == {"success": True}
        if is_good:
            self._heads[table] = (head + 1, new)
        return is_good


@contextmanager
def serving(arguments: argparse.Namespace, folder: Path) -> Iterator[tuple[int, int]]:
    """The port and the process of a server that is started here."""
    database = arguments.database or str(folder / "server.db")
    command = [
        *(sys.executable, "-m", "emberlake", "serve", "--port", str(arguments.port)),
        *("--warehouse", f"lake={folder / 'lake'}", "--database", database),
    ]
    process = subprocess.Popen(command, env={**os.environ, "EMBERLAKE_SERVER_TOKEN": TOKEN})
    try:
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            try:
                urllib.request.urlopen(f"http://127.0.0.1:{arguments.port}/ready", timeout=1)
                break
            except (OSError, urllib.error.URLError):
                time.sleep(0.1)
        yield arguments.port, process.pid
    finally:
        process.terminate()
        process.wait(30)


def cpu_of(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def memory_of(pid: int) -> float:
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


async def measure(arguments: argparse.Namespace, port: int, pid: int) -> None:
    client = Client(port)
    await client.ask("POST", "/v1/lake/databases", b'{"name": "db", "options": {}}')
    began = time.perf_counter()
    for number in range(TABLES):
        body = {"identifier": {"database": "db", "object": f"t{number}"}, "schema": SCHEMA}
        await client.ask("POST", BASE, json.dumps(body).encode())
    print(f"{TABLES} tables in {time.perf_counter() - began:.1f} s, {memory_of(pid):.0f} MB")
    committer = Committer(arguments.clients)
    await committer.start(port)
    works = {"table": get_table, "commit": committer, "snapshot": get_snapshot}
    clients, seconds = arguments.clients, arguments.seconds

    async def run(name: str, label: str, seconds: float, rate: float | None) -> Result:
        before = cpu_of(pid)
        result = await drive(clients, port, seconds, rate, works[name])
        result.cpu = cpu_of(pid) - before
        print(result.line(label), f"  {memory_of(pid):.0f} MB", flush=True)
        return result

    for name in arguments.what:
        full = await run(name, name, seconds, arguments.rate)
        if arguments.rate is None:
            half = len(full.times) / full.seconds / 2
            await run(name, f"{name}, half", seconds, half)
    done = 0
    while done < arguments.requests:
        for name in works:
            done += len((await run(name, f"{done:,} done", 5, None)).times)
    if client.writer is not None:
        client.writer.close()


def main() -> None:
    global TABLES  # noqa: PLW0603
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("what", nargs="*", default=["table", "commit", "snapshot"])
    parser.add_argument("--database", help="of the server, instead of a SQLite file")
    parser.add_argument("--postgres", action="store_true", help="start a PostgreSQL for it")
    parser.add_argument("--tables", type=int, default=1000)
    parser.add_argument("--clients", type=int, default=64)
    parser.add_argument("--seconds", type=float, default=5)
    parser.add_argument("--rate", type=float, help="requests a second, instead of all that go")
    parser.add_argument("--requests", type=int, default=0, help="at least so many at the end")
    parser.add_argument("--port", type=int, default=18765)
    arguments = parser.parse_args()
    TABLES = arguments.tables
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        if arguments.postgres:
            from postgres import running_postgres  # noqa: PLC0415 - of the tests

            arguments.database = stack.enter_context(running_postgres())
        port, pid = stack.enter_context(serving(arguments, folder))
        asyncio.run(measure(arguments, port, pid))


TABLES = 1000

if __name__ == "__main__":
    main()
