"""Conditional writes when answers get lost: what is reported is what the store has."""

import os
import uuid
from collections.abc import Callable

import pytest

from emberlake.errors import CredentialsExpired, FileNotFound, StorageError
from emberlake.io import Storage, open_storage
from emberlake.io.object import clients, probe, publish
from servers import Proxy, Server

PART = 8 * 1024 * 1024


def opened(s3: Server, proxy: Proxy, **options: object) -> tuple[Storage, str]:
    """A storage behind the proxy that has been reached before, and a new folder in it."""
    folder = f"{s3.root}/{uuid.uuid4()}"
    given = {**s3.options, "s3.endpoint": proxy.endpoint, **options}
    if "s3.credentials-provider" in given:
        del given["s3.access-key"], given["s3.secret-key"]
    storage, _ = open_storage(folder, given)
    storage.put_if_absent(f"{folder}/first", b"1")
    return storage, folder


def keys_of(s3: Server) -> Callable[[], dict[str, object]]:
    given = s3.options
    keys = {"access_key_id": given["s3.access-key"], "secret_access_key": given["s3.secret-key"]}
    return lambda: {**keys, "token": None, "expires_at": None}


def write_parts(storage: Storage, path: str, count: int) -> None:
    with storage.open_output(path) as output:
        for _ in range(count):
            output.write(os.urandom(PART))


def test_a_probe_whose_answer_got_lost_is_made_again(
    s3: Server, proxy: Proxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    storage, folder = opened(s3, proxy)
    monkeypatch.setattr(probe, "_process", probe._Process())
    proxy.fail(method="PUT", match="emberlake-probe", how="drop", when="after", times=3)

    assert storage.put_if_absent(f"{folder}/snapshot-1", b"ours")
    assert storage.read(f"{folder}/snapshot-1") == b"ours"


def test_a_body_that_was_too_slow_is_sent_again(s3: Server, proxy: Proxy) -> None:
    storage, folder = opened(s3, proxy)
    proxy.fail(method="PUT", match="snapshot-1", how="400-RequestTimeout", when="before")

    assert storage.put_if_absent(f"{folder}/snapshot-1", b"ours")


def test_a_single_writer_finds_what_it_wrote_before_the_store_refused(
    s3: Server, proxy: Proxy
) -> None:
    """The library repeats the request whose answer got lost, and that is refused."""
    storage, folder = opened(s3, proxy, **{"s3.single-writer": "true"})
    proxy.fail(method="PUT", match="snapshot-1", how="drop", when="after")
    proxy.fail(method="PUT", match="snapshot-1", how="403-AccessDenied", when="before", skip=1)

    assert storage.put_if_absent(f"{folder}/snapshot-1", b"ours")


def test_a_single_writer_that_cannot_look_does_not_claim_that_nothing_happened(
    s3: Server, proxy: Proxy
) -> None:
    storage, folder = opened(s3, proxy, **{"s3.single-writer": "true"})
    proxy.fail(method="PUT", match="snapshot-1", how="403-AccessDenied", when="before")
    proxy.fail(method="GET", match="snapshot-1", how="403-AccessDenied", when="before", skip=1)

    with pytest.raises(StorageError, match="may not create") as caught:
        storage.put_if_absent(f"{folder}/snapshot-1", b"ours")

    assert not caught.value.had_no_effect


def test_credentials_that_expire_during_an_upload_are_reported_as_such(
    s3: Server, proxy: Proxy
) -> None:
    """An upload goes on with the keys that it began with; its parts are not sent twice."""
    storage, folder = opened(s3, proxy, **{"s3.credentials-provider": keys_of(s3)})
    proxy.fail(method="PUT", match="partNumber=2", how="403-ExpiredToken", when="before")

    with pytest.raises(CredentialsExpired):
        write_parts(storage, f"{folder}/big", count=10)

    with pytest.raises(FileNotFound):
        storage.size(f"{folder}/big")


def test_a_folder_is_found_when_credentials_end(s3: Server, proxy: Proxy) -> None:
    storage, folder = opened(s3, proxy, **{"s3.credentials-provider": keys_of(s3)})
    proxy.fail(method="GET", match="list-type=2", how="403-ExpiredToken", when="before")

    assert storage.exists(folder)


def test_a_large_file_has_more_time_than_a_snapshot(
    s3: Server, proxy: Proxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(clients, "_PUBLISH_MS", 300)
    monkeypatch.setattr(publish, "_PATIENCE_S", 1.0)
    storage, folder = opened(s3, proxy, **{"s3.attempts.maximum": "1"})
    proxy.fail(method="PUT", match="/file", how="slow", when="before", seconds=1, times=100)

    proxy.counted()

    storage.create(f"{folder}/file", bytes(PART))

    (sent,) = proxy.counted()["log"]  # it was not given up and sent again
    assert sent.startswith("PUT")
