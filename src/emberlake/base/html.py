"""Small pieces of HTML for notebooks: tables, facts, bars. All text is escaped.

Notebooks may be light or dark and bring their own style sheets, so pieces inherit colours and
fonts, draw lines in a half-transparent grey, and set everything else inline. Nothing is fetched.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Final

_GREY: Final = "rgba(128,128,128,.3)"
_BOX: Final = "max-width:100%;overflow-x:auto;font-size:13px;line-height:1.45;margin:4px 0"
_TABLE: Final = "border-collapse:collapse;margin:6px 0;font-size:inherit;background:none"
_CELL: Final = f"padding:3px 12px 3px 0;border:0;border-bottom:1px solid {_GREY};vertical-align:top"
_SHOWN_CHARACTERS: Final = 300
_SHORT_CHARACTERS: Final = 20  # texts up to this length are not wrapped on narrow screens


@dataclass(frozen=True, slots=True)
class Part:
    """A part of a bar: its colour, its size, and the words beside it."""

    colour: str
    size: int
    text: str


def html_box(*pieces: str) -> str:
    """The pieces of one value below each other; wide ones scroll."""
    return f'<div class="emberlake" style="{_BOX}">{"".join(pieces)}</div>'


def html_title(text: str, detail: str = "") -> str:
    """A line above the rest."""
    quiet = f' <span style="opacity:.65">{_text(detail)}</span>' if detail else ""
    return f'<div style="overflow-wrap:anywhere"><b>{_text(text)}</b>{quiet}</div>'


def html_note(text: str) -> str:
    """A quiet line, such as how much is left out."""
    return f'<div style="opacity:.65">{_text(text)}</div>'


def html_table(header: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Rows under a header; numbers are right-aligned."""
    body = [list(row) for row in rows]
    is_number = [bool(body) and all(_is_number(row[i]) for row in body) for i in range(len(header))]
    head = "".join(
        f'<th style="{_CELL};font-weight:600;text-align:{"right" if right else "left"}">'
        f"{escape(name)}</th>"
        for name, right in zip(header, is_number, strict=True)
    )
    lines = "".join(f'<tr style="background:none">{"".join(map(_cell, row))}</tr>' for row in body)
    return (
        f'<table style="{_TABLE}"><thead><tr style="background:none">{head}</tr></thead>'
        f"<tbody>{lines}</tbody></table>"
    )


def html_facts(facts: Mapping[str, object]) -> str:
    """Names and values, one pair per line."""
    name = f"{_CELL};font-weight:400;opacity:.65;text-align:left;white-space:nowrap"
    body = "".join(
        f'<tr style="background:none"><th style="{name}">{escape(key)}</th>'
        f"{_cell(value, align='left')}</tr>"
        for key, value in facts.items()
    )
    return f'<table style="{_TABLE}"><tbody>{body}</tbody></table>'


def html_bar(name: str, parts: Sequence[Part]) -> str:
    """Parts side by side, each as wide as its share."""
    total = sum(part.size for part in parts) or 1
    drawn = "".join(
        f'<span title="{escape(part.text)}" style="background:{part.colour};'
        f'min-width:2px;flex:{part.size / total:.6f} 1 0"></span>'
        for part in parts
        if part.size
    )
    return (
        '<div style="display:flex;align-items:center;gap:8px;margin:4px 0;max-width:640px">'
        f'<span style="width:3.5em;flex:none;opacity:.65">{escape(name)}</span>'
        f'<span style="display:flex;gap:1px;flex:1;height:14px;border-radius:3px;overflow:hidden;'
        f'background:{_GREY}">{drawn}</span></div>'
    )


def html_legend(parts: Iterable[Part]) -> str:
    """What the colours of bars mean."""
    swatch = "display:inline-block;width:10px;height:10px;border-radius:2px;margin-right:6px"
    lines = (
        f'<span style="margin-right:16px;white-space:nowrap"><span style="{swatch};'
        f'background:{part.colour}"></span>{_text(part.text)}</span>'
        for part in parts
    )
    return f'<div style="display:flex;flex-wrap:wrap;margin:4px 0">{"".join(lines)}</div>'


def html_details(summary: str, *pieces: str) -> str:
    """Pieces that are hidden until the reader opens them."""
    return (
        f'<details><summary style="cursor:pointer;opacity:.65">{_text(summary)}</summary>'
        f"{''.join(pieces)}</details>"
    )


def _cell(value: object, align: str | None = None) -> str:
    if _is_number(value):
        side = align or "right"
        numbers = f"{_CELL};text-align:{side};font-variant-numeric:tabular-nums"
        return f'<td style="{numbers}">{value:,}</td>'
    text = "" if value is None else str(value)
    wrap = "white-space:nowrap" if len(text) <= _SHORT_CHARACTERS else "overflow-wrap:anywhere"
    return f'<td style="{_CELL};text-align:left;{wrap}">{_text(text)}</td>'


def _is_number(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _text(text: str) -> str:
    """Escaped, and cut to a readable length."""
    if len(text) > _SHOWN_CHARACTERS:
        text = f"{text[: _SHOWN_CHARACTERS - 3]}..."
    return escape(text)
