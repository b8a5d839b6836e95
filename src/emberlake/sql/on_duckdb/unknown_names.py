"""What DuckDB says about names that it does not find, in our words."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from emberlake.base.names import choices, did_you_mean

# A column that nobody has is translated to itself with its own name: SELECT x AS x.
_COLUMN: Final = re.compile(
    r'Column "(?P<selected>.+?)" referenced that exists in the SELECT clause'
    r'|Referenced column "(?P<plain>.+?)" not found in FROM clause'
    r'|(?:Values list|Table) "(?P<table>.+?)" does not have a column named "(?P<qualified>.+?)"'
)
_TABLE: Final = re.compile(r'Referenced table "(?P<name>.+?)" not found!')
_FIELD: Final = re.compile(r'Could not find key "(?P<name>.+?)" in struct')
_CALLED: Final = re.compile(r'"(?P<table>(?:[^"]|"")+)" AS "(?P<alias>(?:[^"]|"")+)"')
_FUNCTION: Final = re.compile(
    r'Function with name (?P<name>\S+) does not exist!(?: Did you mean "(?P<near>\w+)"\?)?'
)


@dataclass(frozen=True)
class Known:
    """What a query can name: its text for DuckDB, and the columns of the tables in it."""

    query: str = ""
    columns: Mapping[str, Sequence[str]] = field(default_factory=dict)  # by tables

    def in_our_words(self, text: str) -> str:
        """A message of DuckDB; if it is about an unknown name, ours instead."""
        if found := _COLUMN.search(text):
            name = found["selected"] or found["plain"] or found["qualified"]
            return f"[UNRESOLVED_COLUMN] {self._no_column(name, found['table'])}"
        if found := _TABLE.search(text):
            there_are = choices(found["name"], list(self._called()), "there are")
            return f"[UNRESOLVED_COLUMN] the query has no table {found['name']}; {there_are}"
        if found := _FIELD.search(text):  # columns are fields where a statement changes rows
            return f"[FIELD_NOT_FOUND] there is no column or field {found['name']}"
        if found := _FUNCTION.search(text):
            name, near = found["name"], found["near"]
            hint = did_you_mean([name], [near], before="; ") if near else ""
            return f"[UNRESOLVED_ROUTINE] there is no function {name}{hint}"
        return text

    def _no_column(self, name: str, table: str | None) -> str:
        if table is None:
            columns = dict.fromkeys(name for names in self.columns.values() for name in names)
        else:
            columns = dict.fromkeys(self.columns.get(self._called().get(table, ""), ()))
        if not columns:
            return f"there is no column {name} {f'in {table}' if table else 'here'}"
        if name.lower() in map(str.lower, columns):
            return f"there is no column {name} here: what the query selects from lacks it"
        return f"there is no column {name}; {choices(name, columns, 'there are')}"

    def _called(self) -> dict[str, str]:
        """Names of tables in the query, and what they stand for."""
        called = {found["alias"]: found["table"] for found in _CALLED.finditer(self.query)}
        return {alias: table for alias, table in called.items() if table in self.columns}
