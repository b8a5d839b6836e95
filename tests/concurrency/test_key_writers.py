"""Writers of one primary-key table that do not know of each other: the order of commits decides.

Each numbers the rows of a bucket from what it finds there, and the larger number wins, key by key.
Two that have begun at once give the same numbers, so the second one to commit is refused.
"""

from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import cache
from typing import Any

import pytest

from builders import FakeEnv, Row, copy_of, create_key_table, data_of, open_table, prepare, upsert
from emberlake.base.requests import settle
from emberlake.commit.change import CommitResult
from emberlake.errors import CommitConflict, ConflictReason
from emberlake.io import MemoryStorage
from emberlake.table import Table
from emberlake.wire import CommitMessage
from table_reads import (
    check_whole,
    data_files,
    live_files,
    manifest_files,
    read,
    referenced_manifests,
)
from watched_storage import Call, WatchedStorage

OLD = [(n, "old") for n in range(10)]
COUNTED = {"id": "BIGINT", "n": "BIGINT"}
VECTORS = {"deletion-vectors.enabled": "true"}
FIRST_ROW = {"merge-engine": "first-row"}
PARTIAL = {"merge-engine": "partial-update"}


def commit(table: Table, messages: list[CommitMessage]) -> CommitResult:
    return table.new_batch_write_builder().new_commit().commit(messages)


def overwrite(table: Table, rows: list[Row]) -> CommitResult:
    builder = table.new_batch_write_builder().overwrite()
    return builder.new_commit().commit(prepare(table, rows, builder=builder))


def truncate(table: Table) -> CommitResult:
    return table.new_batch_write_builder().new_commit().truncate_table()


def expire(table: Table, *snapshot_ids: int) -> None:
    for snapshot_id in snapshot_ids:
        table.store.snapshots.delete(snapshot_id)
    table.store.snapshots.write_earliest_hint(max(snapshot_ids) + 1)


def rows_in(table: Table) -> list[Row]:
    return [tuple(row.values()) for row in read(table)]


def with_old_rows(**options: str) -> Table:
    table = create_key_table(**options)
    upsert(table, OLD)
    return table


def changed(*changes: Iterable[Row]) -> list[Row]:
    """The old rows with what others put in their place, one after the other."""
    return sorted({row[0]: row for rows in (OLD, *changes) for row in rows}.values())


def check_refused(table: Table, messages: list[CommitMessage]) -> CommitConflict:
    """A commit is refused, changes nothing and leaves no manifests; it can be undone."""
    before, manifests = rows_in(table), manifest_files(table)
    with pytest.raises(CommitConflict) as caught:
        commit(table, messages)
    assert caught.value.reason is ConflictReason.SEQUENCE_NUMBERS_TAKEN
    assert rows_in(table) == before
    assert manifest_files(table) == manifests
    table.new_batch_write_builder().new_commit().abort(messages)
    check_whole(table)
    return caught.value


# --- the same keys --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"merge-engine": "aggregation"},
        PARTIAL,
        VECTORS,
        {"bucket": "-1"},
        {"changelog-producer": "input"},
    ],
    ids=str,
)
def test_of_two_writers_of_the_same_keys_only_the_first_to_commit_lands(options: dict[str, str]):
    table = with_old_rows(**options)
    files = data_files(table)
    mine = prepare(table, [(1, "mine"), (2, "mine")])
    theirs = prepare(table, [(2, "theirs"), (1, "theirs")])
    commit(table, theirs)
    before = rows_in(table)

    conflict = check_refused(table, mine)

    assert "goes up to 11" in conflict.detail
    assert "begins with 10" in conflict.detail
    assert "with a new writer" in conflict.remedy
    assert "sequence.field" in conflict.remedy
    assert files < data_files(table)
    upsert(table, [(1, "again")])
    assert rows_in(table) == sorted({**dict(before), 1: "again"}.items())


def test_a_row_that_came_first_is_not_replaced_by_who_did_not_know_of_it():
    table = with_old_rows(**FIRST_ROW)
    mine = prepare(table, [(20, "mine"), (21, "mine")])
    upsert(table, [(21, "theirs"), (22, "theirs")])

    check_refused(table, mine)

    assert rows_in(table) == changed([(21, "theirs"), (22, "theirs")])


def test_rows_that_came_too_late_and_are_gone_do_no_harm():
    table = with_old_rows(**FIRST_ROW)
    mine = prepare(table, [(1, "mine"), (20, "mine")])
    upsert(table, [(1, "theirs")])

    commit(table, mine)

    assert rows_in(table) == changed([(20, "mine")])


def test_the_first_two_writers_of_a_table_are_no_exception():
    table = create_key_table()
    mine, theirs = (prepare(table, [(1, who)]) for who in ("mine", "theirs"))
    commit(table, theirs)

    check_refused(table, mine)

    assert rows_in(table) == [(1, "theirs")]


@pytest.mark.also_on_s3
def test_a_delete_is_not_undone_by_who_did_not_know_of_it():
    table = with_old_rows()
    mine = prepare(table, [(1, "mine")])
    upsert(table, [(1, "gone")], row_kind="-D")

    check_refused(table, mine)


def test_a_writer_that_begins_after_the_commit_of_another_lands():
    table = with_old_rows()
    with table.new_batch_write_builder().new_write() as write:  # opened before, but writes after
        upsert(table, [(1, "theirs")])
        write.write_arrow(data_of(table, [(1, "mine")]))
        commit(table, write.prepare_commit())

    assert rows_in(table) == changed([(1, "mine")])


# --- every interleaving ---------------------------------------------------------------------------

MINE = [(1, "mine"), (2, "mine"), (3, "mine")]
THEIRS = [(3, "theirs"), (1, "theirs")]


@cache
def _template() -> MemoryStorage:
    storage = MemoryStorage()
    upsert(create_key_table(storage=storage, **{"manifest.merge-min-count": "2"}), OLD)
    return storage


class Interrupted:
    """A storage on which ``other`` happens when its nth call begins."""

    def __init__(self, other: Callable[[Table], Any], at: int) -> None:
        self.bare = copy_of(_template())
        watched = WatchedStorage(self.bare)
        self.table = open_table(watched, FakeEnv().env())
        self._other = other
        self._at = len(watched.calls) + at
        watched.watch = self._watch

    def _watch(self, call: Call) -> None:
        if call.number == self._at and not call.is_done:
            self._other(open_table(self.bare))


def count_calls() -> int:
    storage = WatchedStorage(copy_of(_template()))
    table = open_table(storage)
    storage.calls.clear()
    upsert(table, MINE)
    settle()
    return len(storage.calls)


def test_whenever_the_other_comes_the_rows_are_those_of_the_commits_in_their_order():
    found = set()
    for at in range(1, count_calls() + 1):
        run = Interrupted(lambda table: upsert(table, THEIRS), at)
        mine = None
        with suppress(CommitConflict):
            mine = upsert(run.table, MINE)
        settle()  # on object stores the last calls are made later
        table = open_table(run.bare)
        if mine is None:
            assert rows_in(table) == changed(THEIRS)
        elif mine.snapshot_id == 2:
            assert rows_in(table) == changed(MINE, THEIRS)
        else:
            assert rows_in(table) == changed(THEIRS, MINE)
        assert manifest_files(table) == referenced_manifests(table)
        check_whole(table)
        found.add(None if mine is None else mine.snapshot_id)
    assert found == {None, 2, 3}


def test_whenever_a_compaction_comes_the_new_rows_land():
    for at in range(1, count_calls() + 1):
        run = Interrupted(lambda table: table.compact(full=True), at)
        upsert(run.table, MINE)

        settle()
        assert rows_in(open_table(run.bare)) == changed(MINE)
        check_whole(open_table(run.bare))


# --- other keys, and no keys to quarrel about -----------------------------------------------------


def test_writers_of_other_partitions_buckets_and_key_ranges_do_not_disturb_each_other():
    columns = {"id": "BIGINT", "v": "STRING", "day": "STRING"}
    table = create_key_table(columns, ["day", "id"], ["day"], bucket="2")
    rows = [(n, "x", day) for day in ("mon", "tue") for n in range(8)]
    upsert(table, rows[::2])
    # Even and odd ids are not the buckets; each key alone is a range that touches no other.
    prepared = [prepare(table, [row]) for row in rows]

    for messages in prepared:
        commit(table, messages)

    assert rows_in(table) == sorted(rows)


def test_key_ranges_that_touch_in_one_key_do_disturb_each_other():
    table = with_old_rows()
    mine = prepare(table, [(5, "mine"), (7, "mine")])
    upsert(table, [(3, "theirs"), (5, "theirs")])

    check_refused(table, mine)


def test_workers_of_one_commit_may_give_the_same_numbers():
    table = with_old_rows()
    builder = table.new_batch_write_builder()
    parts = [prepare(table, [(n, "new") for n in ids], builder=builder)
             for ids in ((0, 2, 4), (1, 3, 5))]  # fmt: skip
    table.compact(full=True)

    builder.new_commit().commit([message for part in parts for message in part])

    assert rows_in(table) == changed((n, "new") for n in range(6))


def test_of_the_messages_of_a_commit_one_that_is_too_old_is_enough_to_refuse_all():
    table = with_old_rows()
    old = prepare(table, [(1, "mine")])
    upsert(table, [(1, "theirs")])
    new = prepare(table, [(2, "mine")])

    check_refused(table, [*new, *old])


# --- tables that order their rows themselves ------------------------------------------------------


def test_with_a_sequence_field_the_rows_say_which_is_newer():
    table = create_key_table(COUNTED, **{"sequence.field": "n"})
    mine = prepare(table, [(1, 10), (2, 5)])
    upsert(table, [(1, 7), (2, 7), (3, 7)])

    commit(table, mine)

    assert rows_in(table) == [(1, 10), (2, 7), (3, 7)]


def test_sums_are_the_same_in_every_order():
    options = {"merge-engine": "aggregation", "fields.n.aggregate-function": "sum"}
    table = create_key_table(COUNTED, **options)
    mine = prepare(table, [(1, 10), (2, 5)])
    upsert(table, [(1, 7), (2, 7)])

    commit(table, mine)

    assert rows_in(table) == [(1, 17), (2, 12)]


def test_sequence_groups_order_partial_updates():
    columns = {"id": "BIGINT", "g": "BIGINT", "a": "STRING", "h": "BIGINT", "b": "STRING"}
    groups = {"fields.g.sequence-group": "a", "fields.h.sequence-group": "b"}
    table = create_key_table(columns, **PARTIAL, **groups)
    mine = prepare(table, [(1, 2, "mine", 1, "mine")])
    upsert(table, [(1, 1, "theirs", 2, "theirs")])

    commit(table, mine)

    assert rows_in(table) == [(1, 2, "mine", 2, "theirs")]


def test_postponed_rows_are_ordered_when_they_get_their_buckets():
    table = create_key_table(bucket="-2")
    mine = prepare(table, [(1, "mine")])
    upsert(table, [(1, "theirs")])

    commit(table, mine)

    assert len(live_files(table)) == 2


# --- streams --------------------------------------------------------------------------------------


@pytest.mark.parametrize("options", [{}, VECTORS], ids=str)
def test_a_stream_may_prepare_the_next_commit_before_the_last_one_is_made(options: dict[str, str]):
    table = with_old_rows(**options)
    builder = table.new_stream_write_builder()
    with builder.new_write() as write, builder.new_commit() as committer:
        prepared = {}
        for number in (1, 2, 3):
            write.write_arrow(data_of(table, [(1, f"batch {number}"), (2, f"batch {number}")]))
            prepared[number] = write.prepare_commit(number)
        for number, messages in prepared.items():
            committer.commit(messages, number)
            table.compact()

    assert rows_in(table) == changed([(1, "batch 3"), (2, "batch 3")])


def test_a_stream_goes_on_after_a_batch_that_was_refused():
    table = with_old_rows()
    builder = table.new_stream_write_builder()
    with builder.new_write() as write, builder.new_commit() as committer:
        write.write_arrow(data_of(table, [(1, "mine")]))
        upsert(table, [(1, "theirs"), (2, "theirs")])
        refused = write.prepare_commit(1)
        with pytest.raises(CommitConflict) as caught:
            committer.commit(refused, 1)
        committer.abort(refused)
        write.write_arrow(data_of(table, [(1, "mine")]))
        committer.commit(write.prepare_commit(1), 1)

    assert caught.value.reason is ConflictReason.SEQUENCE_NUMBERS_TAKEN
    assert rows_in(table) == changed([(1, "mine"), (2, "theirs")])


# --- what others may do meanwhile -----------------------------------------------------------------


def test_a_compaction_does_not_hide_what_others_wrote():
    table = with_old_rows()
    mine = prepare(table, [(1, "mine")])
    upsert(table, [(1, "theirs")])
    table.compact(full=True)
    assert len(live_files(table)) == 1

    check_refused(table, mine)


@pytest.mark.parametrize("options", [{}, VECTORS], ids=str)
def test_a_compaction_of_what_was_there_before_does_no_harm(options: dict[str, str]):
    table = with_old_rows(**options)
    upsert(table, [(1, "older")])
    mine = prepare(table, [(1, "mine")])
    table.compact(full=True)

    commit(table, mine)

    assert rows_in(table) == changed([(1, "mine")])


def test_what_others_wrote_and_is_gone_again_does_no_harm():
    table = with_old_rows()
    mine = prepare(table, [(1, "mine")])
    upsert(table, [(1, "theirs")])
    truncate(table)

    commit(table, mine)

    assert rows_in(table) == [(1, "mine")]


def test_new_rows_are_newer_than_an_overwrite_that_has_not_reached_their_numbers():
    table = with_old_rows()
    mine = prepare(table, [(1, "mine")])
    overwrite(table, [(1, "theirs"), (2, "theirs")])

    commit(table, mine)

    assert rows_in(table) == [(1, "mine"), (2, "theirs")]


def test_new_rows_are_not_hidden_under_an_overwrite_with_more_rows_than_there_were():
    table = with_old_rows()
    mine = prepare(table, [(1, "mine")])
    overwrite(table, [(n, "theirs") for n in range(20)])

    check_refused(table, mine)


def test_an_overwrite_replaces_what_others_wrote_whatever_its_numbers():
    table = with_old_rows()
    builder = table.new_batch_write_builder().overwrite()
    mine = prepare(table, [(1, "mine")], builder=builder)
    upsert(table, [(1, "theirs")])

    builder.new_commit().commit(mine)

    assert rows_in(table) == [(1, "mine")]


# --- snapshots that are not there any more --------------------------------------------------------


def test_the_live_files_decide_when_the_history_has_expired():
    table = with_old_rows()
    upsert(table, [(0, "old")])
    mine = prepare(table, [(1, "mine")])
    upsert(table, [(9, "theirs")])
    upsert(table, [(9, "theirs")])
    expire(table, 1, 2, 3)

    commit(table, mine)

    assert rows_in(table) == changed([(1, "mine"), (9, "theirs")])


@pytest.mark.parametrize("expired", [[1], [1, 2], [1, 2, 3]], ids=str)
def test_rows_of_others_are_not_forgotten_when_their_snapshot_expires(expired: list[int]):
    table = with_old_rows()
    mine = prepare(table, [(1, "mine")])
    upsert(table, [(1, "theirs")])
    table.compact(full=True)
    upsert(table, [(9, "theirs")])
    expire(table, *expired)

    check_refused(table, mine)


def test_messages_are_not_committed_again_when_their_snapshot_expired_after_a_compaction():
    table = with_old_rows()
    mine = prepare(table, [(1, "mine"), (2, "mine")])
    commit(table, mine)
    upsert(table, [(1, "newer")])
    table.compact(full=True)
    upsert(table, [(3, "newer")])
    expire(table, 1, 2, 3, 4)

    with pytest.raises(CommitConflict):
        commit(table, mine)

    assert rows_in(table) == changed([(1, "newer"), (2, "mine"), (3, "newer")])


def test_a_rollback_to_before_the_writer_began_does_no_harm_by_itself():
    table = with_old_rows()
    upsert(table, [(1, "newer")])
    mine = prepare(table, [(2, "mine")])
    table.rollback_to(1)

    commit(table, mine)

    assert rows_in(table) == changed([(2, "mine")])


@pytest.mark.parametrize("opens_first", [False, True])
def test_a_rollback_that_brings_rows_with_larger_numbers_back_is_noticed(opens_first: bool):
    table = with_old_rows()
    if not opens_first:
        overwrite(table, [(1, "short-lived")])
    with table.new_batch_write_builder().new_write() as write:
        if opens_first:
            overwrite(table, [(1, "short-lived")])
        write.write_arrow(data_of(table, [(5, "mine")]))
        mine = write.prepare_commit()
    assert mine[0].new_files[0].min_sequence_number == 1  # below those of the old rows
    table.rollback_to(1)

    check_refused(table, mine)

    assert rows_in(table) == OLD


def test_a_rollback_while_a_commit_is_tried_again_is_noticed():
    storage = copy_of(_template())
    turns = iter([
        lambda table: upsert(table, [(9, "theirs")]),
        # Ids are given anew: what is in snapshot 2 now is not what was checked.
        lambda table: (
            table.rollback_to(1),
            upsert(table, [(1, "theirs")]),
            upsert(table, [(9, "theirs")]),
        ),
    ])  # fmt: skip

    def compete(call: Call) -> None:
        if call.method == "put_if_absent" and "/snapshot-" in call.path and not call.is_done:
            next(turns, lambda table: None)(open_table(storage))

    mine = prepare(open_table(storage), [(1, "mine")])
    with pytest.raises(CommitConflict) as caught:
        commit(open_table(WatchedStorage(storage, compete), FakeEnv().env()), mine)

    assert caught.value.reason is ConflictReason.SEQUENCE_NUMBERS_TAKEN
    assert rows_in(open_table(storage)) == changed([(1, "theirs"), (9, "theirs")])


# --- what it costs --------------------------------------------------------------------------------


def manifests_read(storage: WatchedStorage) -> list[str]:
    """What was read of the files that tell which files there are."""
    reads = [call.path for call in storage.calls if call.method == "read"]
    return [path for path in reads if "/manifest/manifest-" in path and "-list-" not in path]


def test_only_what_happened_since_the_writer_began_is_read():
    table = create_key_table(**{"manifest.merge-min-count": "1000"})
    for number in range(20):
        upsert(table, [(number, "old")])
    mine, later = (prepare(table, [(n, "mine")]) for n in (1, 5))
    storage = WatchedStorage(table.store.storage)

    commit(open_table(storage), mine)
    assert manifests_read(storage) == []

    storage.calls.clear()
    commit(open_table(storage), later)
    assert len(manifests_read(storage)) == 1
