"""Rows that are written again keep their ids: in the place of marked ones, or of whole files."""

import pyarrow as pa
import pytest

from builders import create_table
from emberlake.errors import CommitConflict, ConflictReason, DataMismatch, MessageMismatch
from emberlake.session.write_session import WriteSession
from emberlake.spec.key_value import SEQUENCE
from emberlake.table import Table
from table_reads import latest_snapshot, live_files
from tracked_tables import (
    COLUMNS,
    TRACKED,
    VECTORS,
    changed_in,
    columns_for,
    commit,
    delete,
    evolving_table,
    marks,
    moved_by_marks,
    moved_by_rewriting,
    put,
    with_ids,
)


def tracked(**options: str) -> Table:
    table = create_table(columns=COLUMNS, options={**TRACKED, **options})
    put(table, (1, "a", 1), (2, "b", 2), (3, "c", 3))
    put(table, (4, "d", 4))
    return table


def test_a_marked_row_moves_to_a_new_file_with_its_id() -> None:
    table = tracked(**VECTORS)

    commit(table, moved_by_marks(table, "id = 2", v="x"))

    assert with_ids(table) == {0: (1, "a", 1), 1: (2, "x", 2), 2: (3, "c", 3), 3: (4, "d", 4)}
    assert changed_in(table) == {0: 1, 1: 3, 2: 1, 3: 2}
    assert latest_snapshot(table).next_row_id == 4
    assert latest_snapshot(table).commit_kind == "OVERWRITE"


def test_a_file_is_written_again_and_every_row_keeps_its_id() -> None:
    table = tracked()

    commit(table, moved_by_rewriting(table, "id = 2", v="x"))

    assert with_ids(table) == {0: (1, "a", 1), 1: (2, "x", 2), 2: (3, "c", 3), 3: (4, "d", 4)}
    assert changed_in(table) == {0: 1, 1: 3, 2: 1, 3: 2}
    assert len(live_files(table)) == 2
    assert with_ids(table, "_ROW_ID = 2 AND _SEQUENCE_NUMBER = 1") == {2: (3, "c", 3)}


def test_rows_move_any_number_of_times() -> None:
    table = tracked(**VECTORS)
    for value in "xyz":
        commit(table, moved_by_marks(table, "id IN (1, 4)", v=value))
        table.compact(full=True)

    assert with_ids(table) == {0: (1, "z", 1), 1: (2, "b", 2), 2: (3, "c", 3), 3: (4, "z", 4)}


def test_two_writers_do_not_both_replace_a_row() -> None:
    table = tracked(**VECTORS)
    ours = moved_by_marks(table, "id = 2", v="x")
    commit(table, moved_by_marks(table, "id = 2", v="y"))

    with pytest.raises(CommitConflict) as caught:
        commit(table, ours)

    assert caught.value.reason is ConflictReason.DELETION_VECTOR_CHANGED
    assert with_ids(table)[1] == (2, "y", 2)


def test_two_writers_replace_different_rows_of_a_file() -> None:
    table = tracked(**VECTORS)
    ours = moved_by_marks(table, "id = 2", v="x")
    commit(table, moved_by_marks(table, "id = 3", v="y"))

    commit(table, ours)

    assert [row[1] for _, row in sorted(with_ids(table).items())] == ["a", "x", "y", "d"]


def test_a_file_whose_rows_are_deleted_meanwhile_is_not_written_again() -> None:
    table = tracked(**VECTORS)
    ours = moved_by_rewriting(table, "id = 2", v="x")
    delete(table, "id = 3")

    with pytest.raises(CommitConflict) as caught:
        commit(table, ours)

    assert caught.value.reason is ConflictReason.DELETION_VECTOR_CHANGED
    assert list(with_ids(table)) == [0, 1, 3]


def test_rows_that_move_have_ids() -> None:
    table = tracked()
    writer = WriteSession(table.store, "tester").new_writer(carries_ids=True)

    with pytest.raises(DataMismatch, match="_ROW_ID"):
        writer.write(pa.table({"id": [1], SEQUENCE: pa.array([1], pa.int64())}))


def test_changes_of_rows_that_are_there_replace_nothing() -> None:
    table = evolving_table(has_vectors=True)
    put(table, (1, "a", 1), (2, "b", 2))
    commit_of = table.new_batch_write_builder().new_commit()

    for messages in (marks(table, "id = 1"), columns_for(table, {"_ROW_ID": [0], "v": ["x"]})):
        with pytest.raises(MessageMismatch, match="they also change files that are there"):
            commit_of.overwrite(messages, {})
