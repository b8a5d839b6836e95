"""Patterns of Spark for dates, such as ``yyyy-MM-dd``, as those of DuckDB (``%Y-%m-%d``)."""

import re
from typing import Final

from emberlake.errors import Unsupported

_PART: Final = re.compile(r"'((?:[^']|'')*)'|(([A-Za-z])\3*)|(.)", re.DOTALL)
_PADDED: Final = {
    "yyyy": "%Y",
    "MM": "%m",
    "dd": "%d",
    "HH": "%H",
    "hh": "%I",
    "mm": "%M",
    "ss": "%S",
    "SSS": "%g",
    "SSSSSS": "%f",
    "DDD": "%j",
    "MMM": "%b",
    "MMMM": "%B",
    "a": "%p",
}
# As many digits as it takes; and what only says something about a date.
_LOOSE: Final = {"M": "%-m", "d": "%-d", "H": "%-H", "h": "%-I", "m": "%-M", "s": "%-S"}
_WRITTEN: Final = {"y": "%Y", "yy": "%y", "D": "%-j"} | {
    **dict.fromkeys(("E", "EE", "EEE"), "%a"),
    "EEEE": "%A",
}


def writing_pattern(pattern: str) -> str:
    """The pattern with which DuckDB writes a date.

    Raises:
        Unsupported: DuckDB has nothing that means a part of it.
    """
    return _translated(pattern, _PADDED | _LOOSE | _WRITTEN)


def reading_pattern(pattern: str) -> tuple[str, bool]:
    """The pattern with which DuckDB reads a date; whether every part has its full width."""
    is_padded = not any(m.group(2) in _LOOSE for m in _PART.finditer(pattern))
    return _translated(pattern, _PADDED | _LOOSE), is_padded


def _translated(pattern: str, known: dict[str, str]) -> str:
    found: list[str] = []
    for match in _PART.finditer(pattern):
        quoted, letters, _, other = match.groups()
        if letters is None:
            found.append((other if quoted is None else quoted or "'").replace("%", "%%"))
        elif letters in known:
            found.append(known[letters])
        else:
            raise Unsupported(
                f"the pattern {pattern!r}: without Spark, {letters} cannot stand in a pattern; "
                f"these can: {', '.join(sorted(known))}"
            )
    return "".join(found)
