"""Traps that users of other engines fell into; each test shows what happens here instead."""

import datetime as dt
from typing import Any

import pyarrow as pa
import pytest

from builders import (
    NAME,
    append,
    create_key_table,
    create_table,
    data_of,
    delete_rows,
    open_catalog,
    open_table,
    overwrite,
    prepare,
    rows_of,
    upsert,
)
from emberlake import AtomicType, CatalogFactory, DataField, MultisetType, Schema, Table
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
from table_reads import (
    data_files,
    files_under,
    latest_snapshot,
    live_files,
    planned_files,
    read_ids,
    read_rows,
)
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
    messages = prepare(table, rows_of([1]), builder=builder)
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


# --- tables with a primary key --------------------------------------------------------------------

KEYED = {"id": "BIGINT", "v": "STRING", "n": "INT", "g": "INT"}


def rows_by_key(table: Table) -> list[tuple[Any, ...]]:
    return sorted(tuple(row.values()) for row in read_rows(table))


def test_what_was_deleted_in_the_write_that_made_it_does_not_come_back() -> None:
    columns = {"id": "BIGINT", "v": "STRING", "kind": "STRING"}
    table = create_key_table(columns, **{"rowkind.field": "kind"})

    upsert(table, [(1, "a", "+I"), (2, "b", "+I"), (2, "b", "-D")])

    (entry,) = live_files(table)
    assert entry.file.delete_row_count == 1  # other engines trust it: they must merge this file
    assert rows_by_key(table) == [(1, "a", "+I")]


@pytest.mark.parametrize("writes", [1, 2])
def test_nanoseconds_stay_nanoseconds_when_keys_are_merged(writes: int) -> None:
    table = create_key_table({"id": "BIGINT", "t": "TIMESTAMP(9)"})
    nanos = [1_700_000_000_123_456_789, 5]
    for _ in range(writes):
        data = pa.table([[1, 2], pa.array(nanos, pa.timestamp("ns"))], ["id", "t"])
        upsert(table, data)
    builder = table.new_read_builder()

    rows = builder.new_read().to_arrow(builder.new_scan().plan().splits())

    assert rows.column("t").cast(pa.int64()).to_pylist() == nanos


@pytest.mark.parametrize(
    "options", [{"merge-engine": "first-row"}, {"deletion-vectors.enabled": "true"}], ids=str
)
def test_what_was_written_can_be_read_at_once(options: dict[str, str]) -> None:
    table = create_key_table(**options)

    upsert(table, [(1, "a"), (2, "a")])
    assert rows_by_key(table) == [(1, "a"), (2, "a")]

    upsert(table, [(2, "b"), (3, "b")])
    kept = "a" if "merge-engine" in options else "b"
    assert rows_by_key(table) == [(1, "a"), (2, kept), (3, "b")]


@pytest.mark.parametrize("is_turned", [False, True])
def test_of_two_writers_in_one_commit_the_later_message_wins(is_turned: bool) -> None:
    table = create_key_table()
    builder = table.new_batch_write_builder()
    messages = [prepare(table, [(1, value)], builder=builder) for value in "ab"]
    if is_turned:
        messages.reverse()

    builder.new_commit().commit([message for one in messages for message in one])

    assert rows_by_key(table) == [(1, "a" if is_turned else "b")]
    table.compact(full=True)
    assert rows_by_key(table) == [(1, "a" if is_turned else "b")]


@pytest.mark.parametrize("is_turned", [False, True])
def test_of_two_writers_the_one_with_the_greater_sequence_field_wins(is_turned: bool) -> None:
    table = create_key_table(KEYED, **{"sequence.field": "g"})
    builder = table.new_batch_write_builder()
    rows = [[(1, "old", 0, 1), (2, "old", 0, 1)], [(1, "new", 0, 2)]]
    messages = [prepare(table, one, builder=builder) for one in rows]
    if is_turned:
        messages.reverse()

    builder.new_commit().commit([message for one in messages for message in one])

    assert rows_by_key(table) == [(1, "new", 0, 2), (2, "old", 0, 1)]


def test_one_writer_numbers_its_records_through() -> None:
    table = create_key_table(**{"write-buffer-size": "1 b"})
    builder = table.new_batch_write_builder()
    with builder.new_write() as write:
        for value in "abc":
            write.write_arrow(data_of(table, [(1, value)]))
        builder.new_commit().commit(write.prepare_commit())

    files = [entry.file for entry in live_files(table)]
    assert [(f.min_sequence_number, f.max_sequence_number) for f in files] == [
        (0, 0), (1, 1), (2, 2)
    ]  # fmt: skip
    assert rows_by_key(table) == [(1, "c")]


PARTIAL = {"merge-engine": "partial-update"}


def test_partial_updates_have_sequence_groups() -> None:
    table = create_key_table(KEYED, **PARTIAL, **{"fields.g.sequence-group": "n"})

    upsert(table, [(1, "a", 1, 5)])
    upsert(table, [(1, None, 2, 4)])
    upsert(table, [(1, "b", None, None)])

    assert rows_by_key(table) == [(1, "b", 1, 5)]


def test_partial_updates_can_ignore_deletes() -> None:
    table = create_key_table(KEYED, **PARTIAL, **{"ignore-delete": "true"})

    upsert(table, [(1, "a", 1, 1)])
    upsert(table, [(1, "a", 1, 1), (2, "b", 1, 1)], "-D")

    assert rows_by_key(table) == [(1, "a", 1, 1)]


def test_partial_updates_aggregate_columns() -> None:
    group = {"fields.g.sequence-group": "n", "fields.n.aggregate-function": "sum"}
    table = create_key_table(KEYED, **PARTIAL, **group)

    for number, order in ((1, 1), (2, 3), (4, 2)):
        upsert(table, [(1, None, number, order)])

    assert rows_by_key(table) == [(1, None, 7, 3)]


def test_aggregations_take_values_back() -> None:
    options = {"merge-engine": "aggregation", "fields.n.aggregate-function": "sum"}
    table = create_key_table(KEYED, **options)

    upsert(table, [(1, "a", 5, 1)])
    upsert(table, [(1, None, 2, None)], "-U")
    upsert(table, [(1, None, 4, None)], "+U")

    assert rows_by_key(table) == [(1, "a", 7, 1)]


def test_a_key_without_the_partition_column_is_unique_in_each_partition() -> None:
    table = create_key_table(KEYED, ["id"], ["v"])

    upsert(table, [(1, "a", 1, 0), (1, "b", 2, 0)])
    upsert(table, [(1, "a", 4, 0)])

    assert rows_by_key(table) == [(1, "a", 4, 0), (1, "b", 2, 0)]


def test_what_was_prepared_before_another_commit_can_be_read_once_it_is_committed() -> None:
    table = create_key_table(**{"merge-engine": "first-row"})
    builder = table.new_stream_write_builder()
    with builder.new_write() as write:
        prepared = {}
        for identifier in (1, 2):
            write.write_arrow(data_of(table, [(1, f"v{identifier}"), (10 + identifier, "x")]))
            prepared[identifier] = write.prepare_commit(identifier)
        for identifier, messages in prepared.items():
            builder.new_commit().commit(messages, identifier)

    assert rows_by_key(table) == [(1, "v1"), (11, "x"), (12, "x")]
