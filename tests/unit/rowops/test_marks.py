"""Rows are deleted by their positions, and what several writers delete adds up."""

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

from builders import create_table
from emberlake.errors import CommitConflict, ConflictReason, Unsupported
from emberlake.rowops.marks import Marked, mark_rows, remove_files
from emberlake.table import Table
from emberlake.wire import CommitMessage
from table_reads import index_entries, latest_snapshot
from tracked_tables import COLUMNS, VECTORS, commit, delete, find, marks, put

BUCKETED = {"bucket": "2", "bucket-key": "id"}


def marked_table(**options: str) -> Table:
    table = create_table(columns=COLUMNS, options={**VECTORS, **options})
    put(table, *((n, "a", n) for n in range(10)))
    put(table, *((n, "b", n) for n in range(10, 20)))
    return table


def ids(table: Table) -> list[int]:
    return sorted(table.to_arrow(["id"]).column("id").to_pylist())


@pytest.mark.parametrize("options", [{}, {"deletion-vectors.bitmap64": "true"}, BUCKETED], ids=str)
def test_deletes_add_up_and_leave_the_files_alone(options: dict[str, str]) -> None:
    table = marked_table(**options)

    delete(table, "id < 3 OR id = 12")
    delete(table, "id IN (3, 12, 19)")

    assert ids(table) == [*range(4, 12), *range(13, 19)]
    assert table.count() == 14
    assert latest_snapshot(table).commit_kind == "OVERWRITE"
    assert latest_snapshot(table).delta_record_count == 0


def test_deleting_rows_that_are_deleted_makes_no_snapshot() -> None:
    table = marked_table()
    messages = marks(table, "id = 3")
    commit(table, messages)

    assert commit(table, messages).snapshot_id is None
    assert latest_snapshot(table).id == 3


@pytest.mark.parametrize("options", [{}, BUCKETED], ids=str)
@pytest.mark.parametrize("where", ["id = 4", "id = 15", "id = 3"])
def test_two_deletes_at_once_both_take_effect(options: dict[str, str], where: str) -> None:
    """In one file, in two files that share an index file, and of one row."""
    table = marked_table(**options)
    delete(table, "id = 0 OR id = 10")
    ours = marks(table, "id = 3")

    delete(table, where)
    commit(table, ours)

    gone = {0, 10, 3, int(where.rsplit(maxsplit=1)[-1])}
    assert ids(table) == [n for n in range(20) if n not in gone]


def test_who_puts_a_new_row_in_the_place_of_one_that_is_gone_is_refused() -> None:
    table = marked_table()
    ours = marks(table, "id IN (3, 5)", is_exclusive=True)
    others = marks(table, "id = 6", is_exclusive=True)

    delete(table, "id = 5")
    commit(table, others)
    with pytest.raises(CommitConflict) as caught:
        commit(table, ours)

    assert caught.value.reason is ConflictReason.DELETION_VECTOR_CHANGED


def test_rows_of_a_file_that_was_rewritten_cannot_be_marked() -> None:
    table = marked_table()
    ours = marks(table, "id = 5")

    table.compact(full=True)
    with pytest.raises(CommitConflict) as caught:
        commit(table, ours)

    assert caught.value.reason is ConflictReason.FILE_DELETED_ELSEWHERE
    assert len(ids(table)) == 20


def test_a_delete_and_an_append_go_together() -> None:
    table = marked_table()
    ours = marks(table, "id >= 15")

    put(table, (30, "c", 1))
    commit(table, ours)

    assert ids(table) == [*range(15), 30]


def test_marks_cross_processes() -> None:
    table = marked_table()
    sent = [message.to_bytes() for message in marks(table, "id < 9")]

    commit(table, [CommitMessage.from_bytes(raw) for raw in sent])

    assert ids(table) == list(range(9, 20))
    assert {raw[4] for raw in sent} == {3}  # releases that would lose the edits refuse them


def test_compaction_drops_what_is_deleted_and_the_vectors_with_it() -> None:
    table = marked_table()
    delete(table, "id < 5 OR id > 12")

    table.compact(full=True)

    assert ids(table) == list(range(5, 13))
    assert latest_snapshot(table).total_record_count == 8
    assert index_entries(table) == []


def test_a_compaction_gives_way_only_to_deletes_in_its_own_files() -> None:
    table = marked_table(**{"compaction.min.file-num": "2"})
    delete(table, "id = 1 OR id = 11")
    first, second = find(table, None)
    ours = remove_files(table.store, latest_snapshot(table), [first.place])

    delete(table, "id = 12")
    commit(table, ours)
    assert ids(table) == [10, *range(13, 20)]

    theirs = remove_files(table.store, latest_snapshot(table), [second.place])
    delete(table, "id = 13")
    with pytest.raises(CommitConflict) as caught:
        commit(table, theirs)
    assert caught.value.reason is ConflictReason.DELETION_VECTOR_CHANGED


def test_vectors_roll_over_to_more_index_files() -> None:
    table = marked_table(**{"deletion-vector.index-file.target-size": "1 b"})
    delete(table, "id IN (1, 11)")
    before = {entry.index_file.file_name for entry in index_entries(table)}

    delete(table, "id = 12")

    after = {entry.index_file.file_name for entry in index_entries(table)}
    assert (len(before), len(after), len(before & after)) == (2, 2, 1)


def test_rows_of_a_table_without_vectors_are_not_marked() -> None:
    table = create_table(columns=COLUMNS)
    put(table, (1, "a", 1))
    (found,) = find(table, None)

    with pytest.raises(Unsupported, match=r"deletion-vectors.enabled is not set"):
        mark_rows(table.store, latest_snapshot(table), [Marked(found.place, found.positions)])


def test_found_rows_say_where_they_are() -> None:
    table = marked_table()
    delete(table, "id IN (0, 11)")

    one, other = find(table, "n > 8 AND n < 14", "id", "v")

    assert (one.positions.tolist(), other.positions.tolist()) == ([9], [0, 2, 3])
    assert other.rows == pa.table({"id": [10, 12, 13], "v": ["b"] * 3})
    assert [f.place.deleted_count(table.store) for f in (one, other)] == [1, 1]
    assert find(table, "id = 11") == []


def test_an_edit_of_a_file_that_nobody_has_is_a_conflict() -> None:
    table = marked_table()
    (message,) = marks(table, "id = 1")
    edit = replace(message.vector_edits[0], file_name="data-none-0.parquet")

    with pytest.raises(CommitConflict, match=r"data-none-0.parquet, whose rows are to be deleted"):
        commit(table, [replace(message, vector_edits=(edit,))])


def test_positions_beyond_32_bits_are_refused_where_vectors_are_narrow() -> None:
    table = marked_table()
    found = find(table, "id = 1")[0]

    wide = mark_rows(
        table.store, latest_snapshot(table), [Marked(found.place, np.array([1 << 33]))]
    )

    with pytest.raises(Exception, match="does not fit a 32-bit deletion vector"):
        commit(table, wide)
