"""Temporary credentials that can do less than one's own: AssumeRole of a token service.

Amazon's, or that of a store of S3's protocol which has one at its own address.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final
from xml.etree import ElementTree as ET

from emberlake.errors import InvalidInput, StorageError
from emberlake.io.object.calls import ask_again
from emberlake.io.object.config import StoreConfig
from emberlake.io.object.location import Cloud, Location
from emberlake.io.object.sending import Sender
from emberlake.io.object.signing import encoded_query, signed_headers
from emberlake.io.object.uploads import keys_of

_ACTION: Final = "get temporary credentials for"


@dataclass(frozen=True, kw_only=True)
class Role:
    """Which role is assumed, and where."""

    arn: str
    endpoint: str | None = None  # by default Amazon's, of the region of the bucket
    external_id: str | None = None


@dataclass(frozen=True)
class TemporaryKeys:
    """Credentials that end. No text of it shows a secret."""

    access_key_id: str = field(repr=False)
    secret_access_key: str = field(repr=False)
    token: str = field(repr=False)
    expires_at_ms: int


def assume_role(
    config: StoreConfig, location: Location, role: Role, *, name: str, policy: str, seconds: int
) -> TemporaryKeys:
    """Credentials of a role, cut down by a policy.

    Args:
        config: Of the store, with the credentials that may assume the role.
        location: What the credentials are for.
        role: The role.
        name: Who gets them; it is in the logs of the cloud.
        policy: What they allow, as JSON; no more than the role allows.
        seconds: How long they last.

    Raises:
        InvalidInput: the store has no such service, or nobody could assume the role.
        StorageError: the service refused.
    """
    if config.cloud is not Cloud.S3 or config.credentials.provider is None:
        raise InvalidInput(
            f"{location.path}: temporary credentials need a store of S3's protocol, and keys or a "
            "credentials provider that may assume the role"
        )
    url = role.endpoint or f"https://sts.{config.region}.amazonaws.com"
    url = url.rstrip("/") + "/"
    body = encoded_query(_parameters(role, name, policy, seconds)).encode()
    sender = Sender(config)

    def work(obs: Any, client: Any) -> bytes:
        del client
        keys = keys_of(obs, config)
        if keys is None:
            raise obs.exceptions.UnauthenticatedError("no keys")
        now, region = datetime.now(UTC), str(config.region)
        headers = signed_headers("POST", url, keys, region, now, service="sts", body=body)
        form = {"content-type": "application/x-www-form-urlencoded"}
        return sender.send(obs, "POST", url, {**headers, **form}, body)

    return _decode(ask_again(config, location, _ACTION, work), location)


def _parameters(role: Role, name: str, policy: str, seconds: int) -> Sequence[tuple[str, str]]:
    given = [
        ("Action", "AssumeRole"),
        ("Version", "2011-06-15"),
        ("RoleArn", role.arn),
        ("RoleSessionName", name),
        ("Policy", policy),
        ("DurationSeconds", str(seconds)),
    ]
    return given if role.external_id is None else [*given, ("ExternalId", role.external_id)]


def _decode(answer: bytes, location: Location) -> TemporaryKeys:
    try:
        found = ET.fromstring(answer).find(".//{*}Credentials")  # noqa: S314 - expat bounds it
        texts = [
            "" if found is None else (found.findtext(f"{{*}}{name}") or "").strip()
            for name in ("AccessKeyId", "SecretAccessKey", "SessionToken", "Expiration")
        ]
        moment = datetime.fromisoformat(texts[3])
    except (ET.ParseError, ValueError):
        texts = []
    if not all(texts) or not texts:
        raise StorageError(
            f"the token service answered no credentials for {location.path}", had_no_effect=True
        )
    ends = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return TemporaryKeys(texts[0], texts[1], texts[2], int(ends.timestamp() * 1000))
