"""Tables whose rows have ids, as users read them."""

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

from builders import (
    alter,
    append,
    create_table,
    open_catalog,
    open_table,
    overwrite,
    rows_of,
)
from emberlake import SchemaChange
from emberlake.errors import (
    ColumnNotFound,
    CorruptFile,
    InvalidInput,
    InvalidSchema,
    InvalidState,
    Unsupported,
)
from emberlake.io import MemoryStorage
from emberlake.store.entries import ENTRY_SCHEMA, ManifestEntries
from emberlake.table import Table
from emberlake.types import AtomicType
from table_reads import live_files, planned_files
from tracked_tables import EVOLVING, TRACKED, delete, evolving_table, put, update, with_ids
from watched_storage import WatchedStorage

SMALL = {"source.split.target-size": "1 b", "source.split.open-file-cost": "1 b"}


def many_files(options: dict[str, str]) -> Table:
    table = create_table(options={**options, "target-file-row-num": "10"})
    append(table, rows_of(range(40)))
    return table


def side_by_side() -> Table:
    """Four groups of three rows; the first two have two more files."""
    table = evolving_table(has_vectors=True)
    for start in range(0, 12, 3):
        put(table, *((n, f"a{n}", n) for n in range(start, start + 3)))
    update(table, ids=[0, 4], v=["x", "y"])
    update(table, ids=[1, 5], n=[100, 500])
    return table


def test_hidden_columns_are_read_by_name_only() -> None:
    table = many_files(TRACKED)

    assert table.to_arrow().column_names == ["id", "day"]
    assert table.to_arrow(["_SEQUENCE_NUMBER", "id", "_ROW_ID"], limit=1).to_pylist() == [
        {"_SEQUENCE_NUMBER": 1, "id": 0, "_ROW_ID": 0}
    ]
    builder = table.new_read_builder().with_projection({"key": "_ROW_ID"}).with_limit(2)
    found = builder.new_read().to_arrow(builder.new_scan().plan().splits())
    assert found == pa.table(
        {"key": [0, 1]}, schema=pa.schema([pa.field("key", pa.int64(), nullable=False)])
    ).cast(found.schema)


def test_hidden_columns_are_those_of_tables_with_row_tracking() -> None:
    with pytest.raises(ColumnNotFound, match="_ROW_ID"):
        create_table().to_arrow(["_ROW_ID"])
    with pytest.raises(InvalidSchema, match="reserves"):
        alter(create_table(), SchemaChange.add_column("_ROW_ID", AtomicType("INT")))


@pytest.mark.parametrize("options", [TRACKED, EVOLVING], ids=["tracked", "evolving"])
@pytest.mark.parametrize(
    ("where", "rows", "files"),
    [
        ("_ROW_ID = 17", [17], 1),
        ("_ROW_ID IN (5, 35)", [5, 35], 2),
        ("_ROW_ID BETWEEN 8 AND 11", [8, 9, 10, 11], 2),
        ("_ROW_ID > 38", [39], 1),
        ("_ROW_ID < 2 AND id > 0", [1], 1),
        ("_ROW_ID = 3 OR id = 30", [3, 30], 2),
        ("_ROW_ID >= 40", [], 0),
        ("_SEQUENCE_NUMBER = 2", [], 0),
        ("_SEQUENCE_NUMBER = 1 AND _ROW_ID <> 0 AND id < 2", [1], 1),
    ],
)
def test_filters_on_hidden_columns_skip_files(
    options: dict[str, str], where: str, rows: list[int], files: int
) -> None:
    table = many_files(options)

    assert list(with_ids(table, where)) == rows
    assert len(planned_files(table, where)) == files
    assert table.count(where) == len(rows)


@pytest.mark.parametrize(
    "ids", [[3, 17, 17, 99], np.array([3, 17]), pa.chunked_array([[3], [17]]), (n for n in (17, 3))]
)
def test_rows_are_read_by_their_ids(ids: object) -> None:
    builder = many_files(TRACKED).new_read_builder().with_row_ids(ids)

    splits = builder.new_scan().plan().splits()
    assert builder.new_read().to_arrow(splits).column("id").to_pylist() == [3, 17]
    assert sum(split.row_count for split in splits) == 2  # of 20 in the two files
    builder.with_row_ids(None)
    assert len(builder.new_scan().plan().splits()[0].files) == 4


def test_what_is_no_row_id_is_refused() -> None:
    with pytest.raises(Unsupported, match=r"row-tracking.enabled=true"):
        create_table().new_read_builder().with_row_ids([1])
    for wrong in ("12", ["a"], [None], [2**70]):
        with pytest.raises(InvalidInput, match="row ids are integers"):
            many_files(TRACKED).new_read_builder().with_row_ids(wrong)


def test_only_files_that_win_a_column_are_opened() -> None:
    storage = MemoryStorage()
    table = evolving_table(storage)
    put(table, (1, "a", 1), (2, "b", 2))
    update(table, ids=[0], v=["x"])
    update(table, ids=[1], n=[9])
    names = [entry.file.file_name for entry in live_files(table)]
    watched = WatchedStorage(storage)

    assert open_table(watched).to_arrow(["v"]).column("v").to_pylist() == ["x", "b"]

    opened = [str(call) for call in watched.calls]
    assert [any(name in call for call in opened) for name in names] == [False, True, False]


@pytest.mark.parametrize("count", [1, 2, 3, 5])
def test_shards_of_files_side_by_side_have_every_row_once(count: int) -> None:
    table = side_by_side()
    delete(table, "id IN (2, 7)")
    builder = table.new_read_builder().with_projection(["_ROW_ID", "v", "n"])
    shards = [
        builder.new_read().to_arrow(builder.new_scan().with_shard(i, count).plan().splits())
        for i in range(count)
    ]

    found = pa.concat_tables(shards).sort_by("_ROW_ID")
    assert found.to_pylist() == table.to_arrow(["_ROW_ID", "v", "n"]).to_pylist()
    assert max(s.num_rows for s in shards) - min(s.num_rows for s in shards) <= 3


def test_slices_of_files_side_by_side_count_rows_once() -> None:
    table = side_by_side()
    builder = table.new_read_builder().with_projection(["_ROW_ID", "v"])

    splits = builder.new_scan().with_slice(1, 5).plan().splits()

    assert builder.new_read().to_arrow(splits).to_pylist() == [
        {"_ROW_ID": 1, "v": "a1"},
        {"_ROW_ID": 2, "v": "a2"},
        {"_ROW_ID": 3, "v": "a3"},
        {"_ROW_ID": 4, "v": "y"},
    ]
    assert sum(split.row_count for split in splits) == 4


def test_splits_never_cut_a_group() -> None:
    table = side_by_side().copy(SMALL)

    splits = table.new_read_builder().new_scan().plan().splits()

    assert [len(split.files) for split in splits] == [3, 3, 1, 1]
    assert [split.raw_convertible for split in splits] == [False, False, True, True]
    assert [split.row_count for split in splits] == [3, 3, 3, 3]
    assert table.to_arrow(["v"], limit=5).num_rows == 5


def test_a_limit_counts_groups_once() -> None:
    table = side_by_side().copy(SMALL)
    builder = table.new_read_builder().with_limit(4)

    assert len(builder.new_scan().plan().splits()) == 2
    assert table.count() == 12


def test_files_that_share_only_some_rows_are_corrupt() -> None:
    table = side_by_side()
    split = table.new_read_builder().new_scan().plan().splits()[0]
    files = split.entries.table.to_pylist()
    files[-1]["first_row_id"] = 1
    entries = ManifestEntries(pa.Table.from_pylist(files, ENTRY_SCHEMA))
    with pytest.raises(CorruptFile, match=r"its row ids 1 to 3 overlap 0 to 2"):
        _ = replace(split, entries=entries).groups


# --- changes --------------------------------------------------------------------------------------


def test_rows_that_were_added_are_read_incrementally() -> None:
    table = evolving_table()
    put(table, (1, "a", 1))
    put(table, (2, "b", 2))
    update(table, ids=[1], v=["x"])

    between = table.copy({"incremental-between": "1,3"})

    assert between.to_arrow(["id", "v", "_ROW_ID"]).to_pylist() == [
        {"id": 2, "v": "x", "_ROW_ID": 1}
    ]


@pytest.mark.parametrize("mode", ["delta", "diff"])
def test_columns_of_earlier_rows_are_no_rows_to_read(mode: str) -> None:
    table = evolving_table()
    put(table, (1, "a", 1))
    update(table, ids=[0], v=["x"])
    options = {"incremental-between": "1,2", "incremental-between-scan-mode": mode}

    with pytest.raises(Unsupported, match="rewrites columns of rows that were in the table before"):
        table.copy(options).to_arrow()


def test_a_stream_of_a_table_with_rewritten_columns_is_refused_where_they_are() -> None:
    table = evolving_table()
    put(table, (1, "a", 1))
    builder = table.new_stream_read_builder()
    scan = builder.new_streaming_scan()
    assert builder.new_read().to_arrow(scan.plan().splits()).num_rows == 1
    put(table, (2, "b", 2))
    assert builder.new_read().to_arrow(scan.plan().splits()).column("id").to_pylist() == [2]
    update(table, ids=[0], v=["x"])

    with pytest.raises(Unsupported, match="rewrites columns"):
        scan.plan()


def test_tags_and_branches_have_their_own_ids() -> None:
    storage = MemoryStorage()
    table = evolving_table(storage)
    put(table, (1, "a", 1))
    table.create_tag("before")
    update(table, ids=[0], v=["x"])

    assert table.to_arrow(["v"], tag="before").column("v").to_pylist() == ["a"]
    table.create_branch("side", "before")
    branch = open_catalog(storage).get_table("db.t$branch_side")
    put(branch, (5, "e", 5))
    assert with_ids(branch) == {0: (1, "a", 1), 1: (5, "e", 5)}
    assert with_ids(table) == {0: (1, "x", 1)}


def test_the_columns_of_a_write_are_declared_before_its_rows() -> None:
    table = evolving_table()
    with table.new_batch_write_builder().new_write() as write:
        write.write_arrow(pa.table({"id": [1]}))
        with pytest.raises(InvalidState, match="before its first rows"):
            write.with_write_type(["id"])


def test_an_overwritten_partition_gets_new_ids() -> None:
    table = create_table(partition_keys=["day"], options=TRACKED)
    append(table, [*rows_of([1, 2], "mon"), *rows_of([3], "tue")])

    overwrite(table, rows_of([4], "tue"))

    assert with_ids(table) == {0: (1, "mon"), 1: (2, "mon"), 3: (4, "tue")}


def test_a_system_table_has_all_rows_with_their_ids() -> None:
    catalog = open_catalog(MemoryStorage())
    catalog.create_database("db")
    table = catalog.create_table("db.t", pa.schema([("id", pa.int64())]), options=TRACKED)
    table.append(pa.table({"id": [1, 2, 3]}))
    table.delete("id = 2")

    tracked = catalog.get_table("db.t$row_tracking")

    assert tracked.field_names == ["id", "_ROW_ID", "_SEQUENCE_NUMBER"]
    assert tracked.to_arrow().to_pylist() == [
        {"id": 1, "_ROW_ID": 0, "_SEQUENCE_NUMBER": 1},
        {"id": 3, "_ROW_ID": 2, "_SEQUENCE_NUMBER": 1},
    ]
    assert tracked.to_arrow(["_ROW_ID"], "id = 3").to_pylist() == [{"_ROW_ID": 2}]
    assert (tracked.count(), tracked.count("id = 2")) == (2, 0)
    assert tracked.to_arrow(["id"], snapshot=1).to_pydict() == {"id": [1, 2, 3]}
    with pytest.raises(Unsupported, match="read-only"):
        tracked.new_batch_write_builder()


def test_the_system_table_of_a_table_without_ids_is_refused() -> None:
    catalog = open_catalog(MemoryStorage())
    catalog.create_database("db")
    catalog.create_table("db.t", pa.schema([("id", pa.int64())]))

    with pytest.raises(Unsupported, match=r"row-tracking\.enabled"):
        catalog.get_table("db.t$row_tracking")
