"""Reading splits: filters, deletions, partitions and limits, all at once or as a stream."""

import datetime as dt
import gc
import sys
from collections.abc import Callable

import pyarrow as pa
import pytest

from builders import alter, append, create_table, delete_rows, rows_of
from emberlake import AtomicType, SchemaChange
from emberlake.errors import ColumnNotFound, InvalidInput, InvalidPredicate
from emberlake.formats import format_of, open_reader
from emberlake.spec.manifest import ManifestEntry
from emberlake.table import Table
from emberlake.table.read_builder import ReadBuilder
from table_reads import OpenFiles, live_files, read_rows

# Row groups of a thousand rows: files of several are cheap.
SMALL_GROUPS = {"file.block-size": "4 kb"}


def big_file(options: dict[str, str] | None = None, rows: int = 5000) -> Table:
    table = create_table(options={**SMALL_GROUPS, **(options or {})})
    append(table, rows_of(range(rows)))
    return table


def groups_of(table: Table, entry: ManifestEntry) -> int:
    store = table.store
    path = store.data_file_path(entry.partition, entry.bucket, entry.file)
    name = entry.file.file_name
    with open_reader(store.storage, path, store.schema.fields, format_of(name)) as reader:
        return reader.row_group_count


def plan_and_read(builder: ReadBuilder) -> pa.Table:
    return builder.new_read().to_arrow(builder.new_scan().plan().splits())


# --- filters --------------------------------------------------------------------------------------


def test_a_filter_may_be_on_columns_that_do_not_come_out() -> None:
    table = create_table()
    append(table, [*rows_of([1, 2], "mon"), *rows_of([3], "tue")])

    assert read_rows(table, "day = 'mon' AND id <> 1", ["id"]) == [{"id": 2}]
    assert read_rows(table, "id > 1", ["day"]) == [{"day": "mon"}, {"day": "tue"}]


def test_a_filter_reaches_into_rows() -> None:
    columns = pa.schema([("id", pa.int64()), ("s", pa.struct([("x", pa.int64())]))])
    table = create_table(columns=columns)
    rows = [{"id": 1, "s": {"x": 5}}, {"id": 2, "s": {"x": None}}, {"id": 3, "s": None}]
    append(table, pa.Table.from_pylist(rows, columns))

    assert read_rows(table, "s.x = 5", ["id"]) == [{"id": 1}]
    assert read_rows(table, "s.x IS NULL", ["id"]) == [{"id": 2}, {"id": 3}]
    assert read_rows(table, "s IS NULL") == rows[2:]
    assert read_rows(table, "s.x > 1 OR id = 3") == [rows[0], rows[2]]


def test_a_filter_on_a_nested_field_that_old_files_lack() -> None:
    columns = pa.schema([("id", pa.int64()), ("s", pa.struct([("x", pa.int64())]))])
    table = create_table(columns=columns)
    append(table, pa.table([[1], [{"x": 5}]], columns))
    table = alter(table, SchemaChange.add_column(["s", "y"], AtomicType("INT")))
    wider = pa.schema(
        [("id", pa.int64()), ("s", pa.struct([("x", pa.int64()), ("y", pa.int32())]))]
    )
    append(table, pa.table([[2], pa.array([{"x": 6, "y": 7}], wider.field("s").type)], wider))

    assert read_rows(table, "s.y = 7", ["id"]) == [{"id": 2}]
    assert read_rows(table, "s.y IS NULL", ["id", "s.x"]) == [{"id": 1, "s_x": 5}]
    assert read_rows(table, columns=["s.y"]) == [{"s_y": None}, {"s_y": 7}]


def test_splits_are_filtered_by_who_reads_them_not_by_who_planned_them() -> None:
    table = create_table()
    append(table, rows_of([1, 2, 3]))
    append(table, rows_of([4, 5, 6]))

    def builder(where: str | None) -> ReadBuilder:
        return table.new_read_builder().with_filter(where).with_projection(["id"])

    # In this plan all rows of both files match: that must not be taken for another filter.
    for planned in (None, "id > 0", "id IS NOT NULL"):
        splits = builder(planned).new_scan().plan().splits()
        for where, expected in [("id > 4", [5, 6]), ("id = 1", [1]), (None, [1, 2, 3, 4, 5, 6])]:
            rows = builder(where).new_read().to_arrow(splits)

            assert rows.column("id").to_pylist() == expected


def test_a_partition_filter_stands_beside_the_other_one() -> None:
    table = create_table(partition_keys=["day"])
    append(table, [*rows_of([1, 2], "mon"), *rows_of([1], "tue")])
    by_day = table.new_read_builder().new_predicate_builder().equal("day", "mon")
    builder = table.new_read_builder()

    builder.with_partition_filter(by_day).with_filter("id = 1")

    assert plan_and_read(builder).to_pylist() == rows_of([1], "mon")
    assert plan_and_read(builder.with_filter(None)).num_rows == 2
    assert plan_and_read(builder.with_partition_filter(None)).num_rows == 3
    with pytest.raises(InvalidPredicate, match="id"):
        builder.with_partition_filter("day = 'mon' AND id = 1")


def test_a_filter_must_speak_of_the_columns_of_the_table() -> None:
    table = create_table()
    old = table.new_read_builder().new_predicate_builder().equal("id", 1)
    renamed = alter(table, SchemaChange.rename_column("id", "key"))
    other = create_table(columns=pa.schema([("id", pa.string())]))

    with pytest.raises(ColumnNotFound, match="'id'"):
        renamed.new_read_builder().with_filter(old)
    with pytest.raises(InvalidPredicate, match="new_predicate_builder"):
        other.new_read_builder().with_filter(old)
    with pytest.raises(InvalidPredicate, match="a filter is text"):
        table.new_read_builder().with_filter(7)  # type: ignore[arg-type]
    with pytest.raises(ColumnNotFound, match="nope"):
        table.new_read_builder().with_filter("nope = 1")
    with pytest.raises(InvalidPredicate):
        table.new_read_builder().with_filter("id = ")


# --- deletion vectors -----------------------------------------------------------------------------


@pytest.mark.parametrize("file_format", ["parquet", "orc", "avro", "lance"])
@pytest.mark.parametrize("bitmap64", [False, True], ids=["32 bits", "64 bits"])
def test_deleted_rows_do_not_come_out(file_format: str, bitmap64: bool) -> None:
    table = big_file({"file.format": file_format})
    (entry,) = live_files(table)
    assert file_format != "parquet" or groups_of(table, entry) > 3  # or it would test nothing
    deleted = {0, 1, 999, 1000, 2500, 4999}
    delete_rows(table, {entry.file.file_name: deleted}, bitmap64=bitmap64)
    left = [n for n in range(5000) if n not in deleted]

    assert [row["id"] for row in read_rows(table)] == left
    # Skipped row groups do not shift the positions of the rows behind them.
    assert [row["id"] for row in read_rows(table, "id >= 2400 AND id < 2600")] == [
        n for n in left if 2400 <= n < 2600
    ]
    assert [row["id"] for row in read_rows(table, "id > 4990")] == list(range(4991, 4999))


def test_a_file_whose_rows_are_all_deleted_gives_none() -> None:
    table = create_table()
    append(table, rows_of([1, 2]))
    append(table, rows_of([3]))
    name = live_files(table)[0].file.file_name
    delete_rows(table, {name: [0, 1]})

    assert read_rows(table) == rows_of([3])
    assert read_rows(table, "id < 3") == []


def test_deletions_reach_reads_that_need_no_column_of_the_file() -> None:
    table = create_table(partition_keys=["day"])
    append(table, rows_of([1, 2, 3]))
    (entry,) = live_files(table)
    delete_rows(table, {entry.file.file_name: [1]})

    assert read_rows(table, columns=["day"]) == [{"day": "mon"}] * 2
    assert read_rows(table, "day = 'mon'", columns=["day"]) == [{"day": "mon"}] * 2


def test_deletion_vectors_may_lie_beside_the_data() -> None:
    table = create_table(partition_keys=["day"], options={"index-file-in-data-file-dir": "true"})
    append(table, rows_of([1, 2, 3]))
    store = table.store
    (entry,) = live_files(table)
    snapshot = delete_rows(table, {entry.file.file_name: [1]})
    assert snapshot.index_manifest is not None
    (index,) = store.manifests.read_index(snapshot.index_manifest)
    name = index.index_file.file_name
    raw = store.storage.read(store.layout.index(name))
    store.storage.put(f"{store.bucket_folder(entry.partition, entry.bucket)}/{name}", raw)
    store.storage.delete(store.layout.index(name))

    assert [row["id"] for row in read_rows(table)] == [1, 3]


# --- partitions -----------------------------------------------------------------------------------


def test_partition_columns_come_from_the_manifest() -> None:
    columns = pa.schema(
        [
            pa.field("day", pa.date32(), nullable=False),
            pa.field("id", pa.int64()),
            pa.field("p", pa.int32()),
        ]
    )
    table = create_table(columns=columns, partition_keys=["p", "day"])
    day = dt.date(2026, 6, 26)
    append(table, pa.table([[day, day], [1, 2], pa.array([7, None], pa.int32())], columns))
    (first, second) = sorted(read_rows(table), key=lambda row: row["id"])

    assert first == {"day": day, "id": 1, "p": 7}
    assert second == {"day": day, "id": 2, "p": None}
    assert sorted(str(r) for r in read_rows(table, columns=["p"])) == ["{'p': 7}", "{'p': None}"]
    assert read_rows(table, "p IS NULL AND id = 2", ["day"]) == [{"day": day}]


@pytest.mark.parametrize("columns", [None, ["day"], ["id"], ["id", "day"]])
def test_every_way_of_reading_has_the_same_schema(columns: list[str] | None) -> None:
    schema = pa.schema(
        [pa.field("id", pa.int64(), nullable=False), pa.field("day", pa.string(), nullable=False)]
    )
    table = create_table(columns=schema, partition_keys=["day"])
    empty = plan_and_read(table.new_read_builder().with_projection(columns)).schema
    append(table, pa.Table.from_pylist(rows_of([1]), schema))
    builder = table.new_read_builder().with_projection(columns)
    splits = builder.new_scan().plan().splits()

    assert plan_and_read(builder).schema == empty
    assert builder.new_read().to_arrow_batch_reader(splits).read_all().schema == empty
    assert plan_and_read(builder.with_limit(1)).schema == empty
    assert all(not field.nullable for field in empty)


# --- limits ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("where", [None, "id >= 1000", "id IN (3, 4000, 4500, 7000)"])
@pytest.mark.parametrize("limit", [0, 1, 3, 999, 1000, 1001, 4999, 9000, 10_000])
def test_a_limit_is_exact(where: str | None, limit: int) -> None:
    table = big_file()
    append(table, rows_of(range(5000, 9500)))
    matching = read_rows(table, where)

    assert read_rows(table, where, limit=limit) == matching[:limit]


def test_a_negative_limit_makes_no_sense() -> None:
    with pytest.raises(InvalidInput, match="-1"):
        create_table().new_read_builder().with_limit(-1)


# --- streams --------------------------------------------------------------------------------------


def two_files() -> tuple[Table, OpenFiles]:
    storage = OpenFiles()
    table = create_table(storage, options=SMALL_GROUPS)
    append(table, rows_of(range(3000)))
    append(table, rows_of(range(3000, 6000)))
    storage.opened.clear()
    return table, storage


def test_a_stream_opens_a_file_when_it_gets_there_and_closes_it_behind() -> None:
    table, storage = two_files()
    builder = table.new_read_builder()
    splits = builder.new_scan().plan().splits()

    reader = builder.new_read().to_arrow_batch_reader(splits)

    assert storage.opened == []
    first = reader.read_next_batch()
    assert first.column("id")[0].as_py() == 0
    assert len(storage.opened) == 1
    rest = reader.read_all()
    assert first.num_rows + rest.num_rows == 6000
    assert len(storage.opened) == 2
    assert storage.open_now == set()


def test_wide_rows_come_in_small_batches() -> None:
    columns = pa.schema([("id", pa.int64()), ("wide", pa.binary())])
    table = create_table(columns=columns, options={"file.compression": "none"})
    append(table, [{"id": n, "wide": n.to_bytes(4, "big") * 1000} for n in range(5000)])
    builder = table.new_read_builder()

    batches = list(builder.new_read().to_arrow_batch_reader(builder.new_scan().plan().splits()))

    assert max(batch.nbytes for batch in batches) < 6 * 1024**2
    assert sum(batch.num_rows for batch in batches) == 5000


@pytest.mark.parametrize("leave", ["reader", "iterator"])
def test_a_stream_that_is_left_early_releases_its_file(leave: str) -> None:
    table, storage = two_files()
    builder = table.new_read_builder()
    splits = builder.new_scan().plan().splits()
    read = builder.new_read()

    stream = read.to_arrow_batch_reader(splits) if leave == "reader" else read.to_iterator(splits)
    next(iter(stream))
    assert len(storage.open_now) == 1
    del stream
    gc.collect()

    assert storage.open_now == set()
    assert len(storage.opened) == 1


def test_a_limit_leaves_later_files_alone() -> None:
    table, storage = two_files()

    assert len(read_rows(table, "id >= 0", limit=5)) == 5
    assert len(storage.opened) == 1
    assert storage.open_now == set()


def test_everything_at_once_releases_its_files_too() -> None:
    table, storage = two_files()

    assert len(read_rows(table)) == 6000
    assert storage.open_now == set()


def test_an_error_in_the_middle_of_a_stream_releases_its_file() -> None:
    table, storage = two_files()
    builder = table.new_read_builder()
    stream = builder.new_read().to_iterator(builder.new_scan().plan().splits())
    next(stream)

    with pytest.raises(RuntimeError, match="enough"):
        stream.throw(RuntimeError("enough"))  # type: ignore[attr-defined]

    assert storage.open_now == set()


# --- forms ----------------------------------------------------------------------------------------


def rows_by(form: str, builder: ReadBuilder) -> list[tuple[object, ...]]:
    splits, read = builder.new_scan().plan().splits(), builder.new_read()
    forms: dict[str, Callable[[], list[tuple[object, ...]]]] = {
        "arrow": lambda: [tuple(row.values()) for row in read.to_arrow(splits).to_pylist()],
        "iterator": lambda: [(row.get_field(0), row[1]) for row in read.to_iterator(splits)],
        "pandas": lambda: list(read.to_pandas(splits).itertuples(index=False, name=None)),
        "polars": lambda: read.to_polars(splits).rows(),
        "duckdb": lambda: read.to_duckdb(splits, "t").execute("SELECT * FROM t").fetchall(),
        "batches": lambda: [
            tuple(row.values())
            for batch in read.to_arrow_batch_reader(splits)
            for row in batch.to_pylist()
        ],
    }
    return forms[form]()


FORMS = ["arrow", "iterator", "pandas", "polars", "duckdb", "batches"]


@pytest.mark.parametrize("form", FORMS)
def test_every_form_gives_the_same_rows(form: str) -> None:
    if form in ("pandas", "polars", "duckdb"):
        pytest.importorskip(form)
    table = create_table()
    append(table, rows_of([1, 2, 3]))
    append(table, rows_of([4, 5], "tue"))
    builder = table.new_read_builder().with_filter("id > 1").with_limit(3)

    assert rows_by(form, builder) == [(2, "mon"), (3, "mon"), (4, "tue")]


@pytest.mark.parametrize("form", FORMS)
def test_every_form_can_be_empty(form: str) -> None:
    if form in ("pandas", "polars", "duckdb"):
        pytest.importorskip(form)
    empty = create_table()
    emptied = create_table()
    append(emptied, rows_of([1]))
    emptied.new_batch_write_builder().new_commit().truncate_table()

    for table in (empty, emptied):
        assert rows_by(form, table.new_read_builder()) == []


def test_a_given_duckdb_connection_is_used() -> None:
    duckdb = pytest.importorskip("duckdb")
    table = create_table()
    append(table, rows_of([1, 2]))
    builder = table.new_read_builder()
    connection = duckdb.connect()

    found = builder.new_read().to_duckdb(builder.new_scan().plan().splits(), "t", connection)

    assert found is connection
    assert connection.execute("SELECT sum(id) FROM t").fetchone() == (3,)


def test_reading_imports_no_extra() -> None:
    table = create_table()
    append(table, rows_of([1]))
    before = set(sys.modules)

    read_rows(table, "id = 1")

    assert not {"pandas", "polars", "duckdb"} & (set(sys.modules) - before)


def test_a_table_without_a_snapshot_has_no_splits() -> None:
    plan = create_table().new_read_builder().new_scan().plan()

    assert plan.splits() == []
    assert plan.snapshot_id is None


@pytest.mark.parametrize("file_format", ["parquet", "orc", "avro"])
def test_a_table_may_be_all_partition_columns(file_format: str) -> None:
    table = create_table(partition_keys=["day", "id"], options={"file.format": file_format})
    append(table, [*rows_of([1, 1, 2]), *rows_of([3], "tue")])

    assert sorted(row["id"] for row in read_rows(table)) == [1, 1, 2, 3]
    assert read_rows(table, "id = 1", ["day"]) == [{"day": "mon"}] * 2
    assert len(read_rows(table, limit=3)) == 3
