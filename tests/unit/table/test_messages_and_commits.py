"""A commit takes the messages of its table that were written for what it does, and no others."""

import pytest

from builders import (
    COLUMNS,
    append,
    create_key_table,
    create_table,
    open_catalog,
    open_table,
    prepare,
    rows_of,
    upsert,
)
from emberlake import CatalogFactory, Schema
from emberlake.errors import InvalidInput, MessageMismatch
from emberlake.io import MemoryStorage
from emberlake.wire import WriteMode
from table_reads import data_files, files_under, read, read_ids

KEY_TABLES = {
    "deduplicate": {},
    "several buckets": {"bucket": "3"},
    "partial-update": {"merge-engine": "partial-update"},
    "aggregation": {"merge-engine": "aggregation", "fields.v.aggregate-function": "max"},
    "sequence.field": {"sequence.field": "v"},
    "changelog": {"changelog-producer": "input"},
}
MERGED_WITH_WHAT_IS_THERE = {
    "deletion vectors": {"deletion-vectors.enabled": "true"},
    "first-row": {"merge-engine": "first-row"},
    "dynamic buckets": {"bucket": "-1"},
}


def values(table):
    return [(row["id"], row["v"]) for row in read(table)]


def overwriting(table):
    return table.new_batch_write_builder().overwrite()


def test_messages_say_for_which_table_and_mode_they_were_written():
    table = create_table()

    (appended,) = prepare(table, rows_of([1]))
    (overwritten,) = prepare(table, rows_of([1]), builder=overwriting(table))

    assert (appended.table, appended.mode) == (table.table_path, WriteMode.APPEND)
    assert (overwritten.table, overwritten.mode) == (table.table_path, WriteMode.OVERWRITE)


def test_a_warehouse_that_is_reached_by_a_link_has_the_same_tables(tmp_path):
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    by_name, by_link = (
        CatalogFactory.create({"warehouse": str(tmp_path / name)}) for name in ("real", "link")
    )
    by_name.create_database("db")
    table = by_name.create_table("db.t", COLUMNS)
    other = by_name.create_table("db.other", COLUMNS)

    messages = prepare(by_link.get_table("db.t"), rows_of([1]))

    with pytest.raises(MessageMismatch, match=r"link/db\.db/t are not for"):
        other.new_batch_write_builder().new_commit().commit(messages)
    table.new_batch_write_builder().new_commit().commit(messages)
    assert read_ids(table) == [1]


def test_messages_of_an_overwrite_are_not_appended():
    table = create_key_table()
    upsert(table, [(1, "old")])
    messages = prepare(table, [(1, "new")], builder=overwriting(table))

    with pytest.raises(MessageMismatch, match="for overwrite, but this commit appends"):
        table.new_batch_write_builder().new_commit().commit(messages)
    with pytest.raises(MessageMismatch, match="for overwrite, but this commit appends"):
        table.new_stream_write_builder("me").new_commit().commit(messages, 1)
    with pytest.raises(MessageMismatch, match="for overwrite, but this commit appends"):
        table.new_stream_write_builder("me").new_commit().filter_and_commit({1: messages})

    assert table.latest_snapshot().id == 1
    overwriting(table).new_commit().commit(messages)
    assert values(table) == [(1, "new")]


def test_messages_of_an_append_are_not_committed_by_who_was_opened_to_overwrite():
    table = create_table()
    append(table, rows_of([1]))
    messages = prepare(table, rows_of([2]))

    with pytest.raises(MessageMismatch, match="for append, but this commit overwrites"):
        overwriting(table).new_commit().commit(messages)

    assert read_ids(table) == [1]
    table.new_batch_write_builder().new_commit().commit(messages)
    assert read_ids(table) == [1, 2]


def test_some_of_both_modes_are_no_overwrite():
    table = create_table()
    both = [
        *prepare(table, rows_of([1])),
        *prepare(table, rows_of([2]), builder=overwriting(table)),
    ]

    for commit in (table.new_batch_write_builder().new_commit(), overwriting(table).new_commit()):
        with pytest.raises(MessageMismatch, match="some for overwrite"):
            commit.overwrite(both)
        with pytest.raises(MessageMismatch):
            commit.commit(both)

    assert table.latest_snapshot() is None


def test_a_mismatch_is_an_invalid_input():
    assert issubclass(MessageMismatch, InvalidInput)


@pytest.mark.parametrize("options", KEY_TABLES.values(), ids=KEY_TABLES)
def test_messages_of_an_append_can_replace(options):
    table = create_key_table(**options)
    upsert(table, [(1, "z old"), (2, "z old")])
    upsert(table, [(1, "z old"), (3, "z old")])
    messages = prepare(table, [(1, "new"), (4, "new")])

    table.new_batch_write_builder().new_commit().overwrite(messages)

    assert values(table) == [(1, "new"), (4, "new")]
    upsert(table, [(1, "newer")])
    table.compact(full=True)
    assert values(table) == [(1, "newer"), (4, "new")]


def test_deletes_of_an_append_that_replaces_bring_nothing_back():
    table = create_key_table()
    upsert(table, [(1, "old"), (2, "old")])
    messages = prepare(table, [(1, "new")], "-D")

    table.new_batch_write_builder().new_commit().overwrite(messages)

    assert values(table) == []
    table.compact(full=True)
    assert values(table) == []


def test_postponed_rows_can_replace():
    table = create_key_table(bucket="-2")
    upsert(table, [(1, "old"), (2, "old")])
    table.compact()
    upsert(table, [(3, "old")])
    messages = prepare(table, [(1, "new")])

    table.new_batch_write_builder().new_commit().overwrite(messages)
    table.compact()

    assert values(table) == [(1, "new")]


@pytest.mark.parametrize(
    "options", MERGED_WITH_WHAT_IS_THERE.values(), ids=MERGED_WITH_WHAT_IS_THERE
)
def test_rows_that_depend_on_those_to_go_are_refused(options):
    table = create_key_table(**options)
    upsert(table, [(1, "old"), (2, "old")])
    messages = prepare(table, [(1, "new")])
    commit = table.new_batch_write_builder().new_commit()

    for partition in (None, {}):
        with pytest.raises(MessageMismatch, match=r"cannot replace anything.*builder\.overwrite"):
            commit.overwrite(messages, partition)

    assert values(table) == [(1, "old"), (2, "old")]
    commit.overwrite(prepare(table, [(1, "new")], builder=overwriting(table)))
    assert values(table) == [(1, "new")]
    upsert(table, [(2, "later")])
    assert values(table) == [(1, "new"), (2, "later")]


def test_what_was_compacted_with_the_table_does_not_replace_it_under_other_options():
    table = create_key_table(**{"deletion-vectors.enabled": "true"})
    upsert(table, [(1, "old")])
    messages = prepare(table, [(1, "new")])
    commit = table.copy({"write-only": True}).new_batch_write_builder().new_commit()

    with pytest.raises(MessageMismatch, match="they also change files that are there"):
        commit.overwrite(messages)


def test_a_table_that_leaves_compaction_to_others_takes_files_as_they_are():
    table = create_key_table(**{"deletion-vectors.enabled": "true"})
    upsert(table, [(1, "old"), (2, "old")])
    lazy = table.copy({"write-only": True})

    lazy.new_batch_write_builder().new_commit().overwrite(prepare(lazy, [(1, "new")]))
    table.compact()

    assert values(table) == [(1, "new")]


def two_tables():
    storage = MemoryStorage()
    ours = create_table(storage)
    catalog = open_catalog(storage)
    schema = Schema(list(ours.fields), [], [], {})
    catalog.create_table("db.other", schema)
    append(ours, rows_of([1]))
    return ours, catalog.get_table("db.other")


def a_branch():
    table = create_table()
    append(table, rows_of([1]))
    table.create_branch("b")
    return table, open_catalog(table.store.storage).get_table("db.t$branch_b")


CALLS = {
    "commit": lambda table, messages: table.new_batch_write_builder().new_commit().commit(messages),
    "overwrite": lambda table, messages: (
        table.new_batch_write_builder().new_commit().overwrite(messages)
    ),
    "abort": lambda table, messages: table.new_batch_write_builder().new_commit().abort(messages),
    "stream commit": lambda table, messages: (
        table.new_stream_write_builder("me").new_commit().commit(messages, 1)
    ),
    "filter_and_commit": lambda table, messages: (
        table.new_stream_write_builder("me").new_commit().filter_and_commit({1: messages})
    ),
}


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
@pytest.mark.parametrize("pair", [two_tables, a_branch])
def test_messages_of_another_table_or_branch_are_refused_and_their_files_stay(pair, call):
    ours, other = pair()
    messages = prepare(other, rows_of([9]))
    before = files_under(ours.store.storage, "")

    with pytest.raises(MessageMismatch, match=f"written for {other.store.layout.metadata_root}"):
        call(ours, messages)

    assert files_under(ours.store.storage, "") == before
    other.new_batch_write_builder().new_commit().commit(messages)
    assert read_ids(ours) == [1]


def test_messages_are_of_a_table_no_matter_who_opened_it():
    table = create_table()
    messages = prepare(table, rows_of([1]))

    again = open_table(table.store.storage).copy({"target-file-size": "1 mb"})
    again.new_batch_write_builder().new_commit().commit(messages)

    assert read_ids(table) == [1]
    assert len(data_files(table)) == 1
