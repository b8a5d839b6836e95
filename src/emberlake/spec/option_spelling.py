"""Options that are probably misspelled."""

from collections.abc import Iterable
from typing import Final

from emberlake.base.names import nearest
from emberlake.options import KNOWN_KEYS

_ALIKE: Final = 0.9  # at most a letter or two differ
_SHORT: Final = 10  # characters; in short names two letters are a larger share
_SHORT_ALIKE: Final = 0.8


def misspelled(keys: Iterable[str]) -> list[str]:
    """What to say about options that look like known ones, but are not.

    Other engines have options of their own, so an unknown one is not an error.
    """
    found = []
    for key in keys:
        if key in KNOWN_KEYS:
            continue
        cutoff = _SHORT_ALIKE if len(key) <= _SHORT else _ALIKE
        near = nearest(key, sorted(KNOWN_KEYS), cutoff=cutoff)
        near += (known for known in sorted(KNOWN_KEYS) if known.startswith(f"{key}-"))  # cut short
        if near:
            found.append(f"emberlake does not know the option {key}: did you mean {near[0]}?")
    return found
