"""Whatever comes in: an error as JSON with the right code, nothing leaked, nothing broken."""

import asyncio
import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from catalog_server import TOKEN, Client, serving
from emberlake.base.env import Env
from emberlake.rest.paths import Endpoint
from emberlake.server.settings import Limits
from server_requests import BODIES, FUNCTION_BODY, VIEW_BODY, path_of_request

T = "/databases/db/tables/t"
TRICKS = (
    "..", ".", "%2E%2E", "..%2F..%2Fetc", "%2Fetc%2Fpasswd", "a%2F..%2Fb", "%00", "a%00b", "%0A",
    "%5C..%5C", "%24", "t%24branch_..%2F..", "t%24branch_%2Fx", "t%24snapshots", "%7Fx",
    "%F0%9F%92%A9", "%C0%AE", "%ff", "%E2%80%AE", "a" * 300, "%27%3B+DROP+TABLE+tables", "-",
    "%C2%B2", "9" * 5000,
)  # fmt: skip
WRONG: tuple[Any, ...] = (
    None, [], "x", 5, True, {}, {"identifier": 5, "schema": "x"}, {"name": 5}, {"name": ["a"]},
    {"identifier": {"database": "db", "object": ["t"]}, "schema": {}}, {"changes": {}},
    {"changes": [5]}, {"changes": [{"action": 5}]}, {"changes": [{"action": "addColumn"}]},
    {"snapshot": []}, {"snapshot": {"id": "1"}}, {"snapshot": {"id": 1e400}}, {"specs": [5]},
    {"instant": "x"}, {"instant": {"type": "snapshot", "snapshotId": "1"}}, {"schemaId": "0"},
    {"branch": "../x"}, {"tagName": "../x"}, {"toBranch": "a/b"}, {"consumerId": "../../x"},
    {"source": 1, "destination": 2}, {"resource": {"type": "X"}, "access": "Y"},
    {"name": "\ud800", "options": {}}, {"name": "a\u0000b", "options": {"k": "\u0000"}},
    {"path": "../../etc", "identifier": {"database": "db", "object": "x"}},
    {"select": 5}, {"maxResults": "x"}, {"removals": 5, "updates": 6},
)  # fmt: skip


@pytest.fixture(scope="module")
def clock() -> list[int]:
    return [int(time.time() * 1000)]


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory, clock: list[int]) -> Iterator[Client]:
    env = Env(now_ms=lambda: clock[0])
    limits = Limits(threads=2, body_bytes=1_000_000, body_seconds=0.2)
    with serving(tmp_path_factory.mktemp("abuse"), env=env, limits=limits) as admin:
        admin.database().table()
        admin.post("/databases/db/views", VIEW_BODY)
        admin.post("/databases/db/functions", FUNCTION_BODY)
        yield admin


def request(client: Client, endpoint: Endpoint, **names: str) -> tuple[int, Any]:
    body = json.dumps(BODIES[endpoint]).encode() if endpoint in BODIES else b""
    reply = client.send(endpoint.method, path_of_request(endpoint, **names), body)
    if reply.status >= 400:
        return reply.status, reply.error
    return reply.status, None


@pytest.mark.parametrize("endpoint", Endpoint)
def test_no_endpoint_answers_without_a_valid_token(
    client: Client, clock: list[int], endpoint: Endpoint
) -> None:
    principals = client.server.services.principals
    if ("ann", False) not in principals.names():
        principals.create("ann", is_admin=False, by="test")
    over, _ = principals.issue_token("ann", by="test", expires_at=clock[0])
    revoked, identity = principals.issue_token("ann", by="test")
    principals.revoke_token(identity)

    for token in (None, "", "x", TOKEN + "x", TOKEN[:-1], over, revoked, "a.b.c", "é", "x" * 9000):
        status, error = request(client.as_(token), endpoint)

        assert status == 401, token
        assert error == (401, None, None)


def test_other_kinds_of_authorization_are_refused(client: Client) -> None:
    for header in (f"Basic {TOKEN}", "Bearer", "Bearer ", TOKEN, f"bearer  {TOKEN} x"):
        bare = client.as_(None)
        bare.headers["authorization"] = header
        assert bare.get("/databases").status == 401


def test_without_tokens_no_page_of_a_browser_is_answered(tmp_path: Path) -> None:
    with serving(tmp_path, anonymous=True) as admin:
        anybody = admin.as_(None)
        for headers in (
            {"origin": "https://evil.example"},
            {"origin": "null"},
            {"host": "evil.example:8080"},  # a name that leads here for a moment
            {"host": "[::1"},
        ):
            anybody.headers = headers
            assert anybody.post("/databases", {"name": "d", "options": {}}).error[0] == 401
        for host in ("127.0.0.1:8080", "localhost", "[::1]:80"):
            anybody.headers = {"host": host}
            assert anybody.get("/databases").json["databases"] == []


@pytest.mark.parametrize("endpoint", [each for each in Endpoint if "{" in each.value])
def test_names_lead_nowhere_else(client: Client, endpoint: Endpoint, tmp_path: Path) -> None:
    (lake,) = client.server.settings.warehouses
    root = Path(lake.location).parent
    before = {path for path in root.rglob("*") if lake.location not in str(path)}
    if endpoint is Endpoint.DROP_DATABASE:
        return
    for part in endpoint.segments:
        for trick in TRICKS if part.startswith("{") else ():
            status, _ = request(client, endpoint, **{part[1:-1]: trick})

            assert status in (200, 400, 404, 409, 501), (part, trick)
    assert {path for path in root.rglob("*") if lake.location not in str(path)} - before == {
        path for path in root.rglob("server.db*") if path not in before
    }


NAME_TRICKS = (
    "..", ".", "", "../../x", "/etc/x", "a/b", "a\\b", "a\0b", "\n", "x" * 300, "t$branch_../x",
    "file:///etc/x", "%2E%2E%2Fx", "'; DROP TABLE tables; --", "\u202e", "💩",
)  # fmt: skip


def with_each_text_replaced(body: Any, text: str) -> Iterator[Any]:
    """The same body as often as it has texts, each time with another one of them replaced."""
    match body:
        case str():
            yield text
        case dict():
            for key, value in body.items():
                for changed in with_each_text_replaced(value, text):
                    yield {**body, key: changed}
        case list():
            for place, value in enumerate(body):
                for changed in with_each_text_replaced(value, text):
                    yield [*body[:place], changed, *body[place + 1 :]]
        case _:
            pass


@pytest.mark.thorough
@pytest.mark.parametrize("endpoint", [each for each in BODIES if each.method == "POST"])
def test_names_in_bodies_lead_nowhere_else(tmp_path: Path, endpoint: Endpoint) -> None:
    with serving(tmp_path, limits=Limits(threads=2)) as admin:
        admin.database().table()
        admin.post("/databases/db/views", VIEW_BODY)
        admin.post("/databases/db/functions", FUNCTION_BODY)
        for trick in NAME_TRICKS:
            for body in with_each_text_replaced(BODIES[endpoint], trick):
                reply = admin.post(path_of_request(endpoint), body)

                assert reply.status in (200, 400, 403, 404, 409, 501), (trick, body, reply.body)
                assert reply.status < 400 or reply.error[0] == reply.status
        assert admin.get("/databases").status == 200
    outside = {path.name for path in tmp_path.iterdir()} - {"lake"}
    assert {name for name in outside if not name.startswith("server.db")} == set()
    assert not Path("/etc/x").exists()


@pytest.mark.parametrize("endpoint", [each for each in Endpoint if each.method == "POST"])
def test_wrong_bodies_are_bad_requests(client: Client, endpoint: Endpoint) -> None:
    path = path_of_request(endpoint)
    for body in WRONG:
        raw = json.dumps(body).encode()
        reply = client.send("POST", path, raw)

        assert reply.status in (200, 400, 404, 409, 501), raw
        assert reply.status < 400 or reply.error[0] == reply.status
    for raw in (b"{", b"\xff\xfe", b"[" * 100_000, b'{"a":' * 50_000, b'{"id": ' + b"9" * 5000,
                b'{"a": NaN}', b'{"a": -Infinity}', b'{"a": 1e999}'):  # fmt: skip
        assert client.send("POST", path, raw).error[0] in (400, 501)


def test_large_and_slow_bodies_are_refused(client: Client) -> None:
    assert client.send("POST", "/databases", b" " * 1_000_001).error[0] == 413
    assert client.runner.run(send_slowly(client)) == 408


async def send_slowly(client: Client) -> int:
    sent: list[dict[str, Any]] = []
    headers = [(b"authorization", f"Bearer {TOKEN}".encode())]

    async def receive() -> dict[str, Any]:
        await asyncio.sleep(0.05)
        return {"type": "http.request", "body": b" ", "more_body": True}

    async def send(message: dict[str, Any]) -> None:
        sent.append(message)

    scope = {"type": "http", "method": "POST", "path": "/v1/lake/databases", "headers": headers,
             "raw_path": b"/v1/lake/databases", "query_string": b""}  # fmt: skip
    await client.server.app(scope, receive, send)
    status: int = sent[0]["status"]
    return status


def test_unknown_paths_and_methods_are_distinguished(client: Client) -> None:
    assert client.send("GET", "!/").status == 404
    assert client.send("GET", "!/v1").status == 404
    assert client.send("GET", "!/v1/nope/databases").status == 404
    assert client.send("GET", "/nope").error == (404, None, None)
    assert client.send("PUT", "/databases").error == (405, None, None)
    assert client.send("GET", f"{T}/policies").error == (501, None, None)
    assert client.send("GET", "/databases/db/semantic-views").error == (501, None, None)
    assert client.send("GET", "//databases").status == 404


def test_every_answer_has_a_request_id(client: Client) -> None:
    client.headers["x-request-id"] = "mine-1"
    try:
        assert client.get("/databases").headers["x-request-id"] == "mine-1"
        client.headers["x-request-id"] = "no good\r\nx: y"
        assert client.get("/nope").headers["x-request-id"] != "no good\r\nx: y"
    finally:
        client.headers.clear()


def test_failures_of_the_program_say_nothing_of_it(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise KeyError("secret detail")

    monkeypatch.setattr(client.server.services.heads, "find", fail)

    reply = client.get(f"{T}/tags")

    assert reply.status == 500
    assert b"secret" not in reply.body
    assert reply.headers["x-request-id"].encode() in reply.body
