"""The REST catalog server: start it, and manage what it knows."""

import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from emberlake.base.env import SYSTEM_ENV
from emberlake.cli.config import ENV_WAREHOUSE
from emberlake.cli.failures import UsageError
from emberlake.cli.report import Done, Grid, Note, Report, words
from emberlake.cli.session import Session
from emberlake.io.local import local_path
from emberlake.io.object.sts import Role
from emberlake.io.registry import scheme_of
from emberlake.server.calls import Services
from emberlake.server.database.opening import open_database
from emberlake.server.endpoints.dropping import list_dropped
from emberlake.server.endpoints.restoring import restore as restore_table
from emberlake.server.listening import listen
from emberlake.server.serving import (
    ADMIN,
    Server,
    build_server,
    check_installed,
    know_warehouse,
    open_services,
    run_server,
)
from emberlake.server.settings import DAY_MS, Limits, Oidc, Settings, default_database
from emberlake.server.takeover import register_warehouse, release_warehouse, unregistered
from emberlake.server.vending import VendingRules
from emberlake.server.warehouses import (
    Warehouse,
    check_reachable,
    open_warehouse,
    parse_warehouse,
)

ENV_TOKEN: Final = "EMBERLAKE_SERVER_TOKEN"  # noqa: S105 - the name of a variable
ENV_DATABASE: Final = "EMBERLAKE_SERVER_DATABASE"
BY: Final = "emberlake serve"


@dataclass(frozen=True, kw_only=True)
class ServeOptions:
    """What was typed after ``emberlake serve``."""

    warehouses: Sequence[str] = ()
    database: str | None = None
    host: str = "127.0.0.1"
    port: int = 8080
    anonymous: bool = False
    external: Sequence[str] = ()
    keep_dropped_days: float = 7
    threads: int = 16
    oidc: Mapping[str, str] = field(default_factory=dict)
    vend: Mapping[str, str] = field(default_factory=dict)


def serve(session: Session, options: ServeOptions) -> None:
    """Serve until the process is asked to stop."""
    check_installed()
    settings = _settings(session, options)
    with listen(settings.host, settings.port) as listening:
        for warehouse in settings.warehouses:
            check_reachable(warehouse)
        server = build_server(settings, first_token=os.environ.get(ENV_TOKEN) or None)
        _announce(server)
        run_server(server, listening)


def _settings(session: Session, options: ServeOptions) -> Settings:
    external = tuple(_absolute(folder) for folder in options.external)
    warehouses = tuple(
        open_warehouse(*parse_warehouse(text), session.settings.catalog_options, external)
        for text in _warehouse_texts(session, options.warehouses)
    )
    return Settings(
        warehouses=warehouses,
        database=_database(options.database, warehouses),
        host=options.host,
        port=options.port,
        anonymous=options.anonymous,
        keep_dropped_ms=int(options.keep_dropped_days * DAY_MS),
        limits=Limits(threads=options.threads),
        oidc=_oidc(options.oidc),
        vending=_vending(options.vend),
    )


def _absolute(folder: str) -> str:
    local = scheme_of(folder) == "file"
    return str(Path(local_path(folder)).absolute()) if local else folder.rstrip("/")


def _oidc(given: Mapping[str, str]) -> Oidc | None:
    if not given:
        return None
    others = ("name-claim", "groups-claim", "admin-group", "prefix")
    _check_keys("--oidc", given, ("issuer", "audience", "keys"), others)
    return Oidc(
        issuer=given["issuer"],
        audience=given["audience"],
        keys_url=given["keys"],
        name_claim=given.get("name-claim", "sub"),
        groups_claim=given.get("groups-claim", "groups"),
        admin_group=given.get("admin-group"),
        prefix=given.get("prefix", "oidc:"),
    )


def _vending(given: Mapping[str, str]) -> VendingRules | None:
    if not given:
        return None
    others = ("endpoint", "external-id", "hours", "said-longer-minutes")
    _check_keys("--vend", given, ("role",), others)
    role = Role(
        arn=given["role"],
        endpoint=given.get("endpoint"),
        external_id=given.get("external-id"),
    )
    try:
        hours, longer = (float(given.get(key, default)) for key, default in
                         (("hours", 1), ("said-longer-minutes", 0)))  # fmt: skip
    except ValueError as error:
        raise UsageError(f"--vend: {error}") from error
    return VendingRules(role=role, seconds=int(hours * 3600), said_longer_ms=int(longer * 60_000))


def _check_keys(
    option: str, given: Mapping[str, str], needed: Sequence[str], others: Sequence[str]
) -> None:
    missing = [key for key in needed if key not in given]
    if missing:
        raise UsageError(f"{option} needs {', '.join(f'{key}=...' for key in missing)}, too")
    unknown = sorted(set(given) - {*needed, *others})
    if unknown:
        known = ", ".join((*needed, *others))
        raise UsageError(f"{option} has no {', '.join(unknown)}; it has {known}")


def _announce(server: Server) -> None:
    settings = server.settings
    out = sys.stderr
    out.write(f"emberlake serves at http://{settings.host}:{settings.port}\n")
    for warehouse in settings.warehouses:
        out.write(f"  warehouse {warehouse.name}: {warehouse.location}\n")
        count = unregistered(server.services, warehouse)
        if count:
            out.write(
                f"    {count} tables in it are not registered; register them with: emberlake serve "
                f"register --warehouse {warehouse.name}={warehouse.location}\n"
            )
    if server.new_token is not None:
        out.write(f"  the token of the administrator, shown once: {server.new_token}\n")
    if settings.anonymous:
        out.write("  anyone on this machine may do everything, without a token\n")
    out.flush()


# --- warehouses -----------------------------------------------------------------------------------


def register(session: Session, database: str | None) -> Report:
    """Register the databases and tables of a folder."""
    with opened(session, database) as (services, warehouse):
        done = register_warehouse(services, warehouse)
    text = (
        f"registered {len(done.tables)} tables and {len(done.databases)} databases of "
        f"{warehouse.location}; {done.known} tables were registered before"
    )
    notes = [Note(f"left out, since they are not tables: {', '.join(done.left_out)}")]
    return Report(
        {
            "warehouse": warehouse.name,
            "databases": list(done.databases),
            "tables": list(done.tables),
            "known": done.known,
            "left_out": list(done.left_out),
        },
        [Done(text), *(notes if done.left_out else [])],
    )


def release(session: Session, database: str | None, *, move: bool, yes: bool) -> Report:
    """Give a warehouse back to filesystem catalogs."""
    with opened(session, database, alone=True) as (services, warehouse):
        session.confirm(
            f"This makes the server forget warehouse {warehouse.name} with its grants, views and "
            "functions; its tables stay where they are",
            yes=yes,
        )
        done = release_warehouse(services, warehouse, move=move)
    notes = [Note(f"forgotten: {', '.join(done.forgotten)}")] if done.forgotten else []
    return Report(
        {
            "warehouse": warehouse.name,
            "tables": done.tables,
            "moved": list(done.moved),
            "forgotten": list(done.forgotten),
        },
        [
            Done(
                f"{warehouse.location} is a filesystem warehouse again, with {done.tables} tables"
            ),
            *notes,
        ],
    )


def dropped(session: Session, database: str | None, keep_dropped_days: float) -> Report:
    """List the tables that can be restored."""
    with opened(session, database, keep_dropped_days=keep_dropped_days) as (services, warehouse):
        found = list_dropped(services, warehouse)
    rows = [
        (each["table"], each["id"], moment(each["dropped_at"]), moment(each["deleted_at"]))
        for each in found
    ]
    columns = [words("table"), words("id", 36), words("dropped"), words("deleted for good")]
    return Report({"dropped": found}, [Grid(columns, rows, empty="no dropped tables")])


def restore(session: Session, database: str | None, table_id: str, name: str | None) -> Report:
    """Bring a dropped table back."""
    with opened(session, database) as (services, warehouse):
        restored = restore_table(services, warehouse, table_id, name)
    return Report({"table": restored, "id": table_id}, [Done(f"restored {restored}")])


# --- parts ----------------------------------------------------------------------------------------


@contextmanager
def opened(
    session: Session, database: str | None, *, alone: bool = False, keep_dropped_days: float = 7
) -> Iterator[tuple[Services, Warehouse]]:
    """The server's database and a warehouse, for a command that may run beside a server."""
    (text,) = _warehouse_texts(session, ())
    warehouse = open_warehouse(*parse_warehouse(text), session.settings.catalog_options)
    url = _database(database, (warehouse,))
    opened = open_database(url, serving=alone, connections=2)
    try:
        services = open_services(opened, keep_dropped_ms=int(keep_dropped_days * DAY_MS))
        know_warehouse(services, warehouse)
        if not services.principals.has_any():
            services.principals.create(ADMIN, is_admin=True, by=BY)
        yield services, warehouse
    finally:
        opened.close()


def _warehouse_texts(session: Session, typed: Sequence[str]) -> Sequence[str]:
    if typed:
        return typed
    found = session.settings.warehouse or os.environ.get(ENV_WAREHOUSE)
    if not found:
        raise UsageError(f"no warehouse: give --warehouse [NAME=]PATH, or set {ENV_WAREHOUSE}")
    return (found,)


def _database(typed: str | None, warehouses: tuple[Warehouse, ...]) -> str:
    return typed or os.environ.get(ENV_DATABASE) or default_database(warehouses)


def after(days: float | None) -> int | None:
    """When something that begins now ends, after this many days."""
    return None if days is None else SYSTEM_ENV.now_ms() + int(days * DAY_MS)


def moment(millis: int | None) -> str:
    """A time, in UTC."""
    if millis is None:
        return ""
    return datetime.fromtimestamp(millis / 1000, tz=UTC).strftime("%Y-%m-%d %H:%M:%S")
