"""No visible text contains a secret."""

import logging
import traceback
from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa
import pytest

from emberlake import CatalogFactory
from emberlake.errors import EmberlakeError
from emberlake.io import open_storage
from servers import SECRET, USER, Server

TOKEN = "a-session-token-that-ends"
OPTIONS = {
    "azure.account-key": "the-key-of-an-account",
    "fs.gs.credential": "a-json-with-a-private-key",
    "s3.proxy.password": "the-word-of-a-proxy",
}
SECRETS = (SECRET, TOKEN, *OPTIONS.values())


def shown(thing: object) -> Iterator[str]:
    """Every printed form of an object."""
    yield from (repr(thing), str(thing))
    html = getattr(thing, "_repr_html_", None)
    if html is not None:
        yield html()


def assert_hidden(*texts: str) -> None:
    found = {secret for secret in SECRETS for text in texts if secret in text}
    assert found == set()


def test_no_object_shows_a_secret(s3: Server, root: str) -> None:
    options = {"warehouse": root, **s3.options, **OPTIONS}
    catalog = CatalogFactory.create(options)
    catalog.create_database("db")
    table: Any = catalog.create_table("db.t", pa.schema([("n", pa.int64())]))
    builder = table.new_batch_write_builder()
    write = builder.new_write()
    write.write_arrow(pa.table({"n": [1, 2]}))
    messages = write.prepare_commit()
    commit = builder.new_commit()
    commit.commit(messages)
    read = table.new_read_builder()
    scan = read.new_scan()
    plan = scan.plan()

    objects = [catalog, catalog.storage, catalog.storage.config, catalog._files]
    objects += [catalog.storage.config.credentials, catalog.storage.config.credentials.provider]
    objects += [table, table.store, table.store.storage, table.store.snapshots, table.store.schema]
    objects += [builder, write, commit, *messages, read, scan, plan, *plan.splits(), read.explain()]
    objects += [read.new_read(), read.new_read()._reader, table.snapshot_manager(), table.check()]
    objects += [table.new_stream_read_builder(), table.new_stream_write_builder()]

    assert_hidden(*(text for thing in objects for text in shown(thing)))


def new_database(options: dict[str, str]) -> None:
    CatalogFactory.create(options).create_database("db")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"warehouse": "s3://no-such-bucket/w"}, "no-such-bucket"),
        ({"s3.endpoint": "http://127.0.0.1:1"}, "127.0.0.1:1"),
        ({"s3.secret-key": TOKEN}, "does not accept the credentials"),
        ({"s3.session-token": TOKEN}, "127.0.0.1"),
        ({"s3.region": "mars-1"}, "region"),
        ({"s3.connection.timeout": "soon"}, "connection.timeout"),
        ({"fs.s3a.secret.key": TOKEN}, "contradict"),
        ({"s3.secretkey": TOKEN, "s3.access-key": "", "s3.endpoint": ""}, ""),
    ],
)
@pytest.mark.filterwarnings("ignore::emberlake.EmberlakeWarning")
def test_no_error_and_no_log_shows_a_secret(
    s3: Server, root: str, caplog: pytest.LogCaptureFixture, change: dict[str, str], message: str
) -> None:
    options = {"warehouse": root, **s3.options, **change, "s3.attempts.maximum": "1"}
    caplog.set_level(logging.DEBUG)

    with pytest.raises(EmberlakeError) as raised:
        new_database({key: value for key, value in options.items() if value})

    assert message in str(raised.value)
    chain = "".join(traceback.format_exception(raised.value))
    assert_hidden(chain, caplog.text)


def failing(secret: str) -> Callable[[], dict[str, str]]:
    def provider() -> dict[str, str]:
        raise ValueError(f"{USER} {secret}")

    return provider


def test_a_provider_that_fails_shows_nothing_either(s3: Server, root: str) -> None:
    keys = ("s3.access-key", "s3.secret-key")
    given = {key: value for key, value in s3.options.items() if key not in keys}
    storage, _ = open_storage(root, {**given, "s3.credentials-provider": failing(TOKEN)})

    with pytest.raises(EmberlakeError, match="ValueError") as raised:
        storage.read(f"{root}/file")

    assert_hidden("".join(traceback.format_exception(raised.value)))
