"""Recognize, by their names, the options whose values must not be shown."""

import re
from collections.abc import Mapping
from typing import Final

HIDDEN: Final = "(hidden)"
# Not only object stores have secrets, and the value of a misspelled option is still a secret.
_SECRET: Final = re.compile(
    r"secret|password|passwd|token|credential|access.?key|account.?key|private|\bsas\b",
    re.IGNORECASE,
)


def may_be_secret(key: str) -> bool:
    """Whether the name of an option suggests that its value is a secret."""
    return _SECRET.search(key) is not None


def shown_options(options: Mapping[str, str]) -> dict[str, str]:
    """The options with their secrets hidden."""
    return {key: HIDDEN if may_be_secret(key) else value for key, value in options.items()}
