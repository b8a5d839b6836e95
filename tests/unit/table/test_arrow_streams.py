"""Libraries of the Arrow world take a table, or a scan of one, as it is."""

import duckdb
import polars as pl
import pyarrow as pa
import pytest

from builders import append, create_key_table, create_table, open_catalog, rows_of
from emberlake import ColumnNotFound, InvalidInput
from places import new_storage
from watched_storage import WatchedStorage


def a_table():
    table = create_table(partition_keys=["day"])
    append(table, rows_of([1, 2], "mon"))
    append(table, rows_of([3], "tue"))
    return table


def test_duckdb_finds_a_table_among_the_variables():
    orders = a_table()  # noqa: F841

    assert duckdb.sql("SELECT sum(id), count(DISTINCT day) FROM orders").fetchall() == [(6, 2)]
    assert duckdb.sql("SELECT count(*) FROM orders a JOIN orders b USING (id)").fetchall() == [(3,)]


def test_duckdb_sees_what_is_committed_between_two_queries():
    orders = a_table()
    relation = duckdb.sql("SELECT max(id) FROM orders")
    append(orders, rows_of([9]))

    assert duckdb.sql("SELECT max(id) FROM orders").fetchall() == [(9,)]
    assert relation.fetchall() == [(9,)]


def test_polars_and_pyarrow_take_a_table_and_a_scan():
    table = a_table()
    monday = table.scan(["id"], filter="day = 'mon'")

    assert pl.DataFrame(table).sort("id")["id"].to_list() == [1, 2, 3]
    assert pl.DataFrame(monday).to_dict(as_series=False) == {"id": [1, 2]}
    assert pa.table(monday).to_pydict() == {"id": [1, 2]}
    assert pa.schema(monday) == monday.schema == pa.schema([("id", pa.int64())])


def test_a_scan_reads_what_was_asked_for_in_every_form():
    table = create_key_table()
    append(table, [(1, "a"), (2, "b"), (3, "c")])
    append(table, [(1, "z")])
    scan = table.scan(["v"], filter="id < 3", snapshot=1)

    assert scan.to_arrow().to_pydict() == {"v": ["a", "b"]}
    assert scan.to_batches().read_all().num_rows == 2
    assert scan.to_pandas()["v"].tolist() == ["a", "b"]
    assert scan.to_polars()["v"].to_list() == ["a", "b"]
    assert scan.to_duckdb().fetchall() == [("a",), ("b",)]
    assert repr(scan) == "FileScan(db.t, columns=['v'], filter='id < 3', snapshot=1)"


def test_a_stream_opens_files_as_they_are_needed():
    watched = WatchedStorage(new_storage())
    table = create_table(watched)
    for number in range(30):
        append(table, rows_of([number]))

    reader = pa.RecordBatchReader.from_stream(table)
    reader.read_next_batch()

    opened = {call.path for call in watched.calls if call.method == "open_input"}
    assert len(opened) < 10


def test_a_wish_for_other_types_is_granted_where_nothing_is_lost():
    table = a_table()
    wish = pa.schema([("id", pa.int64()), ("day", pa.large_string())])

    rows = pa.RecordBatchReader.from_stream(table, wish).read_all()

    assert rows.schema == wish


def test_a_table_is_written_from_another_one():
    source, target = a_table(), create_table(partition_keys=["day"])

    target.append(source)
    target.append(source.scan(filter="day = 'tue'"))

    assert sorted(target.to_arrow()["id"].to_pylist()) == [1, 2, 3, 3]


def test_system_tables_have_streams_too():
    table = a_table()
    files = open_catalog(table.store.storage).get_table("db.t$files")  # noqa: F841

    assert duckdb.sql("SELECT sum(record_count) FROM files").fetchall() == [(3,)]


def test_a_scan_of_nothing_is_refused_at_once():
    table = a_table()

    with pytest.raises(ColumnNotFound):
        table.scan(["idd"])
    with pytest.raises(InvalidInput, match="one state"):
        table.scan(snapshot=1, tag="x")


def test_history_files_and_partitions_are_small_tables():
    table = a_table()
    table.create_tag("v1", 1)
    table.create_tag("same", 1)

    history = table.history()

    assert history["snapshot_id"].to_pylist() == [2, 1]
    assert history["tags"].to_pylist() == [[], ["same", "v1"]]
    assert table.files()["record_count"].to_pylist() == [2, 1]
    assert table.partitions()["partition"].to_pylist() == ["day=mon", "day=tue"]
    assert table.files()["level"].num_chunks == table.partitions()["partition"].num_chunks == 1
    at_first = table.copy({"scan.snapshot-id": "1"})
    assert at_first.files().num_rows == at_first.partitions().num_rows == 1
    assert create_table().history().num_rows == 0
