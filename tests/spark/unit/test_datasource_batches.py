"""The commit of a micro-batch: once, and recognised when Spark repeats it."""

import pyarrow as pa
import pytest

from builders import NUMBERED, append, create_key_table, create_table, numbered, prepare, rows_of
from emberlake import Table
from emberlake.commit.change import append_change
from emberlake.commit.committer import Committer
from emberlake.datasource.stream_write import MicroBatch
from emberlake.errors import CommitConflict, InvalidState
from emberlake.types import arrow_schema
from emberlake.wire import CommitMessage
from emberlake.write.table_writer import TableWriter
from table_reads import data_files, read_ids

USER, QUERY = "spark-q", "q"


def batch(table: Table, number: int, query: str = QUERY) -> MicroBatch:
    return MicroBatch(table.store, USER, query, number)


def written(table: Table, ids: list[int]) -> list[CommitMessage]:
    """What a task hands over: nothing is compacted there."""
    rows = numbered(ids) if table.primary_keys else rows_of(ids)
    writer = TableWriter(table.store, commit_user=USER)
    writer.write(pa.Table.from_pylist(rows, arrow_schema(tuple(table.fields))))
    return writer.prepare()


def test_a_batch_is_one_snapshot_under_its_number_and_names_the_query() -> None:
    table = create_table()

    assert batch(table, 4).commit(prepare(table, rows_of([1, 2])))

    snapshot = table.latest_snapshot()
    assert snapshot is not None
    assert (snapshot.commit_user, snapshot.commit_identifier) == (USER, 4)
    assert snapshot.properties == {"spark.query-id": QUERY}


def test_a_repeated_batch_is_skipped_and_its_files_are_deleted() -> None:
    table = create_table()
    batch(table, 0).commit(prepare(table, rows_of([1])))
    before = data_files(table)
    append(table, rows_of([9]))

    assert not batch(table, 0).commit(prepare(table, rows_of([1])))

    assert read_ids(table) == [1, 9]
    assert len(data_files(table)) == len(before) + 1


def test_batches_without_rows_leave_gaps_that_do_not_matter() -> None:
    table = create_table()
    batch(table, 0).commit(prepare(table, rows_of([1])))

    assert batch(table, 5).commit(prepare(table, rows_of([2])))
    assert not batch(table, 5).commit(prepare(table, rows_of([2])))
    assert read_ids(table) == [1, 2]


@pytest.mark.parametrize(("number", "query"), [(1, QUERY), (2, "another"), (0, "another")])
def test_a_query_that_starts_over_is_not_taken_for_a_repetition(number: int, query: str) -> None:
    table = create_table()
    for done in range(3):
        batch(table, done).commit(prepare(table, rows_of([done])))

    with pytest.raises(InvalidState, match="has committed batch 2 of query q"):
        batch(table, number, query).commit(prepare(table, rows_of([7])))

    assert read_ids(table) == [0, 1, 2]
    assert len(data_files(table)) == 3


def test_a_batch_of_a_driver_that_was_slower_is_skipped() -> None:
    table = create_table()
    slow, fast = prepare(table, rows_of([1])), prepare(table, rows_of([1]))
    late = batch(table, 0)
    late._newest = lambda: None  # it looked before the other one was done
    batch(table, 0).commit(fast)
    before = data_files(table)

    assert not late.commit(slow)

    assert read_ids(table) == [1]
    assert data_files(table) < before


def test_a_batch_that_conflicts_leaves_no_files_behind() -> None:
    table = create_key_table(NUMBERED)
    late = written(table, [1])
    batch(table, 0).commit(written(table, [1]))
    files = data_files(table)

    with pytest.raises(CommitConflict, match="sequence numbers"):
        batch(table, 1).commit(late)

    assert data_files(table) < files
    assert table.latest_snapshot().id == 1


@pytest.mark.parametrize(
    "options", [{"deletion-vectors.enabled": "true"}, {"merge-engine": "first-row"}], ids=str
)
def test_what_a_crash_kept_from_being_compacted_is_compacted_by_the_repetition(
    options: dict[str, str],
) -> None:
    table = create_key_table(NUMBERED, **options)
    Committer(table.store, USER).commit(append_change(written(table, [1, 2])), 0)
    assert read_ids(table) == []

    assert not batch(table, 0).commit(written(table, [1, 2]))

    assert read_ids(table) == [1, 2]


def test_a_table_that_hides_new_files_shows_the_rows_of_several_tasks() -> None:
    table = create_key_table(NUMBERED, **{"deletion-vectors.enabled": "true"})

    batch(table, 0).commit([*written(table, [1, 2]), *written(table, [2, 3])])

    assert read_ids(table) == [1, 2, 3]
