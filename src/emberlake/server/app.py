"""HTTP: an ASGI application that routes requests, identifies callers, and returns errors as JSON.

The most frequent requests (for a table or its latest snapshot) are answered on the event loop, with
one query. Everything else runs in threads; commits that arrive together are made together.
"""

import asyncio
import json
import logging
import re
import time
from collections.abc import Awaitable, Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final, TypeVar
from urllib.parse import parse_qsl, unquote_plus

from emberlake.errors import EmberlakeError, NotAuthenticated
from emberlake.rest.errors import ErrorAnswer
from emberlake.rest.paths import VERSION, Endpoint, Route, decode_name, find_route, methods_of
from emberlake.rest.reading import encode_json, parse_json
from emberlake.rest.values import Config
from emberlake.server.access.authentication import Authentication, Identity
from emberlake.server.access.grants import Principal, Resource, ResourceKind
from emberlake.server.access.needs import NEEDS, is_allowed, resource_of
from emberlake.server.audit import AuditLog, Entry, resource_text
from emberlake.server.calls import Call, Refused, Services, forbidden, missing
from emberlake.server.commit_queue import CommitQueue
from emberlake.server.endpoints.handlers import HANDLERS, Answer
from emberlake.server.endpoints.query_auth import check_columns
from emberlake.server.endpoints.snapshots import snapshot_answer
from emberlake.server.endpoints.tables import table_answer
from emberlake.server.failures import answer_of
from emberlake.server.heads import NamedTable, split_object
from emberlake.server.metrics import Metrics
from emberlake.server.records import TABLE, table_record
from emberlake.server.settings import Limits, is_loopback
from emberlake.server.warehouses import Warehouse

Scope = Mapping[str, Any]
Receive = Callable[[], Awaitable[Mapping[str, Any]]]
Send = Callable[[dict[str, Any]], Awaitable[None]]
T = TypeVar("T")

LOG: Final = logging.getLogger("emberlake.server")
_REQUEST_ID: Final = re.compile(rb"[A-Za-z0-9._-]{1,64}")
_JSON: Final = (b"content-type", b"application/json")
_TEXT: Final = (b"content-type", b"text/plain; version=0.0.4; charset=utf-8")
# Announced in the specification; nothing calls them yet.
_NOT_YET: Final = frozenset({"policies", "semantic-views"})


@dataclass
class Exchange:
    """One request while it is answered."""

    request_id: str
    method: str
    endpoint: Endpoint | None = None
    names: Mapping[str, str] = field(default_factory=dict)
    principal: str = ""
    catalog: str = ""
    action: str = "unknown"
    resource: str = ""


class App:
    """The server as an ASGI application."""

    def __init__(
        self,
        services: Services,
        authentication: Authentication,
        warehouses: Mapping[str, Warehouse],
        limits: Limits,
    ) -> None:
        self._services = services
        self._authentication = authentication
        self._warehouses = warehouses
        self._limits = limits
        self._metrics = Metrics()
        self._audit = AuditLog(services.database, services.env)
        self._threads = ThreadPoolExecutor(limits.threads, thread_name_prefix="work")
        self._commits = CommitQueue(services.heads, self._threads)
        self._waiting = 0
        self._is_ready = False

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One connection's request, or the start and end of the server."""
        if scope["type"] == "lifespan":
            await self._live(receive, send)
        elif scope["type"] == "http":
            await self._answer(scope, receive, send)

    async def start(self) -> None:
        """Get ready on the event loop that runs."""
        await self._services.database.start()
        self._audit.start()
        self._is_ready = True

    async def stop(self) -> None:
        """Finish what was begun."""
        self._is_ready = False
        loop = asyncio.get_running_loop()
        await loop.run_in_executor(None, self._threads.shutdown)
        await loop.run_in_executor(None, self._commits.stop)
        await loop.run_in_executor(None, self._audit.stop)
        await self._services.database.stop()

    async def _live(self, receive: Receive, send: Send) -> None:
        while True:
            message = await receive()
            if message["type"] == "lifespan.startup":
                try:
                    await self.start()
                except EmberlakeError as error:
                    await send({"type": "lifespan.startup.failed", "message": str(error)})
                    return
                await send({"type": "lifespan.startup.complete"})
            else:
                await self.stop()
                await send({"type": "lifespan.shutdown.complete"})
                return

    # --- one request ------------------------------------------------------------------------------

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        began = time.perf_counter()
        headers = dict(scope["headers"])
        exchange = Exchange(self._request_id(headers), scope["method"])
        self._metrics.in_flight += 1
        status, extra = 200, []
        try:
            body, kind = await self._respond(scope, headers, receive, exchange)
        except Exception as error:
            answer = answer_of(error, exchange.endpoint, exchange.names, exchange.request_id)
            status, body, kind = answer.code, encode_json(answer.to_json()), _JSON
            extra = _extra_headers(answer)
            if status == 500:
                LOG.exception("request %s failed", exchange.request_id)
        finally:
            self._metrics.in_flight -= 1
        self._note(exchange, status, time.perf_counter() - began)
        await send(
            {
                "type": "http.response.start",
                "status": status,
                "headers": [
                    kind,
                    (b"content-length", str(len(body)).encode()),
                    (b"x-request-id", exchange.request_id.encode()),
                    *extra,
                ],
            }
        )
        await send({"type": "http.response.body", "body": body})

    async def _respond(
        self, scope: Scope, headers: Mapping[bytes, bytes], receive: Receive, exchange: Exchange
    ) -> tuple[bytes, tuple[bytes, bytes]]:
        path = (scope.get("raw_path") or scope["path"].encode()).partition(b"?")[0]
        match path:
            case b"/health":
                exchange.action = "health"
                return b'{"status": "up"}', _JSON
            case b"/ready":
                exchange.action = "ready"
                return await self._ready(), _JSON
            case b"/metrics":
                exchange.action = "metrics"
                return self._metrics.text().encode(), _TEXT
            case _:
                pass
        identity = await self._identify(headers)
        exchange.principal = identity.name
        segments = tuple(path.decode("ascii", "strict").split("/")[1:])
        query = dict(parse_qsl(scope["query_string"].decode("ascii", "replace")))
        if segments == (VERSION, "config"):
            exchange.action = "config"
            return encode_json(self._config(query).to_json()), _JSON
        route, warehouse = self._route(exchange.method, segments)
        exchange.endpoint, exchange.names = route.endpoint, route.names
        exchange.resource = resource_text(route.names.values(), None)
        exchange.catalog, exchange.action = warehouse.name, route.endpoint.name.lower()
        principal = await self._authentication.principal(identity, warehouse.name)
        await self._authorise(principal, warehouse, route)
        body = await self._read_body(receive) if exchange.method == "POST" else None
        exchange.resource = resource_text(route.names.values(), body)
        call = Call(principal, warehouse, route.names, query, body, exchange.request_id)
        return _encoded(await self._answer_to(route.endpoint, call)), _JSON

    async def _answer_to(self, endpoint: Endpoint, call: Call) -> Answer:
        if endpoint is Endpoint.COMMIT:
            return await self._commit(call)
        quick = await self._quick_answer(call, endpoint)
        return quick if quick is not None else await self._work(endpoint, call)

    async def _identify(self, headers: Mapping[bytes, bytes]) -> Identity:
        header = headers.get(b"authorization")
        if header is None and _is_of_a_page(headers):
            raise NotAuthenticated("requests of web pages, and to other names, need a token")
        return await self._authentication.identify(
            None if header is None else header.decode("latin-1")
        )

    def _config(self, query: Mapping[str, str]) -> Config:
        name = query.get("warehouse")
        if name is None and len(self._warehouses) == 1:
            (name,) = self._warehouses
        # Some clients encode the name twice.
        found = self._warehouses.get(name or "") or self._warehouses.get(unquote_plus(name or ""))
        if found is None:
            raise Refused(404, f"this server has no warehouse {name!r}")
        defaults = {"prefix": found.name}
        if not self._services.vend.is_enabled(found):
            return Config(defaults, {})
        insisted = {"data-token.enabled": "true"}
        return Config({**defaults, **insisted}, insisted)

    def _route(self, method: str, segments: tuple[str, ...]) -> tuple[Route, Warehouse]:
        if len(segments) < 2 or segments[0] != VERSION:
            raise Refused(404, "there is nothing at this path")
        try:
            warehouse = self._warehouses.get(decode_name(segments[1]))
            route = find_route(method, segments[2:])
        except ValueError:
            raise Refused(400, "the path is not UTF-8 in form encoding") from None
        if warehouse is None:
            raise Refused(404, "there is no such prefix; ask for it with GET /v1/config")
        if route is None:
            if methods_of(segments[2:]):
                raise Refused(405, f"this path has no method {method}")
            if _NOT_YET.intersection(segments[2:]):
                raise Refused(501, "this server does not support that")
            raise Refused(404, "there is nothing at this path")
        if any("\0" in name for name in route.names.values()):
            raise Refused(400, "a name has a character that names cannot have")
        return route, warehouse

    async def _authorise(self, principal: Principal, warehouse: Warehouse, route: Route) -> None:
        need = NEEDS[route.endpoint]
        resource = resource_of(route.endpoint, route.names)
        if is_allowed(principal, need, resource):
            return
        # Only those who may list names, or take them, may learn that one is free.
        # This is answered here: by the time a handler looks, somebody may have created it.
        if resource.name and principal.knows_names(resource.database):
            found = await self._is_there(warehouse, resource)
            if not found:
                raise missing(resource)
        raise forbidden(resource)

    async def _is_there(self, warehouse: Warehouse, resource: Resource) -> bool:
        table, kind = ("tables", "") if resource.kind is ResourceKind.TABLE else (
            "objects", f" AND o.kind = '{resource.kind.lower()}'")  # fmt: skip
        rows = await self._services.database.fetch(
            f"SELECT o.id FROM databases d JOIN {table} o ON o.database_id = d.id "  # noqa: S608
            f"WHERE d.catalog = ? AND d.name = ? AND o.name = ?{kind}",
            warehouse.name,
            resource.database,
            resource.name,
        )
        return bool(rows)

    async def _read_body(self, receive: Receive) -> Any:
        parts, size = [], 0
        try:
            async with asyncio.timeout(self._limits.body_seconds):
                while True:
                    message = await receive()
                    if message["type"] == "http.disconnect":
                        raise Refused(400, "the client has gone")
                    part = message.get("body", b"")
                    size += len(part)
                    if size > self._limits.body_bytes:
                        limit = self._limits.body_bytes
                        raise Refused(413, f"a request may have {limit:,} bytes")
                    parts.append(part)
                    if not message.get("more_body"):
                        return parse_json(b"".join(parts), "the body")
        except TimeoutError:
            raise Refused(408, "the body took too long to arrive") from None

    async def _quick_answer(self, call: Call, endpoint: Endpoint) -> bytes | None:
        """The answer, if one query is enough; None if there is more to do."""
        if endpoint not in (Endpoint.GET_TABLE, Endpoint.GET_SNAPSHOT):
            return None
        table, branch = split_object(call.names["table"])
        rows = await self._services.database.fetch(
            TABLE, call.warehouse.name, call.names["database"], table, branch
        )
        if not rows:
            return None
        found = table_record(rows[0])
        if endpoint is Endpoint.GET_TABLE:
            if found.is_external or found.pending_since is not None:
                return None
            check_columns(call, found)
            return table_answer(found)
        if self._services.heads.may_be_behind(call.warehouse, found) or (
            found.totals is None and found.snapshot is not None
        ):
            return None
        check_columns(call, found)
        return snapshot_answer(found)

    async def _table_to_commit(self, call: Call) -> NamedTable | None:
        """The table of a commit that can be made together with others; None if it needs more."""
        if not call.warehouse.is_local:
            return None
        database, name = call.names["database"], call.names["table"]
        known = self._commits.known(call.warehouse, database, name)
        if known is not None:
            return known
        rows = await self._services.database.fetch(
            TABLE, call.warehouse.name, database, *split_object(name)
        )
        found = table_record(rows[0]) if rows else None
        if found is None or found.is_external:
            return None
        return NamedTable(database, name, found.id)

    async def _commit(self, call: Call) -> Answer:
        """Commit together with others, if that is faster."""
        table = await self._table_to_commit(call)
        if table is None:
            return await self._work(Endpoint.COMMIT, call)
        begin = partial(self._commits.add, call.warehouse, table, call.body)
        return {"success": await self._awaited(Endpoint.COMMIT, begin)}

    async def _work(self, endpoint: Endpoint, call: Call) -> Answer:
        """Answer in a thread."""
        loop, handler = asyncio.get_running_loop(), HANDLERS[endpoint]
        begin = partial(loop.run_in_executor, self._threads, handler, self._services, call)
        return await self._awaited(endpoint, begin)

    async def _awaited(self, endpoint: Endpoint, begin: "Callable[[], asyncio.Future[T]]") -> T:
        """The result of work that begins now, unless the server is busy or it takes too long."""
        if self._waiting >= self._limits.threads + self._limits.waiting:
            raise Refused(503, "the server is busy; try again")
        self._waiting += 1
        work = begin()
        work.add_done_callback(self._done)
        try:
            return await asyncio.wait_for(asyncio.shield(work), self._limits.work_seconds)
        except TimeoutError:
            code = 503 if endpoint is Endpoint.COMMIT or endpoint.method == "GET" else 500
            raise Refused(code, "this took too long; whether it will be done is unknown") from None

    def _done(self, work: "asyncio.Future[Any]") -> None:
        self._waiting -= 1
        if not work.cancelled():
            work.exception()  # marks it as seen: asyncio would log an error that nobody waited for

    async def _ready(self) -> bytes:
        if not self._is_ready:
            raise Refused(503, "the server is starting or stopping")
        await self._services.database.fetch("SELECT 1")
        return b'{"status": "ready"}'

    def _request_id(self, headers: Mapping[bytes, bytes]) -> str:
        given = headers.get(b"x-request-id", b"")
        return given.decode() if _REQUEST_ID.fullmatch(given) else self._services.env.new_id()

    def _note(self, exchange: Exchange, status: int, seconds: float) -> None:
        self._metrics.count(exchange.action, status, seconds)
        changes = exchange.method != "GET" and exchange.endpoint is not None
        if not changes and status not in (401, 403):
            return
        self._audit.add(
            Entry(
                exchange.principal,
                exchange.request_id,
                exchange.action,
                exchange.catalog,
                exchange.resource,
                status,
            )
        )


def _is_of_a_page(headers: Mapping[bytes, bytes]) -> bool:
    """Whether a web page may have sent this through a browser, to act for its user."""
    name = headers.get(b"host", b"localhost").decode("latin-1")
    host = re.sub(r":\d*$", "", name).strip("[]")
    return b"origin" in headers or not is_loopback(host)


def _encoded(answer: Answer) -> bytes:
    if answer is None:
        return b""
    return answer if isinstance(answer, bytes) else json.dumps(answer, ensure_ascii=False).encode()


def _extra_headers(answer: ErrorAnswer) -> list[tuple[bytes, bytes]]:
    match answer.code:
        case 429 | 503:
            return [(b"retry-after", b"1")]
        case 401:
            return [(b"www-authenticate", b"Bearer")]
        case 408 | 413:
            return [(b"connection", b"close")]
        case _:
            return []
