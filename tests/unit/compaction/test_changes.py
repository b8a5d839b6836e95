"""What a compaction changes in the rows of a key, and the files that tell readers of changes."""

from collections.abc import Mapping
from typing import Any

import pytest

from builders import (
    NUMBERED,
    alter,
    append,
    create_key_table,
    numbered,
    open_table,
    overwrite,
    prepare,
    upsert,
)
from changelogs import changed, changes_of, check_replay, is_recorded, replayed
from emberlake import SchemaChange, Table
from emberlake.commit.change import append_change
from emberlake.commit.committer import Committer
from emberlake.compaction import changes
from emberlake.errors import CommitConflict, InvalidOption, InvalidSchema, StorageError
from emberlake.formats import format_of
from emberlake.io import MemoryStorage
from emberlake.spec.manifest import DataFile, FileSource
from emberlake.spec.snapshot import CommitKind, Snapshot
from table_reads import (
    check_whole,
    data_files,
    latest_snapshot,
    left_over,
    live_files,
    read,
    read_rows,
    records_of,
)
from watched_storage import Call, WatchedStorage

LOOKUP = {"changelog-producer": "lookup"}
FULL = {"changelog-producer": "full-compaction"}
EVERY = {**FULL, "full-compaction.delta-commits": "1"}
VECTORS = {"deletion-vectors.enabled": "true"}
# Small files on low levels stay there, and change their level without being rewritten.
APART = {"compaction.size-ratio": "0"}
AS_THEY_ARE = {"compaction.small-file-ratio": "0"}
SUM = {"merge-engine": "aggregation", "fields.n.aggregate-function": "sum"}
PARTIAL = {"merge-engine": "partial-update", "partial-update.remove-record-on-delete": "true"}


def levels(table: Table) -> list[int]:
    return sorted(entry.file.level for entry in live_files(table))


def snapshots(table: Table) -> list[Snapshot]:
    store = table.store.snapshots
    return [store.load(n) for n in store.list_ids()]


def changelog_files(table: Table, snapshot: Snapshot | None = None) -> list[DataFile]:
    manifests, found = table.store.manifests, snapshot or latest_snapshot(table)
    assert found.changelog_manifest_list is not None
    entries = manifests.read_manifests(manifests.read_list(found.changelog_manifest_list))
    return [entry.file for entry in entries.entries()]


def with_a_large_top(**options: str) -> Table:
    """A table with many rows on the highest level, so that the next writes stay below it."""
    table = create_key_table(NUMBERED, **options)
    upsert(table, numbered(range(3000), number=1))
    table.compact(full=True)
    return table


# --- lookup ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("options", [{}, VECTORS, AS_THEY_ARE, {**VECTORS, **AS_THEY_ARE}])
def test_a_write_records_what_it_changes_in_rows_on_any_level(options: Mapping[str, str]) -> None:
    table = with_a_large_top(**LOOKUP, **APART, **options)
    before = len(list(changes_of(table)))

    upsert(table, [*numbered([7, 9], "b"), *numbered([5000], "new")])
    upsert(table, numbered([9], "c"))
    upsert(table, numbered([7, 8, 6000]), row_kind="-D")
    upsert(table, numbered([7], "d"))

    found = list(changes_of(table))[before:]
    assert found == [
        [
            ["-U", 7, "a7", 1],
            ["+U", 7, "b7", 0],
            ["-U", 9, "a9", 1],
            ["+U", 9, "b9", 0],
            ["+I", 5000, "new5000", 0],
        ],
        [["-U", 9, "b9", 0], ["+U", 9, "c9", 0]],
        [["-D", 7, "b7", 0], ["-D", 8, "a8", 1]],
        [["+I", 7, "d7", 0]],
    ]
    assert 0 not in levels(table)
    assert len(levels(table)) > 1  # some are below the large file
    assert {row["id"]: row["v"] for row in read_rows(table)} == {
        **{n: f"a{n}" for n in range(3000) if n != 8},
        7: "d7",
        9: "c9",
        5000: "new5000",
    }
    check_whole(table)


@pytest.mark.parametrize("options", [{}, VECTORS])
def test_rows_are_built_of_the_row_above_wherever_it_is(options: Mapping[str, str]) -> None:
    table = with_a_large_top(**LOOKUP, **APART, **SUM, **options)
    before = len(list(changes_of(table)))

    for number in (10, 100, 1000):
        upsert(table, numbered([7], "b", number))

    # The number on a lower level is the whole sum: whoever read the one above would count it twice.
    found = list(changes_of(table))[before:]
    assert [[row[3] for row in rows] for rows in found] == [[1, 11], [11, 111], [111, 1111]]
    assert len(set(levels(table))) > 1
    assert [row["n"] for row in read_rows(table, "id = 7")] == [1111]
    table.compact(full=True)
    assert [row["n"] for row in read_rows(table, "id = 7")] == [1111]
    assert len(list(changes_of(table))) == before + 3  # moving rows up changes nothing


ENGINES: dict[str, tuple[dict[str, str], list[tuple[str, Any]], list[str]]] = {
    "first-row": (
        {"merge-engine": "first-row", "ignore-delete": "true"},
        [("+I", (1, "a", 1)), ("+I", (1, "b", 2)), ("-D", (1, "c", 3)), ("+U", (2, "d", 4))],
        ["+I 1 a 1", "+I 2 d 4"],
    ),
    "sequence.field": (
        {"sequence.field": "n"},
        [("+I", (1, "a", 5)), ("+I", (1, "late", 1)), ("-D", (1, "late", 2)), ("-D", (1, "x", 9))],
        ["+I 1 a 5", "-U 1 a 5", "+U 1 a 5", "-U 1 a 5", "+U 1 a 5", "-D 1 a 5"],
    ),
    "ignore-delete": (
        {"ignore-delete": "true"},
        [("+I", (1, "a", 1)), ("-D", (1, "b", 2)), ("+I", (1, "c", 3))],
        ["+I 1 a 1", "-U 1 a 1", "+U 1 c 3"],
    ),
    "partial-update": (
        PARTIAL,
        [
            ("+I", (1, "a", None)),
            ("+I", (1, None, 2)),
            ("-D", (1, None, None)),
            ("+I", (1, "b", 1)),
        ],
        ["+I 1 a -", "-U 1 a -", "+U 1 a 2", "-D 1 a 2", "+I 1 b 1"],
    ),
    "aggregation": (
        {**SUM, "fields.v.ignore-retract": "true"},
        [("+I", (1, "a", 1)), ("+I", (1, "b", 2)), ("-D", (1, "c", 4)), ("+I", (2, "a", 1))],
        ["+I 1 a 1", "-U 1 a 1", "+U 1 b 3", "-U 1 b 3", "+U 1 b -1", "+I 2 a 1"],
    ),
    "rows that stay equal": (
        {"changelog-producer.row-deduplicate": "true"},
        [("+I", (1, "a", 1)), ("+I", (1, "a", 1)), ("+I", (1, "a", None)), ("+I", (1, "a", None))],
        ["+I 1 a 1", "-U 1 a 1", "+U 1 a -"],
    ),
    "columns that do not count": (
        {
            "changelog-producer.row-deduplicate": "true",
            "changelog-producer.row-deduplicate-ignore-fields": "n",
        },
        [("+I", (1, "a", 1)), ("+I", (1, "a", 2)), ("+I", (1, "b", 2))],
        ["+I 1 a 1", "-U 1 a 2", "+U 1 b 2"],
    ),
}


@pytest.mark.parametrize(
    ("name", "producer"),
    [
        (name, producer)
        for name in ENGINES
        for producer in ("lookup", "lookup and vectors", "full-compaction")
        if name != "first-row" or producer == "lookup"  # the format does not combine the others
    ],
)
def test_every_engine_says_what_becomes_of_a_row(name: str, producer: str) -> None:
    engine, writes, expected = ENGINES[name]
    options = EVERY if producer == "full-compaction" else LOOKUP
    options = {**options, **(VECTORS if "vectors" in producer else {})}
    table = create_key_table(NUMBERED, **options, **engine)

    for kind, row in writes:
        upsert(table, [row], row_kind=kind)

    assert changed(table) == expected
    assert is_recorded(table)
    check_whole(table)


def test_nothing_changes_if_no_column_counts() -> None:
    ignored = {"changelog-producer.row-deduplicate-ignore-fields": "id,v,n"}
    table = create_key_table(
        NUMBERED, **LOOKUP, **ignored, **{"changelog-producer.row-deduplicate": "true"}
    )

    upsert(table, numbered([1], "a"))
    upsert(table, numbered([1], "b"))

    assert changed(table) == ["+I 1 a1 0"]
    assert [row["v"] for row in read_rows(table)] == ["b1"]


def test_records_of_one_write_make_one_change() -> None:
    table = create_key_table(NUMBERED, **LOOKUP)
    upsert(table, [*numbered([1, 2]), *numbered([2], "b"), *numbered([3])])
    with table.new_batch_write_builder().new_write() as writer:
        for rows, kind in (([1], "-D"), ([1], "+I"), ([2], "-D"), ([4], "+I"), ([4], "-D")):
            writer.write_arrow(table.to_arrow().schema.empty_table())
            writer.write_arrow(_arrow(table, numbered(rows, "z")), kind)
        table.new_batch_write_builder().new_commit().commit(writer.prepare_commit())

    first, second = changes_of(table)
    assert first == [["+I", 1, "a1", 0], ["+I", 2, "b2", 0], ["+I", 3, "a3", 0]]
    assert second == [["-U", 1, "a1", 0], ["+U", 1, "z1", 0], ["-D", 2, "b2", 0]]


def _arrow(table: Table, rows: Any) -> Any:
    return table.to_arrow().schema.empty_table().from_pylist(rows, table.to_arrow().schema)


# --- full-compaction ------------------------------------------------------------------------------


def test_only_full_compactions_record_what_changed_since_the_last_one() -> None:
    table = create_key_table(NUMBERED, **FULL, **SUM)
    upsert(table, numbered([1, 2], number=1))
    upsert(table, numbered([2], number=10))
    assert changed(table) == []
    assert levels(table) == [0, 0]

    table.compact(full=True)
    upsert(table, numbered([2, 3], number=100))
    upsert(table, numbered([2], number=1000))
    assert changed(table) == ["+I 1 a1 1", "+I 2 a2 11"]
    table.compact(full=True)

    later = ["-U 2 a2 11", "+U 2 a2 1111", "+I 3 a3 100"]
    assert changed(table) == ["+I 1 a1 1", "+I 2 a2 11", *later]
    table.compact(full=True)
    assert latest_snapshot(table).id == 7 - 1  # nothing to do
    check_whole(table)


def test_a_compaction_below_the_highest_level_records_nothing_yet() -> None:
    table = with_a_large_top(**FULL, **APART, **{"num-sorted-run.compaction-trigger": "2"})
    for _ in range(3):
        upsert(table, numbered([7], "b"))
    table.compact()
    top = max(levels(table))

    assert [n for n in levels(table) if 0 < n < top]
    assert len(list(changes_of(table))) == 1
    table.compact(full=True)
    assert list(changes_of(table))[1:] == [[["-U", 7, "a7", 1], ["+U", 7, "b7", 0]]]


def test_every_batch_compacts_fully_where_the_option_asks_for_it() -> None:
    table = create_key_table(NUMBERED, **FULL, **{"full-compaction.delta-commits": "3"})

    upsert(table, numbered([1]))
    upsert(table, numbered([1], "b"))

    assert [s.commit_kind for s in snapshots(table)] == [CommitKind.APPEND, CommitKind.COMPACT] * 2
    assert changed(table) == ["+I 1 a1 0", "-U 1 a1 0", "+U 1 b1 0"]
    assert set(levels(table)) == {5}
    overwrite(table, numbered([2]))
    assert len(list(changes_of(table))) == 2  # an overwrite has no changelog
    assert set(levels(table)) == {5}


def test_every_nth_commit_of_a_stream_compacts_everything_that_waits() -> None:
    options = {**FULL, "full-compaction.delta-commits": "3", "bucket": "2"}
    table = create_key_table(NUMBERED, **options)
    builder = table.new_stream_write_builder("me")
    commit = builder.new_commit()

    with builder.new_write() as writer:
        for identifier in range(1, 7):
            # The last commit writes to one bucket: the other one is compacted, too.
            ids = range(identifier, identifier + 5) if identifier % 3 else [1]
            writer.write_arrow(_arrow(table, numbered(ids, f"{identifier}-")))
            commit.commit(writer.prepare_commit(identifier), identifier)
            is_compacted = set(levels(table)) == {5}
            assert is_compacted is (identifier % 3 == 0)

    kinds = [(s.commit_kind, s.commit_identifier) for s in snapshots(table)]
    assert [n for kind, n in kinds if kind is CommitKind.COMPACT] == [3, 6]
    assert replayed(table) == [["+I", *row.values()] for row in read(table)]


def test_a_commit_without_rows_takes_up_what_earlier_commits_left() -> None:
    table = create_key_table(NUMBERED, **FULL, **{"full-compaction.delta-commits": "2"})
    builder = table.new_stream_write_builder("me")
    commit = builder.new_commit()
    with builder.new_write() as writer:
        writer.write_arrow(_arrow(table, numbered([1])))
        commit.commit(writer.prepare_commit(1), 1)

        commit.commit(writer.prepare_commit(2), 2)
        commit.commit(writer.prepare_commit(4), 4)

    kinds = [(s.commit_kind, s.commit_identifier) for s in snapshots(table)]
    assert kinds == [(CommitKind.APPEND, 1), (CommitKind.COMPACT, 2)]
    assert changed(table) == ["+I 1 a1 0"]


@pytest.mark.parametrize(("before", "after"), [("6", "9"), ("9", "3")])
def test_another_number_of_levels_makes_no_row_new(before: str, after: str) -> None:
    table = create_key_table(NUMBERED, **FULL, **{"num-levels": before})
    upsert(table, numbered([1, 2]))
    table.compact(full=True)
    table = alter(table, SchemaChange.set_option("num-levels", after))
    upsert(table, numbered([1]), row_kind="-D")
    stream = table.new_stream_read_builder()
    scan = stream.new_streaming_scan()

    start = scan.plan()
    assert start is not None
    table.compact(full=True)

    # A stream begins with the rows whose changes are recorded.
    found = stream.new_read().to_arrow(start.splits())
    assert sorted(found.column("id").to_pylist()) == [1, 2]
    assert changed(table) == ["+I 1 a1 0", "+I 2 a2 0", "-D 1 a1 0"]


# --- another producer -----------------------------------------------------------------------------


@pytest.mark.parametrize("engine", [SUM, PARTIAL, {"sequence.field": "n"}])
@pytest.mark.parametrize(("before", "after"), [("none", "lookup"), ("lookup", "none")])
def test_rows_on_several_levels_keep_their_meaning(
    engine: Mapping[str, str], before: str, after: str
) -> None:
    options = {**APART, **engine, "changelog-producer": before}
    table = with_a_large_top(**options, **{"num-sorted-run.compaction-trigger": "2"})
    change = SchemaChange.set_option("changelog-producer", after)
    earlier = latest_snapshot(table).id
    for number in (10, 100):
        upsert(table, numbered([7], "b", number))
    table.compact()
    assert len(set(levels(table)) - {0}) == 2
    mixed = latest_snapshot(table).id

    with pytest.raises(InvalidSchema, match=r"\(in 1 bucket\): compact the table fully"):
        alter(table, change)
    with pytest.raises(InvalidOption, match="alter the table"):
        table.copy({"changelog-producer": after})

    table.compact(full=True)
    rows = read_rows(table, "id = 7")
    table = alter(table, change)
    assert read_rows(table, "id = 7") == rows
    with pytest.raises(InvalidSchema, match=f"snapshot {mixed} has such rows"):
        table.rollback_to(mixed)
    table.rollback_to(earlier)
    assert [row["n"] for row in read_rows(table, "id = 7")] == [1]


def test_rows_that_depend_on_no_older_ones_mean_the_same_with_any_producer() -> None:
    table = with_a_large_top(**APART, **{"num-sorted-run.compaction-trigger": "2"})
    upsert(table, numbered([7], "b"))
    upsert(table, numbered([8], "b"))
    table.compact()
    assert len(set(levels(table)) - {0}) == 2

    table = alter(table, SchemaChange.set_option("changelog-producer", "lookup"))
    upsert(table, numbered([7], "c"))

    assert changed(table) == ["-U 7 b7 0", "+U 7 c7 0"]


# --- files ----------------------------------------------------------------------------------------


def test_changelog_files_are_what_their_options_say() -> None:
    options = {
        "changelog-file.prefix": "delta-",
        "changelog-file.format": "avro",
        "changelog-file.compression": "snappy",
        "changelog-file.stats-mode": "none",
        "file.suffix.include.compression": "true",
    }
    table = create_key_table(NUMBERED, **LOOKUP, **options)
    upsert(table, numbered(range(3)))

    upsert(table, numbered([0, 5], "b"))

    snapshot = latest_snapshot(table)
    (file,) = changelog_files(table)
    assert snapshot.commit_kind is CommitKind.COMPACT
    assert snapshot.changelog_record_count == file.row_count == 3
    assert file.file_name.startswith("delta-")
    assert file.file_name.endswith(".snappy.avro")
    assert (file.level, file.file_source, file.delete_row_count) == (4, FileSource.APPEND, 1)
    assert file.value_stats_cols == ()
    assert (file.min_sequence_number, file.max_sequence_number) == (0, 4)
    entry = next(e for e in live_files(table) if e.file.level == 4)
    assert format_of(entry.file.file_name) == "parquet"
    assert records_of(table, entry.partition, entry.bucket, file) == [
        (0, "a0", 0, 0, "-U"),
        (0, "b0", 0, 3, "+U"),
        (5, "b5", 0, 4, "+I"),
    ]


def test_large_changelogs_are_cut_into_files_in_key_order(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(changes, "_GROUP_ROWS", 2)
    table = create_key_table(NUMBERED, **LOOKUP, **{"target-file-row-num": "2"})

    upsert(table, numbered([4, 1, 3, 0, 2]))

    assert [file.row_count for file in changelog_files(table)] == [2, 2, 1]
    assert [row[1] for rows in changes_of(table) for row in rows] == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("part", ["/changelog-", "/index/"])
@pytest.mark.parametrize("options", [{}, AS_THEY_ARE])
def test_a_compaction_that_fails_leaves_no_files(options: Mapping[str, str], part: str) -> None:
    storage = MemoryStorage()
    table = create_key_table(NUMBERED, storage=storage, **LOOKUP, **VECTORS, **options)
    upsert(table, numbered(range(10)))
    before = data_files(table)
    watched = WatchedStorage(storage)

    def fail(call: Call) -> None:
        if part in call.path and not call.method.startswith(("delete", "open_input")):
            raise StorageError(f"injected: {call}")

    watched.watch = fail
    with pytest.raises(StorageError, match="injected"):
        prepare(open_table(watched), numbered([3], "b"))

    watched.watch = lambda _: None
    assert data_files(table) == before


def test_messages_that_are_aborted_take_their_changelog_files_along() -> None:
    table = create_key_table(NUMBERED, **LOOKUP)
    upsert(table, numbered([1]))
    before = data_files(table)
    builder = table.new_batch_write_builder()
    messages = prepare(table, numbered([1], "b"), builder=builder)
    assert [len(m.compact_changelog_files) for m in messages] == [1]

    builder.new_commit().abort(messages)

    assert data_files(table) == before
    assert left_over(table) == set()


# --- others ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("producer", [LOOKUP, EVERY])
@pytest.mark.parametrize("options", [{}, AS_THEY_ARE])
def test_a_writer_that_loses_looks_up_what_the_other_has_written(
    producer: Mapping[str, str], options: Mapping[str, str]
) -> None:
    # Where the rows say which is newer, two writers of one key do not exclude each other.
    table = create_key_table(NUMBERED, **producer, **options, **{"sequence.field": "n"})
    upsert(table, numbered([1, 2], number=1))
    builder = table.new_batch_write_builder()
    ours = prepare(table, numbered([2, 3], "ours", 2), builder=builder)
    upsert(table, numbered([2, 3], "theirs", 3))

    builder.new_commit().commit(ours)

    found = [row for row in changed(table) if not row.startswith("+I")]
    mine = ["-U 2 theirs2 3", "+U 2 theirs2 3", "-U 3 theirs3 3", "+U 3 theirs3 3"]
    assert found == ["-U 2 a2 1", "+U 2 theirs2 3", *mine]
    assert replayed(table) == [["+I", *row.values()] for row in read(table)]
    assert left_over(table) == set()  # the changelog of the lost attempt is gone
    check_whole(table)


def test_a_compaction_that_knew_fewer_levels_is_done_again() -> None:
    table = with_a_large_top(**LOOKUP, **APART, **{"sequence.field": "n"})
    upsert(table, numbered(range(4000, 4300), number=1))
    builder = table.new_batch_write_builder()
    ours = prepare(table, numbered([*range(4100, 4900), 9000], "ours", 2), builder=builder)
    upsert(table, numbered([9000], "theirs", 3))
    assert [level for level in levels(table) if level < 5] == [3, 4]
    assert {file.level for m in ours for file in m.compact_after} == {4}

    builder.new_commit().commit(ours)

    # No file was taken twice, and no level overlaps. But the row was not new any more.
    assert [row for row in changed(table) if " 9000 " in row] == [
        "+I 9000 theirs9000 3",
        "-U 9000 theirs9000 3",
        "+U 9000 theirs9000 3",
    ]
    check_replay(table)
    assert left_over(table) == set()


def test_a_writer_of_the_same_rows_is_refused_as_in_any_table() -> None:
    table = create_key_table(NUMBERED, **LOOKUP)
    builder = table.new_batch_write_builder()
    ours = prepare(table, numbered([1], "ours"), builder=builder)
    upsert(table, numbered([1], "theirs"))

    with pytest.raises(CommitConflict):
        builder.new_commit().commit(ours)

    assert changed(table) == ["+I 1 theirs1 0"]


def test_a_compaction_job_finds_the_changes_of_writers_that_do_not_compact() -> None:
    table = create_key_table(NUMBERED, **LOOKUP, **{"write-only": "true"})
    upsert(table, numbered([1, 2]))
    upsert(table, numbered([2], "b"))
    upsert(table, numbered([1]), row_kind="-D")
    assert changed(table) == []

    table.compact()
    upsert(table, numbered([1, 2], "c"))
    table.compact()

    assert changed(table) == ["+I 2 b2 0", "+I 1 c1 0", "-U 2 b2 0", "+U 2 c2 0"]


def test_two_compactions_do_not_record_the_same_changes() -> None:
    table = create_key_table(NUMBERED, **LOOKUP, **{"write-only": "true"})
    upsert(table, numbered([1, 2]))
    upsert(table, numbered([2], "b"))
    inner = table.store.storage
    watched = WatchedStorage(inner)
    is_beaten = False

    def compact_first(call: Call) -> None:
        nonlocal is_beaten
        if not is_beaten and "/changelog-" in call.path and call.method != "delete":
            is_beaten = True
            open_table(inner).compact()

    watched.watch = compact_first
    with pytest.raises(CommitConflict):
        open_table(watched).compact()

    assert is_beaten
    assert changed(table) == ["+I 1 a1 0", "+I 2 b2 0"]
    assert left_over(table) == set()


@pytest.mark.parametrize("options", [{"bucket": "-1"}, {"bucket": "-2"}])
def test_buckets_that_are_given_later_have_changes_too(options: Mapping[str, str]) -> None:
    table = create_key_table(NUMBERED, **LOOKUP, **options)
    for ids, value in (([1, 2], "a"), ([2, 3], "b")):
        upsert(table, numbered(ids, value))
        table.compact()
    upsert(table, numbered([3]), row_kind="-D")
    table.compact()

    assert sorted(changed(table)) == sorted(
        ["+I 1 a1 0", "+I 2 a2 0", "-U 2 a2 0", "+U 2 b2 0", "+I 3 b3 0", "-D 3 b3 0"]
    )


def test_an_overwrite_has_no_changelog() -> None:
    table = create_key_table(NUMBERED, **LOOKUP)
    upsert(table, numbered([1, 2]))

    overwrite(table, numbered([2], "b"))
    upsert(table, numbered([2], "c"))

    assert changed(table) == ["+I 1 a1 0", "+I 2 a2 0", "-U 2 b2 0", "+U 2 c2 0"]
    assert left_over(table) == set()
    assert [row["v"] for row in read_rows(table)] == ["c2"]


def test_older_rows_with_higher_numbers_win_in_reads_and_in_changes() -> None:
    # Another engine's writers may reuse low numbers. Then a file must not just change its level.
    table = with_a_large_top(**LOOKUP, **APART, **AS_THEY_ARE)
    before = len(list(changes_of(table)))
    overwriting = table.copy({"write-only": "true"}).new_batch_write_builder().overwrite()
    messages = prepare(table, numbered([7], "low"), builder=overwriting)
    Committer(table.store, "other").commit(append_change(messages))

    table.compact()

    assert [row["v"] for row in read_rows(table, "id = 7")] == ["a7"]
    assert list(changes_of(table))[before:] == [[["-U", 7, "a7", 1], ["+U", 7, "a7", 1]]]


def test_reads_of_changes_agree() -> None:
    table = create_key_table(NUMBERED, **LOOKUP)
    upsert(table, numbered([1, 2]))
    upsert(table, numbered([2], "b"))
    append(table, numbered([1]), row_kind="-D")

    builder = table.copy({"incremental-between": "2,6"}).new_read_builder()
    rows = builder.new_read().to_arrow(builder.new_scan().plan().splits()).to_pylist()

    # Without kinds, a reader of changes gets the rows that came.
    assert [row["v"] for row in rows] == ["b2"]
    stream = table.new_stream_read_builder().with_include_row_kind()
    scan = stream.new_streaming_scan()
    plan = scan.plan()
    assert plan is not None
    start = stream.new_read().to_arrow(plan.splits()).to_pylist()
    assert [(row["_row_kind"], row["v"]) for row in start] == [("+I", "b2")]
    assert scan.plan() is None
