"""Signatures of Alibaba Cloud's Data Lake Formation, which speaks the REST protocol.

There are three ways to sign. Each takes a request and returns the headers to send with it.
"""

import base64
import hashlib
import hmac
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import format_datetime
from enum import StrEnum
from typing import Final
from urllib.parse import quote, unquote_plus

from emberlake.rest.paths import Endpoint

_REGION: Final = re.compile(r"[a-z]{2}-[a-z]+(?:-\d+)?")
_UNSIGNED: Final = "UNSIGNED-PAYLOAD"
_JSON: Final = "application/json"
_PRODUCT: Final = "DlfNext"
_LAST: Final = "aliyun_v4_request"
_OPENAPI_VERSION: Final = "2026-01-18"
# Operations whose names differ from those of their endpoints.
_ACTIONS: Final = {
    Endpoint.AUTHORIZE: "AuthTableQuery",
    Endpoint.COMMIT: "CommitTable",
    Endpoint.DELETE_TAG: "DropTag",
    Endpoint.FORWARD_BRANCH: "FastForwardBranch",
    Endpoint.GET_SNAPSHOT: "GetTableSnapshot",
    Endpoint.GET_SNAPSHOT_VERSION: "GetVersionSnapshot",
    Endpoint.GET_TOKEN: "GetTableToken",
    Endpoint.GRANT_PERMISSION: "GrantPermissionAssignment",
    Endpoint.LIST_PERMISSIONS: "ListPermissionAssignments",
    Endpoint.MARK_PARTITIONS_DONE: "MarkDonePartitions",
    Endpoint.REVOKE_PERMISSION: "RevokePermissionAssignment",
    Endpoint.ROLLBACK: "RollbackToSnapshot",
}
_UNREGISTERED: Final = frozenset((
    Endpoint.GET_TABLE_BY_ID,
    Endpoint.LIST_CONSUMERS,
    Endpoint.LIST_FUNCTIONS_GLOBALLY,
    Endpoint.LIST_FUNCTION_DETAILS,
    Endpoint.LIST_TABLES_GLOBALLY,
    Endpoint.LIST_VIEWS_GLOBALLY,
    Endpoint.RENAME_BRANCH,
    Endpoint.REPLACE_TABLE,
    Endpoint.RESET_CONSUMER,
    Endpoint.ROLLBACK_SCHEMA,
))  # fmt: skip


class DlfAlgorithm(StrEnum):
    """How requests are signed: the values of ``dlf.signing-algorithm``."""

    DEFAULT = "default"
    OPENAPI = "openapi"
    OPENAPI_V4 = "openapi-v4"


@dataclass(frozen=True)
class DlfCredentials:
    """The key that signs. Its text never shows the secret."""

    access_key_id: str
    access_key_secret: str = field(repr=False)
    security_token: str | None = field(default=None, repr=False)
    expires_at_ms: int | None = None


@dataclass(frozen=True, kw_only=True)
class DlfRequest:
    """What is signed: the path as it is sent, the query before it is encoded."""

    method: str
    path: str
    query: Mapping[str, str] = field(default_factory=dict)
    body: bytes | None = None
    host: str = ""
    endpoint: Endpoint | None = None  # None: the config


def region_of(uri: str) -> str | None:
    """The region in an address such as ``cn-hangzhou-vpc.dlf.aliyuncs.com``."""
    found = _REGION.search(uri)
    return found.group() if found else None


def algorithm_for(host: str) -> DlfAlgorithm:
    """The algorithm that an address asks for."""
    return DlfAlgorithm.OPENAPI if "dlfnext" in host.lower() else DlfAlgorithm.DEFAULT


def sign_dlf(
    algorithm: DlfAlgorithm,
    request: DlfRequest,
    credentials: DlfCredentials,
    *,
    region: str,
    now_ms: int,
    nonce: str,
) -> dict[str, str]:
    """The headers that sign a request, ``Authorization`` among them."""
    now = datetime.fromtimestamp(now_ms // 1000, tz=UTC)
    match algorithm:
        case DlfAlgorithm.DEFAULT:
            return _default(request, credentials, region, now)
        case DlfAlgorithm.OPENAPI:
            return _openapi(request, credentials, now, nonce)
        case DlfAlgorithm.OPENAPI_V4:
            return _openapi_v4(request, credentials, region, now, nonce)


# --- default: DLF4-HMAC-SHA256 --------------------------------------------------------------------


def _default(
    request: DlfRequest, credentials: DlfCredentials, region: str, now: datetime
) -> dict[str, str]:
    moment = now.strftime("%Y%m%dT%H%M%SZ")
    headers = {
        "x-dlf-date": moment,
        "x-dlf-content-sha256": _UNSIGNED,
        "x-dlf-version": "v1",
    }
    if request.body:
        headers |= {"Content-Type": _JSON, "Content-MD5": _md5(request.body)}
    if credentials.security_token is not None:
        headers["x-dlf-security-token"] = credentials.security_token
    lines = sorted(f"{name.lower()}:{value.strip()}" for name, value in headers.items())
    canonical = "\n".join((request.method, request.path, _query(request), *lines, _UNSIGNED))
    scope = f"{moment[:8]}/{region}/{_PRODUCT}/{_LAST}"
    signature = _sign_v4("DLF4-HMAC-SHA256", credentials, scope, moment, canonical)
    headers["Authorization"] = (
        f"DLF4-HMAC-SHA256 Credential={credentials.access_key_id}/{scope},Signature={signature}"
    )
    return headers


def _query(request: DlfRequest) -> str:
    return "&".join(
        f"{_quoted(key)}={_quoted(value)}" if value else _quoted(key)
        for key, value in sorted(request.query.items())
    )


def _quoted(text: str) -> str:
    return quote(text.strip(), safe="-_.~")


def _sign_v4(
    algorithm: str, credentials: DlfCredentials, scope: str, moment: str, canonical: str
) -> str:
    hashed = hashlib.sha256(canonical.encode()).hexdigest()
    text = f"{algorithm}\n{moment}\n{scope}\n{hashed}"
    key = b"aliyun_v4" + credentials.access_key_secret.encode()
    for part in scope.split("/"):
        key = hmac.digest(key, part.encode(), "sha256")
    return hmac.digest(key, text.encode(), "sha256").hex()


# --- openapi: ROA, HMAC-SHA1 ----------------------------------------------------------------------


def _openapi(
    request: DlfRequest, credentials: DlfCredentials, now: datetime, nonce: str
) -> dict[str, str]:
    headers = {
        "Date": format_datetime(now, usegmt=True),
        "Accept": _JSON,
        "Host": request.host,
        "x-acs-signature-method": "HMAC-SHA1",
        "x-acs-signature-nonce": nonce,
        "x-acs-signature-version": "1.0",
        "x-acs-version": _OPENAPI_VERSION,
    }
    if request.body:
        headers |= {"Content-MD5": _md5(request.body), "Content-Type": _JSON}
    if credentials.security_token is not None:
        headers["x-acs-security-token"] = credentials.security_token
    own = sorted(f"{name}:{value}" for name, value in headers.items() if name.startswith("x-acs-"))
    first = (headers.get(name, "") for name in ("Accept", "Content-MD5", "Content-Type", "Date"))
    resource = unquote_plus(request.path)
    if request.query:
        pairs = sorted(request.query.items())
        resource += "?" + "&".join(f"{key}={value}" if value else key for key, value in pairs)
    text = "\n".join((request.method, *first, *own, resource))
    digest = hmac.digest(credentials.access_key_secret.encode(), text.encode(), "sha1")
    headers["Authorization"] = (
        f"acs {credentials.access_key_id}:{base64.b64encode(digest).decode()}"
    )
    return headers


# --- openapi-v4: ACS4-HMAC-SHA256 -----------------------------------------------------------------


def _openapi_v4(
    request: DlfRequest,
    credentials: DlfCredentials,
    region: str,
    now: datetime,
    nonce: str,
) -> dict[str, str]:
    body = request.body or b""
    headers = {
        "host": request.host,
        "x-acs-content-sha256": hashlib.sha256(body).hexdigest(),
        "x-acs-date": now.strftime("%Y-%m-%dT%H:%M:%SZ"),
        "x-acs-signature-nonce": nonce,
        "x-acs-version": _OPENAPI_VERSION,
    }
    action = _action(request)
    if action is not None:
        headers["x-acs-action"] = action
    if body:
        headers["content-type"] = _JSON
    if credentials.security_token is not None:
        headers["x-acs-security-token"] = credentials.security_token
    names = ";".join(sorted(headers))
    lines = "".join(f"{name}:{headers[name].strip()}\n" for name in sorted(headers))
    canonical = "\n".join((
        request.method,
        request.path,
        _query(request),
        lines,
        names,
        headers["x-acs-content-sha256"],
    ))  # fmt: skip
    scope = f"{now.strftime('%Y%m%d')}/{region}/{_PRODUCT}/{_LAST}"
    hashed = hashlib.sha256(canonical.encode()).hexdigest()
    key = b"aliyun_v4" + credentials.access_key_secret.encode()
    for part in scope.split("/"):
        key = hmac.digest(key, part.encode(), "sha256")
    signature = hmac.digest(key, f"ACS4-HMAC-SHA256\n{hashed}".encode(), "sha256").hex()
    headers["Authorization"] = (
        f"ACS4-HMAC-SHA256 Credential={credentials.access_key_id}/{scope},"
        f"SignedHeaders={names},Signature={signature}"
    )
    return headers


def _action(request: DlfRequest) -> str | None:
    """The name of an operation, which gateways may route by; None if it is not registered."""
    if request.endpoint is None:
        return "GetConfig"
    if request.endpoint in _UNREGISTERED:
        return None
    words = request.endpoint.name.split("_")
    return _ACTIONS.get(request.endpoint) or "".join(word.capitalize() for word in words)


def _md5(body: bytes) -> str:
    return base64.b64encode(hashlib.md5(body, usedforsecurity=False).digest()).decode()
