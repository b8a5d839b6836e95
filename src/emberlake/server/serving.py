"""Puts a server together from its settings, and runs it."""

import asyncio
import gc
import logging
import sys
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Final

from emberlake.base.env import SYSTEM_ENV, Env
from emberlake.base.extras import load_extra
from emberlake.errors import EmberlakeError, InvalidState
from emberlake.server.access.authentication import Authentication, IdentityProvider
from emberlake.server.access.principals import Principals
from emberlake.server.app import App
from emberlake.server.calls import Services
from emberlake.server.database.database import Database
from emberlake.server.database.opening import open_database
from emberlake.server.endpoints.dropping import purge
from emberlake.server.heads import Heads
from emberlake.server.listening import Listening, listen
from emberlake.server.settings import Settings
from emberlake.server.vending import LocalVending, RoleVending, VendingRules
from emberlake.server.warehouses import Warehouse

ADMIN: Final = "admin"
_PURGE_S: Final = 600
_SWITCH_S: Final = 0.001
LOG: Final = logging.getLogger("emberlake.server")


@dataclass(frozen=True)
class Server:
    """A server that is ready to run."""

    settings: Settings
    services: Services
    app: App
    new_token: str | None = field(default=None, repr=False)  # of the first administrator, once


def build_server(
    settings: Settings, *, first_token: str | None = None, env: Env = SYSTEM_ENV
) -> Server:
    """Open the database and the warehouses.

    Args:
        settings: What the server is started with.
        first_token: The token of the administrator, instead of a random one.
        env: Clock and ids.
    """
    database = open_database(settings.database, serving=True, connections=settings.limits.threads)
    try:
        return _build(settings, database, first_token, env)
    except BaseException:
        database.close()
        raise


def open_services(
    database: Database,
    env: Env = SYSTEM_ENV,
    *,
    keep_dropped_ms: int,
    vending: VendingRules | None = None,
    on_access_changed: Callable[[], None] = lambda: None,
) -> Services:
    """What endpoints and commands work with."""
    return Services(
        database,
        Heads(database, env),
        Principals(database, env),
        env,
        LocalVending(env) if vending is None else RoleVending(env, vending),
        keep_dropped_ms,
        on_access_changed,
    )


def _build(settings: Settings, database: Database, first_token: str | None, env: Env) -> Server:
    provider: IdentityProvider | None = None
    if settings.oidc is not None:
        load_extra("jwt", extra="server")
        provider = load_extra("emberlake.server.access.oidc", extra="server").OidcProvider(
            settings.oidc
        )
    authentication = Authentication(
        database,
        env,
        provider=provider,
        anonymous=settings.anonymous,
        remember_ms=settings.remember_ms,
    )
    services = open_services(
        database,
        env,
        keep_dropped_ms=settings.keep_dropped_ms,
        vending=settings.vending,
        on_access_changed=authentication.forget,
    )
    for warehouse in settings.warehouses:
        know_warehouse(services, warehouse)
    with database.lock("first administrator"):  # servers that start together make one
        new_token = _first_administrator(services.principals, first_token, settings)
    warehouses = {warehouse.name: warehouse for warehouse in settings.warehouses}
    app = App(services, authentication, warehouses, settings.limits)
    return Server(settings, services, app, new_token)


def know_warehouse(services: Services, warehouse: Warehouse) -> None:
    """Record a warehouse, or check that it is where it was.

    Raises:
        InvalidState: the database knows another place for the name, or another name for the place.
    """
    services.database.run(
        "INSERT INTO catalogs (name, location, created_at) VALUES (?, ?, ?) ON CONFLICT DO NOTHING",
        warehouse.name,
        warehouse.location,
        services.env.now_ms(),
    )
    rows = services.database.run(
        "SELECT name, location FROM catalogs WHERE name = ? OR location = ?",
        warehouse.name,
        warehouse.location,
    )
    for name, location in rows:
        if (name, location) != (warehouse.name, warehouse.location):
            raise InvalidState(
                f"the server's database knows the warehouse {name} at {location}, not "
                f"{warehouse.name} at {warehouse.location}; use another --database, or the same "
                "name and place"
            )


def _first_administrator(
    principals: Principals, token: str | None, settings: Settings
) -> str | None:
    """The token to show, if there was no principal before."""
    if not principals.has_any():
        principals.create(ADMIN, is_admin=True, by="emberlake serve")
    if token is None and not settings.anonymous and not principals.has_tokens():
        issued, _ = principals.issue_token(ADMIN, by="emberlake serve")
        return issued
    if token is not None and not principals.knows_token(token):
        principals.issue_token(ADMIN, by="emberlake serve", token=token)
    return None


def check_installed() -> None:
    """Check that the server can run, before a token is shown, which happens only once.

    Raises:
        Unsupported: the extra ``server`` is not installed.
    """
    for name in ("uvicorn", "httptools"):
        load_extra(name, extra="server")


def run_server(server: Server, listening: Listening | None = None) -> None:
    """Serve until the process is asked to stop; requests that were begun are finished.

    Args:
        server: What to run.
        listening: Where it listens, if ``listen`` was called before.
    """
    check_installed()
    uvicorn = load_extra("uvicorn", extra="server")
    connections = load_extra("emberlake.server.connections", extra="server")
    settings = server.settings
    config = uvicorn.Config(
        server.app,
        host=settings.host,
        port=settings.port,
        access_log=False,
        log_level="warning",
        lifespan="on",
        server_header=False,
        timeout_keep_alive=75,
        timeout_graceful_shutdown=30,
        http=connections.protocol(settings.limits.head_seconds, settings.limits.answer_seconds),
    )

    async def serve() -> None:
        keeping = asyncio.create_task(_keep_house(server))
        try:
            await uvicorn.Server(config).serve(
                sockets=[listening or listen(settings.host, settings.port)]
            )
        finally:
            keeping.cancel()
            with suppress(asyncio.CancelledError):
                await keeping

    _make_even()
    try:
        with asyncio.Runner(loop_factory=_loop_factory()) as runner:
            runner.run(serve())
    finally:
        server.services.database.close()


def _make_even() -> None:
    """Keep single requests from taking much longer than the others."""
    # Loaded modules stay: searching all of them for garbage stops every thread.
    gc.collect()
    gc.freeze()
    # A thread that has waited for the disk or the database must not wait as long to continue.
    sys.setswitchinterval(_SWITCH_S)


def _loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    """The event loop of uvloop, where it is installed."""
    try:
        import uvloop  # noqa: PLC0415 - not on every system
    except ModuleNotFoundError:
        return None
    factory: Callable[[], asyncio.AbstractEventLoop] = uvloop.new_event_loop
    return factory


async def _keep_house(server: Server) -> None:
    """Delete the files of tables that were dropped long ago."""
    loop = asyncio.get_running_loop()
    while True:
        for warehouse in server.settings.warehouses:
            try:
                await loop.run_in_executor(None, purge, server.services, warehouse)
            except EmberlakeError:
                LOG.exception("dropped tables of %s cannot be deleted", warehouse.name)
        await asyncio.sleep(_PURGE_S)
