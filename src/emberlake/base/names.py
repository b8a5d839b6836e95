"""Names in messages (short lists, suggestions for unknown names) and in Spark's SQL."""

from collections.abc import Collection, Iterable, Sequence
from difflib import get_close_matches
from typing import Final

_SHOWN: Final = 8
_SHOWN_CHARACTERS: Final = 64
_COMPARED: Final = 5000  # a table may have many columns, a catalog many tables
_SUGGESTED: Final = 3
_ALIKE: Final = 0.7
_SHORT: Final = 4  # letters; in such names two swapped letters weigh a lot: dya, day
_SHORT_ALIKE: Final = 0.65
_VOWELS: Final = frozenset("aeio")


def listed(names: Collection[object], shown: int = _SHOWN) -> str:
    """``a, b, c``; a long list is cut: ``a, b, c and 497 more``."""
    texts = [_shortened(str(name)) for _, name in zip(range(shown), names, strict=False)]
    left = len(names) - len(texts)
    return ", ".join(texts) + (f" and {left:,} more" if left else "")


def nearest(name: str, known: Iterable[str], cutoff: float | None = None) -> list[str]:
    """The names spelled most like this one, the closest first; case is ignored."""
    if cutoff is None:
        cutoff = _ALIKE if len(name) > _SHORT else _SHORT_ALIKE
    by_lower: dict[str, str] = {}
    for _, choice in zip(range(_COMPARED), known, strict=False):
        by_lower.setdefault(choice.lower(), choice)
    near = get_close_matches(name.lower(), by_lower, n=_SUGGESTED, cutoff=cutoff)
    return [by_lower[lower] for lower in near]


def did_you_mean(unknown: Sequence[str], known: Collection[str], before: str = "") -> str:
    """Ask whether a similar name was meant, with ``before`` in front; empty if none is similar."""
    near = dict.fromkeys(near for name in unknown for near in nearest(name, known))
    meant = [_shortened(name) for name in near][:_SUGGESTED]
    return f"{before}did you mean {' or '.join(meant)}?" if meant else ""


def choices(unknown: str | Sequence[str], known: Collection[str], there_are: str) -> str:
    """Describe unknown names: list the valid ones and suggest the closest.

    Args:
        unknown: The name, or the names.
        known: The valid names.
        there_are: The words before the list of valid names: ``the table has``.
    """
    if not known:
        return f"{there_are} none"
    asked = [unknown] if isinstance(unknown, str) else unknown[:_SHOWN]
    if len(known) > _SHOWN and (question := did_you_mean(asked, known)):
        return question
    return f"{there_are} {listed(known)}" + did_you_mean(asked, known, before=": ")


def backquoted(name: str) -> str:
    """A name in backquotes, so that Spark reads it whatever characters it has."""
    return "`" + name.replace("`", "``") + "`"


def with_article(noun: str) -> str:
    """``a BIGINT``, ``an INT``: a word behind its article."""
    return f"{'an' if noun[:1].lower() in _VOWELS else 'a'} {noun}"


def _shortened(name: str) -> str:
    return name if len(name) <= _SHOWN_CHARACTERS else f"{name[: _SHOWN_CHARACTERS - 3]}..."
