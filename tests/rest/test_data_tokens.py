"""Storage credentials that a catalog hands out: when they are renewed, and what they open."""

import pickle
import threading
from concurrent.futures import ThreadPoolExecutor
from email.utils import formatdate
from pathlib import Path
from typing import Any

import pytest

from builders import COLUMNS, FakeEnv, append, rows_of
from emberlake import CatalogFactory
from emberlake.catalog import RestCatalog
from emberlake.errors import CredentialsExpired, NoPermission, ServerError
from emberlake.io.rest.data_tokens import TokenSource, _Kept
from emberlake.io.rest.vended import vended_options
from emberlake.rest.commits import DataToken
from emberlake.spec.identifier import Identifier
from rest_server import RestServer
from servers import proxy_of, s3_server
from spark.short_keys import ACCESS_KEYS
from table_reads import check_whole, read_ids

HOUR = 3_600_000
TOKENS = "GET .*/token$"


class Vendor:
    """Hands out numbered tokens that live for so long, by a clock of its own."""

    def __init__(self, server: RestServer, world: FakeEnv, life_ms: int, skew_ms: int = 0) -> None:
        self.given = 0
        self.world, self.life_ms, self.skew_ms = world, life_ms, skew_ms
        server.token_answer = self.answer

    def answer(self) -> dict[str, Any]:
        self.given += 1
        keys = {"s3.access-key": f"key{self.given}", "s3.secret-key": "hidden-secret"}
        ends = self.world.time_ms + self.skew_ms + self.life_ms
        return {"token": keys, "expiresAtMillis": ends}


@pytest.fixture
def world() -> FakeEnv:
    return FakeEnv()


def source(server: RestServer, world: FakeEnv) -> TokenSource:
    catalog = RestCatalog.connect(server.options, world.env())
    catalog.create_database("db", ignore_if_exists=True)
    catalog.create_table("db.t", COLUMNS, ignore_if_exists=True)
    return TokenSource(catalog._api.session, Identifier("db", "t"), env=world.env())


def key_of(tokens: TokenSource) -> str:
    return tokens.current().options["s3.access-key"]


def test_a_token_is_asked_for_once_until_it_is_about_to_end(
    server: RestServer, world: FakeEnv
) -> None:
    Vendor(server, world, life_ms=8 * HOUR)
    tokens = source(server, world)

    assert [key_of(tokens) for _ in range(3)] == ["key1"] * 3
    world.time_ms += int(6.5 * HOUR)
    assert key_of(tokens) == "key1"
    world.time_ms += HOUR  # less than an hour is left
    assert key_of(tokens) == "key2"


def test_a_token_of_a_short_life_is_not_asked_for_again_and_again(
    server: RestServer, world: FakeEnv
) -> None:
    Vendor(server, world, life_ms=HOUR // 2)
    tokens = source(server, world)

    assert [key_of(tokens) for _ in range(3)] == ["key1"] * 3
    world.time_ms += int(HOUR * 0.4)
    assert key_of(tokens) == "key2"


def test_the_clock_of_the_server_counts(server: RestServer, world: FakeEnv) -> None:
    Vendor(server, world, life_ms=8 * HOUR, skew_ms=-10 * HOUR)  # it is behind
    date = formatdate((world.time_ms - 10 * HOUR) / 1000, usegmt=True)
    server.answer_headers = {"Date": date}
    tokens = source(server, world)

    assert [key_of(tokens) for _ in range(3)] == ["key1"] * 3
    left = tokens.expires_at_ms(tokens.current()) - world.time_ms
    assert abs(left - 8 * HOUR) < 2000


def test_one_asks_and_the_others_wait(server: RestServer, world: FakeEnv) -> None:
    vendor = Vendor(server, world, life_ms=8 * HOUR)
    tokens = source(server, world)
    start = threading.Barrier(8)

    def ask(_: int) -> str:
        start.wait()
        return key_of(tokens)

    with ThreadPoolExecutor(8) as pool:
        assert set(pool.map(ask, range(8))) == {"key1"}
    assert vendor.given == 1


def test_a_token_that_is_good_yet_is_used_while_the_server_is_away(
    server: RestServer, world: FakeEnv
) -> None:
    Vendor(server, world, life_ms=8 * HOUR)
    tokens = source(server, world)
    key_of(tokens)
    server.fail(TOKENS, status=500, times=1000)

    world.time_ms += int(7.5 * HOUR)
    assert key_of(tokens) == "key1"
    world.time_ms += HOUR
    with pytest.raises(CredentialsExpired, match=r"db\.t have expired, .* failed with 500"):
        tokens.current()
    server.faults.clear()
    assert key_of(tokens) == "key2"


def test_a_server_that_gives_no_token_is_reported(server: RestServer, world: FakeEnv) -> None:
    Vendor(server, world, life_ms=HOUR)
    tokens = source(server, world)
    server.fail(TOKENS, status=403)

    with pytest.raises(ServerError, match="failed with 403"):
        tokens.current()


def test_a_store_that_takes_a_token_no_more_makes_it_be_forgotten(
    server: RestServer, world: FakeEnv
) -> None:
    Vendor(server, world, life_ms=8 * HOUR)
    tokens = source(server, world)

    first = key_of(tokens)
    tokens.forget()

    assert (first, key_of(tokens)) == ("key1", "key2")


def test_a_token_travels_with_its_table_and_is_not_shown(
    server: RestServer, world: FakeEnv
) -> None:
    vendor = Vendor(server, world, life_ms=8 * HOUR)
    tokens = source(server, world)

    data = pickle.dumps(tokens)
    arrived = pickle.loads(data)

    assert arrived.first.options["s3.access-key"] == "key1"
    assert arrived == tokens
    assert vendor.given == 1
    options = vended_options("s3://bucket/t", {"s3.access-key": "mine", "s3.region": "x"}, tokens)
    assert sorted(options) == ["s3.credentials-provider", "s3.region"]
    assert "hidden-secret" not in repr(tokens) + repr(arrived) + repr(options)
    assert options["s3.credentials-provider"]()["access_key_id"] == "key1"


def test_a_token_may_last_forever(server: RestServer, world: FakeEnv) -> None:
    Vendor(server, world, life_ms=2**63 - 1 - world.time_ms)

    options = vended_options("s3://bucket/t", {}, source(server, world))

    assert options["s3.credentials-provider"]()["expires_at"].year == 9999  # type: ignore[operator]


@pytest.mark.thorough
def test_work_that_outlives_many_tokens_finishes(server: RestServer, tmp_path: Path) -> None:
    """Every token ends after 20 requests, whatever its time says."""
    given = iter(ACCESS_KEYS)
    with s3_server(tmp_path, guests=ACCESS_KEYS) as s3, proxy_of(s3, tmp_path) as proxy:
        place = {k: v for k, v in s3.options.items() if k != "s3.access-key"}
        place["s3.endpoint"] = proxy.endpoint
        server.served_from(s3, f"{s3.root}/wh")
        server.config = {
            "defaults": {"prefix": "a prefix"},
            "overrides": {"data-token.enabled": "true"},
        }
        server.token_answer = lambda: {
            "token": {**place, "s3.access-key": next(given)},
            "expiresAtMillis": 4_000_000_000_000,
        }
        proxy.fail(how="403-ExpiredToken", when="before", times=10_000, life=20)
        catalog = CatalogFactory.create(server.options)
        catalog.create_database("db")
        table = catalog.create_table("db.t", COLUMNS)

        for number in range(12):
            append(table, rows_of([number]))
        table.compact(full=True)

        assert read_ids(catalog.get_table("db.t")) == list(range(12))
        check_whole(table)
        assert proxy.clear() == []  # some keys did end
        table.store.storage.storage.config.credentials.provider.forget()
        server.fail(TOKENS, status=403, times=100)
        with pytest.raises(NoPermission, match="/token failed with 403"):
            read_ids(table)
    assert len(server.asked(TOKENS)) > 3


class Forgotten(_Kept):
    """A token that another thread forgets between two looks at it."""

    looks = 0

    def __getattribute__(self, name: str) -> Any:
        if name == "token":
            Forgotten.looks += 1
            return DataToken({}, HOUR) if Forgotten.looks == 1 else None
        return super().__getattribute__(name)


def test_a_token_may_be_forgotten_while_somebody_looks_at_it(world: FakeEnv) -> None:
    world.time_ms = 0

    assert Forgotten().is_ending(world.env()) is False
