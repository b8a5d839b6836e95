"""The test vectors of the pages in docs/format.

A block of vectors is fenced, in the language ``vectors``. Its first line is the kind and the names
of the columns, every other line is a vector::

    row-kind: symbol | code
    +I | 0

A kind that is in several blocks has the vectors of all of them. Types of a row are separated by
semicolons. Values are JSON in the form that ``value_of`` reads.
"""

import json
import re
from functools import cache
from pathlib import Path
from typing import Any, Final

from emberlake.spec.literals import cast_literal
from emberlake.types import ArrayType, AtomicType, DataType, MapType
from emberlake.types.json import type_from_json

FORMAT_PAGES: Final = Path(__file__).parents[1] / "docs" / "format"
_BLOCK: Final = re.compile(r"^```vectors\n([\w-]+): (.+)\n((?:.+\n)*?)```$", re.MULTILINE)

Vector = dict[str, str]


@cache
def vectors() -> dict[str, list[Vector]]:
    """All vectors by kind."""
    found: dict[str, list[Vector]] = {}
    for page in sorted(FORMAT_PAGES.glob("*.md")):
        text = page.read_text(encoding="utf-8")
        blocks = _BLOCK.findall(text)
        assert len(blocks) == text.count("```vectors"), f"{page.name} has a block without a kind"
        for kind, head, body in blocks:
            names = _cells(head)
            for line in body.splitlines():
                cells = _cells(line)
                assert len(cells) == len(names), f"{page.name}, {kind}: {line}"
                found.setdefault(kind, []).append(dict(zip(names, cells, strict=True)))
    return found


def vectors_of(kind: str) -> list[Vector]:
    """The vectors of a kind, of which there are some."""
    return vectors()[kind]


def types_of(text: str) -> tuple[AtomicType, ...]:
    """The types of a row: ``INT; STRING``, or ``-`` for none."""
    return () if text == "-" else tuple(AtomicType(part) for part in text.split("; "))


def type_of(text: str) -> DataType:
    """A type in the notation of schema files, which is JSON unless it is atomic."""
    return type_from_json(json.loads(text) if text.startswith("{") else text)


def values_of(types: tuple[AtomicType, ...], text: str) -> tuple[Any, ...]:
    """The values of a row, which are a JSON list."""
    return tuple(value_of(t, v) for t, v in zip(types, json.loads(text), strict=True))


def value_of(data_type: DataType, value: Any) -> Any:
    """A value as the engine has it. Bytes are hexadecimal, dates, times and decimals are texts."""
    match data_type:
        case ArrayType(element=element):
            return [value_of(element, item) for item in value]
        case MapType(key=key, value=item_type):
            return [(value_of(key, k), value_of(item_type, v)) for k, v in value]
        case AtomicType() if value is not None and data_type.root.is_bytes:
            return bytes.fromhex(value)
        case _:
            return cast_literal(data_type, value)


def _cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.split(" | ")]
