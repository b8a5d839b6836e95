"""What explain says: every live file, what becomes of it and why, in text that reads well."""

import pyarrow as pa
import pytest

from append_tables import append, create_table, rows_of
from emberlake import SchemaChange
from emberlake.scan.explain import Reason
from emberlake.table import Table
from table_reads import alter, planned_files


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


def test_files_whose_rows_all_match_are_told_apart(table: Table) -> None:
    assert reasons(table, "id >= 100").count(Reason.ALL_ROWS_MATCH) == 2
    assert reasons(table, "day = 'tue'").count(Reason.ALL_ROWS_MATCH) == 2
    assert set(reasons(table, None)) == {Reason.READ}


def test_a_limit_is_a_reason(table: Table) -> None:
    found = reasons(table, None, limit=1)

    assert (found.count(Reason.READ), found.count(Reason.LIMIT)) == (1, 5)


@pytest.mark.parametrize("where", [None, "id = 3", "day = 'mon'", "id > 1000", "day IS NULL"])
def test_the_files_that_are_said_to_be_read_are_the_planned_ones(
    table: Table, where: str | None
) -> None:
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

    assert "and 5 more; explain(verbose=True) has all" in str(builder.explain())
    assert str(builder.explain(verbose=True)).count("/bucket-0/") == 25


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
