"""Serves the pages on a port of this machine until it is interrupted."""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import uvicorn

from emberlake.base.env import SYSTEM_ENV
from emberlake.catalog import Catalog
from emberlake.server.listening import listen
from emberlake.ui.app import build_app
from emberlake.ui.guard import Guard


def serve(
    catalog: Catalog,
    *,
    host: str,
    port: int,
    allow_writes: bool,
    names: frozenset[str] = frozenset(),
    on_ready: Callable[[str], None],
) -> None:
    """Serve until the process is interrupted.

    Args:
        catalog: What is shown.
        host: Where to listen; only loopback is out of reach of other machines.
        port: The port; 0 takes a free one.
        allow_writes: Whether pages can compact and tag.
        names: More names by which browsers may call the server.
        on_ready: Called with the address to open, once it can be opened; the key is part of it.

    Raises:
        InvalidState: the port is taken, or the host is not one of this machine's.
    """
    listening = listen(host, port)
    key = SYSTEM_ENV.new_id()  # random, and long enough that nobody guesses it
    guard = Guard(host, key, SYSTEM_ENV.new_id(), names)
    config = uvicorn.Config(
        build_app(catalog, guard, allow_writes=allow_writes),
        access_log=False,
        log_config=None,
        lifespan="off",
        ws="none",
        server_header=False,
        timeout_graceful_shutdown=2,
    )
    server = _Server(config, lambda bound: on_ready(f"http://{_shown(host)}:{bound}/?key={key}"))
    with listening, suppress(KeyboardInterrupt):  # the usual end
        asyncio.run(server.serve(sockets=[listening]))


class _Server(uvicorn.Server):
    """Says which port it got."""

    def __init__(self, config: uvicorn.Config, on_bound: Callable[[int], None]) -> None:
        super().__init__(config)
        self._on_bound = on_bound

    async def startup(self, sockets: list[Any] | None = None) -> None:
        await super().startup(sockets)
        bound = self.servers[0].sockets[0].getsockname()[1]
        self._on_bound(int(bound))


def _shown(host: str) -> str:
    """The host to open; one that stands for all addresses is reached as this machine."""
    if host in ("0.0.0.0", "::"):  # noqa: S104 - the user has asked for it
        return "127.0.0.1"
    return f"[{host}]" if ":" in host else host
