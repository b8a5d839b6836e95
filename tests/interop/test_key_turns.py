"""One primary-key table for all: written and compacted in turn, every engine reads the same."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

import pytest

from canonical import Row
from emberlake import Table
from interop.engines import (
    COMPACTORS,
    DELETERS,
    READERS,
    WRITERS,
    arrow_rows,
    canonical,
    create,
)
from interop.judges import known_gap

pytestmark = pytest.mark.interop

# --- shapes of tables -----------------------------------------------------------------------------

COLUMNS = {"id": "BIGINT", "day": "STRING", "n": "INT", "at": "TIMESTAMP(6)", "name": "STRING"}
SHAPES: dict[str, tuple[Sequence[str], Sequence[str], dict[str, str]]] = {
    "one bucket": (["id"], [], {"bucket": "1"}),
    "four buckets": (["id"], [], {"bucket": "4"}),
    "two key columns": (["name", "id"], [], {"bucket": "3"}),
    "partitioned": (["day", "id"], ["day"], {"bucket": "2"}),
    "partition beside the key": (["id"], ["day"], {"bucket": "2"}),
    "dynamic buckets": (["id"], [], {"bucket": "-1"}),
    "dynamic buckets, partitioned": (["day", "id"], ["day"], {"bucket": "-1"}),
}


@pytest.mark.parametrize("seed", [1, 2])
@pytest.mark.parametrize("shape", SHAPES)
def test_a_table_that_is_written_in_turn_is_one_table(
    shape: str, seed: int, tmp_path: Path
) -> None:
    keys, partition_keys, options = SHAPES[shape]
    table = create(tmp_path, COLUMNS, keys, partition_keys, **options)
    places = [list(COLUMNS).index(key) for key in {*partition_keys, *keys}]
    chance = Random(seed)
    model: dict[tuple[Any, ...], list[Any]] = {}

    # Java has no writer of its own for dynamic buckets: that is left to engines around it.
    writers = [name for name in WRITERS if (name, options["bucket"]) != ("java", "-1")] * 3
    chance.shuffle(writers)
    for number, writer in enumerate(writers):
        # Others may not order several records of one key in one write, so each comes once.
        rows = list({tuple(row[p] for p in places): row for row in some(chance, number)}.items())
        is_delete = writer in DELETERS and chance.random() < 0.4
        data = arrow_rows(table, [row for _, row in rows])
        WRITERS[writer](tmp_path, data, "-D" if is_delete else "+I")
        for key, row in rows:
            model[key] = row
            if is_delete:
                del model[key]

    expected = canonical(table, list(model.values()))
    for reader, read in READERS.items():
        assert read(tmp_path) == expected, (reader, writers)
    table.compact(full=True)
    for reader, read in READERS.items():
        assert read(tmp_path) == expected, (reader, writers, "compacted")
    WRITERS["rust"](tmp_path, arrow_rows(table, [[1, "mon", 0, None, "one"]]))
    WRITERS["pypaimon"](tmp_path, arrow_rows(table, [[2, "mon", 0, None, "two"]]))
    again = READERS["java"](tmp_path)
    assert all(read(tmp_path) == again for read in READERS.values())


def some(chance: Random, number: int) -> list[list[Any]]:
    return [
        [
            chance.randint(0, 12),
            chance.choice(["mon", "tue"]),
            chance.choice([None, number]),
            chance.choice([None, 1_700_000_000_123_456 + number]),
            chance.choice(["", "short", "a longer name ☃"]),
        ]
        for _ in range(chance.randint(1, 8))
    ]


# --- merge engines --------------------------------------------------------------------------------

ENGINE_COLUMNS = {"id": "INT", "n": "INT", "name": "STRING"}
ENGINES: dict[str, dict[str, str]] = {
    "deduplicate": {},
    "partial-update": {"merge-engine": "partial-update"},
    "aggregation": {"merge-engine": "aggregation", "fields.n.aggregate-function": "sum"},
    "first-row": {"merge-engine": "first-row"},
}
VECTORS = {"deletion-vectors.enabled": "true"}
POSTPONED = {"bucket": "-2", "postpone.default-bucket-num": "2"}
PLACES: dict[str, dict[str, str]] = {
    "fixed": {"bucket": "2", "num-sorted-run.compaction-trigger": "3"},
    "vectors": {"bucket": "2", **VECTORS},
    "postponed": POSTPONED,
    "postponed, vectors": {**POSTPONED, **VECTORS},
    "partition beside the key": {"bucket": "2", "num-sorted-run.compaction-trigger": "3"},
}
CASES = [
    (engine, place)
    for engine in ENGINES
    for place in PLACES
    if not (engine == "first-row" and "vectors" in place)  # one excludes the other
]
# Who refuses to write to what.
REFUSALS = {
    (engine, "vectors", "rust"): f"pypaimon-rust does not write {engine} with deletion vectors yet"
    for engine in ("partial-update", "aggregation")
}


@dataclass(frozen=True)
class Played:
    """A table that was written in turn, and what is in it."""

    warehouse: Path
    expected: list[Row]
    turns: list[str]


Play = Callable[[str, str], Played]


@pytest.fixture(scope="module")
def play(tmp_path_factory: pytest.TempPathFactory) -> Play:
    @cache
    def once(engine: str, place: str) -> Played:
        return _play(tmp_path_factory.mktemp("turns"), engine, place)

    return once


def _play(warehouse: Path, engine: str, place: str) -> Played:
    days = ("mon", "tue") if place == "partition beside the key" else ("mon",)
    table = create(
        warehouse,
        ENGINE_COLUMNS | {"day": "STRING"},
        partition_keys=("day",) if len(days) > 1 else (),
        **ENGINES[engine],
        **PLACES[place],
    )
    chance = Random(f"{engine}, {place}")
    model: dict[tuple[int, str], tuple[Any, ...]] = {}
    turns: list[str] = []
    writers = [name for name in WRITERS if (engine, place, name) not in REFUSALS] * 2
    chance.shuffle(writers)
    for number, writer in enumerate(writers):
        rows = [
            (key, chance.choice([None, number]), chance.choice([None, f"{number} ☃"]), day)
            for key in chance.sample(range(12 // len(days)), chance.choice([2, 6]))
            for day in days
        ]
        takes_deletes = engine == "deduplicate" and writer in DELETERS
        kind = "-D" if takes_deletes and chance.random() < 0.4 else "+I"
        WRITERS[writer](warehouse, arrow_rows(table, rows), kind)
        turns.append(f"{writer} {kind}")
        for row in rows:
            _merge(engine, model, row, kind)
        if chance.random() < 0.3:
            turns.append(_compact(warehouse, chance, full=chance.random() < 0.5))
    turns.append(_compact(warehouse, chance, full=True))
    return Played(warehouse, canonical(table, list(model.values())), turns)


def _compact(warehouse: Path, chance: Random, *, full: bool) -> str:
    compactor = chance.choice(list(COMPACTORS))
    COMPACTORS[compactor](warehouse, full=full)
    return f"{compactor} compacts"


def _merge(engine: str, model: dict[tuple[int, str], Any], row: tuple[Any, ...], kind: str) -> None:
    number, name, day = row[1:]
    key = (row[0], day)
    known = model.get(key)
    if kind == "-D":
        model.pop(key, None)
    elif engine == "deduplicate" or known is None:
        model[key] = row
    elif engine == "partial-update":
        model[key] = tuple(b if v is None else v for b, v in zip(known, row, strict=True))
    elif engine == "aggregation":
        sums = [n for n in (known[1], number) if n is not None]
        named = known[2] if name is None else name
        model[key] = (row[0], sum(sums) if sums else None, named, day)


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize(("engine", "place"), CASES)
def test_every_merge_engine_can_be_played_in_turn(
    engine: str, place: str, reader: str, play: Play
) -> None:
    played = play(engine, place)

    assert READERS[reader](played.warehouse) == played.expected, played.turns


@pytest.mark.parametrize(("engine", "place", "writer"), REFUSALS)
def test_who_did_not_take_a_turn_takes_one(
    request: pytest.FixtureRequest, engine: str, place: str, writer: str, tmp_path: Path
) -> None:
    known_gap(request, REFUSALS[engine, place, writer])
    table = create(tmp_path, ENGINE_COLUMNS, **ENGINES[engine], **PLACES[place])

    WRITERS[writer](tmp_path, arrow_rows(table, [(1, 1, "one")]))

    table.compact()
    assert READERS["java"](tmp_path) == canonical(table, [(1, 1, "one")])


# --- rows that wait for a compaction --------------------------------------------------------------

WAITING: dict[str, dict[str, str]] = {
    "first-row": {"bucket": "2", "merge-engine": "first-row"},
    "vectors": {"bucket": "2", **VECTORS},
    "postponed": POSTPONED,
    "postponed, first-row": {**POSTPONED, "merge-engine": "first-row"},
}


def check_all_read(warehouse: Path, table: Table, rows: Sequence[Sequence[Any]]) -> None:
    seen = {reader: read(warehouse) for reader, read in READERS.items()}
    assert seen == dict.fromkeys(READERS, canonical(table, rows))


@pytest.mark.parametrize("compactor", COMPACTORS)
@pytest.mark.parametrize("writer", ["pypaimon", "rust"])
@pytest.mark.parametrize("place", WAITING)
def test_nobody_sees_what_waits_for_a_compaction(
    place: str, writer: str, compactor: str, tmp_path: Path
) -> None:
    table = create(tmp_path, ENGINE_COLUMNS, **WAITING[place])
    WRITERS[writer](tmp_path, arrow_rows(table, [(1, 1, "one"), (2, 2, "two"), (3, 3, "three")]))
    check_all_read(tmp_path, table, [])
    COMPACTORS[compactor](tmp_path, full=False)
    seen = [(1, 1, "one"), (2, 2, "two"), (3, 3, "three")]
    check_all_read(tmp_path, table, seen)
    WRITERS[writer](tmp_path, arrow_rows(table, [(1, 10, "again"), (4, 4, "four")]))
    check_all_read(tmp_path, table, seen)
    COMPACTORS[compactor](tmp_path, full=False)

    first = (1, 1, "one") if "first-row" in place else (1, 10, "again")
    check_all_read(tmp_path, table, [first, *seen[1:], (4, 4, "four")])


@pytest.mark.parametrize("writer", ["emberlake", "java"])
@pytest.mark.parametrize("place", ["first-row", "vectors"])
def test_who_compacts_what_it_writes_is_seen_at_once(
    place: str, writer: str, tmp_path: Path
) -> None:
    table = create(tmp_path, ENGINE_COLUMNS, **WAITING[place])
    other = {"emberlake": "java", "java": "emberlake"}[writer]

    WRITERS[writer](tmp_path, arrow_rows(table, [(1, 1, "one"), (2, 2, "two")]))
    check_all_read(tmp_path, table, [(1, 1, "one"), (2, 2, "two")])
    WRITERS[other](tmp_path, arrow_rows(table, [(2, 20, "again"), (3, 3, "three")]))

    second = (2, 2, "two") if place == "first-row" else (2, 20, "again")
    check_all_read(tmp_path, table, [(1, 1, "one"), second, (3, 3, "three")])
