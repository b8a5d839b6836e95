"""Schemas as people look at them: one line, or a small table in a notebook."""

from collections.abc import Mapping, Sequence
from typing import Final

from emberlake.base.html import html_note, html_table
from emberlake.base.names import listed
from emberlake.base.secrets import shown_options
from emberlake.types import DataField

_SHOWN_COLUMNS: Final = 6
_SHOWN_IN_TABLES: Final = 50


def schema_line(
    fields: Sequence[DataField],
    partition_keys: Sequence[str],
    primary_keys: Sequence[str],
    options: Mapping[str, str],
) -> str:
    """Columns, keys and the number of options, in one line of bounded length."""
    parts = [listed(fields, _SHOWN_COLUMNS) or "no columns"]
    if primary_keys:
        parts.append(f"primary key {listed(primary_keys)}")
    if partition_keys:
        parts.append(f"partitioned by {listed(partition_keys)}")
    if options:
        parts.append(f"{len(options)} option{'s' if len(options) > 1 else ''}")
    return "; ".join(parts)


def schema_html(
    fields: Sequence[DataField],
    partition_keys: Sequence[str],
    primary_keys: Sequence[str],
    options: Mapping[str, str],
) -> str:
    """A table of the columns, and one of the options."""
    roles = {"primary key": primary_keys, "partition": partition_keys}
    rows = [
        (
            field.name,
            str(field.type),
            ", ".join(role for role, names in roles.items() if field.name in names),
            field.description or "",
        )
        for field in fields[:_SHOWN_IN_TABLES]
    ]
    # A column of the table that would be empty throughout is left out.
    header = ("column", "type", "key", "comment")
    kept = [i for i in range(len(header)) if i < 2 or any(row[i] for row in rows)]
    pieces = [html_table([header[i] for i in kept], [[row[i] for i in kept] for row in rows])]
    if left := len(fields) - len(rows):
        pieces.append(html_note(f"and {left:,} more columns"))
    if options:
        shown = sorted(shown_options(options).items())[:_SHOWN_IN_TABLES]
        pieces.append(html_table(("option", "value"), shown))
        if left := len(options) - len(shown):
            pieces.append(html_note(f"and {left:,} more options"))
    return "".join(pieces)
