"""The server as a process: its start, its end, and clients that misbehave on the wire."""

import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from emberlake.cli import main
from server.processes import TOKEN, served
from servers import dying_with_parent, free_ports

pytestmark = pytest.mark.thorough


@pytest.fixture(scope="module")
def port(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    with served(tmp_path_factory.mktemp("process")) as lake:
        yield int(lake.options["uri"].rpartition(":")[2])


def ask(port: int, path: str, body: bytes | None = None) -> tuple[int, bytes]:
    headers = {"Authorization": f"Bearer {TOKEN}"}
    request = urllib.request.Request(f"http://127.0.0.1:{port}{path}", body, headers)
    try:
        with urllib.request.urlopen(request, timeout=20) as answer:
            return answer.status, answer.read()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read()


def test_health_and_readiness_need_no_token(port: int) -> None:
    for path in ("/health", "/ready"):
        with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=5) as answer:
            assert answer.status == 200


def test_metrics_count_requests_by_endpoint(port: int) -> None:
    ask(port, "/v1/lake/databases")

    _, text = ask(port, "/metrics")

    assert re.search(rb'emberlake_requests_total\{endpoint="list_databases",code="200"\} \d+', text)
    assert b"emberlake_request_seconds_bucket" in text


def test_a_body_of_a_hundred_megabytes_is_refused_and_not_kept(port: int) -> None:
    with socket.create_connection(("127.0.0.1", port), timeout=20) as client:
        size = 100 * 2**20
        head = (
            f"POST /v1/lake/databases HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {TOKEN}\r\n"
            f"Content-Length: {size}\r\n\r\n"
        )
        client.sendall(head.encode())
        answer = b""
        with suppress(OSError):  # the server does not listen to the end
            for _ in range(100):
                client.sendall(b" " * 2**20)
        with suppress(OSError):
            answer = client.recv(65536)
    assert answer == b"" or answer.startswith(b"HTTP/1.1 413")
    assert ask(port, "/v1/lake/databases")[0] == 200


def test_headers_without_end_are_cut_off(port: int) -> None:
    with socket.create_connection(("127.0.0.1", port), timeout=20) as client:
        client.sendall(b"GET / HTTP/1.1\r\n")
        sent = 0
        with suppress(OSError):
            for number in range(100_000):
                client.sendall(b"x-%d: %s\r\n" % (number, b"y" * 1000))
                sent += 1000

    assert sent < 20_000_000


def test_what_is_no_http_is_answered_or_cut_off(port: int) -> None:
    for sent in (b"\x16\x03\x01\x02\x00\x01\x00", b"GET\r\n\r\n", b"PRI * HTTP/2.0\r\n\r\n"):
        with socket.create_connection(("127.0.0.1", port), timeout=20) as client:
            client.sendall(sent)
            client.shutdown(socket.SHUT_WR)
            try:
                answer = client.recv(65536)
            except ConnectionResetError:
                answer = b""
            assert answer == b"" or b" 400 " in answer.partition(b"\r\n")[0] or b" 404 " in answer
    assert ask(port, "/health")[0] == 200


def test_sixty_four_clients_at_once_are_answered(port: int) -> None:
    ask(port, "/v1/lake/databases", b'{"name": "many", "options": {}}')
    found: list[int] = []

    def work(number: int) -> None:
        schema = {"fields": [{"id": 0, "name": "a", "type": "INT"}], "options": {}}
        body = {"identifier": {"database": "many", "object": f"t{number}"}, "schema": schema}
        path = "/v1/lake/databases/many/tables"
        found.append(ask(port, path, json.dumps(body).encode())[0])
        found.append(ask(port, f"{path}/t{number}")[0])

    threads = [threading.Thread(target=work, args=(number,)) for number in range(64)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)

    assert found == [200] * 128


def start(folder: Path, port: int, *more: str, **env: str) -> "subprocess.Popen[str]":
    command = [
        *(sys.executable, "-m", "emberlake", "serve", "--port", str(port)),
        *("--warehouse", str(folder / "lake"), *more),
    ]
    environment = {key: v for key, v in os.environ.items() if key != "EMBERLAKE_SERVER_TOKEN"}
    return subprocess.Popen(
        dying_with_parent(command),
        env={**environment, **env},
        stderr=subprocess.PIPE,
        text=True,
    )


def wait_until_ready(port: int) -> None:
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        try:
            if ask(port, "/ready")[0] == 200:
                return
        except OSError:
            time.sleep(0.05)
    raise AssertionError("the server did not start")


def test_the_first_token_is_shown_once(tmp_path: Path) -> None:
    shown: list[Any] = []
    for _ in range(2):
        (port,) = free_ports(1)
        process = start(tmp_path, port)
        wait_until_ready(port)
        process.send_signal(signal.SIGTERM)
        _, text = process.communicate(timeout=30)
        assert process.returncode in (0, -signal.SIGTERM)
        shown.append(re.search(r"shown once: (el_\S{40,})", text))

    assert shown[0] is not None
    assert shown[1] is None
    assert (tmp_path / "lake/.emberlake/server.db").exists()
    assert shown[0][1].encode() not in (tmp_path / "lake/.emberlake/server.db").read_bytes()


def test_a_second_server_on_the_same_file_is_refused(tmp_path: Path) -> None:
    first_port, second_port = free_ports(2)
    first = start(tmp_path, first_port)
    try:
        wait_until_ready(first_port)
        second = start(tmp_path, second_port)
        _, text = second.communicate(timeout=30)
    finally:
        first.terminate()
        first.communicate(timeout=30)

    assert second.returncode == 1
    assert "postgresql://" in text


def test_a_missing_extra_is_reported_before_anything_is_done(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "uvicorn", None)

    code = main(["serve", "--warehouse", f"lake={tmp_path / 'lake'}", "--port", "0"])

    assert code == 1
    assert "pip install '.[server]'" in capfd.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_a_port_that_is_taken_is_reported_before_anything_is_done(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]

        _, text = start(tmp_path, port).communicate(timeout=30)

    assert f"port {port} of 127.0.0.1: Address already in use; choose others with --port" in text
    assert "shown once" not in text
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--database", "postgresql://me:pass-word@127.0.0.1:1/x"), "Connection refused"),
        (("--database", "postgresql://me:pass@word@127.0.0.1:1/x"), "percent-encoded"),
        (("--database", "mysql://127.0.0.1/x"), "is not a database"),
        (("--warehouse", f"file={__file__}"), "which is not a folder"),
        (("--warehouse", "proc=/proc/none"), "/proc/none does not exist"),
        (("--anonymous", "--host", "0.0.0.0"), "only for this machine"),
        (("--warehouse", "/x/a b"), "name"),
        (("--oidc", "issuer=x"), "audience"),
        (("--vend", "hours=1"), "role"),
    ],
)
def test_settings_that_make_no_sense_are_refused(
    tmp_path: Path, arguments: tuple[str, ...], said: str
) -> None:
    process = start(tmp_path, free_ports(1)[0], *arguments)

    _, text = process.communicate(timeout=30)

    assert process.returncode in (1, 2)
    assert said in text
    assert "pass" not in text.replace("password", "")


def test_requests_that_were_begun_are_finished(tmp_path: Path) -> None:
    (port,) = free_ports(1)
    process = start(tmp_path, port, EMBERLAKE_SERVER_TOKEN=TOKEN)
    wait_until_ready(port)
    body = b'{"name": "late", "options": {}}'
    with socket.create_connection(("127.0.0.1", port), timeout=20) as client:
        head = (
            f"POST /v1/lake/databases HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {TOKEN}\r\n"
            f"Content-Length: {len(body)}\r\n\r\n"
        )
        client.sendall(head.encode() + body[:5])
        time.sleep(0.3)
        process.send_signal(signal.SIGTERM)
        time.sleep(0.5)
        client.sendall(body[5:])
        answer = client.recv(65536)
    process.communicate(timeout=30)

    assert answer.startswith(b"HTTP/1.1 200")
    assert (tmp_path / "lake/late.db").exists()
