"""What DuckDB says about names that it does not find, in our words."""

import re
from collections.abc import Collection
from typing import Final

from emberlake.base.names import choices, did_you_mean

# A column that nobody has is translated to itself with its own name: SELECT x AS x.
_COLUMN: Final = re.compile(
    r'Column "(?P<selected>.+?)" referenced that exists in the SELECT clause'
    r'|Referenced column "(?P<plain>.+?)" not found in FROM clause'
    r'|(?:Values list|Table) ".+?" does not have a column named "(?P<qualified>.+?)"'
)
_FUNCTION: Final = re.compile(
    r'Function with name (?P<name>\S+) does not exist!(?: Did you mean "(?P<near>\w+)"\?)?'
)


def in_our_words(text: str, columns: Collection[str]) -> str:
    """A message of DuckDB; if it is about an unknown column or function, ours instead.

    Args:
        text: What DuckDB says.
        columns: The columns of the tables of the query; none if it has no tables.
    """
    if found := _COLUMN.search(text):
        name = next(name for name in found.groups() if name is not None)
        there_are = f"; {choices(name, columns, 'there are')}" if columns else " here"
        return f"[UNRESOLVED_COLUMN] there is no column {name}{there_are}"
    if found := _FUNCTION.search(text):
        name, near = found["name"], found["near"]
        hint = did_you_mean([name], [near], before="; ") if near else ""
        return f"[UNRESOLVED_ROUTINE] there is no function {name}{hint}"
    return text
