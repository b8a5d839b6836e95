"""Storage options that give access to the folder of one table, with tokens of its server."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

from emberlake.errors import StorageError
from emberlake.io.object.location import SCHEMES, Cloud, Location, locate
from emberlake.io.object.spellings import PREFIXES, given_options, without_credentials
from emberlake.io.registry import scheme_of
from emberlake.io.rest.data_tokens import TokenSource

_DLF_ENDPOINT: Final = "dlf.oss-endpoint"
_LATEST: Final = datetime(9999, 1, 1, tzinfo=UTC).timestamp()  # a datetime can hold no more
_AZURE: Final = {"sas_key": "sas_token", "account_key": "access_key", "bearer_token": "token"}


@dataclass(frozen=True)
class TokenProvider:
    """Credentials as the client library asks for them: those of the current token."""

    location: Location
    source: TokenSource

    def __call__(self) -> Mapping[str, Any]:
        token = self.source.current()
        given = given_options(self.location, token.options)
        moment = min(self.source.expires_at_ms(token) / 1000, _LATEST)  # some tokens last forever
        expires = {"expires_at": datetime.fromtimestamp(moment, tz=UTC)}
        match self.location.cloud:
            case Cloud.S3 | Cloud.OSS:
                return {
                    "access_key_id": self._text(given.text("access_key_id")),
                    "secret_access_key": self._text(given.text("secret_access_key")),
                    "token": given.text("session_token"),
                    **expires,
                }
            case Cloud.GCS:
                return {"token": self._text(given.text("bearer_token")), **expires}
            case Cloud.AZURE:
                found = {new: given.text(old) for old, new in _AZURE.items() if old in given}
                if not found:
                    self._text(None)
                return {**found, **expires}

    def make_ready(self) -> None:
        """Get a token that is good for a while, or raise the reason why there is none."""
        self.source.current()

    def forget(self) -> None:
        """The store no longer accepts the token."""
        self.source.forget()

    def _text(self, value: str | None) -> str:
        if value is None:
            raise StorageError(
                f"the token for {self.source.table} has no keys for {self.location.root}"
            )
        return value


def takes_tokens(path: str) -> bool:
    """Whether a path is in a store that asks for credentials."""
    return scheme_of(path) in SCHEMES


def vended_options(
    path: str, options: Mapping[str, object], source: TokenSource
) -> dict[str, object]:
    """The storage options of a table: those of the catalog, overridden by those of its token.

    They do not include the token's keys: a provider has these, and renews them.
    """
    root = locate(path)
    location = Location(root.cloud, root.root, root.bucket, root.host, "")
    given = {**options, **source.current().options}
    if root.cloud is Cloud.OSS and isinstance(options.get(_DLF_ENDPOINT), str):
        given = {k: v for k, v in given.items() if k.lower() not in _ENDPOINTS}
        given["fs.oss.endpoint"] = options[_DLF_ENDPOINT]
    kept = without_credentials(location.cloud, given)
    provider = f"{PREFIXES[location.cloud][0]}credentials-provider"
    return {**kept, provider: TokenProvider(location, source)}


_ENDPOINTS: Final = frozenset(f"{prefix}endpoint" for prefix in PREFIXES[Cloud.OSS])
