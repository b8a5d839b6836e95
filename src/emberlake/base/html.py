"""Small HTML tables for notebooks: plain elements, all text escaped."""

from collections.abc import Iterable, Mapping, Sequence
from html import escape


def html_title(text: str, detail: str = "") -> str:
    """A line above a table."""
    return f"<div><b>{escape(text)}</b> {escape(detail)}</div>"


def html_table(header: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Rows under a header; numbers are right-aligned."""
    head = "".join(f"<th>{escape(name)}</th>" for name in header)
    body = "".join(f"<tr>{''.join(map(_cell, row))}</tr>" for row in rows)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def html_facts(facts: Mapping[str, object]) -> str:
    """Names and values, one pair per line."""
    body = "".join(f"<tr><th>{escape(k)}</th>{_cell(v)}</tr>" for k, v in facts.items())
    return f"<table><tbody>{body}</tbody></table>"


def _cell(value: object) -> str:
    if isinstance(value, int) and not isinstance(value, bool):
        return f'<td style="text-align:right">{value:,}</td>'
    return f"<td>{escape('' if value is None else str(value))}</td>"
