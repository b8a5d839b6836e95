"""Which snapshot a read is of: by id, tag, time, version and watermark, and between two of them."""

import datetime as dt

import pyarrow as pa
import pytest

from builders import FakeEnv, alter, append, create_table, delete_rows, overwrite, publish, rows_of
from emberlake import AtomicType, SchemaChange
from emberlake.errors import (
    EmberlakeError,
    InvalidOption,
    SnapshotNotFound,
    TagNotFound,
    Unsupported,
)
from emberlake.table import Table
from table_reads import live_files, read_rows

START = 1_750_000_000_000


@pytest.fixture
def table() -> Table:
    """Snapshots 1 to 3 add the ids 1 to 3, a second apart; tags first and third."""
    clock = FakeEnv(time_ms=START)
    made = create_table(env=clock.env())
    for number in (1, 2, 3):
        append(made, rows_of([number]))
        clock.time_ms += 1000
    made.create_tag("first", 1)
    made.create_tag("third", 3)
    return made


def ids(table: Table, **options: object) -> list[int]:
    seen = table.copy({key.replace("__", ".").replace("_", "-"): v for key, v in options.items()})
    return sorted(row["id"] for row in read_rows(seen))


def local(millis: int) -> str:
    return dt.datetime.fromtimestamp(millis / 1000).isoformat(sep=" ")  # noqa: DTZ006


@pytest.mark.parametrize(
    ("option", "value", "expected"),
    [
        ("scan.snapshot-id", 1, [1]),
        ("scan.snapshot-id", "2", [1, 2]),
        ("scan.tag-name", "first", [1]),
        ("scan.timestamp-millis", START, [1]),
        ("scan.timestamp-millis", START + 999, [1]),
        ("scan.timestamp-millis", START + 1000, [1, 2]),
        ("scan.timestamp-millis", START + 10**9, [1, 2, 3]),
        ("scan.timestamp", local(START + 1999), [1, 2]),
        ("scan.timestamp", local(START + 2000), [1, 2, 3]),
        ("scan.timestamp", "2025-06-15T15:06:41.000+00:00", [1, 2]),
        ("scan.version", "first", [1]),
        ("scan.version", "2", [1, 2]),
    ],
)
def test_a_copy_travels(table: Table, option: str, value: object, expected: list[int]) -> None:
    assert sorted(row["id"] for row in read_rows(table.copy({option: value}))) == expected


@pytest.mark.parametrize("millis", [START + 1, START + 123, START + 999])
def test_a_timestamp_is_read_to_the_millisecond(table: Table, millis: int) -> None:
    append_at = FakeEnv(time_ms=millis)
    made = create_table(env=append_at.env())
    append(made, rows_of([1]))

    assert ids(made, scan__timestamp=local(millis)) == [1]
    with pytest.raises(SnapshotNotFound):
        made.copy({"scan.timestamp": local(millis - 1)})


@pytest.mark.parametrize(
    ("option", "value", "error"),
    [
        ("scan.snapshot-id", 7, SnapshotNotFound),
        ("scan.snapshot-id", 0, SnapshotNotFound),
        ("scan.snapshot-id", "one", InvalidOption),
        ("scan.tag-name", "second", TagNotFound),
        ("scan.timestamp-millis", START - 1, SnapshotNotFound),
        ("scan.timestamp", "yesterday", InvalidOption),
        ("scan.version", "nothing", TagNotFound),
        ("scan.version", "17", SnapshotNotFound),
        ("scan.version", "watermark-1", SnapshotNotFound),
        ("scan.watermark", 1, SnapshotNotFound),
        ("scan.file-creation-time-millis", 1, Unsupported),
        ("incremental-to-auto-tag", "first", InvalidOption),
        ("incremental-between", "1,9", SnapshotNotFound),
        ("incremental-between", "first,nothing", TagNotFound),
        ("incremental-between", "3,1", InvalidOption),
        ("incremental-between", "third,first", InvalidOption),
        ("incremental-between", "1", InvalidOption),
        ("incremental-between", "1,2,3", InvalidOption),
        ("incremental-between", "", InvalidOption),
        ("incremental-between", "1,third", InvalidOption),
        ("incremental-between-timestamp", "5,1", InvalidOption),
        ("incremental-between-timestamp", "soon,later", InvalidOption),
    ],
)
def test_where_there_is_nothing_to_travel_to_copy_says_so_at_once(
    table: Table, option: str, value: object, error: type[EmberlakeError]
) -> None:
    with pytest.raises(error):
        table.copy({option: value})


@pytest.mark.parametrize(
    "options",
    [
        {"scan.snapshot-id": 1, "scan.tag-name": "first"},
        {"scan.timestamp": "2026-01-01", "scan.timestamp-millis": 1},
        {"scan.version": "1", "incremental-between": "1,2"},
        {"incremental-between": "1,2", "incremental-between-timestamp": "1,2"},
    ],
)
def test_two_ways_to_travel_are_refused(table: Table, options: dict[str, object]) -> None:
    with pytest.raises(InvalidOption, match="not several"):
        table.copy(options)
    one, other = options
    with pytest.raises(EmberlakeError):
        table.copy({one: options[one]}).copy({other: options[other]})


def test_a_watermark_finds_the_first_snapshot_that_reached_it(table: Table) -> None:
    publish(table, watermark=100)
    append(table, rows_of([4]))
    publish(table, watermark=200)

    assert ids(table, scan__watermark=50) == [1, 2, 3]
    assert ids(table, scan__watermark=100) == [1, 2, 3]
    assert ids(table, scan__watermark=101) == [1, 2, 3, 4]
    assert ids(table, scan__version="watermark-200") == [1, 2, 3, 4]
    with pytest.raises(SnapshotNotFound, match="201"):
        table.copy({"scan.watermark": 201})


def test_a_tag_goes_before_a_snapshot_id_or_a_watermark_of_the_same_name(table: Table) -> None:
    table.create_tag("watermark-1", 2)

    assert ids(table, scan__version="watermark-1") == [1, 2]


def test_a_tag_outlives_its_snapshot(table: Table) -> None:
    table.store.snapshots.delete(1)

    assert ids(table, scan__tag_name="first") == [1]
    with pytest.raises(SnapshotNotFound, match="there are snapshots 2 to 3"):
        table.copy({"scan.snapshot-id": 1})


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"scan.mode": "latest-full"}, [1, 2, 3]),
        ({"scan.mode": "full"}, [1, 2, 3]),
        ({"scan.mode": "latest"}, [1, 2, 3]),
        ({"scan.mode": "DEFAULT", "scan.snapshot-id": 2}, [1, 2]),
        ({"scan.mode": "from-snapshot", "scan.snapshot-id": 2}, [1, 2]),
        ({"scan.mode": "from-snapshot", "scan.tag-name": "first"}, [1]),
        ({"scan.mode": "from-snapshot-full", "scan.snapshot-id": 2}, [1, 2]),
        ({"scan.mode": "from-timestamp", "scan.timestamp-millis": START}, [1]),
        ({"scan.mode": "incremental", "incremental-between": "1,3"}, [2, 3]),
    ],
)
def test_a_scan_mode_goes_with_its_option(
    table: Table, options: dict[str, object], expected: list[int]
) -> None:
    assert sorted(row["id"] for row in read_rows(table.copy(options))) == expected


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"scan.mode": "compacted-full"}, Unsupported),
        ({"scan.mode": "latest-delta"}, Unsupported),
        ({"scan.mode": "sideways"}, Unsupported),
        ({"scan.mode": "from-snapshot"}, InvalidOption),
        ({"scan.mode": "from-timestamp", "scan.snapshot-id": 1}, InvalidOption),
        ({"scan.mode": "from-snapshot", "scan.timestamp-millis": START}, InvalidOption),
        ({"scan.mode": "latest", "scan.snapshot-id": 1}, InvalidOption),
        ({"scan.mode": "incremental"}, InvalidOption),
    ],
)
def test_a_scan_mode_that_does_not_fit_is_refused(
    table: Table, options: dict[str, object], error: type[EmberlakeError]
) -> None:
    with pytest.raises(error, match=r"scan\.mode"):
        table.copy(options)


def test_a_travelled_table_has_the_columns_of_its_time(table: Table) -> None:
    altered = alter(table, SchemaChange.add_column("v", AtomicType("INT")))
    columns = pa.schema([("id", pa.int64()), ("day", pa.string()), ("v", pa.int32())])
    append(altered, pa.table([[4], ["mon"], pa.array([7], pa.int32())], columns))

    then = altered.copy({"scan.snapshot-id": 3})

    assert then.field_names == ["id", "day"]
    assert altered.copy({"scan.snapshot-id": 4}).field_names == ["id", "day", "v"]
    assert altered.copy({"incremental-between": "1,2"}).field_names == ["id", "day", "v"]


def test_travelling_back_to_the_present_brings_its_columns_back(table: Table) -> None:
    altered = alter(table, SchemaChange.add_column("v", AtomicType("INT")))
    then = altered.copy({"scan.snapshot-id": 1, "source.split.target-size": "1 b"})

    now = then.copy({"scan.snapshot-id": None})

    assert now.field_names == ["id", "day", "v"]
    assert now.options["source.split.target-size"] == "1 b"
    assert sorted(row["id"] for row in read_rows(now)) == [1, 2, 3]
    append(now, rows_of([4]))


def test_a_plan_knows_its_snapshot(table: Table) -> None:
    def planned(options: dict[str, object]) -> int | None:
        return table.copy(options).new_read_builder().new_scan().plan().snapshot_id

    assert planned({}) == 3
    assert planned({"scan.tag-name": "first"}) == 1
    assert planned({"incremental-between": "1,2"}) == 2


# --- between two snapshots ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("ends", "expected"),
    [
        ("1,3", [2, 3]),
        ("0,3", [1, 2, 3]),
        ("0,1", [1]),
        ("2,2", []),
        (" 2 , 3 ", [3]),
        ("first,third", [2, 3]),
        ("first,first", []),
    ],
)
def test_an_incremental_read_gives_what_was_added_after_the_start(
    table: Table, ends: str, expected: list[int]
) -> None:
    assert ids(table, incremental_between=ends) == expected


@pytest.mark.parametrize(
    ("ends", "expected"),
    [
        (f"{START},{START + 2000}", [2, 3]),
        (f"{START - 5},{START + 1000}", [1, 2]),
        (f"{START + 1500},{START + 1900}", []),
        (f"{START - 9},{START - 5}", []),
        (f"{START + 9000},{START + 9999}", []),
        (f"{local(START)},{local(START + 1000)}", [2]),
    ],
)
def test_an_incremental_read_may_be_bounded_by_times(
    table: Table, ends: str, expected: list[int]
) -> None:
    assert ids(table, incremental_between_timestamp=ends) == expected


def test_an_expired_start_is_refused_and_an_expired_middle_too(table: Table) -> None:
    copied = table.copy({"incremental-between": "1,3"})
    table.store.snapshots.delete(1)
    table.store.snapshots.delete(2)

    with pytest.raises(SnapshotNotFound):
        table.copy({"incremental-between": "1,3"})
    with pytest.raises(SnapshotNotFound):
        read_rows(copied)
    # One before the first that is left is the beginning.
    assert ids(table, incremental_between="2,3") == [3]


def test_tags_are_compared_by_what_they_hold_even_when_history_is_gone(table: Table) -> None:
    for snapshot_id in (1, 2):
        table.store.snapshots.delete(snapshot_id)

    assert ids(table, incremental_between="first,third") == [2, 3]
    with pytest.raises(SnapshotNotFound, match="expired"):
        read_rows(
            table.copy(
                {
                    "incremental-between": "first,third",
                    "incremental-between-tag-to-snapshot": "true",
                }
            )
        )


def test_the_changes_between_snapshots_leave_out_what_was_rewritten(table: Table) -> None:
    overwrite(table, rows_of([9]))
    append(table, rows_of([10]))
    table.create_tag("last")

    assert ids(table, incremental_between="3,5") == [10]
    assert ids(table, incremental_between="3,5", incremental_between_scan_mode="delta") == [10]
    assert ids(table, incremental_between="3,5", incremental_between_scan_mode="diff") == [9, 10]
    assert ids(table, incremental_between="third,last") == [9, 10]
    assert ids(table, incremental_between="0,5", incremental_between_scan_mode="diff") == [9, 10]


def test_a_difference_leaves_out_rows_that_were_deleted_and_a_delta_does_not(table: Table) -> None:
    append(table, rows_of([4, 5]))
    name = live_files(table)[-1].file.file_name
    delete_rows(table, {name: [0]})

    assert ids(table, incremental_between="3,5", incremental_between_scan_mode="diff") == [5]
    assert ids(table, incremental_between="3,5") == [4, 5]


def test_an_incremental_read_is_filtered_projected_and_limited(table: Table) -> None:
    between = table.copy({"incremental-between": "0,3"})

    assert read_rows(between, "id > 1", ["id"], limit=1) == [{"id": 2}]


def test_an_unknown_kind_of_incremental_read_is_refused(table: Table) -> None:
    with pytest.raises(Unsupported, match="changelog"):
        table.copy({"incremental-between": "1,2", "incremental-between-scan-mode": "changelog"})


def test_changes_up_to_an_automatic_tag_begin_at_the_one_before(table: Table) -> None:
    for tag, snapshot in (("2025-06-14", 1), ("2025-06-15", 2), ("2025-06-17", 3)):
        table.create_tag(tag, snapshot)

    assert ids(table, incremental_to_auto_tag="2025-06-17") == [3]
    assert ids(table, incremental_to_auto_tag="2025-06-15") == [2]
    assert ids(table, incremental_to_auto_tag="2025-06-14") == []
    assert ids(table, incremental_to_auto_tag="2025-06-16") == []
