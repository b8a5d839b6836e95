"""The names of the options of object stores, in all the spellings that Paimon's clients accept.

Inside a name ``-`` and ``.`` are the same, and case does not matter. Every spelling stands for one
setting, so we notice if two spellings contradict each other.
"""

import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final, TypeVar

from emberlake.base.option_texts import parse_bool, parse_duration_ms, parse_int
from emberlake.errors import EmberlakeWarning, InvalidOption
from emberlake.io.object.location import Cloud, Location

_T = TypeVar("_T")
PREFIXES: Final[Mapping[Cloud, tuple[str, ...]]] = {
    Cloud.S3: ("s3.", "s3a.", "fs.s3a.", "fs.s3."),
    Cloud.GCS: ("gs.", "gcs.", "fs.gs.", "fs.gcs."),
    Cloud.AZURE: ("azure.", "abfs.", "abfss.", "fs.azure.", "fs.wasb.", "wasb."),
    Cloud.OSS: ("oss.", "fs.oss."),
}
_ALL_PREFIXES: Final = tuple(prefix for prefixes in PREFIXES.values() for prefix in prefixes)
# Options for how requests are made, which are the same for all clouds.
_CONNECTION: Final = {
    "connection.ssl.enabled": "ssl",
    "connection.timeout": "timeout",
    "connection.establish.timeout": "connect_timeout",
    "connection.maximum": "connections",
    "attempts.maximum": "attempts",
    "proxy.host": "proxy_host",
    "proxy.port": "proxy_port",
    "proxy.username": "proxy_username",
    "proxy.password": "proxy_password",
    "ssl.ca.file": "ca_file",
    "anonymous": "anonymous",
    "allow.anonymous": "anonymous",
    "credentials": "credentials",
    "credentials.provider": "provider",
    "single.writer": "single_writer",
    "impl": "ignored",  # Hadoop's class for the scheme
}
_S3: Final = {
    **_CONNECTION,
    "endpoint": "endpoint",
    "access.key": "access_key_id",
    "accesskeyid": "access_key_id",
    "access.key.id": "access_key_id",
    "secret.key": "secret_access_key",
    "accesskeysecret": "secret_access_key",
    "access.key.secret": "secret_access_key",
    "session.token": "session_token",
    "security.token": "session_token",
    "securitytoken": "session_token",
    "region": "region",
    "endpoint.region": "region",
    "path.style.access": "path_style",
    "assumed.role.arn": "role_arn",
    "assumed.role.session.name": "role_session_name",
    "assumed.role.session.duration": "role_duration",
    "assumed.role.external.id": "role_external_id",
    "assumed.role.externalid": "role_external_id",
    "assumed.role.policy": "role_policy",
    "assumed.role.sts.endpoint": "token_address",
    "assumed.role.sts.endpoint.region": "token_region",
    "web.identity.token.file": "web_identity_token_file",
    "metadata.endpoint": "metadata_endpoint",
    "aws.credentials.provider": "hadoop_provider",
    "sse.type": "server_side_encryption",
    "encryption.algorithm": "server_side_encryption",
    "server.side.encryption.algorithm": "server_side_encryption",
    "sse.key": "encryption_key",
    "encryption.key": "encryption_key",
    "server.side.encryption.key": "encryption_key",
    "unsigned.payload": "unsigned_payload",
}
_NAMES: Final[Mapping[Cloud, Mapping[str, str]]] = {
    Cloud.S3: {**_S3, "profile": "profile"},
    Cloud.OSS: _S3,
    Cloud.GCS: {
        **_CONNECTION,
        "endpoint": "base_url",
        "credential.path": "service_account",
        "service.account": "service_account",
        "auth.service.account.json.keyfile": "service_account",
        "credential": "service_account_key",
        "token": "bearer_token",
        "access.token": "bearer_token",
        "project.id": "ignored",  # buckets are found without their project
        "scope": "ignored",
        "access.token.expiration": "ignored",  # only a provider can be asked again
    },
    Cloud.AZURE: {
        **_CONNECTION,
        "endpoint": "endpoint",
        "account.name": "account_name",
        "account.key": "account_key",
        "sas.token": "sas_key",
        "sas.key": "sas_key",
        "client.id": "client_id",
        "account.oauth2.client.id": "client_id",
        "client.secret": "client_secret",
        "account.oauth2.client.secret": "client_secret",
        "tenant.id": "tenant_id",
        "account.oauth2.client.endpoint": "token_endpoint",
        "authority.host": "authority_host",
        "account.auth.type": "ignored",
        "account.oauth.provider.type": "ignored",
    },
}

# Settings that are secrets. The id of an access key alone is not a secret.
_SECRETS: Final = frozenset(
    {
        "secret_access_key",
        "session_token",
        "encryption_key",
        "service_account_key",
        "bearer_token",
        "account_key",
        "sas_key",
        "client_secret",
        "proxy_password",
    }
)
# Settings that mean something else, or something dangerous, on another machine.
_OF_THIS_MACHINE: Final = frozenset(
    {"provider", "profile", "web_identity_token_file", "service_account", "ca_file"}
)
# Settings that identify the caller, or say where to find the identity.
_CREDENTIALS: Final = _SECRETS - {"encryption_key", "proxy_password"} | {
    "access_key_id",
    "profile",
    "provider",
    "credentials",
    "hadoop_provider",
    "anonymous",
    "role_arn",
    "role_session_name",
    "web_identity_token_file",
    "service_account",
    "client_id",
    "tenant_id",
    "token_endpoint",
}


@dataclass(frozen=True)
class Given:
    """The options of one cloud by their meaning, whatever their spelling."""

    cloud: Cloud
    keys: Mapping[str, str]  # meaning -> the key as the user wrote it
    values: Mapping[str, object] = field(repr=False)  # meaning -> value, which may be a secret

    def __contains__(self, name: str) -> bool:
        return name in self.values

    def key(self, name: str) -> str:
        """The key of an option: as the user wrote it, or else the first spelling."""
        if name in self.keys:
            return self.keys[name]
        spelling = next(text for text, meaning in _NAMES[self.cloud].items() if meaning == name)
        head, _, last = spelling.rpartition(".")
        return f"{PREFIXES[self.cloud][0]}{f'{head}-{last}' if head else last}"

    def text(self, name: str) -> str | None:
        value = self.values.get(name)
        return None if value is None else str(value)

    def flag(self, name: str, *, default: bool = False) -> bool:
        return self._parsed(name, parse_bool, default=default)

    def count(self, name: str, default: int) -> int:
        return self._parsed(name, parse_int, default=default)

    def millis(self, name: str, default: int) -> int:
        return self._parsed(name, parse_duration_ms, default=default)

    def _parsed(self, name: str, parse: Callable[[str], _T], *, default: _T) -> _T:
        text = self.text(name)
        if text is None:
            return default
        try:
            return parse(text)
        except ValueError as error:
            raise InvalidOption(f"{self.key(name)}={text!r}: {error}") from error


def is_store_option(key: str) -> bool:
    """Whether an option belongs to an object store, by its prefix."""
    return key.lower().startswith(_ALL_PREFIXES)


def is_secret_option(key: str) -> bool:
    """Whether the value of an option is a secret, whichever store it is for."""
    return any(_has_meaning(key, cloud, _SECRETS) for cloud in PREFIXES)


def is_of_this_machine(key: str) -> bool:
    """Whether an option names code, a file or a profile of the machine that uses it."""
    return any(_has_meaning(key, cloud, _OF_THIS_MACHINE) for cloud in PREFIXES)


def without_credentials(cloud: Cloud, options: Mapping[str, object]) -> dict[str, object]:
    """The options without the credentials for stores of this cloud."""
    return {k: v for k, v in options.items() if not _has_meaning(k, cloud, _CREDENTIALS)}


def _has_meaning(key: str, cloud: Cloud, meanings: frozenset[str]) -> bool:
    """Whether an option of a cloud stands for one of these settings."""
    names = [text for text, meaning in _NAMES[cloud].items() if meaning in meanings]
    for prefix in PREFIXES[cloud]:
        if key.lower().startswith(prefix):
            name = key[len(prefix) :].lower().replace("-", ".")
            # Hadoop appends Azure's account to the name.
            if any(name == text or name.startswith(f"{text}.") for text in names):
                return True
    return False


def given_options(location: Location, options: Mapping[str, object]) -> Given:
    """What catalog options say about the store of a location.

    Raises:
        InvalidOption: two spellings contradict each other.
    """
    cloud = location.cloud
    keys: dict[str, str] = {}
    values: dict[str, object] = {}
    unknown: list[str] = []
    for prefix in PREFIXES[cloud]:
        for key, value in options.items():
            if not key.lower().startswith(prefix):
                continue
            meaning = _meaning(location, key[len(prefix) :].lower().replace("-", "."))
            value = value if callable(value) else str(value).strip()  # noqa: PLW2901
            if meaning is None:
                unknown.append(key)
                continue
            if meaning in values and values[meaning] != value and meaning != "ignored":
                raise InvalidOption(
                    f"{keys[meaning]} and {key} contradict each other; give one of them"
                )
            keys.setdefault(meaning, key)
            values.setdefault(meaning, value)
    if unknown:
        # Never the values: a misspelt secret is a secret.
        warnings.warn(
            f"emberlake does not know these options of {cloud}: {', '.join(sorted(unknown))}",
            EmberlakeWarning,
            stacklevel=2,
        )
    return Given(cloud, keys, values)


def _meaning(location: Location, name: str) -> str | None:
    known = _NAMES[location.cloud]
    if name in known:
        return known[name]
    if location.cloud is not Cloud.AZURE:
        return None
    # Hadoop appends the account to the name: account.key.ACCOUNT.dfs.core.windows.net.
    for spelling, meaning in known.items():
        if spelling.startswith("account.") and name.startswith(f"{spelling}."):
            account = name.removeprefix(f"{spelling}.").partition(".")[0]
            is_ours = account == location.host.partition(".")[0].lower()
            return meaning if is_ours else "ignored"
    return None
