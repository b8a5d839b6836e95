"""Options whose values must not be shown, by their names."""

import re
from collections.abc import Mapping
from typing import Final

HIDDEN: Final = "(hidden)"
# Stores are not the only ones that have secrets, and a misspelt secret is a secret.
_SECRET: Final = re.compile(
    r"secret|password|passwd|token|credential|access.?key|account.?key|private|\bsas\b",
    re.IGNORECASE,
)


def may_be_secret(key: str) -> bool:
    """Whether an option sounds as if its value were a secret."""
    return _SECRET.search(key) is not None


def shown_options(options: Mapping[str, str]) -> dict[str, str]:
    """Options as they may be shown."""
    return {key: HIDDEN if may_be_secret(key) else value for key, value in options.items()}
