"""Who gets in: names, sites, keys."""

import pytest

from emberlake.ui.guard import SECURITY_HEADERS, Guard, is_loopback

LOCAL = Guard("127.0.0.1", "the-key", "the-token")
OPEN = Guard("0.0.0.0", "the-key", "the-token", frozenset({"lake.example"}))


@pytest.mark.parametrize("host", ["127.0.0.1:80", "localhost:8711", "[::1]:9", "LOCALHOST"])
def test_this_machine_may_be_called_by_its_own_names(host: str) -> None:
    assert LOCAL.refusal("GET", {"host": host}) is None


@pytest.mark.parametrize(
    "host",
    ["evil.example", "evil.example:8711", "127.0.0.1.evil.example", "10.0.0.7:80", "", "a]:b:c"],
)
def test_any_other_name_may_be_a_rebound_one(host: str) -> None:
    assert "does not answer to the name" in str(LOCAL.refusal("GET", {"host": host}))


def test_a_server_for_other_machines_takes_the_addresses_and_names_it_was_given() -> None:
    assert OPEN.refusal("GET", {"host": "10.0.0.7:80"}) is None
    assert OPEN.refusal("GET", {"host": "lake.example:80"}) is None
    assert OPEN.refusal("GET", {"host": "evil.example:80"}) is not None


HOST = "127.0.0.1:8711"


@pytest.mark.parametrize(
    ("method", "headers"),
    [
        ("GET", {"sec-fetch-site": "cross-site", "sec-fetch-mode": "no-cors"}),
        ("GET", {"sec-fetch-site": "same-site", "sec-fetch-mode": "cors"}),
        ("POST", {"sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate"}),
        (
            "GET",
            {
                "sec-fetch-site": "cross-site",
                "sec-fetch-mode": "navigate",
                "sec-fetch-dest": "iframe",
            },
        ),
        ("GET", {"origin": "http://evil.example"}),
        ("POST", {"origin": "http://127.0.0.1:9999"}),
        ("POST", {"origin": "null"}),
    ],
)
def test_requests_of_other_sites_are_refused(method: str, headers: dict[str, str]) -> None:
    assert LOCAL.refusal(method, {"host": HOST, **headers}) == (
        "The request comes from another site."
    )


@pytest.mark.parametrize(
    "headers",
    [
        {"sec-fetch-site": "same-origin", "sec-fetch-mode": "cors"},
        {"sec-fetch-site": "none", "sec-fetch-mode": "navigate"},
        {
            "sec-fetch-site": "cross-site",
            "sec-fetch-mode": "navigate",
            "sec-fetch-dest": "document",
        },
        {"origin": f"http://{HOST}"},
    ],
)
def test_our_own_pages_and_links_from_elsewhere_get_in(headers: dict[str, str]) -> None:
    assert LOCAL.refusal("GET", {"host": HOST, **headers}) is None


def test_keys_and_tokens_are_compared_whole() -> None:
    assert LOCAL.knows_key("the-key")
    assert not LOCAL.knows_key("the-ke")
    assert not LOCAL.knows_key(None)
    assert not LOCAL.knows_key("")
    assert LOCAL.knows_token("the-token")
    assert not LOCAL.knows_token("the-key")


def test_no_secret_is_in_a_repr() -> None:
    assert "the-key" not in repr(LOCAL)
    assert "the-token" not in repr(LOCAL)


def test_the_policy_lets_nothing_in_that_is_not_ours() -> None:
    policy = SECURITY_HEADERS["content-security-policy"]

    assert "default-src 'none'" in policy
    assert "frame-ancestors 'none'" in policy
    assert "unsafe" not in policy


@pytest.mark.parametrize(
    ("host", "is_local"),
    [("127.0.0.1", True), ("::1", True), ("localhost", True), ("0.0.0.0", False), ("x", False)],
)
def test_loopback_is_what_no_other_machine_reaches(host: str, is_local: bool) -> None:
    assert is_loopback(host) is is_local
