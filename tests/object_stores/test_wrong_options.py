"""A wrong option is an error within seconds that names the option and shows no secret."""

import socket
import subprocess
import time
import traceback
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from emberlake import CatalogFactory
from emberlake.errors import EmberlakeError, InvalidOption, StorageError, Unsupported
from emberlake.io import open_storage
from servers import SECRET, USER, Server, free_ports, rclone, versitygw

WRONG_SECRET = "not-the-secret-of-anybody"
SECONDS = 8


@dataclass(frozen=True)
class Secured:
    server: Server
    authority: Path


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    """A server whose certificate is signed by an authority that nobody knows."""
    folder = tmp_path_factory.mktemp("tls")
    new_key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2"]
    subject = ["-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1"]
    subject += ["-addext", "basicConstraints=CA:FALSE"]
    for command in (
        ["-keyout", "ca.key", "-out", "ca.pem", "-subj", "/CN=authority"],
        ["-CA", "ca.pem", "-CAkey", "ca.key", "-keyout", "own.key", "-out", "own.pem", *subject],
    ):
        subprocess.run(
            ["openssl", "req", "-x509", *new_key, *command],
            cwd=folder,
            check=True,
            capture_output=True,
        )
    with versitygw(folder, (folder / "own.pem", folder / "own.key")) as server:
        yield Secured(server, folder / "ca.pem")


CASES = {
    "key": ({"s3.access-key": "nobody"}, "does not know the access key"),
    "secret": ({"s3.secret-key": WRONG_SECRET}, "the secret key does not match the access key"),
    "bucket": ({"bucket": "no-lake"}, "there is no bucket no-lake at http://127"),
    "region": ({"s3.region": "eu-central-1"}, "not in the region eu-central-1; set s3.region=us-"),
    "port": ({"s3.endpoint": "http://127.0.0.1:1"}, "cannot reach http://127.0.0.1:1 "),
    "host": ({"s3.endpoint": "http://no-host.invalid"}, "cannot reach http://no-host.invalid "),
    "scheme": ({"scheme": "https"}, "does not speak TLS; write http://"),
    "right": ({"s3.access-key": None, "s3.secret-key": None, "s3.anonymous": "true"}, "may not"),
}


def first_failure(options: dict[str, str], bucket: str, action: str) -> StorageError:
    folder = f"s3://{bucket}/{uuid.uuid4()}"
    catalog = CatalogFactory.create({"warehouse": folder, **options})
    calls = {
        "read": catalog.list_databases,
        "write": lambda: catalog.storage.put_if_absent(f"{folder}/file", b"1"),
    }
    begin = time.monotonic()
    with pytest.raises(StorageError) as raised:
        calls[action]()
    assert time.monotonic() - begin < SECONDS
    assert_no_secrets(raised.value, catalog, catalog.storage)
    return raised.value


def assert_no_secrets(error: BaseException, *objects: object) -> None:
    shown = "".join(traceback.format_exception(error)) + "".join(map(repr, [error, *objects]))
    assert [secret for secret in (SECRET, WRONG_SECRET, USER) if secret in shown] == []


@pytest.mark.parametrize("action", ["read", "write"])
@pytest.mark.parametrize(
    "name",
    [pytest.param(n, marks=pytest.mark.versitygw) if n == "region" else n for n in CASES],
)
def test_a_wrong_option_is_named_at_once(name: str, action: str, s3: Server) -> None:
    changes, expected = CASES[name]
    given = {**s3.options, **changes}
    bucket = given.pop("bucket", s3.bucket)
    if given.pop("scheme", ""):
        given["s3.endpoint"] = s3.endpoint.replace("http:", "https:")

    error = first_failure({k: v for k, v in given.items() if v is not None}, bucket, action)

    assert expected in str(error)
    assert error.had_no_effect or action == "read"


@pytest.mark.versitygw
def test_an_unknown_authority_is_named(secured: Secured) -> None:
    error = first_failure(secured.server.options, secured.server.bucket, "write")

    assert "certificate of https://127.0.0.1" in str(error)
    assert "s3.ssl.ca-file" in str(error)


@pytest.mark.versitygw
def test_an_authority_that_is_given_is_trusted(secured: Secured) -> None:
    given = {**secured.server.options, "s3.ssl.ca-file": str(secured.authority)}
    storage, root = open_storage(secured.server.root, given)

    assert storage.put_if_absent(f"{root}/file", b"1")
    assert storage.read(f"{root}/file") == b"1"
    assert [*storage.unfinished_uploads(root)] == []


@pytest.mark.versitygw
def test_uploads_are_not_listed_by_a_server_that_is_not_trusted(secured: Secured) -> None:
    storage, root = open_storage(secured.server.root, secured.server.options)

    with pytest.raises(StorageError, match=r"certificate of https://127\.0\.0\.1:\d+ is not tru"):
        [*storage.unfinished_uploads(root)]


@pytest.mark.versitygw
def test_plain_requests_to_a_server_that_speaks_tls_are_explained(secured: Secured) -> None:
    endpoint = secured.server.endpoint.replace("https:", "http:")

    error = first_failure({**secured.server.options, "s3.endpoint": endpoint}, "lake", "read")

    assert "is it https://?" in str(error)


def test_a_server_that_never_answers_is_given_up(s3: Server) -> None:
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        endpoint = f"http://127.0.0.1:{silent.getsockname()[1]}"
        given = {**s3.options, "s3.endpoint": endpoint, "s3.connection.timeout": "1 s"}

        error = first_failure(given, s3.bucket, "read")

    assert f"{endpoint} did not answer in time" in str(error)


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"s3.access-key": None}, "s3.secret-key is given without s3.access-key"),
        ({"fs.s3a.access.key": "other"}, "s3.access-key and fs.s3a.access.key contradict"),
        ({"s3.endpoint": "http://user:word@host"}, "s3.endpoint has a user in it"),
        ({"s3.path.style.access": "often"}, "s3.path.style.access='often': expected true or false"),
    ],
)
def test_options_that_cannot_be_meant_are_refused_before_any_request(
    changes: dict[str, str | None], expected: str, s3: Server
) -> None:
    given = {k: v for k, v in {**s3.options, **changes}.items() if v is not None}

    with pytest.raises(InvalidOption, match=expected) as raised:
        open_storage(s3.root, given)

    assert_no_secrets(raised.value)


# --- stores that ignore conditions ----------------------------------------------------------------


@pytest.fixture(scope="module")
def careless(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with rclone(tmp_path_factory.mktemp("rclone")) as server:
        yield server


def test_a_store_that_ignores_conditions_is_refused_before_anything_is_published(
    careless: Server,
) -> None:
    storage, root = open_storage(f"{careless.root}/refused", careless.options)

    with pytest.raises(Unsupported, match=r"ignores the condition .* s3\.single-writer=true"):
        storage.put_if_absent(f"{root}/snapshot-1", b"1")

    assert list(storage.list_all(root)) == []


def test_a_single_writer_may_use_a_store_that_ignores_conditions(careless: Server) -> None:
    given = {**careless.options, "s3.single-writer": "true"}
    storage, root = open_storage(f"{careless.root}/single", given)

    assert storage.put_if_absent(f"{root}/snapshot-1", b"first") is True
    assert storage.put_if_absent(f"{root}/snapshot-1", b"second") is False
    assert storage.read(f"{root}/snapshot-1") == b"first"


def test_every_call_reports_that_a_store_cannot_be_reached() -> None:
    (port,) = free_ports(1)
    given = {"s3.endpoint": f"127.0.0.1:{port}", "s3.connection.ssl.enabled": "false"}
    storage, root = open_storage("s3://lake", {**given, "s3.anonymous": "true"})

    for ask in (storage.read, storage.size, storage.exists, storage.delete, storage.delete_folder):
        with pytest.raises(EmberlakeError, match=f"cannot reach http://127.0.0.1:{port}"):
            ask(f"{root}/file")
