"""Compaction changes files, never rows."""

import random
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest

from builders import (
    NAME,
    NUMBERED,
    alter,
    append,
    create_key_table,
    create_table,
    delete_rows,
    numbered,
    open_catalog,
    open_table,
    prepare,
    rows_of,
    upsert,
)
from emberlake import Schema, SchemaChange, Table
from emberlake.commit.change import compact_change
from emberlake.commit.committer import Committer
from emberlake.errors import (
    CommitConflict,
    CommitUnknown,
    ConflictReason,
    InvalidPredicate,
    InvalidState,
    StorageError,
)
from emberlake.io import MemoryStorage
from emberlake.maintenance.compact import prepare_compaction
from emberlake.scan.files import delta_manifests_of
from emberlake.scan.runs import find_sections, key_ranges
from emberlake.spec.key_value import key_fields
from emberlake.spec.manifest import FileSource
from emberlake.spec.snapshot import CommitKind
from emberlake.types import AtomicType, arrow_schema
from table_reads import (
    check_whole,
    data_files,
    index_entries,
    live_files,
    read,
    read_rows,
    records_in,
)

ENGINES: dict[str, dict[str, str]] = {
    "deduplicate": {},
    "sequence field": {"sequence.field": "n"},
    "descending": {"sequence.field": "n", "sequence.field.sort-order": "descending"},
    "partial-update": {"merge-engine": "partial-update"},
    "sequence group": {"merge-engine": "partial-update", "fields.n.sequence-group": "v"},
    "aggregation": {"merge-engine": "aggregation", "fields.n.aggregate-function": "sum"},
    "first-row": {"merge-engine": "first-row", "write-only": "true"},
}
VECTORS = {"deletion-vectors.enabled": "true"}
FEW_RUNS = {"num-sorted-run.compaction-trigger": "3"}


def state(table: Table) -> list[Any]:
    return sorted(tuple(map(repr, row.values())) for row in read_rows(table))


def levels(table: Table) -> list[tuple[int, int]]:
    """Level and rows of every file."""
    return sorted((entry.file.level, entry.file.row_count) for entry in live_files(table))


def write_history(table: Table, turns: int, *, seed: int = 0, with_deletes: bool = False) -> None:
    chance = random.Random(seed)
    for turn in range(turns):
        ids = chance.sample(range(60), chance.choice([3, 20]))
        rows = [
            {
                "id": n,
                "v": chance.choice([None, f"{turn}"]),
                "n": chance.choice([None, chance.randrange(9)]),
            }
            for n in ids
        ]
        upsert(table, rows)
        if with_deletes:
            upsert(table, numbered(chance.sample(range(60), 5)), row_kind="-D")


def check_levels_are_apart(table: Table) -> None:
    """No two files of one level share keys."""
    types = [f.type for f in key_fields(table.store.schema)]
    for level in {entry.file.level for entry in live_files(table)} - {0}:
        files = [entry.file for entry in live_files(table) if entry.file.level == level]
        least = pa.array([f.min_key for f in files], pa.binary())
        greatest = pa.array([f.max_key for f in files], pa.binary())
        ranges = key_ranges(types, least, greatest)
        assert all(len(section) == 1 for section in find_sections(ranges))


@pytest.mark.thorough
@pytest.mark.parametrize("full", [True, False])
@pytest.mark.parametrize("engine", ENGINES)
def test_rows_are_the_same_before_and_after(engine: str, full: bool) -> None:
    table = create_key_table(NUMBERED, **{**ENGINES[engine], **FEW_RUNS})
    seen_through = table.copy({"merge-engine": "first-row"} if engine == "first-row" else {})
    for turn in range(4):
        write_history(table, 2, seed=turn, with_deletes=engine == "deduplicate")
        merged = merged_by_hand(table)

        result = table.compact(full=full)

        assert result.snapshot_id is not None or not full
        assert merged_by_hand(table) == merged
        if engine != "first-row":
            assert state(seen_through) == merged
    check_whole(table)


def merged_by_hand(table: Table) -> list[Any]:
    """The rows that all files together hold, level 0 too."""
    plain = [k for k, v in table.options.items() if (k, v) == ("merge-engine", "first-row")]
    if not plain:
        return state(table)
    first: dict[int, Any] = {}
    for entry in live_files(table):
        for *row, sequence, _ in records_in(table, entry):
            if row[0] not in first or sequence < first[row[0]][0]:
                first[row[0]] = (sequence, row)
    return sorted(tuple(map(repr, row)) for _, row in first.values())


def test_a_full_compaction_makes_one_file_on_the_highest_level() -> None:
    table = create_key_table(NUMBERED)
    upsert(table, numbered([1, 2, 3]))
    upsert(table, numbered([2, 4], "b"))

    result = table.compact(full=True)

    (entry,) = live_files(table)
    assert (entry.file.level, entry.file.row_count, entry.file.delete_row_count) == (5, 4, 0)
    assert entry.file.file_source is FileSource.COMPACT
    assert (entry.file.min_sequence_number, entry.file.max_sequence_number) == (0, 4)
    assert [(r[0], r[3]) for r in records_in(table, entry)] == [(1, 0), (2, 3), (3, 2), (4, 4)]
    assert (result.files_added, result.files_deleted, result.rows_deleted) == (1, 2, 5)
    snapshot = table.latest_snapshot()
    assert snapshot is not None
    assert snapshot.commit_kind is CommitKind.COMPACT


def test_there_is_nothing_to_commit_when_there_is_nothing_to_do() -> None:
    table = create_key_table(NUMBERED)
    assert table.compact(full=True).snapshot_id is None
    upsert(table, numbered([1]))
    assert table.compact().snapshot_id is None
    assert table.compact(full=True).snapshot_id == 2
    assert table.compact(full=True).snapshot_id is None


def test_deletes_are_kept_while_older_rows_are_below_them() -> None:
    table = create_key_table(NUMBERED, **{**FEW_RUNS, "compaction.size-ratio": "50"})
    upsert(table, numbered(range(5000)))
    table.compact(full=True)
    upsert(table, numbered([1, 2]), row_kind="-D")
    upsert(table, numbered([3], "b"))

    table.compact()

    newer, *_ = sorted(live_files(table), key=lambda entry: entry.file.level)
    assert [r[-1] for r in records_in(table, newer)] == ["-D", "-D", "+I"]
    assert newer.file.delete_row_count == 2
    assert levels(table) == [(2, 3), (3, 5000)]
    assert len(state(table)) == 4998

    table.compact(full=True)

    assert levels(table) == [(3, 4998)]
    assert live_files(table)[0].file.delete_row_count == 0


def test_everything_can_be_deleted() -> None:
    table = create_key_table(NUMBERED)
    upsert(table, numbered([1, 2]))
    upsert(table, numbered([1, 2]), row_kind="-D")

    table.compact(full=True)

    assert live_files(table) == []
    assert state(table) == []


def test_a_large_file_goes_up_without_being_rewritten() -> None:
    table = create_key_table(NUMBERED, **{"target-file-size": "1 b"})
    upsert(table, numbered([1, 2, 3]))
    upsert(table, numbered([7, 8]))
    before = {entry.file.file_name: entry.file for entry in live_files(table)}

    table.compact(full=True)

    after = {entry.file.file_name: entry.file for entry in live_files(table)}
    assert after == {name: replace(file, level=5) for name, file in before.items()}


def test_a_large_file_with_deletes_is_rewritten_at_the_top() -> None:
    table = create_key_table(NUMBERED, **{"target-file-size": "1 b"})
    upsert(table, numbered([1, 2, 3]))
    upsert(table, numbered([7, 8]), row_kind="-D")

    table.compact(full=True)

    assert levels(table) == [(5, 1)] * 3


def test_output_rolls_over_several_files_that_share_no_keys() -> None:
    table = create_key_table(NUMBERED, **{"target-file-row-num": "10"})
    upsert(table, numbered(range(0, 60, 2)))
    upsert(table, numbered(range(0, 60, 3), "b"))

    table.compact(full=True)

    assert levels(table) == [(5, 10)] * 4
    check_levels_are_apart(table)
    check_whole(table)


def test_buckets_and_partitions_are_compacted_each_for_itself() -> None:
    table = create_key_table(NUMBERED, ["v", "id"], ["v"], bucket="3")
    for turn in range(3):
        upsert(table, [{"id": n, "v": "ab"[n % 2], "n": turn} for n in range(40)])
    before = state(table)

    table.compact(full=True)

    assert state(table) == before
    assert {entry.file.level for entry in live_files(table)} == {5}
    assert len(live_files(table)) == 6


def test_only_the_partitions_that_are_asked_for_are_compacted() -> None:
    table = create_key_table(NUMBERED, ["v", "id"], ["v"])
    for turn in range(2):
        upsert(table, [{"id": n, "v": "ab"[n % 2], "n": turn} for n in range(4)])

    table.compact(full=True, where="v = 'b'")

    assert levels(table) == [(0, 2), (0, 2), (5, 2)]
    with pytest.raises(InvalidPredicate, match="n"):
        table.compact(where="n = 1")


def test_files_of_earlier_schemas_are_rewritten_with_the_columns_of_today() -> None:
    table = create_key_table(NUMBERED)
    upsert(table, numbered([1, 2]))
    stale = table
    table = alter(table, SchemaChange.add_column("extra", AtomicType("INT")))
    upsert(table, [{"id": 2, "v": "x", "n": 1, "extra": 7}])

    stale.compact(full=True)

    assert state(table) == [("1", "'a1'", "0", "None"), ("2", "'x'", "1", "7")]
    assert [entry.file.schema_id for entry in live_files(table)] == [1]


# --- deletion vectors and first-row ---------------------------------------------------------------


def visible_keys(table: Table) -> list[int]:
    """The keys of all rows above level 0 that are not deleted, one by one."""
    assert all(
        split.raw_convertible for split in table.new_read_builder().new_scan().plan().splits()
    )
    return sorted(row["id"] for row in read_rows(table))


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("engine", "bitmap64"),
    [*((e, "false") for e in ENGINES if e != "first-row"), ("deduplicate", "true")],
)
def test_what_is_written_to_a_table_with_deletion_vectors_is_seen_at_once(
    engine: str, bitmap64: str
) -> None:
    options = {**ENGINES[engine], **FEW_RUNS}
    plain = create_key_table(NUMBERED, **options)
    table = create_key_table(
        NUMBERED, **{**options, **VECTORS, "deletion-vectors.bitmap64": bitmap64}
    )
    for turn in range(7):
        for target in (plain, table):
            write_history(target, 1, seed=turn, with_deletes=engine == "deduplicate")

        assert state(table) == state(plain)
        assert len(set(visible_keys(table))) == len(visible_keys(table))
        check_levels_are_apart(table)
        assert 0 not in {level for level, _ in levels(table)}

    table.compact(full=True)

    assert state(table) == state(plain)
    assert index_entries(table) == []
    check_whole(table)


def test_deleted_rows_are_marked_where_they_stand() -> None:
    table = create_key_table(NUMBERED, **VECTORS)
    upsert(table, numbered(range(1000)))
    upsert(table, numbered([5, 7], "b"))
    upsert(table, numbered([9]), row_kind="-D")

    (entry,) = index_entries(table)
    top = max(live_files(table), key=lambda e: e.file.level).file
    (vector,) = entry.index_file.deletion_vectors or ()
    assert (vector.data_file_name, vector.cardinality) == (top.file_name, 3)
    assert len(state(table)) == 999


def test_what_is_written_to_a_first_row_table_is_seen_at_once() -> None:
    table = create_key_table(NUMBERED, **{"merge-engine": "first-row", **FEW_RUNS})
    first: dict[int, str] = {}
    chance = random.Random(1)
    for turn in range(12):
        ids = chance.sample(range(200), chance.choice([2, 40]))
        upsert(table, numbered(ids, f"{turn}/"))
        first = {**{n: f"{turn}/{n}" for n in ids}, **first}

        assert {row["id"]: row["v"] for row in read_rows(table)} == first
        assert visible_keys(table) == sorted(first)


def test_another_engine_compacts_a_write_only_table() -> None:
    table = create_key_table(NUMBERED, **{**VECTORS, "write-only": "true"})
    upsert(table, numbered([1, 2]))
    assert state(table) == []

    table.compact()

    assert len(state(table)) == 2


def test_an_overwrite_of_a_table_with_deletion_vectors_is_seen_at_once() -> None:
    table = create_key_table(NUMBERED, **VECTORS)
    upsert(table, numbered(range(100)))
    upsert(table, numbered([1], "b"))
    builder = table.new_batch_write_builder().overwrite()
    with builder.new_write() as write:
        write.write_arrow(read_arrow([{"id": 1, "v": "new", "n": 0}], table))
        builder.new_commit().commit(write.prepare_commit())

    assert state(table) == [("1", "'new'", "0")]
    assert index_entries(table) == []


def read_arrow(rows: list[dict[str, Any]], table: Table) -> Any:
    return pa.Table.from_pylist(rows, arrow_schema(tuple(table.fields)))


def test_two_writers_of_other_keys_of_one_bucket_both_are_seen() -> None:
    table = create_key_table(NUMBERED, **VECTORS)
    upsert(table, numbered(range(100)))
    one, two = (table.new_batch_write_builder() for _ in range(2))
    rows = [[(n, who, 1) for n in ids] for who, ids in (("one", range(4)), ("two", range(4, 8)))]
    first, second = (
        prepare(table, part, builder=b) for part, b in zip(rows, (one, two), strict=True)
    )

    one.new_commit().commit(first)
    two.new_commit().commit(second)

    found = {row["id"]: row["v"] for row in read_rows(table)}
    assert [found[n] for n in range(9)] == ["one"] * 4 + ["two"] * 4 + ["a8"]
    assert len(found) == 100
    check_whole(table)
    known = {table.store.data_file_path(e.partition, e.bucket, e.file) for e in all_entries(table)}
    assert data_files(table) == known


def all_entries(table: Table) -> list[Any]:
    store = table.store
    return [
        entry
        for i in store.snapshots.list_ids()
        for entry in store.manifests.read_manifests(
            delta_manifests_of(store, store.snapshots.load(i))
        ).entries()
    ]


def test_a_stream_that_prepares_before_it_commits_loses_nothing() -> None:
    table = create_key_table(NUMBERED, **VECTORS)
    builder = table.new_stream_write_builder("me")
    write, commit = builder.new_write(), builder.new_commit()
    prepared = []
    for turn in range(3):
        write.write_arrow(read_arrow(numbered([turn, 9], f"{turn}-"), table))
        prepared.append(write.prepare_commit(turn + 1))
    for turn, messages in enumerate(prepared):
        commit.commit(messages, turn + 1)
    write.write_arrow(read_arrow(numbered([3, 9], "3-"), table))
    commit.commit(write.prepare_commit(4), 4)

    assert {row["id"]: row["v"] for row in read_rows(table)} == {
        0: "0-0", 1: "1-1", 2: "2-2", 3: "3-3", 9: "3-9"
    }  # fmt: skip


# --- conflicts ------------------------------------------------------------------------------------


def test_rows_that_come_in_meanwhile_stay() -> None:
    table = create_key_table(NUMBERED)
    for turn in range(2):
        upsert(table, numbered([1, 2], f"{turn}-"))
    messages = prepare_compaction(table.store, table.latest_snapshot(), full=True, where=None)
    upsert(table, numbered([2, 3], "late"))

    Committer(table.store, "me").commit(compact_change(messages))

    assert {row["id"]: row["v"] for row in read_rows(table)} == {1: "1-1", 2: "late2", 3: "late3"}
    assert levels(table) == [(0, 2), (5, 2)]


def test_of_two_compactions_one_is_refused() -> None:
    table = create_key_table(NUMBERED)
    for turn in range(2):
        upsert(table, numbered([1, 2], f"{turn}-"))
    messages = prepare_compaction(table.store, table.latest_snapshot(), full=True, where=None)
    table.compact(full=True)
    before = state(table)

    with pytest.raises(CommitConflict) as caught:
        Committer(table.store, "me").commit(compact_change(messages))

    assert caught.value.reason is ConflictReason.FILE_DELETED_ELSEWHERE
    assert state(table) == before


@pytest.mark.parametrize("has_vectors_before", [True, False])
def test_rows_that_are_deleted_meanwhile_do_not_come_back(has_vectors_before: bool) -> None:
    table = create_table(options=VECTORS)
    append(table, rows_of(range(10)))
    append(table, rows_of(range(10, 20)))
    one, two = (entry.file.file_name for entry in live_files(table))
    if has_vectors_before:
        delete_rows(table, {one: [1]})
    messages = prepare_compaction(table.store, table.latest_snapshot(), full=True, where=None)
    delete_rows(table, {one: [1, 2], two: [3]})
    before = read(table)

    with pytest.raises(CommitConflict) as caught:
        Committer(table.store, "me").commit(compact_change(messages))

    assert caught.value.reason is ConflictReason.DELETION_VECTOR_CHANGED
    assert read(table) == before


class RacingStorage(MemoryStorage):
    """Lets somebody else in right before the first snapshot is published."""

    def __init__(self) -> None:
        super().__init__()
        self.race: Any = None

    def put_if_absent(self, path: str, data: bytes, after: Sequence[str] = ()) -> bool:
        if "/snapshot-" in path and self.race is not None:
            race, self.race = self.race, None
            race()
        return super().put_if_absent(path, data, after)


def test_a_refused_compaction_leaves_no_files() -> None:
    storage = RacingStorage()
    table = create_table(storage)
    for n in range(6):
        append(table, rows_of([n]))
    storage.race = lambda: open_table(storage).compact()

    with pytest.raises(CommitConflict):
        table.compact()

    assert len(data_files(table)) == 7
    assert [row["id"] for row in read(table)] == list(range(6))


# --- append tables --------------------------------------------------------------------------------


def test_small_files_of_an_append_table_become_one() -> None:
    table = create_table()
    for n in range(6):
        append(table, rows_of([n, n + 10]))
    before = read(table)

    result = table.compact()

    assert read(table) == before
    (entry,) = live_files(table)
    assert (entry.file.row_count, entry.file.file_source) == (12, FileSource.COMPACT)
    assert (result.files_added, result.files_deleted) == (1, 6)
    snapshot = table.latest_snapshot()
    assert snapshot is not None
    assert snapshot.commit_kind is CommitKind.COMPACT


def test_few_small_files_stay_unless_all_is_to_be_compacted() -> None:
    table = create_table()
    for n in range(4):
        append(table, rows_of([n]))

    assert table.compact().snapshot_id is None
    assert table.compact(full=True).files_deleted == 4
    assert table.compact(full=True).snapshot_id is None


def test_large_files_of_an_append_table_stay() -> None:
    table = create_table(options={"target-file-size": "1 b"})
    for n in range(6):
        append(table, rows_of([n]))

    assert table.compact().snapshot_id is None


@pytest.mark.parametrize("full", [True, False])
def test_deleted_rows_of_an_append_table_are_dropped_with_their_vectors(full: bool) -> None:
    table = create_table(options=VECTORS)
    for n in range(3):
        append(table, rows_of(range(n * 10, n * 10 + 10)))
    one, two, _ = (entry.file.file_name for entry in live_files(table))
    delete_rows(table, {one: [0, 1, 2], two: [5]})
    before = read(table)

    table.compact(full=full)

    assert read(table) == before
    assert index_entries(table) == []
    assert sum(entry.file.row_count for entry in live_files(table)) == 26
    check_whole(table)


def test_vectors_of_files_that_stay_are_kept() -> None:
    table = create_table(partition_keys=["day"], options=VECTORS)
    append(table, [*rows_of(range(10)), *rows_of(range(10), "tue")])
    delete_rows(table, {entry.file.file_name: [3] for entry in live_files(table)})
    before = read(table)

    table.compact(full=True, where="day = 'tue'")

    assert read(table) == before
    assert len(index_entries(table)) == 1


def test_rows_of_a_bucket_stay_in_order() -> None:
    table = create_table(options={"bucket": "1", "bucket-key": "id"})
    for n in range(7):
        append(table, rows_of([n, -n]))
    before = read_rows(table)

    table.compact()
    append(table, rows_of([100]))

    assert read_rows(table) == [*before, {"id": 100, "day": "mon"}]
    assert [
        (f.file.min_sequence_number, f.file.max_sequence_number) for f in live_files(table)
    ] == [
        (0, 13),
        (14, 14),
    ]


def test_an_append_that_comes_in_during_a_compaction_stays() -> None:
    storage = RacingStorage()
    table = create_table(storage)
    for n in range(6):
        append(table, rows_of([n]))
    storage.race = lambda: append(open_table(storage), rows_of([100]))

    result = table.compact()

    assert result.retries == 1
    assert [row["id"] for row in read(table)] == [*range(6), 100]
    assert len(live_files(table)) == 2


# --- failures -------------------------------------------------------------------------------------


class FailingStorage(MemoryStorage):
    """Fails to open files for writing, and to put others, once a number of them has been."""

    def __init__(self) -> None:
        super().__init__()
        self.left: int | None = None

    def open_output(self, path: str, target: int | None = None) -> Any:
        self._count()
        return super().open_output(path, target)

    def put_if_absent(self, path: str, data: bytes, after: Sequence[str] = ()) -> bool:
        self._count()
        return super().put_if_absent(path, data, after)

    def _count(self) -> None:
        if self.left is not None:
            self.left -= 1
            if self.left < 0:
                raise StorageError("no room")


@pytest.mark.parametrize("succeeding", range(4))
def test_a_compaction_that_fails_leaves_no_files(succeeding: int) -> None:
    storage = FailingStorage()
    table = create_key_table_in(storage, {"bucket": "3"})
    for turn in range(2):
        upsert(table, numbered(range(20), f"{turn}-"))
    before, files = state(table), data_files(table)

    storage.left = succeeding
    with pytest.raises((StorageError, CommitUnknown)):
        table.compact(full=True)
    storage.left = None

    assert state(table) == before
    if succeeding < 3:  # not yet what the commit writes
        assert data_files(table) == files
    assert table.compact(full=True).files_deleted == 6
    assert state(table) == before


@pytest.mark.parametrize("succeeding", range(2, 4))
def test_a_write_whose_compaction_fails_leaves_no_files(succeeding: int) -> None:
    storage = FailingStorage()
    table = create_key_table_in(storage, {**VECTORS, "bucket": "2"})
    upsert(table, numbered(range(200)))
    upsert(table, numbered(range(20), "b"))
    before, files = state(table), data_files(table)
    write = table.new_batch_write_builder().new_write()
    write.write_arrow(read_arrow(numbered(range(0, 200, 3), "c"), table))

    storage.left = succeeding
    with pytest.raises(StorageError):
        write.prepare_commit()
    storage.left = None

    assert data_files(table) == files
    assert state(table) == before
    with pytest.raises(InvalidState):
        write.prepare_commit()


def create_key_table_in(storage: MemoryStorage, options: dict[str, str]) -> Table:
    catalog = open_catalog(storage)
    catalog.create_database("db", ignore_if_exists=True)
    catalog.create_table(
        NAME, Schema.from_pyarrow_schema(NUMBERED, primary_keys=["id"], options=options)
    )
    return catalog.get_table(NAME)
