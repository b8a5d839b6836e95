"""What explain says: every live file, what becomes of it and why, in text that reads well."""

import pyarrow as pa
import pytest

from builders import COLUMNS, alter, append, create_table, open_catalog, rows_of
from emberlake import Schema, SchemaChange
from emberlake.io import MemoryStorage
from emberlake.scan.explanation import Reason
from emberlake.table import Table
from table_reads import planned_files


@pytest.fixture
def table() -> Table:
    made = create_table(
        partition_keys=["day"],
        options={"bucket": "2", "bucket-key": "id", "source.split.target-size": "1 b"},
    )
    append(made, [*rows_of(range(10), "mon"), *rows_of(range(10), "tue")])
    append(made, rows_of(range(100, 110), "mon"))
    return made


def reasons(table: Table, where: str | None, limit: int | None = None) -> list[Reason]:
    explained = table.new_read_builder().with_filter(where).with_limit(limit).explain()
    return [file.reason for file in explained.files]


def test_every_file_has_a_reason(table: Table) -> None:
    found = reasons(table, "day = 'mon' AND id = 3")

    assert sorted(found) == sorted(
        [
            *[Reason.PARTITION] * 2,
            *[Reason.BUCKET] * 2,
            Reason.STATISTICS,
            Reason.READ,
        ]
    )


def test_files_whose_rows_all_match_are_marked(table: Table) -> None:
    assert reasons(table, "id >= 100").count(Reason.ALL_ROWS_MATCH) == 2
    assert reasons(table, "day = 'tue'").count(Reason.ALL_ROWS_MATCH) == 2
    assert set(reasons(table, None)) == {Reason.READ}


def test_a_limit_is_a_reason(table: Table) -> None:
    found = reasons(table, None, limit=1)

    assert (found.count(Reason.READ), found.count(Reason.LIMIT)) == (1, 5)


@pytest.mark.parametrize("where", [None, "id = 3", "day = 'mon'", "id > 1000", "day IS NULL"])
def test_the_files_reported_as_read_are_the_planned_ones(table: Table, where: str | None) -> None:
    explained = table.new_read_builder().with_filter(where).explain()

    read = sorted(file.path.rpartition("/")[2] for file in explained.files_read)
    assert read == sorted(planned_files(table, where))
    assert len(explained.files) == 6


def test_the_text_tells_the_whole_story(table: Table) -> None:
    builder = table.new_read_builder().with_filter("day = 'mon' AND id = 3").with_projection(["id"])

    text = str(builder.with_limit(7).explain())

    lines = [line.strip() for line in text.split("\n")]
    assert lines[0] == "Read of /warehouse/db.db/t"
    assert lines[1:6] == [
        "snapshot   2",
        "columns    id",
        "filter     day = 'mon' AND id = 3",
        "limit      7",
        "manifests  2 of 2 read",
    ]
    assert lines[6].startswith("files      1 of 6 read: ")
    assert "2  skipped: its partition does not match" in lines
    assert "1  skipped: its statistics exclude a match" in lines
    assert sum("/bucket-" in line for line in lines) == 6


def test_long_lists_are_cut_unless_all_is_asked_for() -> None:
    table = create_table()
    for number in range(25):
        append(table, rows_of([number]))
    builder = table.new_read_builder()

    assert "... and 5 more read; explain(verbose=True) has all" in str(builder.explain())
    assert str(builder.explain(verbose=True)).count("/bucket-0/") == 25


def test_files_that_are_read_come_before_those_that_are_not() -> None:
    table = create_table()
    for number in range(50):
        append(table, rows_of([number]))

    explained = table.new_read_builder().with_filter("id >= 25").explain()

    lines = str(explained).split("\n")[-42:]
    assert all(line.endswith("  read, all rows match") for line in lines[:20])
    assert lines[20] == "  ... and 5 more read; explain(verbose=True) has all"
    assert all(line.endswith("  skipped: its statistics exclude a match") for line in lines[21:41])
    assert lines[41] == "  ... and 5 more skipped; explain(verbose=True) has all"
    assert (len(explained.files_read), len(explained.files_skipped)) == (25, 25)


def test_the_first_of_many_columns_are_listed() -> None:
    names = ["id", *(f"c{number}" for number in range(499))]
    table = create_table(columns=pa.schema([(name, pa.int32()) for name in names]))

    assert "c18 and 480 more\n" in str(table.new_read_builder().explain())


def test_a_table_without_data_is_explained_too() -> None:
    text = str(create_table().new_read_builder().explain())

    assert "snapshot   none yet" in text
    assert "files      0 of 0 read" in text


def test_an_incremental_read_accounts_for_what_it_skips() -> None:
    table = create_table()
    for number in range(3):
        append(table, rows_of([number]))
    builder = table.copy({"incremental-between": "1,3"}).new_read_builder()

    explained = builder.with_filter("id = 2").explain()

    assert sorted(file.reason for file in explained.files) == sorted(
        [Reason.STATISTICS, Reason.ALL_ROWS_MATCH]
    )


def test_columns_are_named_as_they_come_out() -> None:
    table = alter(create_table(), SchemaChange.rename_column("id", "key"))
    append(table, pa.table({"key": [1], "day": ["mon"]}))

    explained = table.new_read_builder().explain()

    assert explained.columns == ("key", "day")


def test_files_that_are_read_come_first_then_the_others_by_reason(table: Table) -> None:
    found = reasons(table, "day = 'mon' AND id = 3")

    assert found == [
        Reason.READ,
        *[Reason.PARTITION] * 2,
        *[Reason.BUCKET] * 2,
        Reason.STATISTICS,
    ]


def test_a_cut_list_shows_what_is_read() -> None:
    table = create_table()
    for number in range(45):
        append(table, rows_of([number]))

    text = str(table.new_read_builder().with_filter("id >= 20").explain())

    lines = [line for line in text.split("\n") if ".parquet" in line]
    assert len(lines) == 40
    assert all("read" in line for line in lines[:20])
    assert "... and 5 more read" in text
    assert "25  read" in text
    assert "20  skipped: its statistics exclude a match" in text


def test_an_explanation_has_the_names_that_pypaimon_gives_to_what_it_says(table: Table) -> None:
    builder = table.new_read_builder().with_filter("day = 'mon' AND id = 3")

    found = builder.with_projection(["id"]).explain()

    assert (found.table_identifier, found.bucket_mode) == ("db.t", "HASH_FIXED")
    assert (found.is_primary_key_table, found.deletion_vectors_enabled) == (False, False)
    assert (found.snapshot_id, found.schema_id) == (2, 0)
    assert (found.projection, found.limit, found.predicate) == (
        ["id"],
        None,
        "day = 'mon' AND id = 3",
    )
    stats = (found.partition_pruning, found.bucket_pruning, found.file_skipping)
    assert [(s.before, s.after, s.pruned) for s in stats] == [(6, 4, 2), (4, 2, 2), (2, 1, 1)]
    assert (found.file_count, found.split_count, found.level_histogram) == (1, 1, {0: 1})
    assert found.estimated_row_count == found.estimated_merged_row_count == 4
    assert found.total_file_size == found.split_size_max == found.split_size_p95 > 0
    assert (found.files_per_split_min, found.files_per_split_avg) == (1, 1.0)
    assert (found.splits_raw_convertible, found.splits_with_deletion_vectors) == (1, 0)
    assert (found.splits_all_above_l0, found.deletion_file_count) == (0, 0)
    assert found.splits is None


def test_what_has_nothing_to_decide_on_is_not_there(table: Table) -> None:
    without = table.new_read_builder().explain()
    assert (without.partition_pruning, without.bucket_pruning, without.file_skipping) == (None,) * 3
    assert without.projection is None

    unpinned = table.new_read_builder().with_filter("day = 'mon'").explain()
    assert unpinned.bucket_pruning is None


def test_splits_are_listed_on_request(table: Table) -> None:
    found = table.new_read_builder().with_filter("day = 'tue'").explain(verbose=True)

    assert [(s.partition, s.bucket) for s in found.splits] == [
        ({"day": "tue"}, 0),
        ({"day": "tue"}, 1),
    ]
    assert all(s.file_count == len(s.file_paths) == 1 for s in found.splits)
    assert sum(s.merged_row_count for s in found.splits) == 10


def test_an_empty_table_is_explained_in_zeros() -> None:
    found = create_table().new_read_builder().explain()

    assert (found.snapshot_id, found.schema_id, found.split_count) == (None, None, 0)
    assert (found.files_per_split_avg, found.split_size_p50) == (0.0, 0)
    assert found.estimated_merged_row_count is None


@pytest.mark.parametrize(
    ("options", "keys", "partition", "mode"),
    [
        ({}, [], [], "BUCKET_UNAWARE"),
        ({"bucket": "2", "bucket-key": "id"}, [], [], "HASH_FIXED"),
        ({"bucket": "1"}, ["id"], [], "HASH_FIXED"),
        ({"bucket": "-1"}, ["id"], [], "HASH_DYNAMIC"),
        ({"bucket": "-2"}, ["id"], [], "POSTPONE_MODE"),
    ],
)
def test_the_bucket_mode_is_named_as_in_the_specification(
    options: dict[str, str], keys: list[str], partition: list[str], mode: str
) -> None:
    catalog = open_catalog(MemoryStorage())
    catalog.create_database("db")
    schema = Schema.from_pyarrow_schema(COLUMNS, partition, keys, options)
    catalog.create_table("db.t", schema)

    assert catalog.get_table("db.t").new_read_builder().explain().bucket_mode == mode
