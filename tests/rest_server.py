"""A small REST catalog for tests, on loopback in this process: a filesystem catalog behind HTTP.

It writes down what it is asked, and fails on demand: before or after the effect of a request.
"""

import json
import re
import ssl
import threading
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from emberlake.catalog import Catalog, CatalogFactory, FileSystemCatalog
from emberlake.catalog.rules import altered_schema
from emberlake.errors import EmberlakeError, TableNotFound
from emberlake.io import LocalStorage
from emberlake.options import QUERY_AUTH
from emberlake.rest.changes import changes_from_json
from emberlake.rest.commits import CommitRequest, RemoteSnapshot
from emberlake.rest.errors import ErrorAnswer, ResourceType
from emberlake.rest.paths import CONFIG_PATH, find_route
from emberlake.rest.values import (
    NewTable,
    RegisteredTable,
    RemoteDatabase,
    RemoteTable,
    Rename,
    page_to_json,
    schema_from_json,
    schema_to_json,
)
from emberlake.spec.identifier import Identifier
from emberlake.spec.instant import Instant
from emberlake.spec.layout import TableLayout
from emberlake.spec.new_table import build_table_schema
from emberlake.store.schemas import SchemaStore
from emberlake.table import Table
from servers import Server

TOKEN = "token-of-the-tests"
PREFIX = "a prefix"


@dataclass
class Fault:
    """The requests that fail, and how: ``before`` or ``after`` their effect, without an answer."""

    match: str = ""  # of "POST /v1/..."
    status: int = 500
    when: str = "before"
    is_dropped: bool = False
    times: int = 1
    skips: int = 0  # so many requests first
    then: Callable[[], object] = lambda: None  # called before the answer
    body: Mapping[str, Any] | None = None
    headers: Mapping[str, str] = field(default_factory=dict)


class Refused(Exception):
    """An answer that is an error."""

    def __init__(self, answer: ErrorAnswer) -> None:
        super().__init__(answer.message)
        self.answer = answer


@dataclass
class RestServer:
    """The catalog and what was asked of it."""

    folder: Path
    page_size: int = 100
    warehouse: str = "w h"
    config: dict[str, dict[str, str]] = field(default_factory=dict)
    faults: list[Fault] = field(default_factory=list)
    log: list[tuple[str, str, Any]] = field(default_factory=list)  # method, path, body
    headers: list[Mapping[str, str]] = field(default_factory=list)
    views: dict[tuple[str, str], dict[str, Any]] = field(default_factory=dict)
    functions: dict[tuple[str, str], dict[str, Any]] = field(default_factory=dict)
    token_answer: Callable[[], dict[str, Any]] | None = None
    answer_headers: Mapping[str, str] = field(default_factory=dict)
    plain: Mapping[str, bytes] = field(default_factory=dict)  # by path: what anybody may get
    forgets_uuids: bool = False  # as servers of Java Paimon up to 1.4 do
    # What may be read of some columns of tables with query auth.
    rules: Callable[[list[str]], Mapping[str, Any]] = lambda _: {
        "filter": None,
        "columnMasking": None,
    }
    uri: str = ""

    def __post_init__(self) -> None:
        self.catalog: Catalog = FileSystemCatalog(LocalStorage(), str(self.folder))
        self.ids: dict[tuple[str, str], str] = {}
        self.external: dict[tuple[str, str], str] = {}
        self.properties: dict[str, dict[str, str]] = {}
        self.lock = threading.RLock()

    def served_from(self, store: Server, warehouse: str) -> None:
        """Keep tables in an object store instead, with the keys of the store itself."""
        self.catalog = CatalogFactory.create({"warehouse": warehouse, **store.options})

    @property
    def options(self) -> dict[str, str]:
        """The catalog options that reach it."""
        return {
            "metastore": "rest",
            "uri": self.uri,
            "warehouse": self.warehouse,
            "token.provider": "bear",
            "token": TOKEN,
            "rest.client.max-retries": "3",
        }

    def open(self, **options: object) -> Catalog:
        return CatalogFactory.create({**self.options, **options})

    def fail(self, match: str = "", **how: Any) -> None:
        self.faults.append(Fault(match, **how))

    def next_fault(self, line: str) -> Fault | None:
        for fault in self.faults:
            if not fault.times or not re.search(fault.match, line):
                continue
            if fault.skips:
                fault.skips -= 1
                continue
            fault.times -= 1
            return fault
        return None

    def asked(self, match: str) -> list[Any]:
        """The bodies of the requests that match."""
        return [body for method, path, body in self.log if re.search(match, f"{method} {path}")]

    # --- answers ----------------------------------------------------------------------------------

    def answer(self, method: str, target: str, raw: bytes, headers: Mapping[str, str]) -> Any:
        if headers.get("Authorization") != f"Bearer {TOKEN}":
            raise Refused(ErrorAnswer(401, "No auth for this resource"))
        url = urlsplit(target)
        query = dict(parse_qsl(url.query, keep_blank_values=True))
        if url.path == CONFIG_PATH:
            assert query["warehouse"] == self.warehouse
            return {"defaults": {"prefix": PREFIX}, "overrides": {}, **self.config}
        base, _, below = url.path.partition("/a+prefix/")
        route = find_route(method, tuple(below.split("/"))) if base == "/v1" else None
        if route is None:
            raise Refused(ErrorAnswer(404, f"no path {url.path}"))
        body = json.loads(raw) if raw else None
        handler = getattr(self, route.endpoint.name.lower(), None)
        if handler is None:
            raise Refused(ErrorAnswer(501, f"no {route.endpoint.name}"))
        with self.lock:
            return handler(query, body, *route.names.values())

    def list_databases(self, query, _body):
        return self._page("databases", self.catalog.list_databases(), query)

    def create_database(self, _query, body):
        self.catalog.create_database(body["name"])
        self.properties[body["name"]] = body["options"] or {}

    def get_database(self, _query, _body, name):
        self.catalog.get_database(name)
        return RemoteDatabase(name=name, options=self.properties.get(name, {})).to_json()

    def alter_database(self, _query, body, name):
        self.catalog.get_database(name)
        self.properties[name].update(body["updates"])
        for key in body["removals"]:
            self.properties[name].pop(key, None)
        return {"removed": [], "updated": [], "missing": []}

    def drop_database(self, _query, _body, name):
        self.catalog.drop_database(name, cascade=True)

    def list_tables(self, query, _body, database):
        names = {
            *self.catalog.list_tables(database),
            *(t for d, t in self.external if d == database),
        }
        return self._page("tables", sorted(names), query)

    def create_table(self, _query, body, database):
        request = NewTable.from_json(body)
        assert request.identifier.database == database
        if request.schema.options.get(QUERY_AUTH.key) == "true":
            self._create_guarded(request)
        else:
            self.catalog.create_table(request.identifier, request.schema)
        self.ids[database, request.identifier.table] = str(uuid.uuid4())

    def register_table(self, _query, body, database):
        request = RegisteredTable.from_json(body)
        name = database, request.identifier.table
        self.ids[name], self.external[name] = str(uuid.uuid4()), request.path

    def get_table(self, _query, _body, database, name):
        return self._described(self._open(database, name), database, name)

    def alter_table(self, _query, body, database, name):
        identifier, changes = Identifier(database, name), changes_from_json(body)
        store = self._open(database, name).store
        if not store.is_guarded:
            self.catalog.alter_table(identifier, changes)
            return
        changed = altered_schema(  # a filesystem catalog keeps no such tables
            identifier, store.schema, changes, has_snapshots=True, time_millis=0, for_others=True
        )
        assert store.schemas.create(changed)

    def drop_table(self, _query, _body, database, name):
        if self.external.pop((database, name), None) is None:
            self.catalog.drop_table(Identifier(database, name))

    def rename_table(self, _query, body):
        rename = Rename.from_json(body)
        self.catalog.rename_table(rename.source, rename.destination)
        source, target = rename.source, rename.destination
        self.ids[target.database, target.table] = self.ids.pop((source.database, source.table))

    def get_snapshot(self, _query, _body, database, name):
        latest = self._open(database, name).latest_snapshot()
        if latest is None:
            raise Refused(ErrorAnswer(404, "No Snapshot", ResourceType.SNAPSHOT, name))
        return {"snapshot": RemoteSnapshot(snapshot=latest).to_json()}

    def commit(self, _query, body, database, name):
        request, table = CommitRequest.from_json(body), self._open(database, name)
        if request.table_id != self.ids[database, table.identifier.table]:
            raise TableNotFound("created anew", identifier=table.identifier)
        snapshots, new = table.store.snapshots, request.snapshot
        standing = snapshots.find(new.id)
        if standing is not None:
            return {"success": standing == new and not self.forgets_uuids}
        latest = snapshots.latest()
        if new.id != (0 if latest is None else latest.id) + 1:
            return {"success": False}
        if request.base_snapshot_uuid != (None if latest is None else latest.uuid):
            return {"success": False}
        if self.forgets_uuids:
            new = replace(new, uuid=None)
        assert snapshots.publish(new)
        snapshots.write_latest_hint(new.id)
        return {"success": True}

    def rollback(self, _query, body, database, name):
        table = self._open(database, name)
        instant = Instant.from_dict(body["instant"])
        table.rollback_to(getattr(instant, "snapshot_id", None) or instant.tag_name)

    def get_token(self, _query, _body, database, name):
        self._open(database, name)
        if self.token_answer is None:
            raise Refused(ErrorAnswer(501, "no tokens"))
        return self.token_answer()

    def authorize(self, _query, body, database, name):
        self._open(database, name)
        return self.rules(body["select"])

    def list_branches(self, _query, _body, database, name):
        return {"branches": self._open(database, name).list_branches()}

    def create_branch(self, _query, body, database, name):
        self._open(database, name).create_branch(body["branch"], body["fromTag"])

    def drop_branch(self, _query, _body, database, name, branch):
        self._open(database, name).delete_branch(branch)

    def rename_branch(self, _query, body, database, name, branch):
        self._open(database, name).rename_branch(branch, body["toBranch"])

    def forward_branch(self, _query, _body, database, name, branch):
        self._open(database, name).fast_forward(branch)

    def list_views(self, query, _body, database):
        return self._page("views", [v for d, v in self.views if d == database], query)

    def get_view(self, _query, _body, database, name):
        if (database, name) not in self.views:
            raise Refused(ErrorAnswer(404, "no view", ResourceType.VIEW, name))
        return self.views[database, name]

    def list_functions(self, query, _body, database):
        return self._page("functions", [f for d, f in self.functions if d == database], query)

    def get_function(self, _query, _body, database, name):
        if (database, name) not in self.functions:
            raise Refused(ErrorAnswer(404, "no function", ResourceType.FUNCTION, name))
        return self.functions[database, name]

    # --- parts ------------------------------------------------------------------------------------

    def _open(self, database: str, name: str) -> Table:
        if (database, name) in self.external:
            return Table.from_path(self.external[database, name])
        return self.catalog.get_table(Identifier(database, name))

    def _create_guarded(self, request: NewTable) -> None:
        """A table that a filesystem catalog does not create."""
        first = build_table_schema(request.schema, time_millis=0, for_others=True)
        layout = TableLayout(
            f"{self.folder}/{request.identifier.database}.db/{request.identifier.table}"
        )
        assert SchemaStore(LocalStorage(), layout).create(first)

    def _described(self, table: Table, database: str, name: str) -> dict[str, Any]:
        schema = table.table_schema
        return RemoteTable(
            id=self.ids[database, name.partition("$")[0]],
            database=database,
            name=name,
            path=table.table_path if "://" in table.table_path else f"file://{table.table_path}",
            is_external=(database, name) in self.external,
            schema_id=schema.id,
            schema=schema_from_json(schema_to_json(schema)),
        ).to_json() | {"updatedAt": schema.time_millis}

    def _page(self, key: str, names: list[str], query: Mapping[str, str]) -> dict[str, Any]:
        left = [name for name in sorted(names) if name > query.get("pageToken", "")]
        page = left[: self.page_size]
        # A full page has a token even when nothing follows, as Java's own server has it.
        return page_to_json(key, page, page[-1] if len(page) == self.page_size else None)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: "_Listener"

    def log_message(self, *_: object) -> None: ...

    def _serve(self) -> None:
        rest = self.server.rest
        if self.path in rest.plain:
            self._write_bytes(200, rest.plain[self.path], {})
            return
        raw = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        path = urlsplit(self.path).path
        with rest.lock:
            rest.log.append((self.command, self.path, json.loads(raw) if raw else None))
            rest.headers.append(dict(self.headers.items()))
            fault = rest.next_fault(f"{self.command} {path}")
        status, answer = 200, None
        if fault is None or fault.when == "after":
            status, answer = self._answered(rest, raw)
        if fault is not None:
            fault.then()
            if fault.is_dropped:
                self.close_connection = True
                return
            status, answer = fault.status, fault.body
        self._write(status, answer, {} if fault is None else fault.headers)

    def _answered(self, rest: RestServer, raw: bytes) -> tuple[int, Any]:
        try:
            return 200, rest.answer(self.command, self.path, raw, self.headers)
        except Refused as refusal:
            return refusal.answer.code, refusal.answer.to_json()
        except EmberlakeError as error:
            answer = ErrorAnswer.of_error(error)
            return answer.code, answer.to_json()

    def _write(self, status: int, answer: Any, headers: Mapping[str, str]) -> None:
        self._write_bytes(status, b"" if answer is None else json.dumps(answer).encode(), headers)

    def _write_bytes(self, status: int, data: bytes, headers: Mapping[str, str]) -> None:
        more = {**self.server.rest.answer_headers, **headers}
        lines = {"Content-Length": str(len(data)), "x-request-id": "r-1", **more}
        head = "".join(f"{name}: {text}\r\n" for name, text in lines.items())
        self.wfile.write(f"HTTP/1.1 {status} X\r\n{head}\r\n".encode() + data)

    do_GET = do_POST = do_DELETE = _serve  # noqa: N815 - names of the library


class _Listener(ThreadingHTTPServer):
    daemon_threads = True
    rest: RestServer

    def handle_error(self, *_: object) -> None: ...


@contextmanager
def serving(
    folder: Path, tls: tuple[Path, Path] | None = None, **arguments: Any
) -> Iterator[RestServer]:
    """A server with an empty warehouse in a folder; ``tls`` is a certificate and its key."""
    rest = RestServer(folder, **arguments)
    listener = _Listener(("127.0.0.1", 0), _Handler)
    listener.rest = rest
    rest.uri = f"{'https' if tls else 'http'}://127.0.0.1:{listener.server_address[1]}"
    if tls:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(*tls)
        listener.socket = context.wrap_socket(listener.socket, server_side=True)
    thread = threading.Thread(target=listener.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield rest
    finally:
        listener.shutdown()
        listener.server_close()
