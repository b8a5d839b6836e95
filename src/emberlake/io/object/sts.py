"""Temporary credentials that may do less than our own: AssumeRole of a token service.

The service is Amazon's, or that of a store which speaks S3's protocol and has one at its address.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from emberlake.errors import InvalidInput, StorageError
from emberlake.io.object.calls import ask_again
from emberlake.io.object.config import StoreConfig
from emberlake.io.object.location import Cloud, Location
from emberlake.io.object.roles import TemporaryKeys, ask_for_role, decoded
from emberlake.io.object.uploads import keys_of

_ACTION: Final = "get temporary credentials for"


@dataclass(frozen=True, kw_only=True)
class Role:
    """Which role is assumed, and where."""

    arn: str
    endpoint: str | None = None  # by default Amazon's, in the region of the bucket
    external_id: str | None = None


def assume_role(
    config: StoreConfig, location: Location, role: Role, *, name: str, policy: str, seconds: int
) -> TemporaryKeys:
    """Credentials of a role, cut down by a policy.

    Args:
        config: How to reach the store, with credentials that may assume the role.
        location: What the credentials are for.
        role: The role.
        name: Who gets them; the logs of the cloud show it.
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
    place = (role.endpoint or f"https://sts.{config.region}.amazonaws.com", str(config.region))
    asked = _parameters(role, name, policy, seconds)

    def work(obs: Any, client: Any) -> bytes:
        del client
        keys = keys_of(obs, config)
        if keys is None:
            raise obs.exceptions.UnauthenticatedError("no keys")
        return ask_for_role(obs, config, place, keys, asked)

    found = decoded(ask_again(config, location, _ACTION, work))
    if found is None:
        raise StorageError(
            f"the token service returned no credentials for {location.path}", had_no_effect=True
        )
    return found


def _parameters(role: Role, name: str, policy: str, seconds: int) -> Sequence[tuple[str, str]]:
    given = [
        ("RoleArn", role.arn),
        ("RoleSessionName", name),
        ("Policy", policy),
        ("DurationSeconds", str(seconds)),
    ]
    return given if role.external_id is None else [*given, ("ExternalId", role.external_id)]
