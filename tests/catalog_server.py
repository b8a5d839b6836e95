"""A REST catalog server inside of a test: no socket, no process, requests by a function call."""

import asyncio
import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from emberlake.base.env import SYSTEM_ENV, Env
from emberlake.rest.paths import encode_name
from emberlake.server.serving import Server, build_server
from emberlake.server.settings import Limits, Settings
from emberlake.server.warehouses import Warehouse, open_warehouse

TOKEN = "token-of-the-administrator"
SCHEMA = {
    "fields": [
        {"id": 0, "name": "k", "type": "BIGINT NOT NULL"},
        {"id": 1, "name": "v", "type": "STRING"},
    ],
    "partitionKeys": [],
    "primaryKeys": ["k"],
    "options": {"bucket": "1"},
    "comment": None,
}


@dataclass(frozen=True)
class Reply:
    """What a client gets."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def error(self) -> tuple[int, str | None, str | None]:
        """The code, the type of the resource and its name; the status says the same."""
        found = self.json
        assert found["code"] == self.status
        assert found["message"]
        return found["code"], found["resourceType"], found["resourceName"]


@dataclass
class Client:
    """Sends requests as one principal."""

    server: Server
    runner: asyncio.Runner
    token: str | None = TOKEN
    prefix: str = "/v1/lake"
    headers: dict[str, str] = field(default_factory=dict)

    def get(self, path: str, **query: object) -> Reply:
        text = "&".join(f"{key}={encode_name(str(value))}" for key, value in query.items())
        return self.send("GET", path, query=text)

    def post(self, path: str, body: object = None) -> Reply:
        return self.send("POST", path, b"" if body is None else json.dumps(body).encode())

    def delete(self, path: str) -> Reply:
        return self.send("DELETE", path)

    def as_(self, token: str | None) -> "Client":
        return Client(self.server, self.runner, token, self.prefix)

    def send(self, method: str, path: str, body: bytes = b"", query: str = "") -> Reply:
        """A request; paths that begin with ``!`` are not below the prefix."""
        raw = path[1:] if path.startswith("!") else self.prefix + path
        headers = dict(self.headers)
        if self.token is not None:
            headers["authorization"] = f"Bearer {self.token}"
        return self.runner.run(self._send(method, raw, headers, body, query))

    def post_together(self, requests: Sequence[tuple[str, object]]) -> list[Reply]:
        """Requests that are all sent before the first one is answered."""
        headers = {"authorization": f"Bearer {self.token}"}

        async def send() -> list[Reply]:
            sent = (
                self._send("POST", self.prefix + path, headers, json.dumps(body).encode(), "")
                for path, body in requests
            )
            return await asyncio.gather(*sent)

        return self.runner.run(send())

    async def _send(
        self, method: str, path: str, headers: dict[str, str], body: bytes, query: str
    ) -> Reply:
        sent: list[dict[str, Any]] = []
        scope = {
            "type": "http",
            "method": method,
            "path": path,
            "raw_path": path.encode(),
            "query_string": query.encode(),
            "headers": [(key.lower().encode(), value.encode()) for key, value in headers.items()],
        }

        async def receive() -> dict[str, Any]:
            return {"type": "http.request", "body": body, "more_body": False}

        async def send(message: dict[str, Any]) -> None:
            sent.append(message)

        await self.server.app(scope, receive, send)
        start, *parts = sent
        return Reply(
            start["status"],
            {key.decode(): value.decode() for key, value in start["headers"]},
            b"".join(part.get("body", b"") for part in parts),
        )

    # --- what tests need again and again ----------------------------------------------------------

    def database(self, name: str = "db") -> "Client":
        assert self.post("/databases", {"name": name, "options": {}}).status == 200
        return self

    def table(self, name: str = "t", database: str = "db", **options: str) -> str:
        """Create a table; its id."""
        schema = {**SCHEMA, "options": {**SCHEMA["options"], **options}}  # type: ignore[dict-item]
        body = {"identifier": {"database": database, "object": name}, "schema": schema}
        reply = self.post(f"/databases/{database}/tables", body)
        assert reply.status == 200, reply.body
        path = f"/databases/{encode_name(database)}/tables/{encode_name(name)}"
        found: str = self.get(path).json["id"]
        return found

    def commit(self, snapshot: dict[str, Any], table: str = "db/tables/t", **more: Any) -> Reply:
        body = {"tableId": None, "snapshot": snapshot, "statistics": [], **more}
        return self.post(f"/databases/{table}/commit", body)

    def commits(self, count: int, table: str = "db/tables/t") -> None:
        """Commit that many snapshots, the first one first."""
        for number in range(1, count + 1):
            assert self.commit(snapshot(number), table).json == {"success": True}


def snapshot(number: int, user: str = "u", **more: Any) -> dict[str, Any]:
    """A snapshot whose manifest lists nobody reads."""
    return {
        "version": 3,
        "uuid": f"uuid-{user}-{number}",
        "id": number,
        "schemaId": 0,
        "baseManifestList": f"manifest-list-{user}-{number}-0",
        "deltaManifestList": f"manifest-list-{user}-{number}-1",
        "commitUser": user,
        "commitIdentifier": 2**63 - 1,
        "commitKind": "APPEND",
        "timeMillis": 1_700_000_000_000 + number,
        "totalRecordCount": number,
        "deltaRecordCount": 1,
        **more,
    }


@contextmanager
def serving(
    folder: Path,
    *,
    database: str | None = None,
    warehouses: tuple[Warehouse, ...] | None = None,
    env: Env = SYSTEM_ENV,
    limits: Limits | None = None,
    **settings: Any,
) -> Iterator[Client]:
    """A server on a folder, whose administrator has a known token."""
    lakes = warehouses or (open_warehouse("lake", str(folder / "lake"), {}),)
    server = build_server(
        Settings(
            warehouses=lakes,
            database=database or str(folder / "server.db"),
            remember_ms=-1,  # tests change grants behind the server's back
            limits=limits or Limits(threads=4),
            **settings,
        ),
        first_token=TOKEN,
        env=env,
    )
    with asyncio.Runner() as runner:
        runner.run(server.app.start())
        try:
            yield Client(server, runner)
        finally:
            runner.run(server.app.stop())
            server.services.database.close()
