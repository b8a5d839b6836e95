"""What an overwrite replaces, as a value."""

import pickle

import pytest

from append_tables import append, create_table, prepare, read_ids, rows_of
from emberlake.errors import InvalidInput
from emberlake.spec.replacement import Replacement


def days(**options):
    table = create_table(partition_keys=["day"], options=options)
    append(table, [*rows_of([1], "mon"), *rows_of([2], "tue")])
    return table


@pytest.mark.parametrize(
    ("make", "left"),
    [
        (Replacement.dynamic, [2, 9]),
        (lambda schema: Replacement.dynamic(schema, {"day": "mon"}), [2, 9]),
        (lambda schema: Replacement.static(schema, {"day": "mon"}), [2, 9]),
        (Replacement.whole_table, [9]),
    ],
)
@pytest.mark.parametrize("option", ["true", "false"])
def test_builders_and_commits_take_it_whatever_the_option_says(make, left, option):
    table = days(**{"dynamic-partition-overwrite": option})
    replacement = make(table.table_schema)

    builder = table.new_batch_write_builder().overwrite(replacement)
    builder.new_commit().commit(prepare(table, rows_of([9], "mon"), builder))
    assert read_ids(table) == left

    messages = prepare(table, rows_of([9], "mon"))
    table.new_batch_write_builder().new_commit().overwrite(messages, replacement)
    assert read_ids(table) == left


def test_no_data_replaces_what_matches_unless_it_is_dynamic():
    table = days()
    commit = table.new_batch_write_builder().new_commit()

    commit.overwrite([], Replacement.dynamic(table.table_schema, {"day": "mon"}))
    assert read_ids(table) == [1, 2]
    commit.overwrite([], Replacement.static(table.table_schema, {"day": "mon"}))
    assert read_ids(table) == [2]


def test_it_crosses_processes():
    replacement = Replacement.dynamic(days().table_schema, {"day": "mon"})

    assert pickle.loads(pickle.dumps(replacement)) == replacement


def test_what_is_no_partition_column_is_named():
    with pytest.raises(InvalidInput, match="id is not a partition column"):
        Replacement.dynamic(days().table_schema, {"id": 1})
