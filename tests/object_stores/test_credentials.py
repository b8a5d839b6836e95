"""Where credentials come from, and what happens when they end."""

import json
import pickle
import shlex
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from emberlake import CatalogFactory
from emberlake.errors import CredentialsExpired, FileNotFound, InvalidOption, StorageError
from emberlake.io import Output, Storage, open_storage
from emberlake.io.object.upload import PART_BYTES
from servers import SECRET, USER, Proxy, Server, proxy_of, s3_server

CALLS: list[str] = []


@dataclass(frozen=True)
class Provider:
    """Gives the server's keys, for so many seconds; equal ones share their clients."""

    name: str
    seconds: int | None = None

    def __call__(self) -> dict[str, Any]:
        CALLS.append("asked")
        keys: dict[str, Any] = {"access_key_id": USER, "secret_access_key": SECRET}
        if self.seconds is not None:
            keys["expires_at"] = datetime.now(UTC) + timedelta(seconds=self.seconds)
        return keys


def failing() -> dict[str, Any]:
    raise KeyError(SECRET)


@pytest.fixture
def calls() -> list[str]:
    CALLS.clear()
    return CALLS


def without_keys(server: Server, **more: object) -> dict[str, object]:
    given = {k: v for k, v in server.options.items() if k not in ("s3.access-key", "s3.secret-key")}
    return {**given, **more}


def test_a_provider_is_asked_once_while_its_credentials_last(
    s3: Server, root: str, calls: list[str]
) -> None:
    storage, _ = open_storage(
        s3.root, without_keys(s3, **{"s3.credentials-provider": Provider("long")})
    )

    for number in range(5):
        storage.put(f"{root}/{number}", b"1")

    assert len(calls) <= 2  # the first request has a client of its own


def test_a_provider_is_asked_again_before_its_credentials_end(
    s3: Server, root: str, calls: list[str]
) -> None:
    provider = Provider("short", seconds=30)
    storage, _ = open_storage(s3.root, without_keys(s3, **{"s3.credentials.provider": provider}))

    for number in range(4):
        storage.put(f"{root}/{number}", b"1")
        time.sleep(0.15)

    assert len(calls) == 4


def test_a_provider_is_asked_once_more_when_the_store_says_that_they_have_ended(
    open_proxied: Callable[..., Storage], proxy: Proxy, root: str, calls: list[str]
) -> None:
    storage = open_proxied(access_key=None, secret_key=None, credentials_provider=Provider("ends"))
    storage.put(f"{root}/one", b"1")
    storage.put(f"{root}/two", b"1")
    asked = len(calls)
    proxy.fail(method="GET", match="two", how="403-ExpiredToken", when="before")

    assert storage.read(f"{root}/two") == b"1"
    assert len(calls) == asked + 1


def test_a_refusal_that_cannot_say_why_is_worth_a_new_try(
    open_proxied: Callable[..., Storage], proxy: Proxy, root: str, calls: list[str]
) -> None:
    storage = open_proxied(access_key=None, secret_key=None, credentials_provider=Provider("head"))
    storage.put(f"{root}/file", b"12")
    storage.put(f"{root}/other", b"1")
    asked = len(calls)
    proxy.fail(method="HEAD", match="file", how="403-ExpiredToken", when="before")

    assert storage.size(f"{root}/file") == 2
    assert len(calls) == asked + 1


@dataclass(frozen=True)
class Named:
    """What a name may lead to."""

    keys = staticmethod(Provider("named"))


def test_a_provider_is_found_by_its_name(s3: Server, root: str) -> None:
    name = f"{__name__}:Named.keys"

    storage, _ = open_storage(s3.root, without_keys(s3, **{"s3.credentials-provider": name}))
    storage.put(f"{root}/file", b"1")

    assert storage.read(f"{root}/file") == b"1"


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("somewhere", "write module:function"),
        ("no_such_module:keys", "cannot be imported: No module named"),
        ("json:no_such_name", "cannot be imported: .*no_such_name"),
        ("json:__doc__", "is not a function"),
    ],
)
def test_a_name_that_leads_to_no_provider_is_refused(s3: Server, name: str, message: str) -> None:
    with pytest.raises(InvalidOption, match=message):
        open_storage(s3.root, without_keys(s3, **{"s3.credentials-provider": name}))


def test_a_listing_goes_on_after_its_credentials_have_ended(
    open_proxied: Callable[..., Storage], plain: Storage, proxy: Proxy, root: str
) -> None:
    names = [f"{root}/{number:05}" for number in range(1001)]
    with ThreadPoolExecutor(16) as pool:
        list(pool.map(lambda name: plain.put(name, b"1"), names))
    storage = open_proxied(access_key=None, secret_key=None, credentials_provider=Provider("list"))
    second = "continuation-token|start-after"
    proxy.fail(method="GET", match=second, how="403-ExpiredToken", when="before")

    assert [info.path for info in storage.list_all(root)] == names


@dataclass(frozen=True)
class Guests:
    """Other keys at every call, which last for so many seconds by their own account."""

    names: tuple[str, ...]
    seconds: int | None

    def __call__(self) -> dict[str, Any]:
        CALLS.append("asked")
        keys: dict[str, Any] = {"access_key_id": self.names[len(CALLS) - 1]}
        if self.seconds is not None:
            keys["expires_at"] = datetime.now(UTC) + timedelta(seconds=self.seconds)
        return {**keys, "secret_access_key": SECRET}


GUESTS = tuple(f"guest{number:03}" for number in range(100))


@contextmanager
def upload_with(keys: Guests, folder: Path) -> Iterator[tuple[Storage, Output]]:
    """A file of which the first parts were sent, at a store that ends every key after 3 uses."""
    with s3_server(folder, guests=GUESTS) as server, proxy_of(server, folder) as proxy:
        given = {"s3.endpoint": proxy.endpoint, "s3.credentials-provider": keys}
        storage, root = open_storage(server.root, without_keys(server, **given))
        proxy.fail(how="403-ExpiredToken", when="before", times=1000, life=3)
        output = storage.open_output(f"{root}/large")
        output.write(bytes(PART_BYTES))
        time.sleep(0.2)
        yield storage, output


def finish(output: Output, parts: int) -> int:
    """Write so many parts more, slowly, and close the file."""
    for _ in range(parts):
        output.write(bytes(PART_BYTES))
        time.sleep(0.2)
    return output.close()


def test_an_upload_goes_on_with_new_credentials_when_its_own_end(
    tmp_path: Path, calls: list[str]
) -> None:
    with upload_with(Guests(GUESTS, seconds=30), tmp_path) as (storage, output):
        assert finish(output, 7) == 8 * PART_BYTES

        assert storage.size(output.path) == 8 * PART_BYTES
    assert len(calls) > 5


def test_an_upload_whose_credentials_expire_early_is_reported_and_leaves_no_file(
    tmp_path: Path, calls: list[str]
) -> None:
    with upload_with(Guests(GUESTS, seconds=None), tmp_path) as (storage, output):
        with pytest.raises(CredentialsExpired, match="no longer valid"):
            finish(output, 7)
        output.abort()

        assert not storage.exists(output.path)


def test_keys_that_the_store_no_longer_knows_are_renewed(
    s3: Server, root: str, calls: list[str]
) -> None:
    provider = Guests(("nobody", USER), seconds=None)
    storage, _ = open_storage(s3.root, without_keys(s3, **{"s3.credentials-provider": provider}))

    with suppress(FileNotFound):
        storage.read(f"{root}/file")

    assert calls == ["asked"] * 2


def test_credentials_that_have_expired_for_good_are_reported(
    open_proxied: Callable[..., Storage], proxy: Proxy, root: str, calls: list[str]
) -> None:
    storage = open_proxied(access_key=None, secret_key=None, credentials_provider=Provider("gone"))
    proxy.fail(method="PUT", match="file", how="403-ExpiredToken", when="before", times=9)

    with pytest.raises(CredentialsExpired, match="no longer valid"):
        storage.put(f"{root}/file", b"1")

    assert len(calls) == 2


def test_what_a_provider_says_when_it_fails_is_not_shown(s3: Server, root: str) -> None:
    storage, _ = open_storage(s3.root, without_keys(s3, **{"s3.credentials-provider": failing}))

    with pytest.raises(
        StorageError, match="credentials-provider function failed with KeyError"
    ) as raised:
        storage.read(f"{root}/file")

    assert SECRET not in str(raised.value)


def test_a_provider_goes_with_a_table_to_other_processes(s3: Server, root: str) -> None:
    catalog = CatalogFactory.create(
        {"warehouse": root, **without_keys(s3, **{"s3.credentials-provider": Provider("sent")})}
    )
    catalog.create_database("db")

    again = pickle.loads(pickle.dumps(catalog))

    assert again.list_databases() == ["db"]
    assert again.storage == catalog.storage


def test_a_provider_beside_keys_is_refused(s3: Server) -> None:
    with pytest.raises(InvalidOption, match=r"provider and s3\.access-key contradict"):
        open_storage(s3.root, {**s3.options, "s3.credentials-provider": Provider("beside")})


@pytest.mark.parametrize("token", [None, "a-token-of-somebody-else"])
def test_keys_of_the_environment_are_taken_when_none_are_given(
    s3: Server, root: str, monkeypatch: pytest.MonkeyPatch, token: str | None
) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", USER)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", SECRET)

    storage, _ = open_storage(s3.root, without_keys(s3))
    storage.put(f"{root}/file", b"1")

    # What is given is not mixed with the environment.
    if token:
        monkeypatch.setenv("AWS_SESSION_TOKEN", token)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "nobody")
    monkeypatch.setenv("AWS_ENDPOINT_URL_S3", "http://127.0.0.1:1")
    monkeypatch.setenv("AWS_SKIP_SIGNATURE", "true")
    storage, _ = open_storage(s3.root, {**s3.options, "s3.attempts.maximum": "2"})
    assert storage.read(f"{root}/file") == b"1"


# --- profiles -------------------------------------------------------------------------------------


@pytest.fixture
def config_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The file with the profiles of Amazon's tools."""
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "config"))
    return tmp_path / "config"


def test_a_profile_is_all_it_takes(
    s3: Server, root: str, config_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    keys = f"aws_access_key_id = {USER}\naws_secret_access_key = {SECRET}\nregion = us-east-1"
    config_file.write_text(f"[profile lake]\n{keys}\nendpoint_url = {s3.endpoint}")
    monkeypatch.setenv("AWS_PROFILE", "lake")

    storage, _ = open_storage(root, {})
    storage.put(f"{root}/file", b"1")

    assert storage.read(f"{root}/file") == b"1"


PRINTED = """
import datetime, json, pathlib, sys
pathlib.Path(sys.argv[1]).open("a").write("asked ")
ends = datetime.datetime.now(datetime.UTC) + datetime.timedelta(seconds=float(sys.argv[2]))
keys = {"AccessKeyId": sys.argv[3], "SecretAccessKey": sys.argv[4]}
print(json.dumps({"Version": 1, **keys, "Expiration": ends.isoformat()}))
"""


def test_a_program_is_asked_for_keys_again_before_they_end(
    s3: Server, root: str, config_file: Path, tmp_path: Path
) -> None:
    given = [sys.executable, "-S", "-c", PRINTED, str(tmp_path / "asked"), "30", USER, SECRET]
    command = shlex.join(given).replace("\n", "\n  ")  # a value of many lines is indented
    config_file.write_text(f"[profile lake]\ncredential_process = {command}")
    storage, _ = open_storage(root, without_keys(s3, **{"s3.profile": "lake"}))

    for number in range(2):
        storage.put(f"{root}/{number}", b"1")
        time.sleep(0.15)

    assert len((tmp_path / "asked").read_text().split()) == 2


def test_a_program_that_fails_is_reported_without_its_output(
    s3: Server, root: str, config_file: Path
) -> None:
    config_file.write_text(f"[profile lake]\ncredential_process = echo {SECRET}")
    storage, _ = open_storage(root, without_keys(s3, **{"s3.profile": "lake"}))

    with pytest.raises(StorageError, match="credential_process of the profile lake fai") as raised:
        storage.read(f"{root}/file")

    assert SECRET not in str(raised.value)


def test_without_credentials_nobody_is_asked(s3: Server) -> None:
    begin = time.monotonic()

    with pytest.raises(InvalidOption, match=r"no credentials for s3: give s3\.access-key"):
        open_storage(s3.root, without_keys(s3))

    assert time.monotonic() - begin < 5


@contextmanager
def metadata_service() -> Iterator[tuple[str, list[str]]]:
    """What a machine of the cloud asks for its credentials."""
    asked: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_PUT(self) -> None:
            self.answer("a-token")

        def do_GET(self) -> None:
            is_list = self.path.endswith("security-credentials/")
            ends = (datetime.now(UTC) + timedelta(hours=1)).isoformat()
            keys = {"AccessKeyId": USER, "SecretAccessKey": SECRET, "Token": "", "Expiration": ends}
            keys |= {"Code": "Success", "Type": "AWS-HMAC", "LastUpdated": ends}
            self.answer("role" if is_list else json.dumps(keys))

        def answer(self, text: str) -> None:
            asked.append(self.path)
            self.send_response(200)
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text.encode())

        def log_message(self, *arguments: object) -> None: ...

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", asked
    finally:
        server.shutdown()
        server.server_close()


def test_the_machine_is_asked_for_credentials_when_the_user_says_so(s3: Server, root: str) -> None:
    with metadata_service() as (address, asked):
        given = {"s3.credentials": "instance", "s3.metadata.endpoint": address}
        storage, _ = open_storage(s3.root, without_keys(s3, **given))
        assert asked == []

        storage.put(f"{root}/file", b"1")
        assert storage.read(f"{root}/file") == b"1"

    assert any("security-credentials/role" in path for path in asked)
