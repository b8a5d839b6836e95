"""Following a table: its state first, then every change, from wherever one likes to start."""

import asyncio

import pytest

from builders import (
    NUMBERED,
    FakeEnv,
    append,
    create_key_table,
    create_table,
    numbered,
    open_table,
    overwrite,
    rows_of,
    upsert,
)
from emberlake import InvalidOption, SnapshotNotFound, Table, Unsupported
from emberlake.errors import InvalidInput, InvalidState
from emberlake.table.stream_read import StreamingTableScan, StreamReadBuilder


def follow(
    table: Table, options: dict[str, str] | None = None
) -> tuple[StreamReadBuilder, StreamingTableScan]:
    builder = table.copy(options or {}).new_stream_read_builder().with_include_row_kind()
    return builder, builder.new_streaming_scan()


def next_rows(builder: StreamReadBuilder, scan: StreamingTableScan) -> list[str] | None:
    """The next plan's rows as texts such as +I a1, or None when there is nothing new."""
    plan = scan.plan()
    if plan is None:
        return None
    rows = builder.new_read().to_arrow(plan.splits()).to_pylist()
    return sorted(f"{row['_row_kind']} {row.get('v', row['id'])}" for row in rows)


def test_a_stream_is_the_state_and_then_the_changes() -> None:
    table = create_key_table(NUMBERED)
    upsert(table, numbered([1, 2]))
    upsert(table, numbered([2], "b"))
    builder, scan = follow(table)

    assert next_rows(builder, scan) == ["+I a1", "+I b2"]
    assert next_rows(builder, scan) is None
    upsert(table, numbered([1]), "-D")
    upsert(table, numbered([3], "c"), "+U")
    assert next_rows(builder, scan) == ["-D a1"]
    assert next_rows(builder, scan) == ["+U c3"]
    assert next_rows(builder, scan) is None


def test_a_stream_of_an_empty_table_waits_for_the_first_snapshot() -> None:
    table = create_key_table(NUMBERED)
    builder, scan = follow(table)
    assert next_rows(builder, scan) is None
    assert scan.checkpoint() is None

    upsert(table, numbered([1]))
    assert next_rows(builder, scan) == ["+I a1"]


def test_a_stream_can_begin_with_what_comes_after_now() -> None:
    table = create_key_table(NUMBERED)
    upsert(table, numbered([1]))
    builder, scan = follow(table, {"scan.mode": "latest"})

    assert next_rows(builder, scan) is None
    upsert(table, numbered([2]))
    assert next_rows(builder, scan) == ["+I a2"]


def test_a_stream_can_begin_at_a_snapshot() -> None:
    table = create_key_table(NUMBERED)
    for number in (1, 2, 3):
        upsert(table, numbered([number]))

    builder, scan = follow(table, {"scan.snapshot-id": "2"})
    assert [next_rows(builder, scan) for _ in range(3)] == [["+I a2"], ["+I a3"], None]
    builder, scan = follow(table, {"scan.snapshot-id": "2", "scan.mode": "from-snapshot-full"})
    assert [next_rows(builder, scan) for _ in range(2)] == [["+I a1", "+I a2"], ["+I a3"]]


def test_a_stream_can_begin_at_a_time() -> None:
    world = FakeEnv()
    table = create_table(env=world.env())
    for number in (1, 2, 3):
        append(table, rows_of([number]))
        world.time_ms += 1000
    first = table.snapshot_manager().load(1).time_millis

    builder, scan = follow(table, {"scan.timestamp-millis": str(first + 1000)})
    assert [next_rows(builder, scan) for _ in range(3)] == [["+I 2"], ["+I 3"], None]


def test_starts_that_make_no_sense_are_refused() -> None:
    table = create_key_table(NUMBERED)
    upsert(table, numbered([1]))
    table.create_tag("one")

    with pytest.raises(Unsupported, match="tag-name"):
        follow(table, {"scan.tag-name": "one"})
    with pytest.raises(InvalidOption, match="snapshot-id"):
        follow(table, {"scan.mode": "from-snapshot"})
    with pytest.raises(InvalidInput, match="limit"):
        table.new_stream_read_builder().with_limit(3)


def test_changelog_files_are_followed_where_a_table_has_them() -> None:
    table = create_key_table(NUMBERED, **{"changelog-producer": "input"})
    upsert(table, numbered([1]))
    builder, scan = follow(table)
    assert next_rows(builder, scan) == ["+I a1"]

    upsert(table, numbered([1]), "-U")
    upsert(table, numbered([1], "b"), "+U")
    assert next_rows(builder, scan) == ["-U a1"]
    assert next_rows(builder, scan) == ["+U b1"]


def test_a_checkpoint_is_where_to_go_on() -> None:
    table = create_key_table(NUMBERED)
    upsert(table, numbered([1]))
    builder, scan = follow(table)
    next_rows(builder, scan)
    upsert(table, numbered([2]))
    place = scan.checkpoint()
    assert next_rows(builder, scan) == ["+I a2"]

    scan.restore(place)
    assert next_rows(builder, scan) == ["+I a2"]
    scan.restore(None)
    assert next_rows(builder, scan) == ["+I a1", "+I a2"]


def test_a_consumer_goes_on_where_it_left_off() -> None:
    table = create_key_table(NUMBERED)
    upsert(table, numbered([1]))
    builder, scan = follow(table, {"consumer-id": "me"})
    assert next_rows(builder, scan) == ["+I a1"]
    scan.notify_checkpoint_complete(scan.checkpoint())
    upsert(table, numbered([2]))
    assert next_rows(builder, scan) == ["+I a2"]  # but nobody said that it is safe

    again = table.new_stream_read_builder().with_consumer_id("me").with_include_row_kind()
    assert next_rows(again, again.new_streaming_scan()) == ["+I a2"]
    path = table.store.layout.consumer("me")
    assert table.store.storage.read(path) == b'{"nextSnapshot": 2}'


def test_a_stream_of_plans_moves_its_consumer_on() -> None:
    table = create_key_table(NUMBERED)
    upsert(table, numbered([1]))
    builder = table.new_stream_read_builder().with_consumer_id("me").with_poll_interval_ms(1)
    plans = builder.new_streaming_scan().stream_sync()
    next(plans)
    upsert(table, numbered([2]))
    next(plans)
    assert table.store.storage.read(table.store.layout.consumer("me")) == b'{"nextSnapshot": 2}'

    async def first_two() -> list[int | None]:
        stream = builder.new_streaming_scan().stream()
        return [(await anext(stream)).snapshot_id]

    assert asyncio.run(first_two()) == [2]


def test_a_consumer_id_that_is_no_file_name_is_refused() -> None:
    builder = create_key_table(NUMBERED).new_stream_read_builder().with_consumer_id("a/b")

    with pytest.raises(InvalidInput, match="a/b"):
        builder.new_streaming_scan().plan()


def test_an_expired_snapshot_is_reported_as_expired() -> None:
    table = create_key_table(NUMBERED)
    for number in (1, 2, 3):
        upsert(table, numbered([number]))
    builder, scan = follow(table)
    scan.restore(1)
    table.store.snapshots.delete(1)
    table.store.snapshots.write_earliest_hint(2)

    with pytest.raises(SnapshotNotFound, match="expired"):
        next_rows(builder, scan)
    scan.restore(9)
    with pytest.raises(InvalidState, match="rolled back"):
        next_rows(builder, scan)


def test_readers_can_share_the_buckets() -> None:
    table = create_key_table(NUMBERED, bucket="3")
    upsert(table, numbered(range(20)))
    found: list[str] = []
    for buckets in ([0, 2], [1]):
        builder = table.new_stream_read_builder().with_include_row_kind().with_buckets(buckets)
        found += next_rows(builder, builder.new_streaming_scan()) or []

    assert sorted(found) == sorted(f"+I a{n}" for n in range(20))


def test_overwrites_of_an_append_table_are_followed_when_asked_for() -> None:
    table = create_table()
    append(table, rows_of([1]))
    streams = [follow(table), follow(table, {"streaming-read-append-overwrite": "true"})]
    for builder, scan in streams:
        assert next_rows(builder, scan) == ["+I 1"]
    overwrite(open_table(table.store.storage), rows_of([2]))

    assert [next_rows(*stream) for stream in streams] == [None, ["+I 2"]]


@pytest.mark.parametrize(
    ("options", "row"),
    [({"deletion-vectors.enabled": "true"}, "b2"), ({"merge-engine": "first-row"}, "a2")],
)
def test_a_stream_filters_rows_that_are_not_compacted_after_they_are_merged(
    options: dict[str, str], row: str
) -> None:
    table = create_key_table(NUMBERED, **{**options, "write-only": "true"})
    upsert(table, numbered([1, 2, 3], "a"))
    table.compact(full=True)
    upsert(table, numbered([2], "b"))

    for value in ("a2", "b2"):
        builder = table.new_stream_read_builder().with_filter(f"v = '{value}'")
        plan = builder.new_streaming_scan().plan()
        assert plan is not None
        found = builder.new_read().to_arrow(plan.splits()).to_pylist()
        assert [r["v"] for r in found] == [value] * (value == row)
