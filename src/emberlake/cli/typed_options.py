"""Options as they were typed, parsed: settings, pairs, lists of words."""

from collections.abc import Mapping
from typing import Any

from emberlake.cli.config import Settings
from emberlake.cli.failures import UsageError


def settings_of(common: Mapping[str, Any]) -> Settings:
    """The common options, parsed."""
    return Settings(
        warehouse=common["warehouse"],
        profile=common["profile"],
        config=common["config"],
        catalog_options=pairs_of(common["catalog_option"], "--catalog-option"),
        as_json=common["as_json"],
        debug=common["debug"],
    )


def pairs_of(texts: list[str] | None, option: str) -> dict[str, str]:
    """``KEY=VALUE`` texts as a dictionary.

    Raises:
        UsageError: a text has no ``=``, or a key appears twice.
    """
    pairs: dict[str, str] = {}
    for text in texts or ():
        key, separator, value = text.partition("=")
        if not separator or not key.strip():
            raise UsageError(f"{option} {text}: expected KEY=VALUE")
        if key.strip() in pairs:
            raise UsageError(f"{option} {text}: {key.strip()} is given twice")
        pairs[key.strip()] = value
    return pairs


def words_of(texts: list[str] | None) -> list[str]:
    """Names that were separated by commas, given by repeating the option, or both."""
    return [word.strip() for text in texts or () for word in text.split(",") if word.strip()]
