"""Roles that are assumed with keys, at the token service of a store.

The service is Amazon's, or that of a store which speaks S3's protocol and has one at its address.
"""

import re
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final
from xml.etree import ElementTree as ET

from emberlake.base.extras import load_extra
from emberlake.io.object.sending import Reach, Sender
from emberlake.io.object.signing import Keys, encoded_query, signed_headers

_CODE: Final = re.compile(r"<Code>(\w+)</Code>")
_FOR_NOW: Final = re.compile(r"^(status code: (5\d\d|429)\b|HttpError)")
_PAUSES_S: Final = (0.2, 0.6)


class RoleRefused(Exception):
    """A role could not be assumed; one word says why."""


@dataclass(frozen=True)
class TemporaryKeys:
    """Credentials that expire. Their repr shows no secret."""

    access_key_id: str = field(repr=False)
    secret_access_key: str = field(repr=False)
    token: str = field(repr=False)
    expires_at_ms: int


@dataclass(frozen=True)
class TokenService:
    """Where roles are assumed, and how it is reached."""

    address: str
    region: str
    timeout_ms: int = 60_000
    connect_timeout_ms: int = 5_000
    proxy_url: str | None = field(default=None, repr=False)
    ca_pem: bytes | None = field(default=None, repr=False)


@dataclass(frozen=True)
class AssumedRole:
    """Asks for the keys of a role, again whenever they expire. Its repr shows no secret."""

    role: str
    service: TokenService
    source: Callable[[], Mapping[str, Any]] = field(repr=False)
    asked: tuple[tuple[str, str], ...] = field(default=(), repr=False)  # what else is sent

    def __call__(self) -> Mapping[str, Any]:
        """The keys as a provider returns them.

        Raises:
            RoleRefused: the service refused, did not answer, or answered something unexpected.
        """
        given = self.source()
        keys = Keys(given["access_key_id"], given["secret_access_key"], given.get("token"))
        obs = load_extra("obstore", extra="s3")  # for its errors
        try:
            found = decoded(self._ask(obs, keys))
        except (obs.exceptions.BaseError, OSError) as error:
            code = _CODE.search(str(error))
            raise RoleRefused(code[1] if code else "NoAnswer") from None
        if found is None:
            raise RoleRefused("UnknownAnswer")
        return {
            "access_key_id": found.access_key_id,
            "secret_access_key": found.secret_access_key,
            "token": found.token,
            "expires_at": datetime.fromtimestamp(found.expires_at_ms / 1000, UTC),
        }

    def _ask(self, obs: Any, keys: Keys) -> bytes:
        """The answer of the service. Temporary failures are retried for about a second."""
        place = (self.service.address, self.service.region)
        asked = [("RoleArn", self.role), *self.asked]
        for pause in _PAUSES_S:
            try:
                return ask_for_role(obs, self.service, place, keys, asked)
            except (obs.exceptions.BaseError, OSError) as error:
                if not _FOR_NOW.search(str(error)):
                    raise
            time.sleep(pause)
        return ask_for_role(obs, self.service, place, keys, asked)


def ask_for_role(
    obs: Any,
    reach: Reach,
    place: tuple[str, str],
    keys: Keys,
    asked: Sequence[tuple[str, str]],
) -> bytes:
    """What a token service answers to AssumeRole.

    Args:
        obs: The client library, for its errors.
        reach: How the service is reached.
        place: Its address and region.
        keys: The keys of a user who may assume the role.
        asked: The parameters of the request: the role, and more.

    Raises:
        obstore.exceptions.BaseError: the service refused, or did not answer.
    """
    address, region = place
    url = f"{address.rstrip('/')}/"
    action = [("Action", "AssumeRole"), ("Version", "2011-06-15")]
    body = encoded_query([*action, *asked]).encode()
    now = datetime.now(UTC)
    headers = signed_headers("POST", url, keys, region, now, service="sts", body=body)
    form = {"content-type": "application/x-www-form-urlencoded"}
    return Sender(reach).send(obs, "POST", url, {**headers, **form}, body)


def decoded(answer: bytes) -> TemporaryKeys | None:
    """The keys in the answer of a token service; None if it has none."""
    try:
        found = ET.fromstring(answer).find(".//{*}Credentials")  # noqa: S314 - expat bounds it
        if found is None:
            return None
        key, secret, token, ends = (
            (found.findtext(f"{{*}}{name}") or "").strip()
            for name in ("AccessKeyId", "SecretAccessKey", "SessionToken", "Expiration")
        )
        moment = datetime.fromisoformat(ends)
    except (ET.ParseError, ValueError):
        return None
    if not (key and secret and token):
        return None
    moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return TemporaryKeys(key, secret, token, int(moment.timestamp() * 1000))
