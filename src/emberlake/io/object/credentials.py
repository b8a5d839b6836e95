"""Where the credentials of a store come from.

Options, a provider, the environment, or a profile of Amazon's tools. The metadata service of the
cloud is asked only if the user says so: outside of a cloud nothing answers at its address, and
asking takes seconds.
"""

import importlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from operator import attrgetter
from pathlib import Path
from typing import Any, Final, Protocol, runtime_checkable

from emberlake.errors import InvalidOption, Unsupported
from emberlake.io.object.location import Cloud
from emberlake.io.object.profiles import ProcessKeys, Profile, read_profile
from emberlake.io.object.roles import AssumedRole, TokenService
from emberlake.io.object.spellings import PREFIXES, Given

# Called without arguments; what it returns is described in `Credentials.provider`.
CredentialsProvider = Callable[[], Mapping[str, Any]]


@runtime_checkable
class KeepingProvider(Protocol):
    """A provider that keeps its credentials until it learns that the store rejects them."""

    def __call__(self) -> Mapping[str, Any]: ...

    def make_ready(self) -> None:
        """Get credentials that are good for a while, or raise the reason why there are none."""

    def forget(self) -> None:
        """The store no longer accepts them."""


_INSTANCE: Final = "instance"
_KEYS: Final = ("access_key_id", "secret_access_key", "session_token")
_ENVIRONMENT: Final[Mapping[Cloud, tuple[str, ...]]] = {
    Cloud.S3: ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"),
    Cloud.OSS: ("OSS_ACCESS_KEY_ID", "OSS_ACCESS_KEY_SECRET", "OSS_SESSION_TOKEN"),
}
_WEB_IDENTITY: Final = {
    "role_arn": "AWS_ROLE_ARN",
    "role_session_name": "AWS_ROLE_SESSION_NAME",
    "web_identity_token_file": "AWS_WEB_IDENTITY_TOKEN_FILE",
}
_CONTAINER: Final = {
    "container_credentials_relative_uri": "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI",
    "container_credentials_full_uri": "AWS_CONTAINER_CREDENTIALS_FULL_URI",
    "container_authorization_token_file": "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE",
    "metadata_endpoint": "AWS_METADATA_ENDPOINT",
}
_GCS: Final = ("service_account", "service_account_key", "bearer_token")
_GCS_FILE: Final = "GOOGLE_APPLICATION_CREDENTIALS"
_AZURE_ENVIRONMENT: Final = {
    "account_key": "AZURE_STORAGE_ACCOUNT_KEY",
    "sas_key": "AZURE_STORAGE_SAS_KEY",
    "client_id": "AZURE_CLIENT_ID",
    "client_secret": "AZURE_CLIENT_SECRET",
    "tenant_id": "AZURE_TENANT_ID",
}
_AZURE_CLIENT: Final = ("client_id", "client_secret", "tenant_id")


@dataclass(frozen=True)
class Credentials:
    """What a client needs to prove who it is. Its repr shows no secret."""

    settings: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    provider: CredentialsProvider | None = field(default=None, repr=False, hash=False)

    @property
    def are_vended(self) -> bool:
        """Whether they were handed out for this table alone, so Spark does not have them."""
        return self.keeper is not None

    @cached_property
    def keeper(self) -> KeepingProvider | None:
        """The provider, if it keeps its credentials. Found once: every request asks for it."""
        return self.provider if isinstance(self.provider, KeepingProvider) else None


@dataclass(frozen=True)
class FixedKeys:
    """Keys that do not expire, as a provider: so the environment cannot mix with them."""

    access_key_id: str = field(repr=False)
    secret_access_key: str = field(repr=False)
    token: str | None = field(default=None, repr=False)
    expires_at: datetime | None = None

    def __call__(self) -> Mapping[str, Any]:
        return {
            "access_key_id": self.access_key_id,
            "secret_access_key": self.secret_access_key,
            "token": self.token,
            "expires_at": self.expires_at,
        }


def find_profile(given: Given, environment: Mapping[str, str]) -> Profile | None:
    """The profile that supplies what options and environment leave open.

    Raises:
        InvalidOption: there is no profile with the given name, or a file cannot be read.
    """
    if given.cloud is not Cloud.S3:
        return None
    if any(name in given for name in (*_KEYS, "provider")) or _is_anonymous(given):
        return None
    return read_profile(given.text("profile"), environment)


def find_credentials(
    given: Given,
    environment: Mapping[str, str],
    profile: Profile | None = None,
    service: TokenService | None = None,
) -> Credentials:
    """The credentials that options, environment and profile give.

    Args:
        given: the options.
        environment: the variables of the environment.
        profile: the profile of Amazon's tools.
        service: the token service where roles are assumed, if there is one.

    Raises:
        InvalidOption: there are no credentials, they are incomplete, or there are two kinds.
    """
    sources = _Sources(environment, profile, service)
    provider = given.values.get("provider")
    if provider is not None:
        own = _of_provider(given, provider)
        return _of_given_role(given, sources, own) if "role_arn" in given else own
    if _is_anonymous(given):
        return Credentials((("skip_signature", "true"),))
    match given.cloud:
        case Cloud.S3 | Cloud.OSS:
            found = _of_aws(given, sources)
        case Cloud.GCS:
            found = _of_gcs(given, environment)
        case Cloud.AZURE:
            found = _of_azure(given, environment)
    if found is None:
        raise _no_credentials(given)
    return found


def _of_provider(given: Given, provider: object) -> Credentials:
    if isinstance(provider, str):
        provider = _imported(given.key("provider"), provider)
    if not callable(provider):
        raise InvalidOption(
            f"{given.key('provider')} is not a function; give one that returns the credentials"
        )
    fixed = [n for n in (*_KEYS, "profile", *_GCS, "account_key", "sas_key") if n in given]
    if fixed:
        raise InvalidOption(
            f"{given.key('provider')} and {given.key(fixed[0])} contradict each other; give one of "
            "them"
        )
    return Credentials(provider=provider)


def _imported(key: str, name: str) -> object:
    """The object that ``module:name`` names. Options of Spark and of files are text only."""
    module, _, function = name.partition(":")
    if not module or not function:
        raise InvalidOption(
            f"{key}={name} names no function: write module:function, or give the function itself"
        )
    try:
        return attrgetter(function)(importlib.import_module(module))
    except (ImportError, AttributeError) as error:
        raise InvalidOption(f"{key}={name} cannot be imported: {error}") from error


def _is_anonymous(given: Given) -> bool:
    return given.flag("anonymous") or "Anonymous" in (given.text("hadoop_provider") or "")


def _asks_instance(given: Given) -> bool:
    wanted = given.text("credentials")
    if wanted is not None and wanted.lower() != _INSTANCE:
        # Without the value: it may be the credentials themselves.
        raise InvalidOption(f"{given.key('credentials')} can only be {_INSTANCE}")
    return wanted is not None or "Instance" in (given.text("hadoop_provider") or "")


@dataclass(frozen=True)
class _Sources:
    """Where Amazon's credentials come from, besides options."""

    environment: Mapping[str, str] = field(repr=False)
    profile: Profile | None
    service: TokenService | None


def _of_aws(given: Given, sources: _Sources) -> Credentials | None:
    if "role_arn" not in given:
        return _of_keys(given, sources)
    own = [name for name in (*_KEYS, "profile") if name in given]
    if own and "web_identity_token_file" in given:
        raise InvalidOption(
            f"{given.key('web_identity_token_file')} and {given.key(own[0])} contradict each "
            "other; give one of them"
        )
    settings = _from_environment(_WEB_IDENTITY, sources.environment, given)
    if "web_identity_token_file" in dict(settings) and not own:
        return Credentials(settings)
    base = _of_keys(given, sources)
    return base and _of_given_role(given, sources, base)


def _of_given_role(given: Given, sources: _Sources, base: Credentials) -> Credentials:
    names = {
        "RoleSessionName": given.text("role_session_name"),
        "ExternalId": given.text("role_external_id"),
        "Policy": given.text("role_policy"),
    }
    if "role_duration" in given:
        names["DurationSeconds"] = str(given.millis("role_duration", 0) // 1000)
    return _of_role(given, sources, base, str(given.text("role_arn")), names)


def _of_role(
    given: Given,
    sources: _Sources,
    base: Credentials,
    role: str,
    names: Mapping[str, str | None],
) -> Credentials:
    if sources.service is None or base.provider is None:
        raise Unsupported(
            f"the role {role}: emberlake assumes a role only at S3, with keys or a web identity "
            f"token ({given.key('web_identity_token_file')}); give {given.key('provider')}, a "
            "function that asks the token service"
        )
    asked = {"RoleSessionName": "emberlake"} | {k: v for k, v in names.items() if v}
    made = AssumedRole(role, sources.service, base.provider, tuple(sorted(asked.items())))
    return Credentials(provider=made)


def _of_keys(given: Given, sources: _Sources) -> Credentials | None:
    names = [name for name in _KEYS if name in given]
    if names:
        if "profile" in given:
            raise InvalidOption(
                f"{given.key('profile')} and {given.key(names[0])} contradict each other; give one "
                "of them"
            )
        lacking = [name for name in _KEYS[:2] if name not in given]
        if lacking:
            raise InvalidOption(
                f"{given.key(names[0])} is given without {given.key(lacking[0])}; give both"
            )
        return Credentials(provider=FixedKeys(*(given.text(name) for name in _KEYS)))  # type: ignore[arg-type]
    environment, profile = sources.environment, sources.profile
    if _asks_instance(given):
        return Credentials(_from_environment(_CONTAINER, environment, given))
    if profile is not None and "profile" in given:
        return _of_profile(given, sources, profile)
    found = _of_environment(given, environment)
    if found is not None:
        return found
    if given.cloud is Cloud.S3 and environment.get(_WEB_IDENTITY["web_identity_token_file"]):
        return Credentials(_from_environment(_WEB_IDENTITY, environment, given))
    return None if profile is None else _of_profile(given, sources, profile)


def _of_environment(given: Given, environment: Mapping[str, str]) -> Credentials | None:
    key, secret, token = (environment.get(name) for name in _ENVIRONMENT[given.cloud])
    return Credentials(provider=FixedKeys(key, secret, token)) if key and secret else None


def _of_profile(
    given: Given, sources: _Sources, profile: Profile, before: tuple[str, ...] = ()
) -> Credentials | None:
    role = {name: profile.text(name) for name in _WEB_IDENTITY}
    if role["role_arn"] and role["web_identity_token_file"]:
        return Credentials(tuple((name, text) for name, text in role.items() if text))
    if role["role_arn"] and not (profile.name in before and profile.text("aws_access_key_id")):
        base = _source_of(given, sources, profile, before)
        names = {
            "RoleSessionName": profile.text("role_session_name"),
            "ExternalId": profile.text("external_id"),
            "DurationSeconds": profile.text("duration_seconds"),
        }
        return _of_role(given, sources, base, role["role_arn"], names)
    if any(name.startswith("sso_") for name in profile.values):
        raise _takes_tools(given, profile, "signs in with SSO")
    key, secret = profile.text("aws_access_key_id"), profile.text("aws_secret_access_key")
    if key and secret:
        return Credentials(provider=FixedKeys(key, secret, profile.text("aws_session_token")))
    if key or secret:
        lacking = "aws_secret_access_key" if key else "aws_access_key_id"
        raise InvalidOption(f"the profile {profile.name} has no {lacking}")
    command = profile.text("credential_process")
    return Credentials(provider=ProcessKeys(profile.name, command)) if command else None


def _source_of(
    given: Given, sources: _Sources, profile: Profile, before: tuple[str, ...]
) -> Credentials:
    """The credentials with which a profile assumes its role."""
    if profile.text("mfa_serial"):
        raise _takes_tools(given, profile, "asks for a second factor")
    name, place = profile.text("source_profile"), profile.text("credential_source")
    found: Credentials | None = None
    if name in before:
        raise InvalidOption(f"the profile {name} is its own source_profile, through others")
    if name:
        source = read_profile(name, sources.environment)
        if source is not None:
            found = _of_profile(given, sources, source, (*before, profile.name))
    elif place == "Environment":
        found = _of_environment(given, sources.environment)
    elif place:
        raise _takes_tools(given, profile, f"assumes a role with credential_source={place}")
    if found is None:
        raise InvalidOption(f"the profile {profile.name} has no credentials to assume its role")
    return found


def _takes_tools(given: Given, profile: Profile, way: str) -> Unsupported:
    return Unsupported(
        f"the profile {profile.name} {way}, which needs Amazon's own tools: set "
        f"credential_process = aws configure export-credentials --profile {profile.name} in a "
        f"profile of its own, or give {given.key('provider')}, a function that returns keys"
    )


def _of_gcs(given: Given, environment: Mapping[str, str]) -> Credentials | None:
    settings = tuple((name, str(given.text(name))) for name in _GCS if name in given)
    if settings:
        return Credentials(settings)
    if _asks_instance(given):
        return Credentials()
    known = Path("~/.config/gcloud/application_default_credentials.json").expanduser()
    file = environment.get(_GCS_FILE) or (str(known) if known.is_file() else None)
    return Credentials((("application_credentials", file),)) if file else None


def _of_azure(given: Given, environment: Mapping[str, str]) -> Credentials | None:
    found = {name: str(given.text(name)) for name in _AZURE_ENVIRONMENT if name in given}
    tenant = (given.text("token_endpoint") or "").removeprefix("https://").split("/")
    if len(tenant) > 1:  # https://login.microsoftonline.com/TENANT/oauth2/token
        found.setdefault("tenant_id", tenant[1])
    if not found:
        if _asks_instance(given):
            return Credentials()
        found = {k: environment[v] for k, v in _AZURE_ENVIRONMENT.items() if environment.get(v)}
    if "account_key" in found or "sas_key" in found:
        name = "account_key" if "account_key" in found else "sas_key"
        return Credentials(((name, found[name]),))
    if not found:
        return None
    lacking = [name for name in _AZURE_CLIENT if name not in found]
    if lacking:
        raise InvalidOption(
            f"the Azure client credentials are incomplete: {given.key(lacking[0])} is missing"
        )
    return Credentials(tuple((name, found[name]) for name in _AZURE_CLIENT))


def _from_environment(
    names: Mapping[str, str], environment: Mapping[str, str], given: Given
) -> tuple[tuple[str, str], ...]:
    found = ((name, given.text(name) or environment.get(key)) for name, key in names.items())
    return tuple((name, text) for name, text in found if text)


def _no_credentials(given: Given) -> InvalidOption:
    prefix = PREFIXES[given.cloud][0]
    match given.cloud:
        case Cloud.S3 | Cloud.OSS:
            key, secret, _ = _ENVIRONMENT[given.cloud]
            ways = f"{prefix}access-key and {prefix}secret-key, or set {key} and {secret}"
            if given.cloud is Cloud.S3:
                ways += " or AWS_PROFILE"
        case Cloud.GCS:
            ways = f"{prefix}credential-path or {prefix}token, or set {_GCS_FILE}"
        case Cloud.AZURE:
            ways = f"{prefix}account-key or {prefix}sas-token, or set AZURE_STORAGE_ACCOUNT_KEY"
    return InvalidOption(
        f"no credentials for {given.cloud}: give {ways}; {prefix}credentials-provider is a "
        f"function that returns them, {prefix}credentials={_INSTANCE} asks the machine's cloud, "
        f"{prefix}anonymous=true sends unsigned requests"
    )
