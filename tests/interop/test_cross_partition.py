"""Tables whose rows move between partitions: what we write, and what Java has begun."""

from pathlib import Path
from random import Random
from typing import Any

import pytest

from emberlake import Table
from interop.engines import NAME, READERS, arrow_rows, canonical, create
from interop.judges import java_judge

pytestmark = pytest.mark.interop

COLUMNS = {"id": "BIGINT", "day": "STRING", "n": "INT", "v": "STRING"}
DAYS = ("mon", "tue", None)
ENGINES: dict[str, dict[str, str]] = {
    "deduplicate": {"merge-engine": "deduplicate"},
    "deletion vectors": {"merge-engine": "deduplicate", "deletion-vectors.enabled": "true"},
    "partial-update": {"merge-engine": "partial-update"},
    "aggregation": {"merge-engine": "aggregation", "fields.n.aggregate-function": "sum"},
    "first-row": {"merge-engine": "first-row"},
}

Rows = dict[int, list[Any]]


def make(warehouse: Path, engine: str) -> Table:
    return create(warehouse, COLUMNS, ["id"], ["day"], **{"bucket": "-1", **ENGINES[engine]})


def apply(engine: str, rows: Rows, new: list[list[Any]]) -> None:
    """What one write does, of rows with keys of their own."""
    for number, day, n, v in new:
        old = rows.get(number)
        if old is None or engine in ("deduplicate", "deletion vectors"):
            rows[number] = [number, day, n, v]
        elif engine == "partial-update":
            rows[number] = [number, old[1], old[2] if n is None else n, old[3] if v is None else v]
        elif engine == "aggregation":
            sums = [value for value in (old[2], n) if value is not None]
            total = sum(sums) if sums else None
            rows[number] = [number, old[1], total, old[3] if v is None else v]


def some(chance: Random) -> list[list[Any]]:
    keys = chance.sample(range(8), chance.choice([1, 3, 6]))
    values = [None, "a", "a longer text"]
    return [
        [k, chance.choice(DAYS), chance.choice([None, 1, 5]), chance.choice(values)] for k in keys
    ]


def check_all_read(warehouse: Path, table: Table, rows: Rows) -> None:
    expected = canonical(table, list(rows.values()))
    seen = {reader: read(warehouse) for reader, read in READERS.items()}
    assert seen == dict.fromkeys(READERS, expected)


@pytest.mark.parametrize("engine", ENGINES)
def test_others_read_rows_that_we_have_moved(engine: str, tmp_path: Path) -> None:
    table, chance, rows = make(tmp_path, engine), Random(engine), {}
    table = table.copy({"dynamic-bucket.target-row-num": "2"})

    for _ in range(5):
        new = some(chance)
        table.append(arrow_rows(table, new))
        apply(engine, rows, new)
        check_all_read(tmp_path, table, rows)

    table.compact(full=True)
    check_all_read(tmp_path, table, rows)
    assert table.check().ok


@pytest.mark.parametrize("engine", ENGINES)
def test_a_table_that_java_has_written_is_continued(engine: str, tmp_path: Path) -> None:
    """Java needs an engine to find out where keys are, so it gets rows with their places."""
    table, chance, java = make(tmp_path, engine), Random(engine), java_judge()
    rows: Rows = {}

    for _ in range(3):
        theirs = some(chance)
        moved = [rows[row[0]] for row in theirs if row[0] in rows and rows[row[0]][1] != row[1]]
        placed = [[row[0], rows.get(row[0], row)[1], *row[2:]] for row in theirs]
        if engine in ("deduplicate", "deletion vectors"):
            if moved:
                java.write(tmp_path, NAME, arrow_rows(table, moved), row_kind="-D")
            placed = theirs
        java.write(tmp_path, NAME, arrow_rows(table, placed))
        apply(engine, rows, theirs)
        check_all_read(tmp_path, table, rows)

        ours = some(chance)
        table.append(arrow_rows(table, ours))
        apply(engine, rows, ours)
        check_all_read(tmp_path, table, rows)

        java.compact(tmp_path, NAME, full=chance.random() < 0.5)
        check_all_read(tmp_path, table, rows)

    assert table.check().ok
