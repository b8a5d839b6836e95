"""Which records of a key table are rows, found without merging."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import pyarrow as pa
import pytest

from builders import append, create_key_table, lift
from emberlake import Table
from emberlake.options import PRIMARY_KEY_NULLABLE
from emberlake.scan.newest import KeyFiles, find_key_files, keeps_newest
from emberlake.scan.plan import plan_scan
from emberlake.scan.splits import DataSplit
from emberlake.store.entries import ManifestEntries

PLAIN = {"write-only": "true"}


def written(*writes: Sequence[int], **options: str) -> Table:
    """A key table of one bucket, with a file for each write."""
    table = create_key_table(NUMBERS, **{**PLAIN, **options})
    for ids in writes:
        append(table, [{"id": i, "v": "x"} for i in ids])
    return table


NUMBERS = pa.schema([pa.field("id", pa.int64(), nullable=False), ("v", pa.string())])


def found_in(table: Table) -> dict[str, list[list[int]]]:
    """The files by what they are, each as the sequence numbers that it begins and ends with."""
    result: dict[str, list[list[int]]] = {}
    for split in plan_scan(table.store, None, None).splits:
        found = find_key_files(table.table_schema, split)
        for name in KeyFiles.__dataclass_fields__:
            result.setdefault(name, []).extend(numbers(split, getattr(found, name)))
    return {name: sorted(files) for name, files in result.items() if files}


def numbers(split: DataSplit, places: Sequence[int]) -> list[list[int]]:
    files = [split.files[place] for place in places]
    return [[file.min_sequence_number, file.max_sequence_number] for file in files]


def test_a_file_that_shares_no_key_is_alone() -> None:
    assert found_in(written([1, 2], [3, 4])) == {"alone": [[0, 1], [2, 3]]}


def test_newer_files_may_replace_records_of_older_ones_and_of_each_other() -> None:
    table = written([1, 2, 3, 9], [2, 3], [3, 4])

    assert found_in(table) == {"layered": [[0, 3], [4, 5], [6, 7]], "newer": [[4, 5], [6, 7]]}


def test_a_newer_file_that_shares_keys_with_none_replaces_nothing() -> None:
    table = written([1, 2], [5, 6], [1, 5])

    assert found_in(table) == {"layered": [[0, 1], [2, 3], [4, 5]], "newer": [[4, 5]]}


def test_files_apart_from_those_that_share_keys_are_alone() -> None:
    table = written([1, 2], [10, 20], [15, 16])

    assert found_in(table) == {
        "alone": [[0, 1]],
        "layered": [[2, 3], [4, 5]],
        "newer": [[4, 5]],
    }


def test_compacted_files_need_nothing_else() -> None:
    table = written([1, 5], [2, 3])
    lift(table, {0: 5, 1: 5})

    assert found_in(table) == {"alone": [[0, 1], [2, 3]]}


def test_files_whose_numbers_overlap_are_merged() -> None:
    table = written([1, 2, 3], [2])
    (split,) = plan_scan(table.store, None, None).splits
    newer = split.entries.entries()[1]
    assert newer.file.min_sequence_number == 3

    mixed = renumbered(split, least=2)

    assert find_key_files(table.table_schema, mixed) == KeyFiles(merged=(0, 1))


def renumbered(split: DataSplit, least: int) -> DataSplit:
    """The split with another least number in its last file."""
    *others, last = split.entries.entries()
    changed = replace(last, file=replace(last.file, min_sequence_number=least))
    return replace(split, entries=ManifestEntries.from_entries([*others, changed]))


@pytest.mark.parametrize(
    "options",
    [
        {"sequence.field": "v"},
        {"merge-engine": "partial-update"},
        {"merge-engine": "aggregation"},
        {"ignore-delete": "true"},
        {"deletion-vectors.enabled": "true", "deletion-vectors.merge-on-read": "true"},
    ],
)
def test_tables_whose_rows_depend_on_more_are_merged(options: Mapping[str, str]) -> None:
    table = written([1, 2, 3], [2], **options)

    assert not keeps_newest(table.table_schema)
    assert found_in(table) == {"merged": [[0, 2], [3, 3]]}


def test_a_key_that_each_partition_has_for_itself_is_merged() -> None:
    columns = pa.schema([*NUMBERS, pa.field("day", pa.string(), nullable=False)])

    inside = create_key_table(columns, ["day", "id"], ["day"])
    outside = create_key_table(columns, ["id"], ["day"])

    assert keeps_newest(inside.table_schema)
    assert not keeps_newest(outside.table_schema)


@pytest.mark.parametrize(
    ("key", "expected"),
    [
        (pa.int32(), True),
        (pa.string(), True),
        (pa.date32(), True),
        (pa.decimal128(12, 3), True),
        (pa.bool_(), True),
        (pa.float64(), False),
        (pa.timestamp("us"), False),
        (pa.binary(), False),
    ],
)
def test_keys_must_be_equal_in_every_engine_exactly_if_their_values_are(
    key: pa.DataType, expected: bool
) -> None:
    columns = pa.schema([pa.field("id", key, nullable=False), ("v", pa.string())])

    assert keeps_newest(create_key_table(columns).table_schema) is expected


def test_keys_that_may_be_null_are_merged() -> None:
    """For us two nulls are one key."""
    columns = pa.schema([("id", pa.int64()), ("v", pa.string())])
    table = create_key_table(columns, **{PRIMARY_KEY_NULLABLE.key: "true"})

    assert not keeps_newest(table.table_schema)
