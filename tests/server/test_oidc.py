"""Tokens of an identity provider."""

import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import rsa
from jwt.algorithms import RSAAlgorithm

from catalog_server import Client, serving
from emberlake.errors import InvalidInput, NotAuthenticated
from emberlake.server.access import oidc as oidc_module
from emberlake.server.access.grants import Access, Grant, Resource, ResourceKind
from emberlake.server.access.oidc import OidcProvider
from emberlake.server.settings import Oidc

ISSUER, AUDIENCE = "https://id.example", "emberlake"
KEY = rsa.generate_private_key(public_exponent=65537, key_size=2048)
OTHER = rsa.generate_private_key(public_exponent=65537, key_size=2048)


def key_set(key: rsa.RSAPrivateKey, kid: str) -> bytes:
    public = json.loads(RSAAlgorithm.to_jwk(key.public_key()))
    return json.dumps({"keys": [{**public, "kid": kid, "alg": "RS256", "use": "sig"}]}).encode()


@pytest.fixture(scope="module")
def keys_url() -> Iterator[str]:
    """A key set on loopback."""
    with serving_keys([key_set(KEY, "one")]) as url:
        yield url


@contextmanager
def serving_keys(sets: list[bytes]) -> Iterator[str]:
    """Key sets, one after the other; the last one stays."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = sets.pop(0) if len(sets) > 1 else sets[0]
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None: ...

    server = HTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/keys"
    finally:
        server.shutdown()
        server.server_close()


@pytest.fixture
def client(tmp_path: Path, keys_url: str) -> Iterator[Client]:
    oidc = Oidc(issuer=ISSUER, audience=AUDIENCE, keys_url=keys_url, admin_group="lake-admins")
    with serving(tmp_path, oidc=oidc) as found:
        found.database().table()
        yield found


def token(key: Any = KEY, algorithm: str = "RS256", kid: str = "one", **claims: Any) -> str:
    now = int(time.time())
    given = {"iss": ISSUER, "aud": AUDIENCE, "exp": now + 60, "sub": "ann", **claims}
    present = {name: value for name, value in given.items() if value is not None}
    return jwt.encode(present, key, algorithm, {"kid": kid})


def test_a_token_of_the_provider_is_taken(client: Client) -> None:
    principals = client.server.services.principals
    table = Resource(ResourceKind.TABLE, "db", "t")
    path = "/databases/db/tables/t"

    assert client.as_(token()).get(path).status == 403
    principals.grant("lake", Grant("oidc:ann", table, Access.SELECT), by="test")
    assert client.as_(token()).get(path).status == 200
    assert client.as_(token(sub="bob")).get(path).status == 403
    principals.grant("lake", Grant("oidc:group:eng", table, Access.SELECT), by="test")
    for groups in (["eng"], "eng", ["eng", 5]):
        assert client.as_(token(sub="bob", groups=groups)).get(path).status == 200
    for groups in (5, {"eng": 1}, ["eng\0"], True):
        assert client.as_(token(sub="bob", groups=groups)).get(path).status == 403


def test_a_name_at_the_provider_makes_nobody_a_group(client: Client) -> None:
    principals = client.server.services.principals
    table = Resource(ResourceKind.TABLE, "db", "t")
    principals.grant("lake", Grant("oidc:group:eng", table, Access.SELECT), by="test")

    assert client.as_(token(sub="group:eng")).get("/databases/db/tables/t").status == 401


def test_a_name_at_the_provider_makes_nobody_an_administrator(client: Client) -> None:
    path = "/databases/db"

    assert client.as_(token(sub="admin")).delete(path).status == 403
    assert client.as_(token(groups=["lake-admins"])).delete(path).status == 200


@pytest.mark.parametrize(
    "wrong",
    [
        {"exp": 1},
        {"exp": None},
        {"iss": "https://other.example"},
        {"aud": "other"},
        {"aud": None},
        {"sub": None},
        {"sub": 5},
        {"sub": "\ud800"},
        {"sub": "a\0b"},
        {"key": OTHER},
        {"kid": "unknown"},
        {"key": "a-shared-secret-that-is-long-enough-for-hs256", "algorithm": "HS256"},
        {"key": "", "algorithm": "none"},
        {"nbf": int(time.time()) + 3600},
    ],
    # Keys and times differ from process to process; names of tests must not.
    ids="-".join,
)
def test_other_tokens_are_refused(client: Client, wrong: dict[str, Any]) -> None:
    assert client.as_(token(**wrong)).get("/databases").error == (401, None, None)


def test_tokens_of_the_server_work_next_to_them(client: Client) -> None:
    assert client.get("/databases").status == 200
    assert client.as_("neither").get("/databases").status == 401


def test_a_key_set_is_fetched_over_a_secure_connection() -> None:
    with pytest.raises(InvalidInput, match="https"):
        OidcProvider(Oidc(issuer=ISSUER, audience=AUDIENCE, keys_url="http://id.example/keys"))


def test_a_key_that_the_provider_withdraws_is_taken_no_more(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(oidc_module, "_KEYS_S", 0.01)
    with serving_keys([key_set(KEY, "one"), key_set(OTHER, "two")]) as url:
        provider = OidcProvider(Oidc(issuer=ISSUER, audience=AUDIENCE, keys_url=url))
        assert provider.verify(token()).name == "oidc:ann"
        time.sleep(0.02)

        with pytest.raises(NotAuthenticated):
            provider.verify(token())
        assert provider.verify(token(OTHER, kid="two")).name == "oidc:ann"
