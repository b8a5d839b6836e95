"""What an overwrite replaces, as a value."""

import pickle

import pytest

from builders import append, create_table, prepare, rows_of
from emberlake.errors import InvalidInput
from emberlake.spec.replacement import OVERWRITES, Replacement
from emberlake.spec.schema import TableSchema
from table_reads import read_ids

MONDAY = {"day": "mon"}


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
    builder.new_commit().commit(prepare(table, rows_of([9], "mon"), builder=builder))
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


# --- what one call says ---------------------------------------------------------------------------


def schema(*, is_dynamic: bool = True, partition_keys: tuple[str, ...] = ("day",)) -> TableSchema:
    option = {"dynamic-partition-overwrite": is_dynamic}
    return create_table(partition_keys=list(partition_keys)).copy(option).table_schema


@pytest.mark.parametrize("is_dynamic", [True, False])
@pytest.mark.parametrize("partition", [None, MONDAY])
def test_a_word_counts_whatever_the_option_says(is_dynamic: bool, partition) -> None:
    table = schema(is_dynamic=is_dynamic)

    def chosen(word: str) -> Replacement | None:
        return Replacement.chosen(table, partition, overwrite=word)

    assert chosen("dynamic") == Replacement.dynamic(table, partition)
    assert chosen("static") == Replacement.static(table, partition or {})
    if partition is None:
        assert chosen("all") == Replacement.whole_table(table)


@pytest.mark.parametrize("is_dynamic", [True, False])
def test_yes_is_what_the_option_says_and_with_a_partition_all_of_that(is_dynamic: bool) -> None:
    table = schema(is_dynamic=is_dynamic)

    assert Replacement.chosen(table, overwrite=True) == Replacement.by_options(table, None)
    assert Replacement.chosen(table, MONDAY, overwrite=True) == Replacement.static(table, MONDAY)
    assert Replacement.chosen(table, overwrite=False) is None


def test_what_contradicts_itself_is_refused() -> None:
    with pytest.raises(InvalidInput, match="replaces the whole table, but a partition is given"):
        Replacement.chosen(schema(), MONDAY, overwrite="all")
    with pytest.raises(InvalidInput, match="give overwrite=True, too"):
        Replacement.chosen(schema(), MONDAY, overwrite=False)


@pytest.mark.parametrize("word", ["ALL", "", "append", 1, 0, None])
def test_any_other_word_is_refused_with_the_choices(word) -> None:
    with pytest.raises(InvalidInput) as refused:
        Replacement.chosen(schema(), overwrite=word)

    assert all(repr(choice) in str(refused.value) for choice in OVERWRITES)
    assert f"not {word!r}" in str(refused.value)
