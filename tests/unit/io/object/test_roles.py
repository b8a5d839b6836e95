import pickle
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs

import pytest

from emberlake.errors import StorageError
from emberlake.io import open_storage
from emberlake.io.object import roles
from emberlake.io.object.credentials import FixedKeys
from emberlake.io.object.roles import AssumedRole, RoleRefused, TokenService

KEYS = """<AssumeRoleResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><AssumeRoleResult>
<Credentials><AccessKeyId>role-key</AccessKeyId><SecretAccessKey>hidden</SecretAccessKey>
<SessionToken>hidden-token</SessionToken><Expiration>2030-01-02T03:04:05Z</Expiration>
</Credentials></AssumeRoleResult></AssumeRoleResponse>"""
DENIED = "<ErrorResponse><Error><Code>AccessDenied</Code><Message>hidden</Message></Error></Error>"


@dataclass
class Service:
    """A token service with prepared answers."""

    address: str = ""
    answer: tuple[int, str] = (200, KEYS)
    failures: list[tuple[int, str]] = field(default_factory=list)  # before that
    forms: list[dict[str, str]] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)

    def role(self, **asked: str) -> AssumedRole:
        source = FixedKeys("base-key", "hidden", "base-token")
        service = TokenService(self.address, "eu-west-1", connect_timeout_ms=500, timeout_ms=500)
        return AssumedRole("arn:aws:iam::1:role/r", service, source, tuple(asked.items()))


@pytest.fixture
def service() -> Iterator[Service]:
    made = Service()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"])).decode()
            made.forms.append({name: values[0] for name, values in parse_qs(body).items()})
            made.headers.append({name.lower(): text for name, text in self.headers.items()})
            status, text = made.failures.pop() if made.failures else made.answer
            self.send_response(status)
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text.encode())

        def log_message(self, *arguments: object) -> None: ...

    listening = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    made.address = f"http://127.0.0.1:{listening.server_port}"
    threading.Thread(target=listening.serve_forever, args=(0.02,), daemon=True).start()
    try:
        yield made
    finally:
        listening.shutdown()
        listening.server_close()


def test_the_keys_of_a_role_are_asked_for_with_other_keys(service: Service) -> None:
    found = service.role(RoleSessionName="me", Policy='{"a": "b c"}')()

    assert found == {
        "access_key_id": "role-key",
        "secret_access_key": "hidden",
        "token": "hidden-token",
        "expires_at": datetime(2030, 1, 2, 3, 4, 5, tzinfo=UTC),
    }
    assert service.forms == [
        {
            "Action": "AssumeRole",
            "Version": "2011-06-15",
            "RoleArn": "arn:aws:iam::1:role/r",
            "RoleSessionName": "me",
            "Policy": '{"a": "b c"}',
        }
    ]
    (headers,) = service.headers
    signed = "/eu-west-1/sts/aws4_request,SignedHeaders=host;x-amz-content-sha256;x-amz-date;x-amz-"
    assert headers["authorization"].startswith("AWS4-HMAC-SHA256 Credential=base-key/")
    assert signed in headers["authorization"]
    assert headers["x-amz-security-token"] == "base-token"


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        ((403, DENIED), "AccessDenied"),
        ((500, "hidden"), "NoAnswer"),
        ((200, "hidden"), "UnknownAnswer"),
        ((200, "<Hidden/>"), "UnknownAnswer"),
        ((200, KEYS.replace("2030-01-02", "soon")), "UnknownAnswer"),
    ],
)
def test_a_refused_role_is_reported_in_one_word(
    service: Service, answer: tuple[int, str], message: str
) -> None:
    service.answer = answer

    with pytest.raises(RoleRefused) as raised:
        service.role()()

    assert str(raised.value) == message


@pytest.mark.parametrize(
    ("failure", "tries"),
    [
        ((503, "hidden"), 3),
        ((429, "<Error><Code>Throttling</Code></Error>"), 3),
        ((403, DENIED), 1),
        ((400, "<Error><Code>ExpiredTokenException</Code></Error>"), 1),
    ],
)
def test_what_fails_for_now_is_tried_again(
    service: Service, monkeypatch: pytest.MonkeyPatch, failure: tuple[int, str], tries: int
) -> None:
    monkeypatch.setattr(roles, "_PAUSES_S", (0.001, 0.001))
    service.failures = [failure] * 2

    if tries > 1:
        assert service.role()()["access_key_id"] == "role-key"
    else:
        with pytest.raises(RoleRefused):
            service.role()()

    assert len(service.forms) == tries


def test_a_role_goes_to_other_processes_and_shows_no_secret(service: Service) -> None:
    role = service.role()

    again = pickle.loads(pickle.dumps(role))

    assert again == role
    assert again()["access_key_id"] == "role-key"
    assert "hidden" not in repr(role)


def test_a_role_that_cannot_be_assumed_is_an_error_of_the_store(service: Service) -> None:
    service.answer = (403, DENIED)
    options = {"s3.endpoint": service.address, "s3.access-key": "base-key"}
    options |= {"s3.secret-key": "hidden", "s3.assumed.role.arn": "arn:aws:iam::1:role/r"}
    storage, root = open_storage("s3://lake", options)

    message = (
        r"assuming the role arn:aws:iam::1:role/r at http://127\.0\.0\.1:\d+ failed with Access"
    )
    with pytest.raises(StorageError, match=message) as raised:
        storage.read(f"{root}/file")

    assert raised.value.had_no_effect
    assert "hidden" not in str(raised.value)
