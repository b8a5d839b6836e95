"""Which files are left to Spark's own reader: decided from metadata, without a session."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

from builders import append, create_table
from emberlake import (
    ArrayType,
    AtomicType,
    CatalogFactory,
    DataField,
    MapType,
    MultisetType,
    RowType,
    SchemaChange,
    Table,
)
from emberlake.options import TableOptions
from emberlake.spark.division import Division, divide
from emberlake.spark.native_scan import (
    has_columns,
    has_spark_codecs,
    is_plain,
    spark_path,
)
from emberlake.store.entries import ManifestEntries
from golden.reads import Golden
from spark.reads import altered, planned, write
from spark.tables import new_table

PARTS = {"partition_keys": ["day"]}


def counts(table: Table, columns: Sequence[str] | None = None) -> tuple[int, int]:
    """How many files Spark reads, and how many are left."""
    return counted(divide(*planned(table, columns=columns)))


def counted(division: Division) -> tuple[int, int]:
    return len(division.paths), sum(len(split.files) for split in division.rest)


def test_files_of_an_append_table_are_sparks(tmp_path: Path) -> None:
    table = write(write(new_table(tmp_path)))

    division = divide(*planned(table))

    assert division.rest == ()
    folder = f"file:{table.table_path}/bucket-0"
    assert [path.rpartition("/")[0] for path in division.paths] == [folder, folder]
    assert all(Path(path.removeprefix("file:")).is_file() for path in division.paths)


@pytest.mark.parametrize("file_format", ["orc", "avro"])
def test_other_formats_are_ours(tmp_path: Path, file_format: str) -> None:
    assert counts(write(new_table(tmp_path, file__format=file_format))) == (0, 1)


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, True),
        ({"file.compression": "LZ4"}, True),
        ({"file.compression": "brotli"}, False),
        ({"file.compression.per.level": "0:lz4,5:none"}, True),
        ({"file.compression.per.level": "0:lz4,5:brotli"}, False),
    ],
)
def test_codecs_that_spark_does_not_come_with_are_ours(
    options: dict[str, str], expected: bool
) -> None:
    assert has_spark_codecs(TableOptions(options)) is expected


def test_a_file_is_written_with_the_codec_of_its_schema(tmp_path: Path) -> None:
    table = write(new_table(tmp_path, file__compression="brotli"))
    table = write(altered(table, SchemaChange.set_option("file.compression", "zstd")))

    assert counts(table) == (1, 1)


def test_a_storage_that_is_not_the_local_disk_is_ours() -> None:
    table = create_table()
    append(table, [{"id": 1, "day": "mon"}])

    assert counts(table) == (0, 1)


def test_a_file_that_spark_would_skip_for_its_name_is_ours(tmp_path: Path) -> None:
    assert counts(write(new_table(tmp_path, data_file__prefix="_data-"))) == (0, 1)


@pytest.mark.parametrize("name", ["a[1]", "{b}", "c*", "what?"])
def test_a_path_that_spark_would_take_for_a_pattern_is_ours(tmp_path: Path, name: str) -> None:
    assert counts(write(new_table(tmp_path / name))) == (0, 1)


def test_paths_are_given_as_they_are() -> None:
    assert spark_path("/w/a b/p%20=%3A/é:+#/data-1.parquet") == (
        "file:/w/a b/p%20=%3A/é:+#/data-1.parquet"
    )
    assert spark_path("file:///w/data-1.parquet") == "file:/w/data-1.parquet"
    assert spark_path("/w/.data-1.parquet") is None


def test_files_outside_of_the_table_are_sparks_where_it_reaches_them(tmp_path: Path) -> None:
    outside = f"file://{tmp_path}/outside"
    options = {"data_file__external_paths": outside, "bucket": "1", "bucket_key": "id"}
    strategy = {"data_file__external_paths__strategy": "round-robin"}
    table = write(new_table(tmp_path / "home", **options, **strategy))

    assert counts(table) == (1, 0)
    assert spark_path("gs://bucket/data-1.parquet") is None


# --- key tables -----------------------------------------------------------------------------------


def test_new_files_of_a_key_table_are_read_by_the_kinds_of_their_records(tmp_path: Path) -> None:
    table = write(new_table(tmp_path, primary_keys=["id"], bucket="2", write_only="true"))

    division = divide(*planned(table))

    assert (len(division.records), division.files, division.rest) == (2, (), ())


def test_files_that_share_keys_are_sparks_if_few_records_are_newer(tmp_path: Path) -> None:
    table = new_table(tmp_path, primary_keys=["id"], bucket="1", write_only="true")
    table = write(write(table, range(20)), [3, 4])

    division = divide(*planned(table))

    assert (len(division.layered), len(division.newer), division.rest) == (2, 1, ())
    assert counts(write(table, range(19))) == (0, 3)


def test_what_shares_no_keys_is_sparks_and_the_rest_ours(tmp_path: Path) -> None:
    table = new_table(tmp_path, primary_keys=["id"], bucket="1", write_only="true")
    table = write(write(write(table, range(4)), range(3)), range(50, 60))

    division = divide(*planned(table))

    assert (len(division.records), division.layered) == (1, ())
    assert [len(split.files) for split in division.rest] == [2]


@pytest.mark.parametrize("file_format", ["orc", "avro"])
def test_other_formats_with_keys_are_ours(tmp_path: Path, file_format: str) -> None:
    table = new_table(tmp_path, primary_keys=["id"], bucket="1", file__format=file_format)
    table = write(write(table, range(20)), [3])

    assert counts(table) == (0, 2)


def test_records_whose_read_columns_were_renamed_are_ours(tmp_path: Path) -> None:
    table = new_table(tmp_path, primary_keys=["id"], bucket="1", write_only="true")
    table = write(write(table, range(20)), [3])
    renamed = altered(table, SchemaChange.rename_column("name", "label"))

    assert counts(renamed, ["label"]) == (0, 2)
    assert counts(renamed, ["price"]) == (2, 0)


def test_files_that_share_keys_and_were_planned_with_another_filter_are_ours(
    tmp_path: Path,
) -> None:
    table = new_table(tmp_path, primary_keys=["id"], bucket="1", write_only="true")
    table = write(write(table, range(20)), [3])
    reader, _ = planned(table)
    _, splits = planned(table, where="id < 4")

    assert counted(divide(reader, splits)) == (0, 2)
    assert counted(divide(*planned(table, where="id < 4"))) == (2, 0)


def test_a_compacted_key_table_is_sparks(tmp_path: Path) -> None:
    table = write(new_table(tmp_path, primary_keys=["id"], bucket="2"))
    table = write(table, range(5))
    table.compact(full=True)

    assert counts(table) == (2, 0)


def test_a_compacted_key_table_that_was_planned_with_another_filter_is_ours(tmp_path: Path) -> None:
    table = write(new_table(tmp_path, primary_keys=["id"], bucket="1"))
    table.compact(full=True)
    reader, _ = planned(table)
    _, splits = planned(table, where="id < 4")

    assert counted(divide(reader, splits)) == (0, 1)
    assert counted(divide(*planned(table, where="id < 4"))) == (1, 0)


def test_changes_and_row_kinds_are_ours(tmp_path: Path) -> None:
    table = write(new_table(tmp_path, primary_keys=["id"], bucket="1"))
    table.compact(full=True)
    reader, splits = planned(table)
    changes = write(table, [1], kind="-D").copy({"incremental-between": "0,3"})

    assert counted(divide(reader, splits)) == (1, 0)
    assert counted(divide(replace(reader, with_kind=True), splits)) == (0, 1)
    assert counts(changes) == (0, 2)


def test_an_append_split_may_be_planned_with_any_filter(tmp_path: Path) -> None:
    table = write(new_table(tmp_path))
    reader, _ = planned(table)
    _, splits = planned(table, where="id < 4")

    assert counted(divide(reader, splits)) == (1, 0)


# --- deletion vectors -----------------------------------------------------------------------------


def test_only_files_with_deleted_rows_are_ours(golden: Golden) -> None:
    table = CatalogFactory.create({"warehouse": golden.warehouse}).get_table("golden.append_dv")
    reader, splits = planned(table)
    deleted = {name for split in splits for name in split.deletion_files}

    division = divide(reader, splits)

    names = {path.rpartition("/")[2] for path in division.paths}
    rest = {file.file_name for split in division.rest for file in split.files}
    assert names
    assert rest == deleted
    assert names | rest == {file.file_name for split in splits for file in split.files}
    assert [len(s.is_exact) for s in division.rest] == [len(s.files) for s in division.rest]


# --- rows with ids --------------------------------------------------------------------------------


def test_files_that_lie_side_by_side_are_ours_and_the_others_sparks(golden_rows: Golden) -> None:
    catalog = CatalogFactory.create({"warehouse": golden_rows.warehouse})
    table = catalog.get_table("golden.de_partitioned")
    reader, splits = planned(table)
    groups = [group for split in splits for group in split.groups]
    alone = sum(len(group.files) == 1 for group in groups)

    division = divide(reader, splits)

    assert len(division.paths) == alone
    assert sum(len(split.groups) for split in division.rest) == len(groups) - alone > 0


def test_ids_of_rows_are_not_for_sparks_reader(golden_rows: Golden) -> None:
    catalog = CatalogFactory.create({"warehouse": golden_rows.warehouse})
    table = catalog.get_table("golden.rt_update")

    assert counts(table, ["id"])[1] == 0  # rows that have moved are in files with more columns
    assert counts(table, ["id", "_ROW_ID"])[0] == 0
    assert counted(divide(*planned(table, "_ROW_ID > 1", ["id"])))[0] == 0


# --- files of other makers ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("data-{}-0.parquet", (1, 0)),
        ("data-{}-12.zstd.parquet", (1, 0)),
        ("data-job-7-{}-0.parquet", (1, 0)),
        ("mine-{}-0.parquet", (1, 0)),  # the table's own prefix
        ("part-00000-{}-c000.snappy.parquet", (0, 1)),
        ("000000_0.parquet", (0, 1)),
        ("data-1.parquet", (0, 1)),
        ("data-{}-0.orc", (0, 1)),
    ],
)
def test_files_that_no_writer_of_the_format_names_so_are_ours(
    tmp_path: Path, name: str, expected: tuple[int, int]
) -> None:
    table = write(new_table(tmp_path, data_file__prefix="mine-"))
    reader, (split,) = planned(table)
    (entry,) = split.entries.entries()
    named = name.format("0a1b2c3d-4e5f-6789-abcd-ef0123456789")
    renamed = replace(entry, file=replace(entry.file, file_name=named))

    division = divide(reader, [replace(split, entries=ManifestEntries.from_entries([renamed]))])

    assert counted(division) == expected


def test_partition_columns_are_read_from_the_files(tmp_path: Path) -> None:
    assert counts(write(new_table(tmp_path, metadata__stats_mode="none", **PARTS))) == (3, 0)


# --- columns --------------------------------------------------------------------------------------


def test_a_file_of_an_older_schema_is_sparks_if_the_read_columns_did_not_change(
    tmp_path: Path,
) -> None:
    table = write(new_table(tmp_path))
    table = altered(
        table,
        SchemaChange.add_column("more", AtomicType("INT")),
        SchemaChange.rename_column("name", "label"),
        SchemaChange.update_column_type("id", AtomicType("DECIMAL(20, 0) NOT NULL")),
    )

    assert counts(table, ["day", "price", "more"]) == (1, 0)
    assert counts(table, ["label"]) == (0, 1)
    assert counts(table, ["id"]) == (0, 1)


def test_a_column_that_was_dropped_and_added_again_is_another_one(tmp_path: Path) -> None:
    table = write(new_table(tmp_path))
    table = altered(table, SchemaChange.drop_column("price"))
    table = altered(table, SchemaChange.add_column("PRICE", AtomicType("DOUBLE")))

    assert counts(table, ["PRICE"]) == (0, 1)
    assert counts(table, ["name"]) == (1, 0)


def test_names_that_differ_by_case_only_are_ours(tmp_path: Path) -> None:
    columns = pa.schema([("a", pa.int64()), ("A", pa.int64()), ("b", pa.int64())])
    table = new_table(tmp_path, columns=columns)
    append(table, [{"a": 1, "A": 2, "b": 3}])

    assert counts(table) == (0, 1)
    assert counts(table, ["a"]) == (0, 1)
    assert counts(table, ["b"]) == (1, 0)


def field(at: int, name: str, text: str = "INT") -> DataField:
    return DataField(at, name, AtomicType(text))


def row(*fields: DataField) -> DataField:
    return DataField(0, "s", RowType(True, fields))


X, Y = field(1, "x"), field(2, "y")


@pytest.mark.parametrize(
    ("stored", "asked", "expected"),
    [
        (row(X, Y), row(X, Y), True),
        (row(Y, X), row(X, Y), True),
        (row(X, Y), row(Y), True),
        (row(X), row(X, Y), False),  # the part of a row that is missing
        (row(X, field(3, "X")), row(X), False),
        (row(field(1, "old")), row(X), False),
        (row(field(9, "x")), row(X), False),
        (row(field(1, "x", "BIGINT")), row(X), False),
        (row(field(1, "x", "INT NOT NULL")), row(X), True),
    ],
)
def test_fields_of_rows_are_found_like_columns(
    stored: DataField, asked: DataField, expected: bool
) -> None:
    in_array = [replace(f, type=ArrayType(True, f.type)) for f in (stored, asked)]
    in_map = [
        replace(f, type=MapType(True, AtomicType("INT NOT NULL"), f.type)) for f in (stored, asked)
    ]

    assert has_columns([stored], [asked]) is expected
    assert has_columns(in_array[:1], in_array[1:]) is expected
    assert has_columns(in_map[:1], in_map[1:]) is expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("BIGINT", True),
        ("DECIMAL(38, 10)", True),
        ("CHAR(4)", True),
        ("BINARY(4)", True),
        ("TIMESTAMP(0)", True),
        ("TIMESTAMP(6)", True),
        ("TIMESTAMP(7)", False),
        ("TIMESTAMP_LTZ(6)", True),
        ("TIMESTAMP_LTZ(9)", False),
        ("TIME(3)", False),
        ("VARIANT", False),
        ("BLOB", False),
    ],
)
def test_types_that_spark_gives_otherwise_are_ours(text: str, expected: bool) -> None:
    data_type = AtomicType(text)

    assert is_plain(data_type) is expected
    assert is_plain(ArrayType(True, data_type)) is expected
    assert is_plain(MapType(True, AtomicType("INT NOT NULL"), data_type)) is expected
    assert is_plain(RowType(True, (DataField(0, "x", data_type),))) is expected
    assert not is_plain(MultisetType(True, data_type))


def test_nothing_is_decided_by_opening_files(tmp_path: Path) -> None:
    table = write(new_table(tmp_path, **PARTS))
    reader, splits = planned(table)
    for path in Path(table.table_path).rglob("*.parquet"):
        path.unlink()

    assert counted(divide(reader, splits)) == (3, 0)
