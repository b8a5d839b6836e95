"""OSS, as far as S3's protocol goes: there is no test server for OSS itself.

A server of S3's protocol stands in, which knows its buckets by their host names and checks every
signature. The stand-in for what only OSS has is a proxy: it turns OSS's header for new objects into
S3's condition, and answers as OSS is documented to.
"""

import http.client
import os
import threading
import uuid
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlsplit

import pyarrow as pa
import pytest

from emberlake import CatalogFactory
from emberlake.errors import StorageError, Unsupported
from emberlake.io import Storage, open_storage
from emberlake.io.object.upload import PART_BYTES
from servers import SECRET, USER, Server, missing, program, versitygw

DOMAIN = "oss-cn-test.example"
FORBID = "x-oss-forbid-overwrite"
TAKEN = b"<Error><Code>FileAlreadyExists</Code></Error>"


@dataclass
class Oss:
    """A proxy for HTTP that leads to the server, whatever host is asked for."""

    port: int = 0
    honours: bool = True  # its own condition; not so a bucket with versions
    seen: list[tuple[str, str, dict[str, str]]] = field(default_factory=list)

    def options(self, **more: str) -> dict[str, str]:
        return {
            "fs.oss.endpoint": f"http://{DOMAIN}",
            "fs.oss.accessKeyId": USER,
            "fs.oss.accessKeySecret": SECRET,
            "oss.region": "us-east-1",  # the server's
            "oss.proxy.host": "127.0.0.1",
            "oss.proxy.port": str(self.port),
            **more,
        }


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    oss: Oss
    target: int

    def answer(self) -> None:
        url = urlsplit(self.path)  # proxies are asked for whole addresses
        headers = {name.lower(): value for name, value in self.headers.items()}
        self.oss.seen.append((self.command, self.path, dict(headers)))
        is_new = headers.get(FORBID) == "true" and self.oss.honours
        if is_new:
            headers["if-none-match"] = "*"
        body = self.rfile.read(int(headers.get("content-length", 0)))
        link = http.client.HTTPConnection("127.0.0.1", self.target)
        link.request(self.command, f"{url.path}?{url.query}", body, headers)
        said = link.getresponse()
        data, status = said.read(), said.status
        if is_new and status == 412:
            data, status = TAKEN, 409
        self.send_response(status)
        for name, value in said.getheaders():
            if name.lower() in ("etag", "last-modified", "content-range", "content-type"):
                self.send_header(name, value)
        size = said.getheader("Content-Length") if self.command == "HEAD" else len(data)
        self.send_header("Content-Length", str(size or 0))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(data)
        link.close()

    do_GET = do_PUT = do_POST = do_DELETE = do_HEAD = answer  # noqa: N815

    def log_message(self, *arguments: object) -> None: ...


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    if not program("versitygw"):
        missing("versitygw")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("VGW_VIRTUAL_DOMAIN", DOMAIN)
        with versitygw(tmp_path_factory.mktemp("oss")) as started:
            yield started


@pytest.fixture
def oss(server: Server) -> Iterator[Oss]:
    made = Oss()
    handler = type("Bound", (Handler,), {"oss": made, "target": server.port})
    listening = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    made.port = listening.server_port
    threading.Thread(target=listening.serve_forever, args=(0.02,), daemon=True).start()
    try:
        yield made
    finally:
        listening.shutdown()
        listening.server_close()


@pytest.fixture
def root() -> str:
    return f"oss://lake/{uuid.uuid4()}"


def test_requests_have_the_bucket_in_the_host_and_are_signed_for_it(oss: Oss, root: str) -> None:
    storage, _ = open_storage(root, oss.options())

    storage.put(f"{root}/a b=ü", b"1")
    assert storage.read(f"{root}/a b=ü") == b"1"

    folder = root.removeprefix("oss://lake/")
    method, address, headers = oss.seen[0]
    assert method == "PUT"
    assert address == f"http://lake.{DOMAIN}/{folder}/a%20b%3D%C3%BC"
    assert headers["host"] == f"lake.{DOMAIN}"
    assert headers["authorization"].startswith(f"AWS4-HMAC-SHA256 Credential={USER}/")
    assert "host" in headers["authorization"].partition("SignedHeaders=")[2]
    assert FORBID not in headers  # it may be replaced


def test_the_endpoint_may_be_in_the_path(oss: Oss) -> None:
    given = {k: v for k, v in oss.options().items() if k != "fs.oss.endpoint"}
    root = f"oss://lake.{DOMAIN}/{uuid.uuid4()}"
    storage, _ = open_storage(root, {**given, "oss.connection.ssl.enabled": "false"})

    storage.put(f"{root}/file", b"1")

    assert storage.read(f"{root}/file") == b"1"
    assert oss.seen[0][1].startswith(f"http://lake.{DOMAIN}/")


def test_wrong_keys_are_reported(oss: Oss, root: str) -> None:
    storage, _ = open_storage(root, oss.options(**{"fs.oss.accessKeySecret": "of-somebody-else"}))

    with pytest.raises(StorageError, match="the secret key does not match"):
        storage.read(f"{root}/file")


def assert_whole(storage: Storage, path: str) -> None:
    with storage.open_output(path) as output:
        output.write(os.urandom(PART_BYTES))
        output.write(b"end")
    assert storage.size(path) == PART_BYTES + 3
    assert storage.read_range(path, PART_BYTES, 3) == b"end"


def test_tables_are_written_with_the_condition_of_oss(oss: Oss, root: str) -> None:
    catalog = CatalogFactory.create({"warehouse": root, **oss.options()})
    catalog.create_database("db")
    table = catalog.create_table("db.t", pa.schema([("n", pa.int64())]))
    table.append(pa.table({"n": [1]}))
    table.append(pa.table({"n": [2]}))
    path = f"{table.table_path}/snapshot/snapshot-2"

    assert not catalog.storage.put_if_absent(path, b"ours")
    assert sorted(table.to_arrow()["n"].to_pylist()) == [1, 2]
    published = [h for method, url, h in oss.seen if method == "PUT" and "snapshot-" in url]
    assert {headers.get(FORBID) for headers in published} == {"true"}
    assert not any("if-none-match" in headers for _, _, headers in oss.seen)
    assert_whole(catalog.storage, f"{root}/large")
    catalog.drop_table("db.t")
    assert not catalog.storage.exists(table.table_path)


def test_a_bucket_that_ignores_the_condition_is_refused_for_writing(
    oss: Oss, root: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("emberlake.io.object.probe._process.honoured", set())
    oss.honours = False
    storage, _ = open_storage(root, oss.options())
    alone, _ = open_storage(root, oss.options(**{"oss.single-writer": "true"}))

    with pytest.raises(Unsupported, match=r"ignores the condition .* oss\.single-writer=true"):
        storage.put_if_absent(f"{root}/snapshot-1", b"1")

    assert [*storage.list_all(root)] == []
    assert alone.put_if_absent(f"{root}/snapshot-1", b"first")
    assert not alone.put_if_absent(f"{root}/snapshot-1", b"second")
