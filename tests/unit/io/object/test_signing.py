"""Signatures, against the examples of Amazon's own documentation."""

from datetime import UTC, datetime

import pytest

from emberlake.io.object.signing import Keys, encoded_path, encoded_query, signed_headers

# "Examples: Signature Calculations", in the reference of the API of Amazon S3.
KEYS = Keys("AKIAIOSFODNN7EXAMPLE", "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY")
HOST = "https://examplebucket.s3.amazonaws.com"
WHEN = datetime(2013, 5, 24, tzinfo=UTC)


@pytest.mark.parametrize(
    ("query", "signature"),
    [
        (
            [("lifecycle", "")],
            "fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543",
        ),
        (
            [("prefix", "J"), ("max-keys", "2")],
            "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7",
        ),
    ],
)
def test_the_examples_of_the_documentation_are_signed_alike(
    query: list[tuple[str, str]], signature: str
) -> None:
    url = f"{HOST}/?{encoded_query(query)}"

    headers = signed_headers("GET", url, KEYS, "us-east-1", WHEN)

    assert headers["authorization"] == (
        "AWS4-HMAC-SHA256 Credential=AKIAIOSFODNN7EXAMPLE/20130524/us-east-1/s3/aws4_request,"
        f"SignedHeaders=host;x-amz-content-sha256;x-amz-date,Signature={signature}"
    )
    assert headers["host"] == "examplebucket.s3.amazonaws.com"
    assert headers["x-amz-date"] == "20130524T000000Z"


def test_a_token_is_sent_and_signed() -> None:
    keys = Keys(KEYS.access_key_id, KEYS.secret_access_key, "a-token")

    headers = signed_headers("GET", f"{HOST}/", keys, "us-east-1", WHEN)

    assert headers["x-amz-security-token"] == "a-token"
    assert "x-amz-date;x-amz-security-token," in headers["authorization"]


def test_paths_and_queries_leave_nothing_to_interpretation() -> None:
    assert encoded_path("lake/dt=2026-01-01/a b+ü~.parquet") == (
        "lake/dt%3D2026-01-01/a%20b%2B%C3%BC~.parquet"
    )
    assert (
        encoded_query([("uploads", ""), ("prefix", "a/b =&")]) == "prefix=a%2Fb%20%3D%26&uploads="
    )


def test_keys_show_no_secret() -> None:
    assert repr(Keys("key", "secret", "token")) == "Keys()"
