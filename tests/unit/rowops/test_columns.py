"""Single columns of rows are written beside the files that hold them."""

import pyarrow as pa
import pytest

from builders import alter, create_table
from emberlake import SchemaChange
from emberlake.errors import (
    ColumnNotFound,
    CommitConflict,
    ConflictReason,
    DataMismatch,
    InvalidInput,
    Unsupported,
)
from emberlake.io import MemoryStorage
from emberlake.spec.row_tracking import ROW_ID
from emberlake.table import Table
from emberlake.types import AtomicType
from table_reads import files_under, latest_snapshot, live_files
from tracked_tables import (
    COLUMNS,
    EVOLVING,
    changed_in,
    columns_for,
    commit,
    delete,
    evolving_table,
    marks,
    put,
    update,
    with_ids,
)


def two_groups(*, has_vectors: bool = False, storage: MemoryStorage | None = None) -> Table:
    table = evolving_table(storage, has_vectors=has_vectors)
    put(table, (1, "a", 1), (2, "b", 2), (3, "c", 3))
    put(table, (4, "d", 4), (5, "e", 5))
    return table


def test_only_the_written_columns_of_touched_groups_are_written() -> None:
    table = two_groups()

    update(table, ids=[2, 0], v=["z", "x"])

    assert with_ids(table) == {
        0: (1, "x", 1), 1: (2, "b", 2), 2: (3, "z", 3), 3: (4, "d", 4), 4: (5, "e", 5),
    }  # fmt: skip
    new = live_files(table)[-1].file
    assert (new.write_cols, new.first_row_id, new.row_count) == (("v",), 0, 3)
    assert (new.min_sequence_number, new.max_sequence_number) == (3, 3)
    snapshot = latest_snapshot(table)
    assert (snapshot.commit_kind, snapshot.next_row_id) == ("APPEND", 5)
    assert changed_in(table) == {0: 3, 1: 3, 2: 3, 3: 2, 4: 2}


def test_filters_see_new_values_and_forget_old_ones() -> None:
    table = two_groups()
    update(table, ids=[0, 1, 2], v=["x", "y", "z"])
    update(table, ids=[1], n=[50])

    assert with_ids(table, "v = 'z'") == {2: (3, "z", 3)}
    assert with_ids(table, "v = 'a'") == {}
    assert with_ids(table, "n > 10 AND v = 'y'") == {1: (2, "y", 50)}
    assert with_ids(table, "v = 'd' OR n = 50") == {1: (2, "y", 50), 3: (4, "d", 4)}


def test_a_column_that_is_added_later_is_filled_for_some_groups() -> None:
    table = alter(two_groups(), SchemaChange.add_column("extra", AtomicType("INT")))

    commit(table, columns_for(table, {ROW_ID: [4], "extra": [7]}))

    found = {key: row[3] for key, row in with_ids(table).items()}
    assert found == {0: None, 1: None, 2: None, 3: None, 4: 7}
    assert list(with_ids(table, "extra IS NULL")) == [0, 1, 2, 3]
    assert list(with_ids(table, "extra = 7")) == [4]


def test_columns_that_are_renamed_keep_what_was_written() -> None:
    table = two_groups()
    update(table, ids=[0], v=["x"])

    renamed = alter(table, SchemaChange.rename_column("v", "w"))

    assert renamed.to_arrow(["w"]).column("w").to_pylist() == ["x", "b", "c", "d", "e"]


def test_writes_of_different_columns_go_together() -> None:
    table = two_groups()
    ours = columns_for(table, {ROW_ID: [0], "v": ["x"]})

    update(table, ids=[0], n=[9])
    commit(table, ours)

    assert with_ids(table)[0] == (1, "x", 9)


def test_writes_of_one_column_of_one_group_are_a_conflict() -> None:
    storage = MemoryStorage()
    table = two_groups(storage=storage)
    ours = columns_for(table, {ROW_ID: [0, 4], "v": ["x", "y"]})

    update(table, ids=[1], v=["z"])
    with pytest.raises(CommitConflict) as caught:
        commit(table, ours)

    assert caught.value.reason is ConflictReason.COLUMN_CHANGED
    assert with_ids(table)[0] == (1, "a", 1)
    written = {path for path in files_under(storage, "") if "/data-" in path}
    assert len(written) == len(live_files(table))  # what was refused is deleted


def test_a_write_and_a_delete_of_one_row_leave_it_deleted() -> None:
    table = two_groups(has_vectors=True)
    ours = columns_for(table, {ROW_ID: [0, 1], "v": ["x", "y"]})

    delete(table, "id = 1")
    commit(table, ours)

    assert with_ids(table) == {1: (2, "y", 2), 2: (3, "c", 3), 3: (4, "d", 4), 4: (5, "e", 5)}


def test_deleted_rows_stay_deleted_when_columns_are_written() -> None:
    table = two_groups(has_vectors=True)
    delete(table, "id IN (1, 5)")

    update(table, ids=[1, 2], v=["y", "z"])
    delete(table, "v = 'z'")

    assert with_ids(table) == {1: (2, "y", 2), 3: (4, "d", 4)}
    assert table.count() == 2


def test_a_compaction_between_is_a_conflict() -> None:
    table = two_groups()
    ours = columns_for(table, {ROW_ID: [0], "v": ["x"]})

    table.compact(full=True)
    with pytest.raises(CommitConflict) as caught:
        commit(table, ours)

    assert caught.value.reason is ConflictReason.ROW_RANGE_CHANGED


def test_after_a_rollback_ids_are_other_rows() -> None:
    table = two_groups()
    ours = columns_for(table, {ROW_ID: [4], "v": ["x"]})

    table.rollback_to(1)
    put(table, (6, "f", 6), (7, "g", 7))
    with pytest.raises(CommitConflict, match="rolled back"):
        commit(table, ours)

    assert with_ids(table)[4] == (7, "g", 7)


@pytest.mark.parametrize(
    ("values", "error", "why"),
    [
        ({ROW_ID: [0, 0], "v": ["x", "y"]}, DataMismatch, "keys: 0"),
        ({ROW_ID: [0, 9, -1], "v": ["x", "y", "z"]}, InvalidInput, "no row .*: 9, -1"),
        ({ROW_ID: [1], "v": ["x"]}, InvalidInput, "no row .*: 1"),
        ({ROW_ID: [None], "v": ["x"]}, InvalidInput, "1 nulls"),
        ({"v": ["x"]}, InvalidInput, "no column _ROW_ID"),
        ({ROW_ID: [0]}, InvalidInput, "say what to set"),
        ({ROW_ID: [0], "w": ["x"]}, ColumnNotFound, "w"),
        ({ROW_ID: [0], "p": ["x"]}, Unsupported, "stay in their partition: p"),
        ({ROW_ID: [0], "n": [2**40]}, (DataMismatch, pa.ArrowInvalid), "n|too large"),
    ],
    ids=str,
)
def test_what_cannot_be_written_is_refused(values, error, why) -> None:
    columns = COLUMNS.append(pa.field("p", pa.string()))
    options = {**EVOLVING, "deletion-vectors.enabled": "true"}
    table = create_table(columns=columns, partition_keys=["p"], options=options)
    table.append(pa.table({"id": [1, 2], "v": ["a", "b"], "n": [1, 2], "p": ["q", "q"]}))
    delete(table, "id = 2")

    with pytest.raises(error, match=why):
        columns_for(table, values)


def test_rows_are_appended_with_some_of_the_columns() -> None:
    table = two_groups()
    with table.new_batch_write_builder().new_write() as write:
        write.with_write_type(["id", "n"])
        write.write_arrow(pa.table({"id": [6], "n": pa.array([6], pa.int32())}))
        commit(table, write.prepare_commit())

    assert live_files(table)[-1].file.write_cols == ("id", "n")
    assert with_ids(table)[5] == (6, None, 6)
    update(table, ids=[5], v=["f"])
    assert with_ids(table, "v = 'f'") == {5: (6, "f", 6)}


def test_marks_and_columns_can_be_one_commit() -> None:
    table = two_groups(has_vectors=True)

    messages = [*columns_for(table, {ROW_ID: [0], "v": ["x"]}), *marks(table, "id = 2")]
    commit(table, messages)

    assert latest_snapshot(table).commit_kind == "OVERWRITE"
    assert [row[1] for row in with_ids(table).values()] == ["x", "c", "d", "e"]
