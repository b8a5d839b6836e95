"""``emberlake serve`` as a process, as users start it."""

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from interop.judges import Warehouse
from servers import free_ports, running

TOKEN = "token-of-the-administrator"


@contextmanager
def served(
    folder: Path, *more: str, database: str | None = None, warehouse: str | None = None
) -> Iterator[Warehouse]:
    """A server on a folder; the warehouse, with the options that reach it."""
    (port,) = free_ports(1)
    command: Sequence[str] = [
        *(sys.executable, "-m", "emberlake", "serve", "--port", str(port)),
        *("--warehouse", f"lake={warehouse or folder / 'lake'}"),
        *("--database", database or str(folder / "server.db"), *more),
    ]
    env = {"EMBERLAKE_SERVER_TOKEN": TOKEN}
    uri = f"http://127.0.0.1:{port}"
    with running(command, f"{uri}/ready", folder / "serve.log", env, lambda status: status == 200):
        options = {"metastore": "rest", "uri": uri, "token.provider": "bear", "token": TOKEN}
        yield Warehouse("lake", options)
