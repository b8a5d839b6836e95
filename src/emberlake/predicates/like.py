r"""SQL LIKE patterns: ``%`` is any text, ``_`` any character, ``\`` takes the next one as it is."""

from enum import Enum
from typing import Final, TypeAlias

from emberlake.errors import InvalidPredicate

LIKE_ESCAPE: Final = "\\"


class Wildcard(Enum):
    """The parts of a pattern that match any text or character."""

    ANY_TEXT = "%"
    ANY_CHARACTER = "_"


LikeToken: TypeAlias = str | Wildcard


def parse_like(pattern: str) -> list[LikeToken]:
    """The characters and wildcards of a pattern; a run of ``%`` is one.

    Raises:
        InvalidPredicate: The pattern ends in the middle of an escape.
    """
    tokens: list[LikeToken] = []
    characters = iter(pattern)
    for character in characters:
        if character == LIKE_ESCAPE:
            escaped = next(characters, None)
            if escaped is None:
                raise InvalidPredicate(f"the pattern {pattern!r} ends in an escape: double it")
            tokens.append(escaped)
        elif character == "_":
            tokens.append(Wildcard.ANY_CHARACTER)
        elif character != "%":
            tokens.append(character)
        elif tokens[-1:] != [Wildcard.ANY_TEXT]:
            tokens.append(Wildcard.ANY_TEXT)
    return tokens


def escape_like(text: str) -> str:
    """A pattern that matches only this text."""
    return "".join(f"{LIKE_ESCAPE}{c}" if c in "%_\\" else c for c in text)


def like_prefix(pattern: str) -> str:
    """The prefix that every matching text has."""
    prefix: list[str] = []
    for token in parse_like(pattern):
        if isinstance(token, Wildcard):
            break
        prefix.append(token)
    return "".join(prefix)


def is_prefix_pattern(pattern: str) -> bool:
    """Whether the pattern asks only for a prefix, as ``abc%`` does."""
    tokens = parse_like(pattern)
    wildcards = [token for token in tokens if isinstance(token, Wildcard)]
    return wildcards == [Wildcard.ANY_TEXT] and tokens[-1] is Wildcard.ANY_TEXT


def like_regex(pattern: str) -> str:
    """A regular expression for RE2 that matches the same whole texts."""
    return rf"(?s)\A{''.join(_regex_of(token) for token in parse_like(pattern))}\z"


def _regex_of(token: LikeToken) -> str:
    match token:
        case Wildcard.ANY_TEXT:
            return ".*"
        case Wildcard.ANY_CHARACTER:
            return "."
        case _ if token.isascii() and not token.isalnum():
            return rf"\x{ord(token):02x}"
        case _:
            return token
