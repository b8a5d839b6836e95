"""What all formats have in common."""

from datetime import date
from decimal import Decimal

import pyarrow as pa
import pytest

from data_files import PATH, fields_of, read_file, reader_of, storage_with, table_of, write_file
from emberlake.errors import (
    CorruptFile,
    DataMismatch,
    FileNotFound,
    InvalidOption,
    InvalidState,
    Unsupported,
)
from emberlake.formats import format_of, open_reader, open_writer
from emberlake.io import LocalStorage, MemoryStorage
from emberlake.options import TableOptions
from emberlake.types import ArrayType, AtomicType, DataField, RowType, VectorType, arrow_schema

FORMATS = ("parquet", "orc", "avro", "lance")
FIELDS = fields_of(id="BIGINT", name="STRING")
ROWS = table_of(FIELDS, range(10), [f"n{i}" if i % 3 else None for i in range(10)])


def test_the_format_is_the_last_extension() -> None:
    assert format_of("data-1.parquet") == "parquet"
    assert format_of("data-1.zstd.ORC") == "orc"


@pytest.mark.parametrize("name", ["data-1.vortex", "data-1", "data.csv"])
def test_an_unknown_format_is_refused_by_name(name: str) -> None:
    with pytest.raises(Unsupported, match=name):
        format_of(name)


@pytest.mark.parametrize("format_name", FORMATS)
def test_rows_written_in_parts_come_back_in_order(format_name: str) -> None:
    storage = write_file(format_name, FIELDS, ROWS.slice(0, 4), ROWS.slice(4))

    assert read_file(storage, FIELDS, format_name).equals(ROWS)


@pytest.mark.parametrize("format_name", FORMATS)
def test_a_row_can_be_null_although_its_fields_cannot(format_name: str) -> None:
    required = [
        AtomicType(t, nullable=False) for t in ("INT", "STRING", "DECIMAL(9, 2)", "BOOLEAN")
    ]
    inner = RowType(False, (DataField(9, "x", AtomicType("BIGINT", nullable=False)),))
    types = [*required, ArrayType(False, AtomicType("DATE", nullable=False)), inner]
    names = [f"f{i}" for i in range(len(types))]
    row = RowType(
        True,
        tuple(DataField(i, n, t) for i, (n, t) in enumerate(zip(names, types, strict=True), 2)),
    )
    fields = (DataField(0, "s", row), DataField(20, "rows", ArrayType(True, row)))
    one = dict(
        zip(names, (1, "a", Decimal("1.50"), True, [date(2026, 1, 1)], {"x": 7}), strict=True)
    )
    column = [None, one, None, one]
    rows = pa.table({"s": column, "rows": [None, [None, one], [], [one]]}, arrow_schema(fields))

    storage = write_file(format_name, fields, rows.slice(1), rows)

    found = read_file(storage, fields, format_name)
    assert found.column("s").to_pylist() == [*column[1:], *column]
    assert found.column("rows").to_pylist()[:3] == [[None, one], [], [one]]


@pytest.mark.parametrize("format_name", FORMATS)
@pytest.mark.parametrize("parts", [[], [ROWS.slice(0, 0)]])
def test_a_file_without_rows_can_be_read(format_name: str, parts: list[pa.Table]) -> None:
    storage = write_file(format_name, FIELDS, *parts)

    with reader_of(storage, FIELDS, format_name) as reader:
        assert reader.num_rows == 0
        assert list(reader.read(FIELDS)) == []
        assert reader.read_table(FIELDS).equals(arrow_schema(FIELDS).empty_table())
        assert reader.read_table(()).num_rows == 0


@pytest.mark.parametrize("format_name", FORMATS)
def test_batches_know_where_they_start(format_name: str) -> None:
    storage = write_file(format_name, FIELDS, ROWS.slice(0, 7), ROWS.slice(7))

    with reader_of(storage, FIELDS, format_name) as reader:
        batches = list(reader.read(FIELDS, batch_rows=3))

    assert all(batch.num_rows <= 3 for _, batch in batches)
    for start, batch in batches:
        assert pa.table(batch).equals(ROWS.slice(start, batch.num_rows))


@pytest.mark.parametrize("format_name", FORMATS)
def test_a_range_of_rows_is_among_those_that_are_read(format_name: str) -> None:
    storage = write_file(format_name, FIELDS, ROWS)

    with reader_of(storage, FIELDS, format_name) as reader:
        found = dict(reader.read(FIELDS, batch_rows=3, rows=(2, 7)))

    seen = {start + at for start, batch in found.items() for at in range(batch.num_rows)}
    assert seen >= set(range(2, 7))


@pytest.mark.parametrize("format_name", FORMATS)
def test_rows_are_counted_without_columns(format_name: str) -> None:
    storage = write_file(format_name, FIELDS, ROWS)

    with reader_of(storage, FIELDS, format_name) as reader:
        assert sum(batch.num_rows for _, batch in reader.read((), batch_rows=4)) == 10
        assert reader.read_table(()).num_rows == 10
        assert reader.num_rows == 10


@pytest.mark.parametrize("format_name", FORMATS)
def test_a_column_that_the_file_lacks_is_null(format_name: str) -> None:
    storage = write_file(format_name, FIELDS, ROWS)
    added = DataField(9, "added", ArrayType(True, AtomicType("INT")))

    alone = read_file(storage, (added,), format_name)
    along = read_file(storage, (FIELDS[1], added), format_name)

    assert alone.column("added").null_count == 10
    assert along.column("added").null_count == 10
    assert along.column("name").equals(ROWS.column("name"))


@pytest.mark.parametrize("format_name", FORMATS)
def test_columns_come_in_the_asked_order(format_name: str) -> None:
    storage = write_file(format_name, FIELDS, ROWS)

    assert read_file(storage, FIELDS[::-1], format_name).equals(ROWS.select(["name", "id"]))


@pytest.mark.parametrize("format_name", FORMATS)
def test_an_aborted_file_does_not_exist(format_name: str, tmp_path) -> None:
    for storage, path in ((MemoryStorage(), PATH), (LocalStorage(), str(tmp_path / "f"))):
        writer = open_writer(storage, path, FIELDS, TableOptions(), format_name)
        writer.write(ROWS)

        writer.abort()
        writer.abort()

        assert not storage.exists(path)
        with pytest.raises(InvalidState, match="aborted"):
            writer.close()


@pytest.mark.parametrize("format_name", FORMATS)
def test_files_on_disk_are_whole_after_close(format_name: str, tmp_path) -> None:
    storage, path = LocalStorage(), str(tmp_path / "p=1" / "f")
    writer = open_writer(storage, path, FIELDS, TableOptions(), format_name)
    writer.write(ROWS)

    size = writer.close()
    writer.abort()

    assert size == storage.size(path)
    with open_reader(storage, path, FIELDS, format_name) as reader:
        assert reader.read_table(FIELDS).equals(ROWS)


@pytest.mark.parametrize("format_name", FORMATS)
def test_bytes_written_grow_up_to_the_size_of_the_file(format_name: str) -> None:
    storage = MemoryStorage()
    writer = open_writer(storage, PATH, FIELDS, TableOptions(), format_name)
    writer.write(ROWS)

    before = writer.bytes_written
    size = writer.close()

    # Lance tells nothing of rows that it has not written out.
    assert before > 0 or format_name == "lance"
    assert before <= size
    assert size == storage.size(PATH)


@pytest.mark.parametrize("format_name", FORMATS)
def test_nulls_in_a_not_null_column_are_refused(format_name: str) -> None:
    fields = fields_of(id="BIGINT NOT NULL", name="STRING")
    rows = pa.table({"id": pa.array([1, None]), "name": ["a", "b"]})
    writer = open_writer(MemoryStorage(), PATH, fields, TableOptions(), format_name)

    with pytest.raises(DataMismatch, match="id"):
        writer.write(rows)
    writer.abort()


@pytest.mark.parametrize("format_name", FORMATS)
@pytest.mark.parametrize(
    "bad",
    [
        AtomicType("BLOB"),
        AtomicType("VARIANT"),
        ArrayType(True, AtomicType("VARIANT")),
        VectorType(True, AtomicType("FLOAT"), 3),
        RowType(True, ()),
    ],
    ids=str,
)
def test_columns_without_a_place_in_files_are_refused_by_name(format_name, bad) -> None:
    fields = fields_of(id="INT", strange=bad)
    storage = MemoryStorage()

    with pytest.raises(Unsupported, match="strange"):
        open_writer(storage, PATH, fields, TableOptions(), format_name)
    assert not storage.exists(PATH)


@pytest.mark.parametrize("format_name", FORMATS)
def test_columns_beside_a_strange_one_can_be_read(format_name: str) -> None:
    storage = write_file(format_name, FIELDS, ROWS)
    fields = (*FIELDS, DataField(5, "strange", AtomicType("BLOB")))

    with reader_of(storage, fields, format_name) as reader:
        assert reader.read_table(FIELDS).equals(ROWS)
        with pytest.raises(Unsupported, match="strange"):
            list(reader.read(fields))


@pytest.mark.parametrize("format_name", FORMATS)
def test_a_missing_file_is_named(format_name: str) -> None:
    with pytest.raises(FileNotFound, match=PATH):
        open_reader(MemoryStorage(), PATH, FIELDS, format_name)


@pytest.mark.parametrize("format_name", FORMATS)
@pytest.mark.parametrize("raw", [b"", b"x", b"not a data file at all" * 20])
def test_other_bytes_are_a_corrupt_file(format_name: str, raw: bytes) -> None:
    with pytest.raises(CorruptFile, match=PATH):
        reader_of(storage_with(raw), FIELDS, format_name)


@pytest.mark.parametrize("format_name", FORMATS)
def test_a_cut_file_is_corrupt(format_name: str) -> None:
    raw = write_file(format_name, FIELDS, ROWS).read(PATH)
    storage = storage_with(raw[:-7])

    with pytest.raises(CorruptFile, match=PATH):
        read_file(storage, FIELDS, format_name)


@pytest.mark.parametrize("format_name", FORMATS)
def test_a_column_of_another_kind_is_corrupt_and_named(format_name: str) -> None:
    storage = write_file(format_name, FIELDS, ROWS)

    with pytest.raises(CorruptFile, match=r"name.*BOOLEAN"):
        read_file(storage, fields_of(name="BOOLEAN"), format_name)


@pytest.mark.parametrize("format_name", FORMATS)
def test_a_closed_reader_says_so(format_name: str) -> None:
    reader = reader_of(write_file(format_name, FIELDS, ROWS), FIELDS, format_name)
    reader.close()

    with pytest.raises(InvalidState, match="closed"):
        list(reader.read(FIELDS))


@pytest.mark.parametrize("format_name", ["parquet", "orc", "avro"])
def test_an_unknown_compression_is_refused_with_the_choices(format_name: str) -> None:
    storage = MemoryStorage()

    with pytest.raises(InvalidOption, match="zstd"):
        open_writer(
            storage, PATH, FIELDS, TableOptions({"file.compression": "middle-out"}), format_name
        )
    assert not storage.exists(PATH)


@pytest.mark.parametrize(
    ("format_name", "codec"),
    [
        *(("parquet", c) for c in ("zstd", "snappy", "gzip", "brotli", "lz4", "none")),
        *(("orc", c) for c in ("zstd", "snappy", "zlib", "lz4", "none")),
        *(("avro", c) for c in ("zstd", "snappy", "deflate", "none")),
    ],
)
def test_every_compression_comes_back(format_name: str, codec: str) -> None:
    storage = write_file(format_name, FIELDS, ROWS, options={"file.compression": codec})

    assert read_file(storage, FIELDS, format_name).equals(ROWS)


@pytest.mark.parametrize("format_name", FORMATS)
def test_floats_keep_their_bits(format_name: str) -> None:
    fields = fields_of(f="FLOAT", d="DOUBLE")
    values = [float("nan"), -0.0, 0.0, float("inf"), float("-inf"), None]
    table = table_of(fields, values, values)

    back = read_file(write_file(format_name, fields, table), fields, format_name)

    assert repr(back.to_pylist()) == repr(table.to_pylist())


@pytest.mark.parametrize("format_name", ["parquet", "avro"])
def test_timestamps_of_any_year_come_back(format_name: str) -> None:
    fields = fields_of(s="TIMESTAMP(0)", ms="TIMESTAMP(3)", us="TIMESTAMP_LTZ(6)")
    far = [253_402_300_799 * 10**9, -62_135_596_800 * 10**9, None]
    table = table_of(fields, far, far, far)

    assert read_file(write_file(format_name, fields, table), fields, format_name).equals(table)


@pytest.mark.parametrize("format_name", FORMATS)
@pytest.mark.parametrize("rows", [(0, 10), (3, 7), (9, 10), (5, 5)])
def test_rows_of_a_range_are_read_where_they_stand(format_name: str, rows: tuple[int, int]) -> None:
    storage = write_file(format_name, FIELDS, ROWS.slice(0, 4), ROWS.slice(4))

    with reader_of(storage, FIELDS, format_name) as reader:
        found = list(reader.read(FIELDS, batch_rows=3, rows=rows))

    ids = {at + place: n for at, batch in found for place, n in enumerate(batch["id"].to_pylist())}
    assert all(ids[place] == ROWS["id"][place].as_py() for place in range(*rows))
