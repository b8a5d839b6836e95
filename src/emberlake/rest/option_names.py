"""The names of the catalog options of REST catalogs, and which of them are secret."""

from collections.abc import Mapping
from typing import Final

URI: Final = "uri"
PREFIX: Final = "prefix"
TOKEN: Final = "token"  # noqa: S105 - the name of an option
TOKEN_ENV: Final = "token.env"  # noqa: S105
TOKEN_FILE: Final = "token.file"  # noqa: S105
TOKEN_PROVIDER: Final = "token.provider"  # noqa: S105
DATA_TOKEN: Final = "data-token.enabled"  # noqa: S105
HEADER: Final = "header."
CLIENT: Final = "rest.client."
TOKEN_SOURCES: Final = (TOKEN, TOKEN_ENV, TOKEN_FILE)
_DLF: Final = "dlf."
_SECRETS: Final = frozenset(
    (TOKEN, "dlf.access-key-secret", "dlf.security-token", f"{CLIENT}proxy")
)
_NAMES: Final = frozenset((URI, PREFIX, *TOKEN_SOURCES, TOKEN_PROVIDER, DATA_TOKEN))
_PREFIXES: Final = (HEADER, _DLF, CLIENT)


def is_rest_option(key: str) -> bool:
    """Whether an option belongs to REST catalogs, by its name."""
    return key in _NAMES or key.startswith(_PREFIXES)


def is_secret_rest_option(key: str) -> bool:
    """Whether the value of an option is a secret. Any header may be one."""
    return key in _SECRETS or key.startswith(HEADER)


def without_secrets(options: Mapping[str, str]) -> dict[str, str]:
    """Options that may be shown and stored."""
    return {key: value for key, value in options.items() if not is_secret_rest_option(key)}
