"""Traps that users of other engines fell into, each told as what happens here instead."""

import datetime as dt

import pyarrow as pa
import pytest

from append_tables import (
    NAME,
    append,
    create_table,
    data_files,
    files_under,
    latest_snapshot,
    open_catalog,
    open_table,
    overwrite,
    prepare,
    read_ids,
    rows_of,
)
from emberlake import AtomicType, CatalogFactory, DataField, MultisetType, Schema
from emberlake.errors import (
    AlreadyCommitted,
    ColumnNotFound,
    EmberlakeError,
    InvalidIdentifier,
    InvalidSchema,
    TableNotFound,
)
from emberlake.io import MemoryStorage
from emberlake.predicates import filter_rows, parse_predicate
from emberlake.scan.files import manifests_of
from table_reads import delete_rows, live_files, planned_files, read_rows
from watched_storage import Call, WatchedStorage

# --- timestamps -----------------------------------------------------------------------------------


@pytest.mark.parametrize("file_format", ["parquet", "orc"])
def test_nanoseconds_stay_nanoseconds(file_format: str) -> None:
    columns = pa.schema([("id", pa.int64()), ("t", pa.timestamp("ns"))])
    table = create_table(columns=columns, options={"file.format": file_format})
    nanos = [1_700_000_000_123_456_789, 5, None]
    append(table, pa.table([[1, 2, 3], pa.array(nanos, pa.timestamp("ns"))], columns))
    builder = table.new_read_builder()

    rows = builder.new_read().to_arrow(builder.new_scan().plan().splits())

    assert rows.column("t").cast(pa.int64()).to_pylist() == nanos
    where = "t = TIMESTAMP '1970-01-01 00:00:00.000000005'"
    assert [row["id"] for row in read_rows(table, where, ["id"])] == [2]


# --- commits --------------------------------------------------------------------------------------


def test_messages_are_committed_once_however_often_they_are_given() -> None:
    table = create_table()
    builder = table.new_batch_write_builder()
    messages = prepare(table, rows_of([1]), builder)
    builder.new_commit().commit(messages)

    with pytest.raises(AlreadyCommitted):
        table.new_batch_write_builder().new_commit().commit(messages)

    assert read_ids(table) == [1]
    assert latest_snapshot(table).id == 1


def test_a_stream_commits_an_identifier_once() -> None:
    table = create_table()

    def commit(number: int, identifier: int) -> None:
        builder = table.new_stream_write_builder("job-1")
        with builder.new_write() as write:
            write.write_arrow(pa.Table.from_pylist(rows_of([number])))
            builder.new_commit().commit(write.prepare_commit(identifier), identifier)

    commit(1, 7)
    with pytest.raises(AlreadyCommitted):
        commit(2, 7)

    assert read_ids(table) == [1]


def test_a_replayed_batch_of_a_stream_is_recognised_and_skipped() -> None:
    table = create_table()
    builder = table.new_stream_write_builder("job-1")
    with builder.new_write() as write:
        write.write_arrow(pa.Table.from_pylist(rows_of([1])))
        messages = write.prepare_commit(1)

    counts = [
        table.new_stream_write_builder("job-1").new_commit().filter_and_commit({1: messages})
        for _ in range(2)
    ]

    assert counts == [1, 0]
    assert read_ids(table) == [1]


def test_a_snapshot_is_only_ever_created_never_replaced() -> None:
    inner = MemoryStorage()
    create_table(inner)
    storage = WatchedStorage(inner)
    rival = open_table(inner)

    def commit_in_between(call: Call) -> None:
        if call.method == "put_if_absent" and "/snapshot-1" in call.path and not call.is_done:
            storage.watch = lambda _: None
            append(rival, rows_of([2]))

    storage.watch = commit_in_between
    append(open_table(storage), rows_of([1]))

    assert read_ids(rival) == [1, 2]
    assert latest_snapshot(rival).id == 2
    written = {c.method for c in storage.calls if "/snapshot-" in c.path and c.method != "read"}
    assert written <= {"put_if_absent", "exists"}


def test_manifests_do_not_pile_up() -> None:
    table = create_table()

    for number in range(70):
        append(table, rows_of([number]))

    assert len(manifests_of(table.store, latest_snapshot(table))) <= 31
    assert read_ids(table) == list(range(70))


# --- creating tables ------------------------------------------------------------------------------

TWO = pa.schema([pa.field("id", pa.int64(), nullable=False), pa.field("day", pa.string())])


@pytest.mark.parametrize(
    ("keys", "options"),
    [
        ({"primary_keys": ["nope"]}, {}),
        ({"primary_keys": ["id", "id"]}, {}),
        ({"partition_keys": ["nope"]}, {}),
        ({"partition_keys": ["day", "day"]}, {}),
        ({}, {"bucket": "0"}),
        ({}, {"bucket": "many"}),
        ({}, {"bucket": "4"}),
        ({}, {"bucket": "4", "bucket-key": "nope"}),
        ({"primary_keys": ["id"]}, {"merge-engine": "magic"}),
        ({}, {"file.format": "stone"}),
    ],
)
def test_a_table_that_cannot_be_is_not_created(
    keys: dict[str, list[str]], options: dict[str, str]
) -> None:
    catalog = open_catalog(MemoryStorage())
    catalog.create_database("db")

    with pytest.raises(EmberlakeError):
        catalog.create_table(NAME, Schema.from_pyarrow_schema(TWO, options=options, **keys))

    assert catalog.list_tables("db") == []
    assert files_under(catalog.storage, catalog.warehouse) == set()


def test_a_table_with_a_broken_schema_can_still_be_dropped() -> None:
    table = create_table()
    storage, layout = table.store.storage, table.store.layout
    storage.put(layout.schema(0), b"{ not json")
    catalog = open_catalog(storage)

    with pytest.raises(EmberlakeError):
        catalog.get_table(NAME)
    catalog.drop_table(NAME)

    with pytest.raises(TableNotFound):
        catalog.get_table(NAME)


@pytest.mark.parametrize(
    ("arrow", "paimon"), [("s", "TIME(0)"), ("ms", "TIME(3)"), ("us", "TIME(6)"), ("ns", "TIME(9)")]
)
def test_times_keep_their_precision_in_the_schema(arrow: str, paimon: str) -> None:
    kind = pa.time32(arrow) if arrow in ("s", "ms") else pa.time64(arrow)

    table = create_table(columns=pa.schema([("t", kind)]))

    assert str(table.fields[0].type) == paimon
    append(table, pa.table([pa.array([dt.time(1, 2, 3)]).cast(kind)], ["t"]))
    assert read_rows(table) == [{"t": dt.time(1, 2, 3)}]


@pytest.mark.parametrize(
    "kind", [pa.decimal256(50, 2), pa.decimal128(10, -2), pa.month_day_nano_interval()]
)
def test_a_column_without_a_type_in_the_format_is_refused_by_name(kind: pa.DataType) -> None:
    with pytest.raises(InvalidSchema, match="price"):
        Schema.from_pyarrow_schema(pa.schema([("price", kind)]))


@pytest.mark.parametrize("name", ["../evil", "a/b", "..", "", ".hidden/../x"])
def test_names_cannot_lead_out_of_the_warehouse(
    name: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("outside")
    catalog = CatalogFactory.create({"warehouse": str(folder / "warehouse")})
    catalog.create_database("db")
    before = sorted(folder.rglob("*"))

    with pytest.raises(InvalidIdentifier):
        catalog.create_database(name)
    for table in (f"db.{name}", f"{name}.t"):
        with pytest.raises(InvalidIdentifier):
            catalog.create_table(table, Schema.from_pyarrow_schema(TWO))

    assert sorted(folder.rglob("*")) == before


# --- partitions -----------------------------------------------------------------------------------

BY_DATE = pa.schema([("id", pa.int64()), ("d", pa.date32())])


def by_date(*numbers: int) -> pa.Table:
    dates = [dt.date(2024, 1, number) for number in numbers]
    return pa.table([list(numbers), pa.array(dates)], BY_DATE)


@pytest.mark.parametrize("literal", ["2024-01-02", dt.date(2024, 1, 2)])
def test_partitions_may_be_named_by_text(literal: object) -> None:
    table = create_table(columns=BY_DATE, partition_keys=["d"])
    catalog = open_catalog(table.store.storage)
    commit = table.new_batch_write_builder().new_commit()

    append(table, by_date(1, 2, 3))
    commit.truncate_partitions([{"d": literal}])
    assert read_ids(table) == [1, 3]

    append(table, by_date(2))
    overwrite(table.copy({"dynamic-partition-overwrite": False}), [], {"d": literal})
    assert read_ids(table) == [1, 3]

    append(table, by_date(2))
    catalog.drop_partitions(NAME, [{"d": literal}])
    assert read_ids(table) == [1, 3]


def test_what_a_partition_is_listed_as_names_it() -> None:
    table = create_table(columns=BY_DATE, partition_keys=["d"])
    append(table, by_date(1, 2, 3))
    catalog = open_catalog(table.store.storage)

    listed = [partition.spec for partition in catalog.list_partitions_paged(NAME).elements]
    catalog.drop_partitions(NAME, listed[:2])

    assert read_ids(table) == [3]


# --- reading --------------------------------------------------------------------------------------


def test_a_projection_of_unknown_columns_is_an_error() -> None:
    with pytest.raises(ColumnNotFound, match=r"nope, neither.*id, day"):
        create_table().new_read_builder().with_projection(["id", "nope", "neither"])


def test_files_have_statistics_and_are_skipped_by_them() -> None:
    table = create_table()
    append(table, rows_of([1, 2]))
    append(table, rows_of([8, 9]))

    assert all(entry.file.value_stats.null_counts for entry in live_files(table))
    assert len(planned_files(table, "id = 9")) == 1
    assert len(data_files(table)) == 2


def test_deletion_vectors_of_64_bits_are_read() -> None:
    table = create_table()
    append(table, rows_of([1, 2, 3]))
    (entry,) = live_files(table)

    delete_rows(table, {entry.file.file_name: [0, 2]}, bitmap64=True)

    assert read_ids(table) == [2]


@pytest.mark.parametrize("file_format", ["parquet", "orc", "avro"])
def test_multisets_are_columns_like_others(file_format: str) -> None:
    catalog = open_catalog(MemoryStorage())
    catalog.create_database("db")
    words = DataField(0, "words", MultisetType(True, AtomicType("STRING", nullable=False)))
    catalog.create_table(NAME, Schema([words], options={"file.format": file_format}))
    table = catalog.get_table(NAME)

    column = pa.array([[("a", 2), ("b", 1)], [], None], pa.map_(pa.string(), pa.int32()))
    append(table, pa.table([column], ["words"]))

    assert read_rows(table) == [{"words": [("a", 2), ("b", 1)]}, {"words": []}, {"words": None}]


def test_an_incremental_read_is_asked_for_by_copy() -> None:
    table = create_table()
    for number in (1, 2, 3):
        append(table, rows_of([number]))

    assert read_ids(table.copy({"incremental-between": "1,3"})) == [2, 3]


def test_rows_inside_avro_files_keep_their_fields() -> None:
    inner = pa.struct([("x", pa.int64()), ("deep", pa.struct([("y", pa.string())]))])
    columns = pa.schema(
        [("s", inner), ("many", pa.list_(inner)), ("by", pa.map_(pa.string(), inner))]
    )
    table = create_table(columns=columns, options={"file.format": "avro"})
    value = {"x": 1, "deep": {"y": "z"}}
    rows = [{"s": value, "many": [value, None], "by": [("k", value)]}]

    append(table, pa.Table.from_pylist(rows, columns))

    assert read_rows(table) == rows
    assert read_rows(table, "s.deep.y = 'z'", ["s.x"]) == [{"s_x": 1}]


def test_a_filter_is_applied_to_the_row_also_where_statistics_were_enough_to_plan() -> None:
    table = create_table()
    append(table, rows_of(range(100)))
    builder = table.new_read_builder()
    everything = builder.new_read().to_arrow(builder.new_scan().plan().splits())

    for where in ("id > 50", "id IN (1, 2)", "day LIKE 'm%' AND id < 3"):
        expected = filter_rows(parse_predicate(where, table.fields), everything)
        assert read_rows(table, where) == expected.to_pylist()
