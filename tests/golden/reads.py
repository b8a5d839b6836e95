"""The golden tables of this folder's archives: written by Java Paimon, with the rows Java reads.

README.md says what they are. `golden_reads()` and `row_reads()` are cheap enough for
parametrisation; the archives are unpacked once a session by the fixtures `golden` and
`golden_rows`.
"""

import json
import tarfile
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any

from canonical import Row, sorted_rows

ARCHIVE = Path(__file__).with_name("paimon-2.0.0.tar.gz")
ROWS_ARCHIVE = Path(__file__).with_name("paimon-2.0.0-rows.tar.gz")


@dataclass(frozen=True)
class GoldenRead:
    """One read of a golden table: the options it is read with and what it must give."""

    table: str
    options: dict[str, str]
    columns: tuple[str, ...]
    row_count: int
    file: str
    unordered: tuple[int, ...] = field(default=())  # positions in a row, the row kind being 0
    is_tracked: bool = False  # the last two columns are the hidden ones

    def __str__(self) -> str:
        return self.file.removesuffix(".jsonl")


@dataclass(frozen=True)
class Golden:
    """The unpacked archive."""

    root: Path

    @property
    def warehouse(self) -> str:
        return str(self.root / "warehouse")

    def expected(self, read: GoldenRead) -> list[Row]:
        lines = (self.root / "expected" / read.file).read_text(encoding="utf-8").split("\n")
        return settle(read, [json.loads(line) for line in lines if line])


def settle(read: GoldenRead, rows: list[Row]) -> list[Row]:
    """Rows in comparable order."""
    return sorted_rows(rows, unordered=read.unordered)


@cache
def golden_reads() -> tuple[GoldenRead, ...]:
    """Every read of every golden table."""
    tables = _index(ARCHIVE)
    return tuple(
        _read(name, table, read) for name, table in tables.items() for read in table["reads"]
    )


@cache
def row_reads() -> tuple[GoldenRead, ...]:
    """Every read of the tables whose rows were updated, deleted, merged and compacted."""
    tables = _index(ROWS_ARCHIVE)
    return tuple(
        replace(_read(name, table, read), is_tracked=kind == "tracked")
        for name, table in tables.items()
        for kind in ("reads", "tracked")
        for read in table.get(kind, ())
    )


def _index(path: Path) -> dict[str, Any]:
    with tarfile.open(path) as archive:
        member = archive.extractfile("tables.json")
        assert member is not None
        tables: dict[str, Any] = json.load(member)
        return tables


def reads_of(*prefixes: str) -> list[GoldenRead]:
    """The reads of the tables whose names start with one of `prefixes`."""
    return [read for read in golden_reads() if read.table.startswith(prefixes)]


def unpack(folder: Path, path: Path = ARCHIVE) -> Golden:
    with tarfile.open(path) as archive:
        # The first releases of Python 3.11 know no filters; the later ones want one to be named.
        archive.extraction_filter = getattr(tarfile, "data_filter", None)
        archive.extractall(folder)
    return Golden(folder)


def _read(name: str, table: dict[str, Any], read: dict[str, Any]) -> GoldenRead:
    columns = tuple(read["columns"])
    loose = tuple(columns.index(column) + 1 for column in table.get("unordered", ()))
    return GoldenRead(name, read["options"], columns, read["rows"], read["file"], loose)
