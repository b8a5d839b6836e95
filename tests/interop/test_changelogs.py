"""Changes that compactions find: what we record is what Java reads, and the other way round."""

from pathlib import Path
from random import Random

import pytest

from canonical import sorted_rows
from changelogs import changes_of, is_recorded, replayed
from emberlake import Table
from interop.engines import (
    COMPACTORS,
    NAME,
    READERS,
    WRITERS,
    arrow_rows,
    create,
    open_table,
)
from interop.judges import Row, java_judge
from table_reads import check_whole, live_files

pytestmark = pytest.mark.interop

COLUMNS = {"id": "INT", "v": "STRING", "n": "BIGINT"}
LOOKUP = {"changelog-producer": "lookup"}
FULL = {"changelog-producer": "full-compaction"}
# Rows of a key on several levels, which compactions look up.
APART = {"compaction.size-ratio": "0", "compaction.max-size-amplification-percent": "100000"}
ENGINES: dict[str, dict[str, str]] = {
    "deduplicate": {},
    "sequence.field": {"sequence.field": "n"},
    "partial-update": {
        "merge-engine": "partial-update",
        "partial-update.remove-record-on-delete": "true",
    },
    "aggregation": {
        "merge-engine": "aggregation",
        "fields.n.aggregate-function": "sum",
        "fields.v.aggregate-function": "last_non_null_value",
    },
    "first-row": {"merge-engine": "first-row", "ignore-delete": "true"},
    "deduplicate, vectors": {"deletion-vectors.enabled": "true"},
    "aggregation, vectors": {
        "merge-engine": "aggregation",
        "fields.n.aggregate-function": "sum",
        "deletion-vectors.enabled": "true",
    },
    "rows that stay equal": {"changelog-producer.row-deduplicate": "true"},
}


def ours(table: Table) -> list[list[Row]]:
    return [sorted_rows(changes) for changes in changes_of(table)]


def of_java(warehouse: Path) -> list[list[Row]]:
    return [sorted_rows(changes) for changes in java_judge().follow(warehouse, NAME)]


def check_agreed(warehouse: Path) -> None:
    """Everybody reads the same rows, and the same changes, which make them."""
    table = open_table(warehouse)
    rows = READERS["emberlake"](warehouse)
    assert READERS["java"](warehouse) == rows
    assert of_java(warehouse) == ours(table)
    if is_recorded(table):
        assert replayed(table) == rows
    last = table.latest_snapshot()
    assert last is not None
    between = {
        "incremental-between": f"0,{last.id}",
        "incremental-between-scan-mode": "changelog",
    }
    expected = sorted_rows([row for changes in ours(table) for row in changes])
    assert sorted_rows(java_judge().read(warehouse, NAME, between).rows) == expected
    check_whole(table)


@pytest.mark.parametrize(
    ("engine", "producer"),
    [
        *((engine, "lookup") for engine in ENGINES),
        # The format does not combine it with the others.
        *((e, "full-compaction") for e in ENGINES if "vectors" not in e and e != "first-row"),
    ],
)
def test_writers_in_turn_record_the_same_changes(
    engine: str, producer: str, tmp_path: Path
) -> None:
    options = {**ENGINES[engine], "changelog-producer": producer, **APART, "bucket": "1"}
    chance = Random(engine + producer)
    table = create(tmp_path, COLUMNS, **options)
    WRITERS["emberlake"](tmp_path, arrow_rows(table, [(n, "old", 0) for n in range(2000)]))
    COMPACTORS["emberlake"](tmp_path, full=True)
    has_deletes = engine not in ("first-row", "aggregation", "aggregation, vectors")

    for turn in range(8):
        writer = ("emberlake", "java")[turn % 2]
        ids = chance.sample(range(1995, 2010), 5)
        rows = [(n, f"{writer}{turn}", turn) for n in ids]
        is_delete = has_deletes and turn in (2, 3, 6)
        WRITERS[writer](tmp_path, arrow_rows(table, rows), "-D" if is_delete else "+I")
        if producer == "full-compaction" and turn in (3, 4, 7):
            COMPACTORS[("java", "emberlake")[turn % 2]](tmp_path, full=True)
        check_agreed(tmp_path)
    COMPACTORS["java"](tmp_path, full=True)
    check_agreed(tmp_path)

    assert is_recorded(open_table(tmp_path))
    assert len(ours(table)) > 3


@pytest.mark.parametrize("engine", ["deduplicate", "aggregation"])
@pytest.mark.parametrize("job", ["emberlake", "java"])
def test_a_job_finds_the_changes_of_writers_that_do_not_compact(
    engine: str, job: str, tmp_path: Path
) -> None:
    options = {**LOOKUP, **ENGINES[engine], "write-only": "true", "bucket": "2"}
    table = create(tmp_path, COLUMNS, **options)
    for turn in range(6):
        writer = ("java", "emberlake")[turn % 2]
        rows = [(n, f"{writer}{turn}", 1) for n in range(turn, turn + 4)]
        WRITERS[writer](tmp_path, arrow_rows(table, rows))
        if turn % 3 == 2:
            if job == "java":
                COMPACTORS[job](tmp_path, full=True)
            else:
                open_table(tmp_path).copy({"write-only": "false"}).compact()
            assert is_recorded(open_table(tmp_path))
        check_agreed(tmp_path)

    assert len(ours(table)) == 2


def test_others_read_what_we_wrote(tmp_path: Path) -> None:
    table = create(tmp_path, COLUMNS, **LOOKUP, **APART, bucket="1")
    WRITERS["emberlake"](tmp_path, arrow_rows(table, [(n, "old", 0) for n in range(2000)]))
    COMPACTORS["emberlake"](tmp_path, full=True)
    WRITERS["emberlake"](tmp_path, arrow_rows(table, [(5, "new", 1), (9000, "new", 1)]))
    WRITERS["emberlake"](tmp_path, arrow_rows(table, [(6, "gone", 1)]), "-D")

    expected = READERS["emberlake"](tmp_path)
    assert {name: read(tmp_path) for name, read in READERS.items()} == dict.fromkeys(
        READERS, expected
    )
    assert {entry.file.level for entry in live_files(table)} > {5}
    assert ours(table)[1:] == [
        sorted_rows([["-U", 5, "old", 0], ["+U", 5, "new", 1], ["+I", 9000, "new", 1]]),
        [["-D", 6, "old", 0]],
    ]
    check_agreed(tmp_path)
