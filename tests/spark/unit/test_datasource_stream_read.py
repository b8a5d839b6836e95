"""What a stream sees of a table that goes on changing, as Spark asks for it."""

import pickle
from pathlib import Path
from typing import Any

import pytest

from builders import append, overwrite, rows_of
from emberlake import SchemaChange, SnapshotNotFound, Table
from emberlake.datasource.source import EmberlakeDataSource
from emberlake.datasource.stream_read import StreamReader
from spark.reads import altered, write
from spark.tables import new_table, reopened, warehouse_of


def stream(table: Table, **options: str) -> StreamReader:
    """A stream of the table's ids, made as Spark makes it; options have `_` for `-`."""
    named = {key.replace("__", ".").replace("_", "-"): value for key, value in options.items()}
    source = EmberlakeDataSource({"path": "db.t", "warehouse": warehouse_of(table), **named})
    schema = source.schema()
    return pickle.loads(pickle.dumps(source)).streamReader(schema)


def rows_between(reader: StreamReader, start: dict[str, Any], end: dict[str, Any]) -> list[Any]:
    partitions = reader.partitions(start, end)
    batches = [batch for partition in partitions for batch in reader.read(partition)]
    return [row for batch in batches for row in batch.to_pylist()]


def ids_of(reader: StreamReader, start: dict[str, Any] | None = None) -> list[int]:
    """The ids that a query reads, from its checkpoint if it has one, to the end."""
    begin = reader.initialOffset() if start is None else start
    rows = rows_between(reader, begin, reader.latestOffset(begin))
    return sorted(row["id"] for row in rows)


def test_a_stream_is_not_bound_to_the_snapshot_of_its_start(tmp_path: Path) -> None:
    table = write(new_table(tmp_path), [0])
    reader = stream(table)
    begin = reader.initialOffset()
    first = reader.latestOffset(begin)

    write(table, [1, 2])

    assert ids_of(reader, begin) == [0, 1, 2]
    assert ids_of(reader, first) == [1, 2]


def test_a_stream_from_a_snapshot_that_has_expired_begins_with_the_first_that_is_left(
    tmp_path: Path,
) -> None:
    table = new_table(tmp_path)
    for number in range(4):
        write(table, [number])
    reopened(table).expire_snapshots(retain_max=2, retain_min=2)

    assert ids_of(stream(table, snapshot_id="1")) == [2, 3]


def test_the_checkpoint_of_a_query_overrides_its_start_option(tmp_path: Path) -> None:
    table = new_table(tmp_path)
    for number in range(3):
        write(table, [number])
    checkpoint = {"snapshot": 3, "full": False, "units": 0}

    for options in ({}, {"snapshot_id": "1"}, {"scan__mode": "latest"}):
        assert ids_of(stream(table, **options), checkpoint) == [2]


@pytest.mark.parametrize(("option", "ids"), [("false", [3]), ("true", [2, 3])])
def test_overwrites_of_append_tables_come_only_on_request(
    tmp_path: Path, option: str, ids: list[int]
) -> None:
    table = write(new_table(tmp_path), [1])
    reader = stream(table, scan__mode="latest", streaming_read_append_overwrite=option)
    begin = reader.initialOffset()

    rows = [{**row, "name": "n", "price": 0.0} for row in rows_of([2])]
    overwrite(reopened(table), rows)
    append(reopened(table), [{**rows[0], "id": 3}])

    assert ids_of(reader, begin) == ids


def test_a_column_that_is_added_later_comes_after_a_restart(tmp_path: Path) -> None:
    table = write(new_table(tmp_path), [1])
    reader = stream(table)
    begin = reader.latestOffset(reader.initialOffset())

    more = altered(table, SchemaChange.add_column("later", "INT"))
    append(more, [{"id": 2, "day": "mon", "name": "n", "price": 0.0, "later": 7}])

    (row,) = rows_between(reader, begin, reader.latestOffset(begin))
    assert "later" not in row
    restarted = stream(table)
    (row,) = rows_between(restarted, begin, restarted.latestOffset(begin))
    assert row["later"] == 7


def test_a_consumer_keeps_what_a_new_query_of_its_name_goes_on_with(tmp_path: Path) -> None:
    table = write(new_table(tmp_path), [0])
    reader = stream(table, consumer_id="me")
    reader.commit(reader.latestOffset(reader.initialOffset()))
    for number in range(1, 4):
        write(table, [number])

    reopened(table).expire_snapshots(retain_max=1, retain_min=1)

    assert ids_of(stream(table, consumer_id="me")) == [1, 2, 3]


def test_a_snapshot_that_has_expired_before_it_was_read_stops_the_query(tmp_path: Path) -> None:
    table = write(new_table(tmp_path), [0])
    reader = stream(table)
    begin = reader.latestOffset(reader.initialOffset())
    for number in range(1, 4):
        write(table, [number])

    reopened(table).expire_snapshots(retain_max=1, retain_min=1)

    with pytest.raises(SnapshotNotFound, match="expired"):
        ids_of(reader, begin)
