"""Requests to the server of a catalog: headers, retries, timeouts, forks."""

import json
import os
import pickle
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from builders import COLUMNS, FakeEnv, append, rows_of
from emberlake import CatalogFactory
from emberlake._version import __version__
from emberlake.catalog import RestCatalog
from emberlake.errors import (
    DatabaseNotFound,
    InvalidOption,
    NotAuthenticated,
    ServerError,
)
from rest_server import PREFIX, TOKEN, RestServer, serving


def connect(server: RestServer, world: FakeEnv | None = None, **options: str) -> RestCatalog:
    return RestCatalog.connect({**server.options, **options}, (world or FakeEnv()).env())


def test_requests_say_who_asks_and_what_the_user_and_the_server_want(server: RestServer) -> None:
    server.config = {"defaults": {"prefix": PREFIX, "header.X-Tenant": "theirs"}}
    catalog = connect(server, **{"header.X-Mine": "1"})

    catalog.list_databases()

    first, second = server.headers[0], server.headers[-1]
    assert first["Authorization"] == second["Authorization"] == f"Bearer {TOKEN}"
    assert first["User-Agent"] == f"emberlake/{__version__}"
    assert (second["X-Mine"], second["X-Tenant"]) == ("1", "theirs")


def test_the_server_proposes_options_and_insists_on_some(server: RestServer) -> None:
    server.config = {
        "defaults": {"prefix": PREFIX, "table-default.a": "theirs", "table-default.b": "theirs"},
        "overrides": {"table-default.c": "theirs"},
    }
    ours = {f"table-default.{name}": "ours" for name in "bc"}
    catalog = connect(server, **ours)
    catalog.create_database("db")

    table = catalog.create_table("db.t", COLUMNS)

    assert [table.options.get(name) for name in "abc"] == ["theirs", "ours", "theirs"]


@pytest.mark.parametrize("status", [429, 502, 503, 504])
def test_a_read_is_repeated_while_the_server_asks_for_patience(
    server: RestServer, status: int
) -> None:
    world = FakeEnv()
    catalog = connect(server, world)
    server.fail("GET .*/databases$", status=status, times=2)

    assert catalog.list_databases() == []
    assert len(world.slept) == 2
    assert world.slept[1] > world.slept[0]


def test_the_server_says_how_long_to_wait(server: RestServer) -> None:
    world = FakeEnv()
    catalog = connect(server, world, **{"rest.client.max-retries": "4"})
    server.fail("GET .*/databases$", status=503, headers={"Retry-After": "7"})
    server.fail("GET .*/databases$", status=429, headers={"Retry-After": "86400"})
    server.fail("GET .*/databases$", status=429, headers={"Retry-After": "no number"})
    server.fail("GET .*/databases$", status=429, headers={"Retry-After": "nan"})

    catalog.list_databases()

    assert world.slept[:2] == [7000, 60_000]
    assert all(wait < 1100 for wait in world.slept[2:])


def test_patience_ends(server: RestServer) -> None:
    catalog = connect(server)
    server.fail("GET .*/databases$", status=503, times=100)

    with pytest.raises(ServerError, match="failed with 503, request r-1") as failed:
        catalog.list_databases()

    assert failed.value.code == 503
    assert len(server.asked("GET .*/databases$")) == 4


@pytest.mark.parametrize("how", [{"status": 500}, {"is_dropped": True}])
def test_a_change_whose_answer_is_lost_is_not_repeated(
    server: RestServer, how: dict[str, object]
) -> None:
    catalog = connect(server)
    server.fail("POST .*/databases$", when="after", **how)

    with pytest.raises(ServerError) as failed:
        catalog.create_database("db")

    assert not failed.value.had_no_effect
    assert len(server.asked("POST .*/databases$")) == 1


def test_a_request_that_took_effect_before_a_retry_is_not_an_error(
    server: RestServer,
) -> None:
    catalog = connect(server)
    later = {"status": 503, "when": "after"}

    server.fail("POST .*/databases$", **later)
    catalog.create_database("db")
    server.fail("POST .*/tables$", **later)
    catalog.create_table("db.t", COLUMNS)
    server.fail("POST .*/rename$", **later)
    catalog.rename_table("db.t", "db.u")
    server.fail("DELETE .*/u$", **later)
    catalog.drop_table("db.u")
    server.fail("DELETE .*/db$", is_dropped=True, when="after")
    catalog.drop_database("db")

    assert catalog.list_databases() == []


def test_a_missing_server_is_reported_with_its_address() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
    options = {"metastore": "rest", "uri": f"127.0.0.1:{port}", "token": TOKEN}

    with pytest.raises(ServerError, match=f"http://127.0.0.1:{port} cannot be reached: the conn"):
        CatalogFactory.create({**options, "rest.client.max-retries": 0})


def test_a_server_that_does_not_answer_is_not_waited_for_forever() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        options = {"metastore": "rest", "uri": f"http://127.0.0.1:{port}", "token": TOKEN}
        impatient = {"rest.client.read-timeout": "50 ms", "rest.client.max-retries": "0"}

        with pytest.raises(ServerError, match=r"no answer came within 0\.05 seconds"):
            CatalogFactory.create({**options, **impatient})


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"uri": ""}, "needs the option 'uri'"),
        ({"uri": "ftp://x"}, "is not an address"),
        ({"uri": "http://user:hidden@x"}, "has a user in it"),
        ({"uri": "http://x:port"}, "is not an address"),
        ({"token.provider": "magic"}, "there are bear and dlf"),
        ({"token": "", "token.provider": "bear"}, "there is no token"),
        ({"token.env": "X"}, "token and token.env contradict"),
        ({"token": "a\nb"}, "line break"),
        ({"header.X": "a\nb"}, "line break"),
        ({"token.provider": "dlf"}, "dlf.region"),
        ({"token.provider": "dlf", "dlf.region": "cn-x"}, "there are no keys"),
        ({"rest.client.max-retries": "many"}, "rest.client.max-retries"),
        ({"rest.client.ca-file": "/no/such/file"}, "cannot be read"),
    ],
)
def test_options_that_make_no_sense_are_refused(options: dict[str, str], message: str) -> None:
    given = {"metastore": "rest", "uri": "http://localhost", "token": "hidden", **options}

    with pytest.raises(InvalidOption, match=message) as refused:
        CatalogFactory.create(given)

    assert "hidden" not in str(refused.value)


def test_a_token_comes_from_the_environment_or_a_file_that_may_change(
    server: RestServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = {key: value for key, value in server.options.items() if key != "token"}
    file = tmp_path / "token"
    file.write_text("an old one\n")

    monkeypatch.setenv("MY_TOKEN", TOKEN)
    CatalogFactory.create({**given, "token.env": "MY_TOKEN"})
    monkeypatch.delenv("MY_TOKEN")
    with pytest.raises(NotAuthenticated, match="MY_TOKEN"):
        CatalogFactory.create({**given, "token.env": "MY_TOKEN"})
    with pytest.raises(NotAuthenticated, match="failed with 401"):
        CatalogFactory.create({**given, "token.file": str(file)})
    file.write_text(f"{TOKEN}\n")
    catalog = CatalogFactory.create({**given, "token.file": str(file)})
    file.unlink()
    with pytest.raises(NotAuthenticated, match="cannot be read"):
        catalog.list_databases()


def test_pages_are_put_together_and_a_server_that_goes_in_circles_is_reported(
    server: RestServer,
) -> None:
    server.page_size = 2
    catalog = connect(server)
    for number in range(4):
        catalog.create_database(f"d{number}")

    assert catalog.list_databases() == ["d0", "d1", "d2", "d3"]
    assert len(server.asked("GET .*/databases")) == 3  # the last page is empty

    circle = {"databases": ["d0"], "nextPageToken": "d0"}
    server.fail("GET .*/databases$", status=200, body=circle, times=9)
    with pytest.raises(ServerError, match="again and again"):
        catalog.list_databases()


def test_an_answer_that_is_not_of_the_protocol_is_reported(server: RestServer) -> None:
    catalog = connect(server)
    server.fail("GET .*/databases/db$", status=200, body={"unheard": "of"})

    with pytest.raises(ServerError, match="not in the words of the protocol"):
        catalog.get_database("db")


def test_no_text_shows_the_token(server: RestServer) -> None:
    catalog = connect(server, **{"header.X-Secret": "hidden-header"})
    catalog.create_database("db")
    table = catalog.create_table("db.t", COLUMNS)
    texts = [repr(catalog), repr(table), repr(table.store), str(catalog.options), repr(vars(table))]
    server.fail(status=500, body={"message": "no"})
    for call in (lambda: catalog.list_tables("db"), lambda: catalog.get_database("nope")):
        with pytest.raises((ServerError, DatabaseNotFound)) as failed:
            call()
        texts.append(repr(failed.value))

    assert [text for text in texts if TOKEN in text or "hidden-header" in text] == []


def test_a_proxy_is_asked_where_there_is_one(
    server: RestServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    away = {**server.options, "uri": "http://catalog.invalid"}
    for name in ("no_proxy", "NO_PROXY", "http_proxy", "HTTP_PROXY"):
        monkeypatch.delenv(name, raising=False)

    CatalogFactory.create({**away, "rest.client.proxy": server.uri})
    monkeypatch.setenv("http_proxy", server.uri)
    CatalogFactory.create(away)
    monkeypatch.setenv("no_proxy", "catalog.invalid")
    with pytest.raises(ServerError, match=r"http://catalog\.invalid cannot be reached"):
        CatalogFactory.create({**away, "rest.client.max-retries": "0"})

    assert [path for _, path, _ in server.log] == [
        "http://catalog.invalid/v1/config?warehouse=w+h"
    ] * 2


@pytest.mark.thorough
def test_a_certificate_is_checked(tmp_path: Path) -> None:
    key, certificate = tmp_path / "key.pem", tmp_path / "certificate.pem"
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2",
         "-keyout", str(key), "-out", str(certificate), "-subj", "/CN=127.0.0.1",
         "-addext", "subjectAltName=IP:127.0.0.1"],
        check=True, capture_output=True,
    )  # fmt: skip
    with serving(tmp_path / "served", tls=(certificate, key)) as server:
        with pytest.raises(ServerError, match=r"TLS failed: .*rest\.client\.ca-file names"):
            CatalogFactory.create({**server.options, "rest.client.max-retries": "1000"})
        catalog = server.open(**{"rest.client.ca-file": str(certificate)})
        certificate.unlink()  # workers on other machines do not have it

        assert pickle.loads(pickle.dumps(catalog)).list_databases() == []


@contextmanager
def redirecting(target: str) -> Iterator[str]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(302)
            self.send_header("Location", target)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: object) -> None: ...

    with HTTPServer(("127.0.0.1", 0), Handler) as listener:
        threading.Thread(target=listener.serve_forever, args=(0.02,), daemon=True).start()
        yield f"http://127.0.0.1:{listener.server_address[1]}"
        listener.shutdown()


def test_a_token_is_not_sent_where_an_answer_points_to(server: RestServer) -> None:
    with redirecting(server.uri) as uri, pytest.raises(ServerError, match="failed with 302"):
        CatalogFactory.create({**server.options, "uri": uri})

    assert server.log == []


def test_no_connection_crosses_a_fork(server: RestServer) -> None:
    program = """
import json, os, sys
from emberlake import CatalogFactory
catalog = CatalogFactory.create(json.loads(sys.argv[1]))
for number in range(8):
    catalog.create_database(f"d{number}")
children = []
for number in range(4):
    child = os.fork()
    if child == 0:
        names = {catalog.get_database(f"d{(number + turn) % 8}").name == f"d{(number + turn) % 8}"
                 for turn in range(60)}
        os._exit(0 if names == {True} else 1)
    children.append(child)
names = {catalog.get_database(f"d{turn % 8}").name == f"d{turn % 8}" for turn in range(60)}
codes = [os.waitpid(child, 0)[1] for child in children]
print(names, codes)
"""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}

    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", program, json.dumps(server.options)],
        env=environment, capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip

    assert done.stdout.strip() == "{True} [0, 0, 0, 0]", done.stderr


def test_a_table_travels_and_is_written_to_where_it_arrives(server: RestServer) -> None:
    catalog = CatalogFactory.create(server.options)
    catalog.create_database("db")
    table = pickle.loads(pickle.dumps(catalog.create_table("db.t", COLUMNS)))

    append(table, rows_of([1]))

    assert pickle.loads(pickle.dumps(catalog)).get_table("db.t").count() == 1
