"""Postponed rows get their buckets by a compaction, and are rows like any other then."""

from dataclasses import replace
from random import Random
from typing import Any

import pytest

from builders import (
    FakeEnv,
    alter,
    create_key_table,
    data_of,
    open_catalog,
    open_table,
    prepare,
    upsert,
)
from emberlake import SchemaChange, Table
from emberlake.commit.change import compact_change
from emberlake.commit.committer import Committer
from emberlake.compaction.postpone_compact import bucket_count
from emberlake.errors import CommitConflict, ConflictReason, InvalidOption, StorageError
from emberlake.io import MemoryStorage
from emberlake.maintenance.compact import prepare_compaction
from emberlake.options import TableOptions
from emberlake.scan.files import delta_manifests_of
from emberlake.spec.manifest import DataFile
from emberlake.spec.snapshot import CommitKind
from emberlake.types import AtomicType
from key_histories import History, Shape, random_shape
from table_reads import check_whole, data_files, live_files, read_rows, records_in
from watched_storage import Call, WatchedStorage, Watcher

COLUMNS = {"id": "BIGINT", "v": "STRING", "n": "INT"}
ENGINES: dict[str, dict[str, str]] = {
    "deduplicate": {},
    "sequence field": {"sequence.field": "n"},
    "partial-update": {"merge-engine": "partial-update"},
    "aggregation": {"merge-engine": "aggregation", "fields.n.aggregate-function": "sum"},
    "first-row": {"merge-engine": "first-row"},
    "deletion vectors": {"deletion-vectors.enabled": "true"},
    "several buffers": {"write-buffer-size": "1 b"},
}
THREE = {"postpone.default-bucket-num": "3"}
SIZED = {"postpone.target-size-per-bucket": "100 b"}


def postponing(**options: Any) -> Table:
    return create_key_table(COLUMNS, bucket="-2", **options)


def state(table: Table) -> list[tuple[Any, ...]]:
    return sorted(tuple(row.values()) for row in read_rows(table))


def postponed(table: Table) -> list[Any]:
    return [entry for entry in live_files(table) if entry.bucket == -2]


def bucket_of_keys(table: Table) -> dict[int, int]:
    return {r[0]: entry.bucket for entry in live_files(table) for r in records_in(table, entry)}


def known_files(table: Table) -> set[str]:
    """All files that any snapshot speaks of."""
    store = table.store
    entries = [
        entry
        for number in store.snapshots.list_ids()
        for entry in store.manifests.read_manifests(
            delta_manifests_of(store, store.snapshots.load(number))
        ).entries()
    ]
    return {store.data_file_path(e.partition, e.bucket, e.file) for e in entries}


def some_rows(chance: Random) -> list[tuple[int, str | None, int | None]]:
    return [
        (n, chance.choice([None, f"{chance.randrange(99)}"]), chance.choice([None, n % 5]))
        for n in chance.choices(range(40), k=chance.choice([1, 30]))
    ]


@pytest.mark.thorough
@pytest.mark.parametrize("full", [True, False])
@pytest.mark.parametrize("engine", ENGINES)
def test_rows_are_those_of_a_table_with_fixed_buckets(engine: str, full: bool) -> None:
    table = postponing(**ENGINES[engine], **THREE)
    fixed = create_key_table(COLUMNS, bucket="3", **ENGINES[engine])
    chance = Random(4)
    for _ in range(3):
        before = state(table)
        for _ in range(chance.choice([1, 3])):
            rows = some_rows(chance)
            for target in (table, fixed):
                upsert(target, rows)
                if engine == "deduplicate":
                    upsert(target, rows[:2], "-D")
        assert state(table) == before

        table.compact(full=full)

        assert state(table) == state(fixed)
        assert not postponed(table)
    assert bucket_of_keys(table).items() <= bucket_of_keys(fixed).items()
    assert data_files(table) == known_files(table)
    check_whole(table)


def test_it_is_one_compaction_that_takes_the_postponed_files_away() -> None:
    table = postponing()
    upsert(table, [(1, "a", 0), (2, "b", 0), (1, "c", 0)])

    result = table.compact()

    snapshot = table.latest_snapshot()
    assert snapshot is not None
    assert (snapshot.id, snapshot.commit_kind) == (2, CommitKind.COMPACT)
    assert (result.files_deleted, result.files_added) == (1, 1)
    assert (result.rows_deleted, result.rows_added) == (3, 2)
    (entry,) = live_files(table)
    assert (entry.bucket, entry.total_buckets, entry.file.level) == (0, 1, 0)
    assert records_in(table, entry) == [(1, "c", 0, 2, "+I"), (2, "b", 0, 1, "+I")]
    assert table.compact().snapshot_id is None


def test_a_later_compaction_goes_on_with_the_sequence_numbers_of_a_bucket() -> None:
    table = postponing()
    for value in ("a", "b", "c"):
        upsert(table, [(1, value, 0), (2, value, 0)])
        table.compact()

    assert [e.file.max_sequence_number for e in live_files(table)] == [1, 3, 5]
    assert state(table) == [(1, "c", 0), (2, "c", 0)]


def test_files_are_replayed_in_the_order_in_which_they_were_written() -> None:
    world = FakeEnv()
    table = postponing(env=world.env())
    early = prepare(table, [(1, "early", 0)])
    world.time_ms += 5
    upsert(table, [(1, "late", 0)])
    table.new_batch_write_builder().new_commit().commit(early)

    table.compact()

    assert state(table) == [(1, "late", 0)]


def test_deletes_that_were_postponed_take_effect() -> None:
    table = postponing()
    upsert(table, [(1, "a", 0), (2, "b", 0)])
    table.compact(full=True)
    upsert(table, [(1, "a", 0)], "-D")
    assert len(state(table)) == 2

    table.compact(full=True)

    assert state(table) == [(2, "b", 0)]


def test_rows_of_earlier_schemas_have_the_columns_of_today() -> None:
    table = postponing()
    upsert(table, [(1, "a", 0)])
    table = alter(table, SchemaChange.rename_column("v", "text"))
    table = alter(table, SchemaChange.add_column("extra", AtomicType("INT")))
    upsert(table, [(2, "b", 0, 7)])

    table.compact()

    assert state(table) == [(1, "a", 0, None), (2, "b", 0, 7)]
    assert [entry.file.schema_id for entry in live_files(table)] == [2]


# --- how many buckets -----------------------------------------------------------------------------


def waiting(*files: tuple[int, int]) -> list[DataFile]:
    """Files of some numbers of rows and bytes."""
    nothing = {"min_sequence_number": 0, "max_sequence_number": 0, "schema_id": 0}
    return [DataFile(file_name="f", row_count=n, file_size=size, **nothing) for n, size in files]


@pytest.mark.parametrize(
    ("options", "count"),
    [
        ({}, 1),
        (THREE, 3),
        ({"postpone.target-row-num-per-bucket": "4"}, 3),
        ({"postpone.target-row-num-per-bucket": "5"}, 2),
        ({"postpone.target-row-num-per-bucket": "100"}, 1),
        (SIZED, 4),
        (
            {"postpone.target-size-per-bucket": "100 b", "postpone.target-row-num-per-bucket": "9"},
            2,
        ),
        ({"postpone.target-size-per-bucket": "100 b", **THREE}, 3),
    ],
)
def test_the_first_rows_of_a_partition_decide_its_number_of_buckets(
    options: dict[str, str], count: int
) -> None:
    assert bucket_count(TableOptions(options), waiting((7, 300), (3, 1))) == count


@pytest.mark.parametrize(
    "key",
    [
        "postpone.default-bucket-num",
        "postpone.target-row-num-per-bucket",
        "postpone.target-size-per-bucket",
    ],
)
def test_numbers_below_one_are_refused(key: str) -> None:
    table = postponing(**{key: "0"})
    upsert(table, [(1, "a", 0)])
    before = data_files(table)

    with pytest.raises(InvalidOption, match=key):
        table.compact()

    assert data_files(table) == before


def test_a_partition_keeps_its_number_of_buckets() -> None:
    table = create_key_table(
        COLUMNS, ["v", "id"], ["v"], bucket="-2", **{"postpone.target-row-num-per-bucket": "10"}
    )
    upsert(table, [(n, "small", 0) for n in range(10)])
    upsert(table, [(n, "large", 0) for n in range(31)])
    table.compact()
    upsert(table, [(n, v, 1) for n in range(50) for v in ("small", "large", "new")])
    table.compact()

    found = {
        (table.store.partition_spec(entry.partition)["v"], entry.total_buckets)
        for entry in live_files(table)
    }
    assert found == {("small", 1), ("large", 4), ("new", 5)}
    assert len(state(table)) == 150


def test_only_the_partitions_that_are_asked_for_are_compacted() -> None:
    table = create_key_table(COLUMNS, ["v", "id"], ["v"], bucket="-2")
    upsert(table, [(n, v, 0) for n in range(3) for v in ("a", "b")])

    table.compact(where="v = 'b'")

    assert state(table) == [(0, "b", 0), (1, "b", 0), (2, "b", 0)]
    assert len(postponed(table)) == 1


# --- changes --------------------------------------------------------------------------------------


def next_changes(builder: Any, scan: Any) -> list[str]:
    plan = scan.plan()
    rows = [] if plan is None else builder.new_read().to_arrow(plan.splits()).to_pylist()
    return [f"{row['_row_kind']} {row['v']}" for row in rows]


@pytest.mark.parametrize("full", [True, False])
def test_a_compaction_makes_the_changelog_of_what_was_written(full: bool) -> None:
    table = postponing(**{"changelog-producer": "input"})
    builder = table.new_stream_read_builder().with_include_row_kind()
    scan = builder.new_streaming_scan()
    upsert(table, [(1, "a", 0), (1, "b", 0)])
    upsert(table, [(1, "b", 0)], "-D")
    assert next_changes(builder, scan) == []

    table.compact(full=full)

    assert next_changes(builder, scan) == ["+I a", "+I b", "-D b"]
    assert next_changes(builder, scan) == []


def test_without_a_changelog_a_stream_has_seen_the_rows_before() -> None:
    table = postponing()
    upsert(table, [(1, "a", 0)])
    builder = table.new_stream_read_builder().with_include_row_kind()
    scan = builder.new_streaming_scan()
    assert next_changes(builder, scan) == ["+I a"]
    upsert(table, [(1, "b", 0)])
    table.compact(full=True)
    upsert(table, [(1, "c", 0)])

    assert next_changes(builder, scan) == ["+I b"]
    assert next_changes(builder, scan) == ["+I c"]


# --- others ---------------------------------------------------------------------------------------


def test_rows_that_come_in_meanwhile_wait_for_the_next_compaction() -> None:
    table = postponing()
    upsert(table, [(1, "a", 0)])
    messages = prepare_compaction(table.store, table.latest_snapshot(), full=False, where=None)
    upsert(table, [(1, "late", 0)])

    Committer(table.store, "me").commit(compact_change(messages))

    assert state(table) == [(1, "a", 0)]
    table.compact()
    assert state(table) == [(1, "late", 0)]


def test_of_two_compactions_one_is_refused_and_leaves_no_files() -> None:
    storage = MemoryStorage()
    watched = WatchedStorage(storage)
    table = postponing(storage=watched)
    upsert(table, [(1, "a", 0)])

    def race(call: Call) -> None:
        if call.method == "put_if_absent" and "/snapshot-" in call.path and not call.is_done:
            watched.watch = lambda call: None
            open_table(storage).compact()

    watched.watch = race
    with pytest.raises(CommitConflict) as caught:
        table.compact(full=True)

    assert caught.value.reason is ConflictReason.FILE_DELETED_ELSEWHERE
    assert state(table) == [(1, "a", 0)]
    assert data_files(table) == known_files(table)


def test_a_failure_leaves_nothing_behind_and_the_next_try_works() -> None:
    storage = MemoryStorage()
    table = create_key_table(COLUMNS, ["v", "id"], ["v"], storage=storage, bucket="-2", **THREE)
    for number in (0, 1):
        upsert(table, [(n, v, number) for n in range(9) for v in ("a", "b")])
        if not number:
            table.compact()
    before = data_files(table)
    watched = WatchedStorage(storage)

    for count in range(1, 13):  # six files of level 0, and six that they are compacted into
        watched.watch = fail_at(count)
        with pytest.raises(StorageError, match="the disk is full"):
            open_table(watched).compact(full=True)
        assert data_files(table) == before

    watched.watch = fail_at(13)
    open_table(watched).compact(full=True)
    assert {row["n"] for row in read_rows(table)} == {1}


def fail_at(count: int) -> Watcher:
    """Fails when so many data files are opened."""
    opened: list[str] = []

    def watch(call: Call) -> None:
        if call.method == "open_output" and "/bucket-" in call.path and not call.is_done:
            opened.append(call.path)
            if len(opened) == count:
                raise StorageError("the disk is full")

    return watch


# --- histories ------------------------------------------------------------------------------------


class PostponedHistory(History):
    """Every row that is looked at was postponed before."""

    def check(self) -> None:
        self.table.compact(full=self.chance.random() < 0.5)
        super().check()


def postponed_shape(engine: str, chance: Random) -> Shape:
    shape = random_shape(chance, engine)
    options = {k: v for k, v in shape.options.items() if not k.startswith("dynamic")}
    options |= {"postpone.default-bucket-num": chance.choice(["1", "3"])}
    return replace(shape, bucket="-2", options=options)


@pytest.mark.thorough
@pytest.mark.parametrize("seed", [0, 1, *(pytest.param(n, marks=pytest.mark.slow) for n in (2, 3))])
@pytest.mark.parametrize("engine", ["deduplicate", "partial-update", "aggregation", "first-row"])
def test_a_postponed_history_is_one_like_any_other(engine: str, seed: int) -> None:
    chance = Random(seed)
    catalog = open_catalog(MemoryStorage())
    catalog.create_database("db")
    history = PostponedHistory(catalog, postponed_shape(engine, chance), chance)

    for _ in range(8):
        history.step()

    history.check_past()
    check_whole(history.table)


def test_data_that_is_written_again_is_postponed_again() -> None:
    table = postponing()
    builder = table.new_batch_write_builder().overwrite()
    upsert(table, [(1, "a", 0), (2, "b", 0)])
    table.compact()
    with builder.new_write() as write:
        write.write_arrow(data_of(table, [(3, "c", 0)]))
        builder.new_commit().commit(write.prepare_commit())
    assert state(table) == []

    table.compact()

    assert state(table) == [(3, "c", 0)]
