"""The rows that commands return, with the same columns as in Java's connector."""

import re
from collections.abc import Iterable, Sequence
from typing import Any

import pyarrow as pa

from emberlake.types import DataField


def rows_of(columns: Sequence[tuple[str, pa.DataType]], rows: Iterable[Sequence[Any]]) -> pa.Table:
    """A small table from rows."""
    found = list(rows)
    arrays = [pa.array([row[at] for row in found], kind) for at, (_, kind) in enumerate(columns)]
    return pa.Table.from_arrays(arrays, names=[name for name, _ in columns])


def texts_of(names: Sequence[str], rows: Iterable[Sequence[str | None]]) -> pa.Table:
    """A small table of string columns."""
    return rows_of([(name, pa.string()) for name in names], rows)


def matching(names: Iterable[str], pattern: str | None) -> list[str]:
    """The names that a pattern of SHOW matches: ``*`` is any text, ``|`` separates several."""
    if pattern is None:
        return list(names)
    parts = [re.escape(part.strip()).replace(r"\*", ".*") for part in pattern.split("|")]
    regex = re.compile("|".join(f"(?:{part})" for part in parts), re.IGNORECASE | re.DOTALL)
    return [name for name in names if regex.fullmatch(name)]


def column_rows(fields: Iterable[DataField], types: Iterable[str]) -> list[tuple[str, str, Any]]:
    """Name, type and comment of columns, as DESCRIBE shows them."""
    return [(f.name, text, f.description) for f, text in zip(fields, types, strict=True)]
