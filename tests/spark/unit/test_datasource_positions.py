"""Where a stream stands: offsets, limits, and batches that are the same when they are repeated."""

from dataclasses import replace

import pytest

from builders import (
    NUMBERED,
    FakeEnv,
    append,
    create_key_table,
    create_table,
    numbered,
    overwrite,
    rows_of,
    upsert,
)
from emberlake import SnapshotNotFound, Table
from emberlake.datasource.options import ReadLimits
from emberlake.datasource.positions import Position, StreamUnits
from emberlake.errors import InvalidInput, InvalidState
from emberlake.maintenance.compact import compact_table
from emberlake.read.projection import project_all
from emberlake.read.table_reader import TableReader
from table_reads import read

NO_LIMITS = ReadLimits()


def units_of(table: Table, consumer_id: str | None = None, **options: str) -> StreamUnits:
    """The units of a table, with options written with `_` for `-` and `__` for `.`."""
    named = {key.replace("__", ".").replace("_", "-"): value for key, value in options.items()}
    store = table.store.with_schema(table.table_schema.with_options(named))
    return StreamUnits(store, consumer_id)


def batches(
    units: StreamUnits, limits: ReadLimits, start: Position | None = None
) -> list[Position]:
    """Where batches end, one after the other, until there is nothing more to read."""
    ends = [start or units.start()]
    while (end := units.end_after(ends[-1], limits, units.latest())) != ends[-1]:
        ends.append(end)
    return ends[1:]


def ids_between(units: StreamUnits, start: Position, end: Position) -> list[int]:
    reader = TableReader(units.store, project_all(units.store.schema.fields))
    table = reader.read_table(list(units.between(start, end)))
    return sorted(table.column("id").to_pylist())


def table_with_files(*sizes: int) -> Table:
    """An append table whose snapshots have a file each, of so many rows."""
    table, first = create_table(), 0
    for size in sizes:
        append(table, rows_of(range(first, first + size)))
        first += size
    return table


def test_a_position_is_an_offset_and_back() -> None:
    position = Position(7, full=True, units=3)

    assert position.to_json() == {"snapshot": 7, "full": True, "units": 3}
    assert Position.from_json(position.to_json()) == position


@pytest.mark.parametrize("offset", [{}, {"snapshot": "x", "full": True, "units": 0}, 0])
def test_an_offset_of_another_source_is_refused(offset: object) -> None:
    with pytest.raises(InvalidInput, match="not an offset"):
        Position.from_json(offset)


def test_a_stream_begins_with_the_state_and_goes_on_with_changes() -> None:
    table = table_with_files(2, 3)
    units = units_of(table)

    assert units.start() == Position(2, full=True)
    assert batches(units, NO_LIMITS) == [Position(3, full=False)]
    assert ids_between(units, units.start(), Position(3, full=False)) == [0, 1, 2, 3, 4]
    append(table, rows_of([9]))
    assert batches(units, NO_LIMITS, Position(3, full=False)) == [Position(4, full=False)]
    assert ids_between(units, Position(3, full=False), Position(4, full=False)) == [9]


@pytest.mark.parametrize(
    ("options", "start"),
    [
        ({"scan__mode": "latest"}, Position(4, full=False)),
        ({"scan__mode": "latest-full"}, Position(3, full=True)),
        ({"scan__snapshot_id": "2"}, Position(2, full=False)),
        ({"scan__snapshot_id": "9"}, Position(9, full=False)),
        ({"scan__snapshot_id": "2", "scan__mode": "from-snapshot-full"}, Position(2, full=True)),
        ({"scan__timestamp_millis": "1750000002000"}, Position(2, full=False)),
        ({"scan__timestamp_millis": "1"}, Position(1, full=False)),
    ],
    ids=str,
)
def test_a_stream_begins_where_the_options_say(options: dict[str, str], start: Position) -> None:
    world = FakeEnv()
    table = create_table(env=world.env())
    for number in range(3):
        world.time_ms = 1_750_000_000_000 + 1000 + number * 1000
        append(table, rows_of([number]))

    assert units_of(table, **options).start() == start


def test_a_stream_of_an_empty_table_waits_and_then_has_the_first_snapshot_whole() -> None:
    table = create_table()
    units = units_of(table)
    assert batches(units, NO_LIMITS) == []

    overwrite(table, rows_of([1, 2]))  # no change that a stream would see

    assert batches(units, NO_LIMITS, units_of(create_table()).start()) == [Position(2, full=False)]
    assert ids_between(units, Position(1, full=True), Position(2, full=False)) == [1, 2]


def test_a_file_at_a_time_of_the_state_and_of_changes() -> None:
    table = table_with_files(1, 1, 1)
    units = units_of(table)
    one_file = ReadLimits(files=1)

    ends = batches(units, one_file)

    assert ends == [
        Position(3, full=True, units=1),
        Position(3, full=True, units=2),
        Position(4, full=False),
    ]
    starts = [units.start(), *ends[:-1]]
    assert [ids_between(units, *pair) for pair in zip(starts, ends, strict=True)] == [[0], [1], [2]]
    append(table, rows_of([7]))
    append(table, rows_of([8]))
    assert batches(units, one_file, ends[-1]) == [Position(5, full=False), Position(6, full=False)]


def test_every_limit_holds_and_a_unit_that_is_too_large_comes_alone() -> None:
    units = units_of(table_with_files(2, 2, 5, 1), scan__snapshot_id="1")

    by_rows = batches(units, ReadLimits(rows=4))
    by_both = batches(units, ReadLimits(files=1, rows=4))
    by_size = batches(units, ReadLimits(size=1))

    assert [end.snapshot for end in by_rows] == [3, 4, 5]
    assert [end.snapshot for end in by_both] == [end.snapshot for end in by_size] == [2, 3, 4, 5]


def test_a_batch_that_is_repeated_has_the_same_rows_whatever_happened_meanwhile() -> None:
    table = table_with_files(1, 1, 1)
    units = units_of(table)
    start, end = Position(3, full=True, units=1), Position(3, full=True, units=2)
    before = ids_between(units, start, end)

    append(table, rows_of([9]))
    compact_table(table.store, "c", full=True, where=None)

    assert ids_between(units_of(table), start, end) == before == [1]
    other_packing = units_of(table, source__split__target_size="1 gb")
    assert ids_between(other_packing, start, end) == before


def test_snapshots_that_change_no_rows_are_passed() -> None:
    table = table_with_files(1, 1)
    compact_table(table.store, "c", full=True, where=None)
    units = units_of(table, scan__snapshot_id="1")

    assert batches(units, ReadLimits(files=1)) == [Position(2, full=False), Position(4, full=False)]
    assert list(units.between(Position(3, full=False), Position(4, full=False))) == []


def test_rows_of_one_key_stay_in_one_unit_of_the_state() -> None:
    table = create_key_table(NUMBERED)
    upsert(table, numbered([1, 2]))
    upsert(table, numbered([2, 3], "b"))
    units = units_of(table)

    assert batches(units, ReadLimits(files=1)) == [Position(3, full=False)]
    assert ids_between(units, units.start(), Position(3, full=False)) == [1, 2, 3]


def test_an_expired_snapshot_is_reported_with_what_to_do() -> None:
    table = table_with_files(1, 1, 1)
    table.store.snapshots.delete(1)
    units = units_of(table)

    with pytest.raises(SnapshotNotFound, match=r"next snapshot to read is 1,.*has expired"):
        list(units.between(Position(1, full=False), Position(4, full=False)))
    with pytest.raises(SnapshotNotFound, match="has expired"):
        units.end_after(Position(1, full=True), NO_LIMITS, 3)


def test_a_table_that_was_rolled_back_is_reported() -> None:
    table = table_with_files(1, 1, 1)
    table.rollback_to(1)
    units = units_of(table)

    with pytest.raises(InvalidState, match="rolled back"):
        units.end_after(Position(4, full=False), NO_LIMITS, units.latest())
    with pytest.raises(SnapshotNotFound, match="new checkpoint"):
        list(units.between(Position(2, full=False), Position(3, full=False)))


def test_a_consumer_goes_on_where_it_left_off_but_not_in_the_middle_of_a_state() -> None:
    table = table_with_files(1, 1, 1)
    units = units_of(table, "me")

    units.remember(replace(units.start(), units=1))
    assert units_of(table, "me").start() == Position(3, full=True)
    units.remember(Position(3, full=False))
    assert units_of(table, "me").start() == Position(3, full=False)
    assert units_of(table, "another").start() == Position(3, full=True)
    assert len(read(table)) == 3
