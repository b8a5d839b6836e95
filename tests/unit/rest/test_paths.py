"""Paths of the protocol, compared with what Paimon's own clients send."""

from urllib.parse import urlsplit

import pytest

from emberlake.rest.paths import (
    CONFIG_PATH,
    Endpoint,
    decode_name,
    encode_name,
    find_route,
    methods_of,
    path_of,
)
from rest_recordings import Exchange, exchanges, name_of


@pytest.mark.parametrize(
    ("name", "sent"),
    [
        ("a b", "a+b"),
        ("x/y", "x%2Fy"),
        ("é", "%C3%A9"),
        ("p%q", "p%25q"),
        ("t+u", "t%2Bu"),
        ("k~l", "k%7El"),
        ("s*t", "s*t"),
        ("a&b=c", "a%26b%3Dc"),
        ("d.e", "d.e"),
        ("t$branch_b1", "t%24branch_b1"),
    ],
)
def test_names_are_spelled_as_java_spells_them(name: str, sent: str) -> None:
    assert encode_name(name) == sent
    assert decode_name(sent) == name


def test_a_tilde_may_come_as_it_is() -> None:
    assert decode_name("k~l") == "k~l"


@pytest.mark.parametrize("exchange", exchanges(), ids=name_of)
def test_every_recorded_request_asks_for_an_endpoint(exchange: Exchange) -> None:
    path = urlsplit(exchange["target"]).path
    if path == CONFIG_PATH:
        return

    found = find_route(exchange["method"], tuple(path.split("/")[3:]))

    assert found is not None
    assert path_of(found.endpoint, "paimon", *found.names.values()) == path


@pytest.mark.parametrize("endpoint", Endpoint)
def test_every_endpoint_is_found_by_its_path(endpoint: Endpoint) -> None:
    count = sum(part.startswith("{") for part in endpoint.segments)
    names = [f"n/{number}" for number in range(count)]

    path = path_of(endpoint, "p q", *names)
    found = find_route(endpoint.method, tuple(path.split("/")[3:]))

    assert path.startswith("/v1/p+q/")
    assert found is not None
    assert (found.endpoint, list(found.names.values())) == (endpoint, names)


def test_a_path_says_which_methods_it_has() -> None:
    assert methods_of(("databases", "db", "tables")) == ("GET", "POST")
    assert methods_of(("nothing",)) == ()
    assert find_route("DELETE", ("databases", "db", "tables")) is None


def test_an_empty_name_is_no_name() -> None:
    assert find_route("GET", ("databases", "")) is None
