"""AWS Signature Version 4, for requests to S3 that the client library cannot make."""

import hashlib
import hmac
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Final
from urllib.parse import quote, urlsplit

_ALGORITHM: Final = "AWS4-HMAC-SHA256"


@dataclass(frozen=True)
class Keys:
    """The keys that sign a request. Their repr shows no secret."""

    access_key_id: str = field(repr=False)
    secret_access_key: str = field(repr=False)
    token: str | None = field(default=None, repr=False)


def encoded_path(path: str) -> str:
    """A path as it is sent, and signed."""
    return quote(path, safe="/")


def encoded_query(parameters: Sequence[tuple[str, str]]) -> str:
    """A query as it is sent, and signed: sorted, with every special character encoded."""
    pairs = sorted((quote(name, safe=""), quote(value, safe="")) for name, value in parameters)
    return "&".join(f"{name}={value}" for name, value in pairs)


def signed_headers(
    method: str,
    url: str,
    keys: Keys,
    region: str,
    when: datetime,
    *,
    service: str = "s3",
    body: bytes = b"",
) -> Mapping[str, str]:
    """The headers that sign a request.

    Args:
        method: GET, DELETE or POST.
        url: the address, whose path and query are encoded by the functions above.
        keys: the keys to sign with.
        region: the region of the bucket.
        when: the time of the request.
        service: the service that is asked: the store, or the token service (``sts``).
        body: the body of the request.
    """
    content = hashlib.sha256(body).hexdigest()
    parts = urlsplit(url)
    stamp = when.astimezone(UTC).strftime("%Y%m%dT%H%M%SZ")
    headers = {"host": parts.netloc, "x-amz-content-sha256": content, "x-amz-date": stamp}
    if keys.token:
        headers["x-amz-security-token"] = keys.token
    names = ";".join(sorted(headers))
    lines = "".join(f"{name}:{headers[name]}\n" for name in sorted(headers))
    request = "\n".join((method, parts.path or "/", parts.query, lines, names, content))
    scope = f"{stamp[:8]}/{region}/{service}/aws4_request"
    digest = hashlib.sha256(request.encode()).hexdigest()
    text = f"{_ALGORITHM}\n{stamp}\n{scope}\n{digest}"
    key = f"AWS4{keys.secret_access_key}".encode()
    for part in (*scope.split("/"), text):
        key = hmac.digest(key, part.encode(), "sha256")
    credential = f"Credential={keys.access_key_id}/{scope}"
    headers["authorization"] = (
        f"{_ALGORITHM} {credential},SignedHeaders={names},Signature={key.hex()}"
    )
    return headers
