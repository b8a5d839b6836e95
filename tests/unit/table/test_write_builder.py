"""Builders, their two halves, and streams of commits."""

import pickle

import pandas as pd
import pyarrow as pa
import pytest

from builders import append, as_arrow, create_table, open_table, prepare, rows_of
from emberlake.errors import (
    AlreadyCommitted,
    ColumnNotFound,
    DataMismatch,
    FilesMissing,
    InvalidInput,
    InvalidState,
)
from emberlake.wire import CommitMessage
from table_reads import data_files, latest_snapshot, read, read_ids

# --- writing --------------------------------------------------------------------------------------


class OnlyAStream:
    """Something of another library that speaks Arrow."""

    def __init__(self, table):
        self._table = table

    def __arrow_c_stream__(self, requested_schema=None):
        return self._table.__arrow_c_stream__(requested_schema)


@pytest.mark.parametrize(
    "form",
    [
        lambda t: t,
        lambda t: t.to_batches()[0],
        lambda t: t.to_reader(),
        OnlyAStream,
    ],
    ids=["table", "batch", "reader", "stream"],
)
def test_everything_that_is_arrow_can_be_written(form):
    table = create_table()
    builder = table.new_batch_write_builder()
    with builder.new_write() as write, builder.new_commit() as commit:
        write.write_arrow(form(as_arrow(rows_of([1, 2]))))
        commit.commit(write.prepare_commit())

    assert read(table) == rows_of([1, 2])


def test_batches_and_data_frames_can_be_written():
    table = create_table()
    builder = table.new_batch_write_builder()
    with builder.new_write() as write:
        write.write_arrow_batch(as_arrow(rows_of([1])).to_batches()[0])
        write.write_pandas(pd.DataFrame({"id": [2, 3], "day": ["mon", "mon"]}, index=[7, 8]))
        builder.new_commit().commit(write.prepare_commit())

    assert read(table) == rows_of([1, 2, 3])


def test_an_index_of_pandas_is_a_column_if_the_table_has_one_of_its_name():
    table = create_table(columns=pa.schema([("id", pa.int64()), ("day", pa.string())]))
    frame = pd.DataFrame({"id": [2, 3], "day": ["mon", "tue"]})

    table.append(frame.set_index("id"))
    table.append(frame.set_index(["day", "id"]))
    table.append(frame.set_index("id", drop=False))
    table.append(frame.rename_axis("row"))

    assert table.to_arrow().to_pylist() == 4 * frame.to_dict("records")


def test_integers_with_gaps_come_back_from_the_floats_that_pandas_made_of_them():
    table = create_table()
    builder = table.new_batch_write_builder()
    frame = pd.DataFrame({"id": [1, None, 3], "day": ["a", None, "c"]})
    assert frame["id"].dtype == "float64"

    with builder.new_write() as write:
        write.write_pandas(frame)
        builder.new_commit().commit(write.prepare_commit())

    assert [row["id"] for row in read(table)] == [1, 3, None]


def test_floats_with_fractions_are_not_taken_for_integers():
    write = create_table().new_batch_write_builder().new_write()

    with pytest.raises(DataMismatch, match="id: double cannot be written to BIGINT"):
        write.write_pandas(pd.DataFrame({"id": [1.5], "day": ["a"]}))


def test_what_is_not_arrow_is_refused():
    write = create_table().new_batch_write_builder().new_write()

    with pytest.raises(InvalidInput, match="cannot write list"):
        write.write_arrow([1, 2])
    with pytest.raises(DataMismatch, match="no Arrow form"):
        write.write_pandas(pd.DataFrame({"id": [1, "x"], "day": ["a", "b"]}))


def test_a_subset_of_columns_can_be_declared():
    table = create_table()
    builder = table.new_batch_write_builder()
    write = builder.new_write().with_write_type(["id"])

    with pytest.raises(DataMismatch, match="day: is not among the columns declared"):
        write.write_arrow(as_arrow(rows_of([1])))
    write.write_arrow(pa.table({"id": [1]}))
    builder.new_commit().commit(write.prepare_commit())

    assert read(table) == [{"id": 1, "day": None}]
    with pytest.raises(ColumnNotFound, match="no such columns: x, y; the table has id, day"):
        write.with_write_type(["x", "id", "y"])


def test_a_batch_write_is_prepared_once():
    write = create_table().new_batch_write_builder().new_write()
    write.prepare_commit()

    with pytest.raises(InvalidState, match="called before"):
        write.prepare_commit()


@pytest.mark.parametrize("end", ["close", "abort"])
def test_a_write_that_ended_is_of_no_more_use(end):
    write = create_table().new_batch_write_builder().new_write()
    getattr(write, end)()
    getattr(write, end)()

    with pytest.raises(InvalidState, match="open a new one"):
        write.write_arrow(as_arrow(rows_of([1])))
    with pytest.raises(InvalidState, match="open a new one"):
        write.prepare_commit()


def test_many_writers_make_one_commit():
    table = create_table(partition_keys=["day"])
    builder = pickle.loads(pickle.dumps(table.new_batch_write_builder()))

    messages = [
        CommitMessage.from_bytes(message.to_bytes())
        for number in range(3)
        for message in prepare(table, rows_of([number], f"d{number % 2}"), builder=builder)
    ]
    result = builder.new_commit().commit(messages)

    assert (result.snapshot_id, result.rows_added, result.files_added) == (1, 3, 3)
    assert latest_snapshot(table).commit_user == builder.commit_user
    assert read_ids(table) == [0, 1, 2]


def test_an_overwrite_builder_pickles_with_what_it_replaces():
    options = {"dynamic-partition-overwrite": "false"}
    table = create_table(partition_keys=["day"], options=options)
    append(table, [*rows_of([1], "mon"), *rows_of([2], "tue")])
    builder = table.new_batch_write_builder().overwrite({"day": "mon"})

    again = pickle.loads(pickle.dumps(builder))
    again.new_commit().commit(prepare(table, rows_of([3], "mon"), builder=again))

    assert read_ids(table) == [2, 3]


def test_a_commit_user_can_have_a_prefix():
    table = create_table(options={"commit.user-prefix": "nightly"})

    append(table, rows_of([1]))

    assert latest_snapshot(table).commit_user.startswith("nightly_")


# --- giving up ------------------------------------------------------------------------------------


def test_aborted_messages_leave_no_file():
    table = create_table(partition_keys=["day"])
    append(table, rows_of([1], "mon"))
    before = data_files(table)
    messages = prepare(table, [*rows_of([2], "mon"), *rows_of([3], "tue")])

    table.new_batch_write_builder().new_commit().abort(messages)

    assert data_files(table) == before


def test_committed_messages_are_not_aborted():
    table = create_table()
    messages = prepare(table, rows_of([1]))
    commit = table.new_batch_write_builder().new_commit()
    commit.commit(messages)
    append(table, rows_of([2]))

    with pytest.raises(AlreadyCommitted):
        commit.abort(messages)
    assert read_ids(table) == [1, 2]


# --- streams --------------------------------------------------------------------------------------


def a_stream(table, commit_user="job"):
    builder = table.new_stream_write_builder(commit_user)
    return builder.new_write(), builder.new_commit()


def test_a_stream_commits_again_and_again():
    table = create_table()
    write, commit = a_stream(table)

    for identifier in (1, 2, 5):
        write.write_arrow(as_arrow(rows_of([identifier])))
        commit.commit(write.prepare_commit(identifier), identifier)

    assert read_ids(table) == [1, 2, 5]
    snapshots = [table.store.snapshots.load(n) for n in (1, 2, 3)]
    assert [(s.commit_user, s.commit_identifier) for s in snapshots] == [
        ("job", 1),
        ("job", 2),
        ("job", 5),
    ]


def test_each_message_belongs_to_one_commit_of_the_stream():
    write, _ = a_stream(create_table())
    write.write_arrow(as_arrow(rows_of([1])))

    first = write.prepare_commit(1)
    second = write.prepare_commit(2)

    assert len(first) == 1
    assert second == []


@pytest.mark.parametrize("identifier", [4, 5])
def test_an_identifier_that_was_used_is_refused(identifier):
    table = create_table()
    _, commit = a_stream(table)
    commit.commit(prepare(table, rows_of([1])), 5)
    _, restarted = a_stream(open_table(table.store.storage))

    for again in (commit, restarted):
        with pytest.raises(AlreadyCommitted, match="has committed identifier 5"):
            again.commit(prepare(table, rows_of([2])), identifier)
    assert read_ids(table) == [1]


def test_a_twin_of_a_stream_that_committed_meanwhile_is_noticed():
    table = create_table()
    _, commit = a_stream(table)
    commit.commit(prepare(table, rows_of([1])), 1)
    messages = prepare(table, rows_of([2]))
    _, twin = a_stream(open_table(table.store.storage))
    twin.commit(prepare(table, rows_of([3])), 3)

    for identifier in (2, 3):
        with pytest.raises(AlreadyCommitted):
            commit.commit(messages, identifier)
    assert read_ids(table) == [1, 3]


def test_other_users_have_identifiers_of_their_own():
    table = create_table()
    for user in ("a", "b"):
        _, commit = a_stream(table, user)
        commit.commit(prepare(table, rows_of([1])), 1)

    assert read_ids(table) == [1, 1]


def test_a_restarted_stream_commits_just_what_is_missing():
    table = create_table()
    write, commit = a_stream(table)
    pending = {}
    for identifier in (1, 2, 3):
        write.write_arrow(as_arrow(rows_of([identifier])))
        pending[identifier] = write.prepare_commit(identifier)
    commit.commit(pending[1], 1)

    _, restarted = a_stream(open_table(table.store.storage))
    count = restarted.filter_and_commit(dict(reversed(pending.items())))
    nothing = restarted.filter_and_commit(pending)

    assert (count, nothing) == (2, 0)
    assert read_ids(table) == [1, 2, 3]
    identifiers = [table.store.snapshots.load(n).commit_identifier for n in (1, 2, 3)]
    assert identifiers == [1, 2, 3]


def test_a_restarted_stream_finds_its_last_commit_behind_those_of_others():
    table = create_table()
    _, commit = a_stream(table)
    messages = prepare(table, rows_of([1]))
    commit.commit(messages, 7)
    for number in range(3):
        append(table, rows_of([10 + number]))

    _, restarted = a_stream(table)

    assert restarted.filter_and_commit({7: messages}) == 0
    assert read_ids(table) == [1, 10, 11, 12]


def test_empty_commits_of_a_stream_make_no_snapshot():
    table = create_table()
    _, commit = a_stream(table)

    assert commit.commit([], 1).snapshot_id is None
    assert commit.filter_and_commit({2: [], 3: prepare(table, rows_of([3]))}) == 1
    assert latest_snapshot(table).commit_identifier == 3


def test_files_that_were_cleaned_up_are_not_committed():
    table = create_table()
    first, second = prepare(table, rows_of([1])), prepare(table, rows_of([2]))
    table.new_batch_write_builder().new_commit().abort(second)
    _, restarted = a_stream(table)

    with pytest.raises(FilesMissing, match=r"1 of 1 are gone: .*; write the data again"):
        restarted.filter_and_commit({1: first, 2: second})
    assert table.latest_snapshot() is None


def test_a_stream_builder_makes_up_a_user_when_none_is_given():
    table = create_table()

    users = {table.new_stream_write_builder().commit_user for _ in range(2)}

    assert len(users) == 2
