"""Rows that wait for their bucket are written as they come, unless no engine would merge them."""

import pytest

from builders import create_key_table, data_of, upsert
from emberlake.errors import DataMismatch
from table_reads import data_files, live_files, records_in

COLUMNS = {"id": "BIGINT", "n": "INT"}
REFUSING = {
    "partial-update": {"merge-engine": "partial-update"},
    "aggregation": {"merge-engine": "aggregation", "fields.n.aggregate-function": "max"},
    "first-row": {"merge-engine": "first-row"},
}
TAKING = {
    "deduplicate": {},
    "partial-update": {
        "merge-engine": "partial-update",
        "partial-update.remove-record-on-delete": "true",
    },
    "aggregation": {"merge-engine": "aggregation", "fields.n.aggregate-function": "sum"},
}


@pytest.mark.parametrize("engine", REFUSING)
def test_deletes_that_a_compaction_would_get_stuck_on_are_refused(engine: str) -> None:
    table = create_key_table(COLUMNS, bucket="-2", **REFUSING[engine])
    write = table.new_batch_write_builder().new_write()
    write.write_arrow(data_of(table, [(1, 1), (2, 2)]))

    with pytest.raises(DataMismatch, match=r"-D|delete"):
        write.write_arrow(data_of(table, [(3, 3)]), "-D")

    write.close()
    assert data_files(table) == set()


@pytest.mark.parametrize("engine", TAKING)
def test_deletes_that_can_be_merged_are_written(engine: str) -> None:
    table = create_key_table(COLUMNS, bucket="-2", **TAKING[engine])

    upsert(table, [(1, 1), (1, 2)], "-D")

    (entry,) = live_files(table)
    assert records_in(table, entry) == [(1, 1, 0, "-D"), (1, 2, 1, "-D")]
    assert entry.file.delete_row_count == 2


@pytest.mark.parametrize("number", [-128, 0, 127])
def test_any_value_can_be_taken_back(number: int) -> None:
    columns = {"id": "BIGINT", "n": "TINYINT"}
    table = create_key_table(columns, bucket="-2", **TAKING["aggregation"])

    upsert(table, [(1, number)], "-D")

    assert len(live_files(table)) == 1


def test_deletes_that_are_ignored_are_not_written() -> None:
    table = create_key_table(
        COLUMNS, bucket="-2", **{"merge-engine": "first-row", "ignore-delete": "true"}
    )

    upsert(table, [(1, 1)], "-D")

    assert live_files(table) == []


def test_every_writer_has_a_name_of_its_own() -> None:
    table = create_key_table(COLUMNS, bucket="-2")
    builder = table.new_stream_write_builder("me")
    with builder.new_write() as write, builder.new_commit() as commit:
        for number in (1, 2):
            write.write_arrow(data_of(table, [(number, 0)]))
            commit.commit(write.prepare_commit(number), number)

    prefixes = {entry.file.file_name.split("-w-")[0] for entry in live_files(table)}
    assert len(live_files(table)) == 2
    assert len(prefixes) == 1
    assert next(iter(prefixes)).startswith("data--u-me-s-")
