"""Texts of the client library, as they were recorded, and what is made of them."""

import pytest

from emberlake.errors import (
    CredentialsExpired,
    EmberlakeError,
    FileNotFound,
    InvalidInput,
    StorageError,
    Unsupported,
)
from emberlake.io.object.config import StoreConfig, parse_config
from emberlake.io.object.failures import Failure, typed
from emberlake.io.object.location import locate

PATH = "s3://lake/wh/file"
LOCATION = locate(PATH)


def config(endpoint: str = "http://host:9000") -> StoreConfig:
    given = {"s3.access-key": "key", "s3.secret-key": "hidden", "s3.endpoint": endpoint}
    return parse_config(LOCATION, given, {})


def answered(status: str, code: str, more: str = "") -> str:
    return (
        "Generic S3 error: Error performing PUT http://host:9000/lake/wh/file in 1.06ms - Server "
        f'returned non-2xx status code: {status}: <?xml version="1.0" encoding="UTF-8"?>\n<Error>'
        f"<Code>{code}</Code><Message>hidden</Message>{more}</Error>\n\nDebug source:\nGeneric {{}}"
    )


def broken_off(kind: str, source: str = "") -> str:
    return (
        "Generic S3 error: Error performing GET http://host:9000/lake in 101ms, after 1 retries - "
        "HTTP error: error sending request\n\nDebug source:\nGeneric {\n    inner: Http(\n        "
        f"HttpError {{\n            kind: {kind},\n            source: {source} hidden\n"
    )


CASES: list[tuple[str, str, type[EmberlakeError], str, bool]] = [
    ("FileNotFoundError", answered("404 Not Found", "NoSuchKey"), FileNotFound, PATH, False),
    (
        "FileNotFoundError",
        answered("404 Not Found", "NoSuchBucket"),
        StorageError,
        "there is no bucket lake at http://host:9000",
        True,
    ),
    (
        "FileNotFoundError",
        answered("404 Not Found", "XAdminUserNotFound"),
        StorageError,
        "does not know the access key",
        True,
    ),
    (
        "PermissionDeniedError",
        answered("403 Forbidden", "InvalidAccessKeyId"),
        StorageError,
        "does not know the access key",
        True,
    ),
    (
        "PermissionDeniedError",
        answered("403 Forbidden", "SignatureDoesNotMatch"),
        StorageError,
        "the secret key does not match",
        True,
    ),
    (
        "PermissionDeniedError",
        answered("403 Forbidden", "AuthenticationFailed"),
        StorageError,
        "the key or the signature is wrong, or it has expired",
        True,
    ),
    (
        "UnauthenticatedError",
        answered("401 Unauthorized", "AuthenticationRequired"),
        StorageError,
        "does not accept the credentials (AuthenticationRequired); get new ones",
        True,
    ),
    (
        "PermissionDeniedError",
        answered("403 Forbidden", "AccessDenied"),
        StorageError,
        f"these credentials may not create {PATH}",
        True,
    ),
    (
        "PermissionDeniedError",
        answered("403 Forbidden", "RequestTimeTooSkewed"),
        StorageError,
        "this machine's clock",
        True,
    ),
    (
        "GenericError",
        answered("400 Bad Request", "AuthorizationHeaderMalformed", "<Region>eu-1</Region>"),
        StorageError,
        "not in the region us-east-1; set s3.region=eu-1",
        True,
    ),
    (
        "GenericError",
        answered("301 Moved Permanently", "PermanentRedirect"),
        StorageError,
        "not in the region us-east-1; set s3.region",
        True,
    ),
    (
        "GenericError",
        answered("400 Bad Request", "ExpiredToken"),
        CredentialsExpired,
        "no longer valid (ExpiredToken)",
        True,
    ),
    (
        "GenericError",
        answered("503 Slow Down", "SlowDown"),
        StorageError,
        "answered 503 SlowDown",
        False,
    ),
    (
        "FileNotFoundError",
        "Server returned non-2xx status code: 404 Not Found: hidden",
        StorageError,
        "there is no bucket lake",
        True,
    ),
    ("GenericError", broken_off("Connect"), StorageError, "cannot reach http://host:9000", True),
    ("GenericError", broken_off("Timeout"), StorageError, "did not answer in time", False),
    (
        "GenericError",
        broken_off("Request"),
        StorageError,
        "closed the connection without an answer",
        False,
    ),
    (
        "GenericError",
        broken_off("Connect", "InvalidCertificate(UnknownIssuer)"),
        StorageError,
        "is not trusted; name the file with its authority's certificate in s3.ssl.ca-file",
        True,
    ),
    (
        "GenericError",
        broken_off("Connect", "InvalidMessage(InvalidContentType)"),
        StorageError,
        "does not speak TLS",
        True,
    ),
    (
        "GenericError",
        "HTTP error: builder error",
        StorageError,
        "is not a valid store address",
        True,
    ),
    (
        "UnauthenticatedError",
        "hidden ProviderFailed: KeyError",
        StorageError,
        "credentials-provider function failed with KeyError",
        True,
    ),
    ("NotSupportedError", "hidden", Unsupported, "cannot create", False),
    ("ValueError", "hidden", InvalidInput, "not a valid object name", False),
    ("JoinError", "hidden", StorageError, "failed (JoinError)", False),
]


@pytest.mark.parametrize(("kind", "text", "expected", "message", "had_no_effect"), CASES)
def test_a_failure_is_an_error_that_says_what_is_wrong(
    kind: str, text: str, expected: type[EmberlakeError], message: str, *, had_no_effect: bool
) -> None:
    raised = type(kind, (Exception,), {})(text)

    error = typed(Failure.of(raised), config(), LOCATION, "create")

    assert type(error) is expected
    assert message in str(error)
    assert "hidden" not in str(error)
    assert getattr(error, "had_no_effect", False) is had_no_effect


@pytest.mark.parametrize(
    ("status", "code", "is_worth_it"),
    [
        ("403 Forbidden", "ExpiredToken", True),
        ("403 Forbidden", "InvalidAccessKeyId", True),  # MinIO forgets keys that have ended
        ("403 Forbidden", "AuthenticationFailed", True),  # Azure, of a signature that has
        ("401 Unauthorized", "AuthenticationRequired", True),  # Google, of a token that has
        ("403 Forbidden", "SignatureDoesNotMatch", False),
        ("403 Forbidden", "AccessDenied", False),
        ("503 Slow Down", "SlowDown", False),
    ],
)
def test_new_credentials_are_worth_a_try_where_the_old_ones_may_have_ended(
    status: str, code: str, *, is_worth_it: bool
) -> None:
    failure = Failure.of(Exception(answered(status, code)))

    assert failure.may_have_ended is is_worth_it
