"""Parquet files: their physical form, and reading what others wrote."""

import io
import time
from decimal import Decimal
from functools import cache

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from data_files import PATH, fields_of, read_file, reader_of, storage_with, table_of, write_file
from emberlake.errors import CorruptFile, DataMismatch, Unsupported
from emberlake.formats import open_reader, open_writer, parquet_writer
from emberlake.formats.parquet_writer import (
    dictionary_pays_off,
    estimate_distinct,
    plan_column_groups,
)
from emberlake.io import MemoryStorage
from emberlake.options import TableOptions
from emberlake.predicates import columns_of, filter_rows
from emberlake.predicates.expressions import And, Leaf, Op
from emberlake.types import (
    ArrayType,
    AtomicType,
    DataField,
    MapType,
    MultisetType,
    RowType,
    arrow_schema,
)
from remote_storage import RemoteStorage

# As Java Paimon writes these columns, but for a legacy mark on the pairs of maps.
JAVA_SCHEMA = """
required group field_id=-1 paimon_schema {
  optional boolean field_id=0 flag;
  optional int32 field_id=1 tiny (Int(bitWidth=8, isSigned=true));
  optional int32 field_id=2 small (Int(bitWidth=16, isSigned=true));
  optional int32 field_id=3 i;
  required int64 field_id=4 l;
  optional float field_id=5 f;
  optional double field_id=6 d;
  optional int32 field_id=7 d9 (Decimal(precision=9, scale=2));
  optional int64 field_id=8 d18 (Decimal(precision=18, scale=6));
  optional fixed_len_byte_array(9) field_id=9 d19 (Decimal(precision=19, scale=0));
  optional fixed_len_byte_array(16) field_id=10 d38 (Decimal(precision=38, scale=10));
  optional binary field_id=11 c (String);
  optional binary field_id=12 s (String);
  optional binary field_id=13 b6;
  optional binary field_id=14 b;
  optional int32 field_id=15 date (Date);
  optional int32 field_id=16 time (Time(isAdjustedToUTC=true, timeUnit=milliseconds));
  optional int64 field_id=17 t0 (Timestamp(isAdjustedToUTC=false, timeUnit=milliseconds));
  optional int64 field_id=18 t3 (Timestamp(isAdjustedToUTC=false, timeUnit=milliseconds));
  optional int64 field_id=19 t6 (Timestamp(isAdjustedToUTC=false, timeUnit=microseconds));
  optional int96 field_id=20 t9;
  optional int64 field_id=21 z3 (Timestamp(isAdjustedToUTC=true, timeUnit=milliseconds));
  optional int64 field_id=22 z6 (Timestamp(isAdjustedToUTC=true, timeUnit=microseconds));
  optional group field_id=23 m (Map) {
    repeated group field_id=-1 key_value {
      required binary field_id=536847358 key (String);
      required int32 field_id=536894464 value;
    }
  }
  optional group field_id=24 r {
    optional group field_id=25 a (List) {
      repeated group field_id=-1 list {
        optional int64 field_id=536896512 element (Timestamp(isAdjustedToUTC=false, timeUnit=milliseconds));
      }
    }
    optional group field_id=26 n (Map) {
      repeated group field_id=-1 key_value {
        required int32 field_id=536844286 key;
        optional group field_id=536897536 value (List) {
          repeated group field_id=-1 list {
            optional double field_id=536897537 element;
          }
        }
      }
    }
  }
}
"""  # noqa: E501


def parquet_of(storage) -> pq.ParquetFile:
    return pq.ParquetFile(pa.py_buffer(storage.read(PATH)))


def rows_of(storage, fields, predicate) -> tuple[list, int]:
    with reader_of(storage, fields, "parquet") as reader:
        found = reader.read_table(fields, predicate)
        return found.column(0).to_pylist(), reader.row_groups_read


def test_the_physical_schema_is_the_one_java_writes() -> None:
    nested = (
        DataField(25, "a", ArrayType(True, AtomicType("TIMESTAMP(3)"))),
        DataField(26, "n", MapType(True, AtomicType("INT"), ArrayType(True, AtomicType("DOUBLE")))),
    )
    fields = fields_of(
        flag="BOOLEAN", tiny="TINYINT", small="SMALLINT", i="INT", l="BIGINT NOT NULL", f="FLOAT",
        d="DOUBLE", d9="DECIMAL(9, 2)", d18="DECIMAL(18, 6)", d19="DECIMAL(19, 0)",
        d38="DECIMAL(38, 10)", c="CHAR(4)", s="STRING", b6="BINARY(6)", b="BYTES", date="DATE",
        time="TIME(3)", t0="TIMESTAMP(0)", t3="TIMESTAMP(3)", t6="TIMESTAMP(6)",
        t9="TIMESTAMP(9)", z3="TIMESTAMP_LTZ(3)", z6="TIMESTAMP_LTZ(6)",
        m=MultisetType(True, AtomicType("STRING")), r=RowType(True, nested),
    )  # fmt: skip

    schema = str(parquet_of(write_file("parquet", fields)).schema)

    detail = ", is_from_converted_type=false, force_set_converted_type=false"
    assert schema.partition("\n")[2].replace(detail, "").strip() == JAVA_SCHEMA.strip()


def test_the_file_is_plain_parquet_with_nothing_of_arrow_in_it() -> None:
    fields = fields_of(id="BIGINT", s="STRING")
    table = table_of(fields, range(100), map(str, range(100)))

    file = parquet_of(write_file("parquet", fields, table))

    assert file.metadata.metadata is None
    assert file.metadata.format_version == "2.6"
    assert file.read().equals(table)
    column = file.metadata.row_group(0).column(0)
    assert column.compression == "ZSTD"
    assert (column.statistics.min, column.statistics.max, column.statistics.null_count) == (
        0,
        99,
        0,
    )


def test_every_write_is_a_row_group_whose_chunks_follow_the_schema() -> None:
    fields = fields_of(a="INT", b="STRING", c="DOUBLE")
    tables = [table_of(fields, range(n), ["x"] * n, [i / 7 for i in range(n)]) for n in (5, 1, 300)]

    metadata = parquet_of(write_file("parquet", fields, *tables)).metadata

    assert [metadata.row_group(i).num_rows for i in range(3)] == [5, 1, 300]
    at = 4
    for i in range(3):
        for j in range(3):
            column = metadata.row_group(i).column(j)
            assert column.path_in_schema == "abc"[j]
            assert (column.dictionary_page_offset or column.data_page_offset) == at
            at += column.total_compressed_size


def test_columns_encoded_by_several_threads_make_the_same_rows() -> None:
    fields = fields_of(
        id="BIGINT", low="STRING", high="STRING", money="DECIMAL(12, 2)", small="DECIMAL(5, 1)",
        flag="BOOLEAN", list=ArrayType(True, AtomicType("INT")),
    )  # fmt: skip
    n = 60_000
    rng = np.random.default_rng(7)
    money = pa.array([None if i % 5 == 0 else Decimal(i - 3000).scaleb(-2) for i in range(n)])
    lists = pa.array([list(range(i % 3)) for i in range(n)])
    columns = [
        pa.array(np.arange(n)), pa.array(rng.choice(["a", "b"], n)),
        pa.array(rng.integers(0, 10**9, n).astype(str)), money.cast(pa.decimal128(12, 2)),
        pa.array([Decimal(i % 99 - 50).scaleb(-1) for i in range(n)], pa.decimal128(5, 1)),
        pa.array(rng.random(n) < 0.5), lists.cast(pa.list_(pa.field("element", pa.int32()))),
    ]  # fmt: skip
    table = pa.Table.from_arrays(columns, schema=arrow_schema(fields)).slice(1, n - 2)

    storage = write_file("parquet", fields, table)

    assert parquet_of(storage).read().equals(table)
    assert read_file(storage, fields, "parquet").equals(table)
    encodings = [set(parquet_of(storage).metadata.row_group(0).column(i).encodings) for i in (1, 2)]
    assert "RLE_DICTIONARY" in encodings[0]
    assert "RLE_DICTIONARY" not in encodings[1]


def test_the_same_rows_make_the_same_file() -> None:
    fields = fields_of(id="BIGINT", s="STRING")
    table = table_of(fields, range(20_000), [f"s{i % 1000}" for i in range(20_000)])

    files = {write_file("parquet", fields, table).read(PATH) for _ in range(2)}

    assert len(files) == 1


def test_an_estimate_of_distinct_values_is_near() -> None:
    rng = np.random.default_rng(3)
    for distinct in (10, 1000, 50_000):
        seen = len(set(rng.integers(0, distinct, 8192).tolist()))
        assert estimate_distinct(8192, seen) == pytest.approx(distinct, rel=0.2)
    assert estimate_distinct(100, 100) == float("inf")


@pytest.mark.parametrize(
    ("values", "pays"),
    [
        (np.arange(100_000), False),
        (np.arange(100_000) % 1000, True),
        (np.zeros(100_000), True),
        (np.arange(100), False),
        (np.arange(100) % 10, True),
    ],
)
def test_a_dictionary_is_used_where_values_repeat(values: np.ndarray, pays: bool) -> None:
    size = min(len(values), 8192)
    sample = np.sort(np.random.default_rng(0).integers(0, len(values), size))
    rows = np.arange(len(values)) if size == len(values) else sample

    assert dictionary_pays_off(pa.chunked_array([values]), rows) is pays


def test_groups_of_columns_are_balanced() -> None:
    assert plan_column_groups([10, 1, 1, 8], 2) == [(0, 2), (1, 3)]
    assert plan_column_groups([5, 5], 1) == [(0, 1)]
    assert plan_column_groups([], 4) == []


# --- Pruning ---

NUMBERS = fields_of(n="INT", s="STRING")


def three_groups() -> list[pa.Table]:
    return [
        table_of(NUMBERS, range(start, start + 10), [f"k{i}" for i in range(start, start + 10)])
        for start in (10, 30, 50)
    ]


def test_row_groups_that_cannot_match_are_not_read() -> None:
    storage = write_file("parquet", NUMBERS, *three_groups())
    predicate = Leaf(NUMBERS[0], Op.EQUAL, (33,))

    with reader_of(storage, NUMBERS, "parquet") as reader:
        batches = list(reader.read(NUMBERS, predicate))

        assert (reader.row_group_count, reader.row_groups_read) == (3, 1)
    assert [start for start, _ in batches] == [10]
    assert batches[0][1].column("n").to_pylist() == list(range(30, 34))


@pytest.mark.parametrize(
    ("predicate", "groups"),
    [
        (Leaf(NUMBERS[0], Op.GREATER_THAN, (39,)), 1),
        (Leaf(NUMBERS[0], Op.LESS_THAN, (10,)), 0),
        (Leaf(NUMBERS[0], Op.IS_NULL), 0),
        (Leaf(NUMBERS[1], Op.STARTS_WITH, ("k5",)), 1),
        (Leaf(NUMBERS[1], Op.EQUAL, ("k31",)), 1),
        (And((Leaf(NUMBERS[0], Op.EQUAL, (33,)), Leaf(NUMBERS[1], Op.EQUAL, ("k11",)))), 0),
        (Leaf(DataField(7, "absent", AtomicType("INT")), Op.IS_NOT_NULL), 0),
        (Leaf(DataField(7, "absent", AtomicType("INT")), Op.IS_NULL), 3),
        (Leaf(DataField(8, "unknown", AtomicType("INT")), Op.IS_NOT_NULL), 3),
    ],
)
def test_pruning_follows_the_statistics(predicate, groups: int) -> None:
    fields = (*NUMBERS, DataField(7, "absent", AtomicType("INT")))
    storage = write_file("parquet", NUMBERS, *three_groups())

    assert rows_of(storage, fields, predicate)[1] == groups


@pytest.mark.parametrize(
    ("column_type", "low", "high", "below"),
    [
        ("TINYINT", 3, 7, 2),
        ("BIGINT", -(2**62), 5, -(2**63)),
        ("DATE", -5, 5, -6),
        ("TIME(3)", 5, 10, 4),
        ("TIMESTAMP(0)", 5 * 10**9, 10 * 10**9, 4 * 10**9),
        ("TIMESTAMP(6)", -5000, 7000, -6000),
        ("DECIMAL(9, 2)", Decimal("-1.50"), Decimal("9.00"), Decimal("-1.51")),
        ("DECIMAL(18, 2)", Decimal("-1.50"), Decimal("9.00"), Decimal("-1.51")),
        ("DECIMAL(30, 2)", Decimal("-1.50"), Decimal("9.00"), Decimal("-1.51")),
        ("DOUBLE", -1.5, 2.5, -1.75),
        ("STRING", "b", "ü", "a"),
        ("BYTES", b"\x80", b"\xff", b"\x7f"),
        ("BOOLEAN", True, True, False),
    ],
)
def test_bounds_of_every_type_are_understood(column_type: str, low, high, below) -> None:
    fields = fields_of(c=column_type)
    storage = write_file("parquet", fields, table_of(fields, [low, None, high]))

    for literal, groups in ((low, 1), (high, 1), (below, 0)):
        assert rows_of(storage, fields, Leaf(fields[0], Op.EQUAL, (literal,)))[1] == groups


def test_nan_hides_from_statistics_and_is_not_lost() -> None:
    fields = fields_of(d="DOUBLE")
    storage = write_file("parquet", fields, table_of(fields, [1.0, float("nan"), 1.0]))

    assert rows_of(storage, fields, Leaf(fields[0], Op.NOT_EQUAL, (1.0,)))[1] == 1


def test_statistics_of_unsigned_columns_and_other_scales_are_not_trusted() -> None:
    sink = io.BytesIO()
    pq.write_table(
        pa.table({"u": pa.array([1, 2], pa.uint32()), "d": pa.array([Decimal("1.5")] * 2)}), sink
    )
    fields = fields_of(u="BIGINT", d="DECIMAL(5, 2)")
    storage = storage_with(sink.getvalue())

    assert rows_of(storage, fields, Leaf(fields[0], Op.EQUAL, (9,)))[1] == 1
    assert rows_of(storage, fields, Leaf(fields[1], Op.EQUAL, (Decimal("9.00"),)))[1] == 1


# --- Where rows match ---

GROUP = 40_000
# The column that the file is sorted by is neither the first nor the last one.
SORTED = fields_of(scattered="INT", id="BIGINT", s="STRING")


@cache
def sorted_file() -> MemoryStorage:
    """Three row groups; `id` is the position, and every third row has no `scattered` number."""
    parts = [
        table_of(
            SORTED,
            [None if n % 3 == 0 else n % 7 for n in range(start, start + GROUP)],
            range(start, start + GROUP),
            [f"row {n}" for n in range(start, start + GROUP)],
        )
        for start in range(0, 3 * GROUP, GROUP)
    ]
    return write_file("parquet", SORTED, *parts)


SCATTERED, ID, TEXT = SORTED
PREDICATES = [
    Leaf(ID, Op.LESS_THAN, (100,)),
    Leaf(ID, Op.BETWEEN, (GROUP // 2, GROUP // 2 + 5)),
    Leaf(ID, Op.BETWEEN, (GROUP - 3, 2 * GROUP + 3)),
    Leaf(ID, Op.GREATER_THAN, (3 * GROUP - 2,)),
    Leaf(SCATTERED, Op.EQUAL, (5,)),
    Leaf(SCATTERED, Op.IS_NULL),
    And((Leaf(ID, Op.GREATER_THAN, (GROUP + 9,)), Leaf(SCATTERED, Op.EQUAL, (5,)))),
    And((Leaf(SCATTERED, Op.EQUAL, (6,)), Leaf(TEXT, Op.EQUAL, (f"row {GROUP + 3}",)))),
    Leaf(TEXT, Op.EQUAL, ("row 2x",)),
]


@pytest.mark.parametrize("batch_rows", [999, 1_000_000])
@pytest.mark.parametrize("columns", [SORTED, SORTED[::-1], SORTED[:2]], ids=["all", "back", "two"])
@pytest.mark.parametrize("predicate", PREDICATES, ids=str)
def test_no_row_that_matches_is_left_out(predicate, columns, batch_rows: int) -> None:
    with reader_of(sorted_file(), SORTED, "parquet") as reader:
        expected = filter_rows(predicate, reader.read_table(SORTED))
        batches = list(reader.read(columns, predicate, batch_rows))
        table = reader.read_table(columns, predicate)

    for position, batch in batches:
        assert batch.num_rows <= batch_rows
        assert batch.column("id").to_pylist() == [*range(position, position + batch.num_rows)]
    for found in (pa.Table.from_batches([b for _, b in batches], arrow_schema(columns)), table):
        assert set(expected["id"].to_pylist()) <= set(found["id"].to_pylist())
        if columns_of(predicate) <= {column.name for column in columns}:
            assert filter_rows(predicate, found) == expected.select(found.column_names)


def test_groups_that_match_in_part_and_as_a_whole_have_the_same_columns() -> None:
    fields = fields_of(a="BIGINT", b="BIGINT")
    parts = [table_of(fields, [n + 1000 for n in ns], ns) for ns in (range(4), (), range(4, 8))]
    sink = io.BytesIO()
    with pq.ParquetWriter(sink, parts[0].schema) as writer:
        for part in parts:
            writer.write_table(part)  # of the empty one, an empty row group

    with reader_of(storage_with(sink.getvalue()), fields, "parquet") as reader:
        assert reader.row_group_count == 3
        found = reader.read_table(fields, Leaf(fields[1], Op.GREATER_OR_EQUAL, (2,)))
        none = reader.read_table(fields, Leaf(fields[1], Op.EQUAL, (9,)))

    assert found.filter(pc.field("b") >= 2).to_pylist() == [
        {"a": n + 1000, "b": n} for n in range(2, 8)
    ]
    assert none.num_rows == 0


def test_what_comes_after_the_last_match_is_left_alone() -> None:
    with reader_of(sorted_file(), SORTED, "parquet") as reader:
        none = reader.read_table(SORTED, Leaf(TEXT, Op.EQUAL, ("row 2x",)))
        first = reader.read_table(SORTED, Leaf(ID, Op.BETWEEN, (-5, 99)))
        last = reader.read_table(SORTED, Leaf(ID, Op.GREATER_THAN, (3 * GROUP - 9,)))

    assert (none.num_rows, first.num_rows) == (0, 100)
    assert last["id"].to_pylist()[-8:] == [*range(3 * GROUP - 8, 3 * GROUP)]


# --- What others write ---


def written_by_arrow(**columns: pa.Array) -> object:
    sink = io.BytesIO()
    pq.write_table(pa.table(columns), sink)
    return storage_with(sink.getvalue())


@pytest.mark.parametrize(
    ("array", "column_type"),
    [
        (pa.array([1, None], pa.int8()), "BIGINT"),
        (pa.array([1.5, None], pa.float32()), "DOUBLE"),
        (pa.array([Decimal("1.50"), None], pa.decimal128(9, 2)), "DECIMAL(9, 2)"),
        (pa.array([Decimal("1.5"), None], pa.decimal128(5, 1)), "DECIMAL(20, 3)"),
        (pa.array([10**9, None], pa.timestamp("ns")), "TIMESTAMP(3)"),
        (pa.array([1, None], pa.timestamp("ms", "Europe/Paris")), "TIMESTAMP(6)"),
        (pa.array([1, None], pa.timestamp("us")), "TIMESTAMP_LTZ(6)"),
        (pa.array([1000, None], pa.time64("us")), "TIME(3)"),
        (pa.array([10**6, None], pa.time64("ns")), "TIME(3)"),
        (pa.array(["a", None]).dictionary_encode(), "STRING"),
        (pa.array(["a", None], pa.large_string()), "STRING"),
        (pa.array([b"a", None]), "STRING"),
        (pa.array([b"ab", None], pa.binary(2)), "BINARY(2)"),
    ],
    ids=str,
)
def test_other_physical_types_become_the_column_type(array: pa.Array, column_type: str) -> None:
    fields = fields_of(c=column_type)

    table = read_file(written_by_arrow(c=array), fields, "parquet")

    assert table.schema == arrow_schema(fields)
    value = table.column("c").to_pylist()
    assert value[1] is None
    assert value[0] is not None


def test_lists_whose_child_has_another_name_are_read() -> None:
    fields = fields_of(c=ArrayType(True, RowType(True, (DataField(1, "x", AtomicType("INT")),))))
    array = pa.array([[{"x": 1}, None], [], None], pa.list_(pa.struct([("x", pa.int8())])))

    table = read_file(written_by_arrow(c=array), fields, "parquet")

    assert table.schema == arrow_schema(fields)
    assert str(table.column("c").type) == str(arrow_schema(fields).field("c").type)
    assert table.column("c").to_pylist() == array.to_pylist()


def test_a_nested_field_that_the_file_lacks_is_null() -> None:
    inner = (DataField(1, "x", AtomicType("INT")), DataField(2, "y", AtomicType("INT")))
    array = pa.array([{"x": 1}, None], pa.struct([("x", pa.int32())]))
    storage = written_by_arrow(c=array)

    both = read_file(storage, fields_of(c=RowType(True, inner)), "parquet")
    only_new = read_file(storage, fields_of(c=RowType(True, inner[1:])), "parquet")

    assert both.column("c").to_pylist() == [{"x": 1, "y": None}, None]
    assert only_new.column("c").to_pylist() == [{"y": None}, None]


def test_only_the_asked_parts_of_a_column_are_decoded() -> None:
    inner = (DataField(1, "x", AtomicType("INT")), DataField(2, "y", AtomicType("STRING")))
    fields = fields_of(c=MapType(True, AtomicType("STRING"), RowType(True, inner)))
    table = table_of(fields, [[("k", (1, "a"))], None, []])
    storage = write_file("parquet", fields, table)
    asked = fields_of(c=MapType(True, AtomicType("STRING"), RowType(True, inner[1:])))

    found = read_file(storage, asked, "parquet").column("c").to_pylist()

    assert found == [[("k", {"y": "a"})], None, []]


def int96(*values: int | None, unit: str = "us") -> object:
    sink = io.BytesIO()
    table = pa.table({"t": pa.array(values, pa.timestamp(unit))})
    pq.write_table(table, sink, use_deprecated_int96_timestamps=True, store_schema=False)
    return storage_with(sink.getvalue())


@pytest.mark.parametrize("column_type", ["TIMESTAMP(9)", "TIMESTAMP_LTZ(9)", "TIMESTAMP(6)"])
def test_int96_is_read(column_type: str) -> None:
    fields = fields_of(t=column_type)

    table = read_file(int96(-1, 0, None, 1_700_000_000_123_456), fields, "parquet")

    expected = pa.array([-1, 0, None, 1_700_000_000_123_456], pa.timestamp("us"))
    assert table.schema == arrow_schema(fields)
    assert table.column("t").cast(pa.timestamp("us")).chunk(0).equals(expected)


def test_nanoseconds_are_written_as_int96_at_any_depth() -> None:
    nanos = AtomicType("TIMESTAMP(9)")
    fields = fields_of(
        t=nanos, a=ArrayType(True, nanos), m=MapType(True, AtomicType("STRING"), nanos), d="DATE"
    )
    values = [-1, None, 0, 1_700_000_000_123_456_789, -(2**62)]
    table = table_of(fields, values, [values] * 5, [[("k", v)] for v in values], range(5))

    storage = write_file("parquet", fields, table.slice(0, 2), table.slice(2))

    file = parquet_of(storage)
    assert [file.schema.column(i).physical_type for i in range(5)] == [
        "INT96", "INT96", "BYTE_ARRAY", "INT96", "INT32",
    ]  # fmt: skip
    statistics = file.metadata.row_group(0).column(0).statistics
    assert (statistics.has_min_max, statistics.null_count) == (False, 1)
    assert file.read().column("t").equals(table.column("t"))
    assert read_file(storage, fields, "parquet").equals(table)


def test_int96_of_far_years_is_exact_or_refused() -> None:
    far = 253_402_300_799_000_000

    assert read_file(int96(far), fields_of(t="TIMESTAMP(6)"), "parquet").column("t").cast(
        pa.int64()
    ).to_pylist() == [far]
    with pytest.raises(Unsupported, match="column t"):
        read_file(int96(far), fields_of(t="TIMESTAMP(9)"), "parquet")


def test_int96_has_no_bounds_to_prune_by() -> None:
    fields = fields_of(t="TIMESTAMP(9)")

    assert rows_of(int96(1), fields, Leaf(fields[0], Op.EQUAL, (5,)))[1] == 1


def test_two_columns_of_one_name_are_corrupt() -> None:
    sink = io.BytesIO()
    pq.write_table(pa.Table.from_arrays([pa.array([1]), pa.array([2])], names=["a", "a"]), sink)

    with pytest.raises(CorruptFile, match="2 columns named a"):
        read_file(storage_with(sink.getvalue()), fields_of(a="BIGINT"), "parquet")


def test_columns_with_dots_in_their_names_are_not_nested_ones() -> None:
    inner = RowType(True, (DataField(5, "b", AtomicType("INT")),))
    fields = (DataField(0, "a.b", AtomicType("INT")), DataField(1, "a", inner))
    table = table_of(fields, [1], [(2,)])
    storage = write_file("parquet", fields, table)

    assert read_file(storage, fields[:1], "parquet").to_pylist() == [{"a.b": 1}]
    assert read_file(storage, fields[1:], "parquet").to_pylist() == [{"a": {"b": 2}}]


def test_streaming_holds_no_more_than_a_row_group() -> None:
    fields = fields_of(id="BIGINT", v="BIGINT")
    part = table_of(fields, range(50_000), range(50_000))
    storage = write_file("parquet", fields, *[part] * 20)
    before = pa.total_allocated_bytes()

    peak = 0
    with reader_of(storage, fields, "parquet") as reader:
        for _, batch in reader.read(fields, batch_rows=10_000):
            assert batch.num_rows <= 10_000
            peak = max(peak, pa.total_allocated_bytes() - before)

    assert peak < 4 * part.nbytes


@pytest.mark.thorough
def test_footers_of_many_wide_tables_are_remembered_within_a_bound() -> None:
    for table in range(12):
        names = [f"column_{number}_of_table_{table}" for number in range(600)]
        parquet_writer._frame(
            tuple(DataField(i, name, AtomicType("INT")) for i, name in enumerate(names))
        )

    assert 2**20 < parquet_writer._FRAMES.held_bytes <= 4 * 2**20
    assert len(parquet_writer._FRAMES) < 12


# --- pages ----------------------------------------------------------------------------------------


def with_a_flipped_bit(fields) -> MemoryStorage:
    value = 0x1122334455667788
    plain = {"file.compression": "none"}
    storage = write_file("parquet", fields, table_of(fields, [1, value, 2**62]), options=plain)
    raw = bytearray(storage.read(PATH))
    raw[raw.index(value.to_bytes(8, "little"))] ^= 1
    return storage_with(bytes(raw))


def test_a_bit_that_flipped_inside_a_page_is_an_error_where_pages_are_verified() -> None:
    fields = fields_of(v="BIGINT")
    storage = with_a_flipped_bit(fields)

    with (
        open_reader(storage, PATH, fields, "parquet", verifies_pages=True) as reader,
        pytest.raises(CorruptFile, match="CRC checksum verification failed"),
    ):
        reader.read_table(fields)


def test_pages_are_not_verified_unless_it_is_asked_for() -> None:
    fields = fields_of(v="BIGINT")

    found = read_file(with_a_flipped_bit(fields), fields, "parquet")

    assert found["v"].to_pylist() == [1, 0x1122334455667789, 2**62]


def test_pages_of_writers_that_know_no_checksums_are_read() -> None:
    fields = fields_of(v="BIGINT")
    sink = io.BytesIO()
    pq.write_table(pa.table({"v": [1, 2]}), sink, write_page_checksum=False)

    with open_reader(
        storage_with(sink.getvalue()), PATH, fields, "parquet", verifies_pages=True
    ) as reader:
        assert reader.read_table(fields)["v"].to_pylist() == [1, 2]


# --- parts that are fetched ahead -----------------------------------------------------------------


class PartedStorage(MemoryStorage):
    """Its inputs learn which parts are needed, and return nothing else except the end."""

    def __init__(self) -> None:
        super().__init__()
        self.parts: list[list[tuple[int, int]]] = []
        self.turns: list[int] = []

    def open_input(self, path: str, size: int | None = None):
        return Parted(self, self.read(path))


class Parted(pa.PythonFile):
    def __new__(cls, storage: PartedStorage, raw: bytes):
        file = super().__new__(cls, io.BytesIO(raw), mode="r")
        file.storage = storage
        return file

    def __init__(self, storage: PartedStorage, raw: bytes) -> None:
        pass

    def each_part(self, parts):
        self.storage.parts = parts
        for number in range(len(parts)):
            self.storage.turns.append(number)
            yield number


@pytest.mark.parametrize("at_once", [False, True])
def test_an_input_learns_which_column_chunks_of_which_groups_are_needed(at_once: bool) -> None:
    fields = fields_of(k="BIGINT", v="BIGINT", w="STRING")
    parts = [table_of(fields, [n, n + 1], [n, n], ["a", "b"]) for n in (0, 10, 20)]
    raw = write_file("parquet", fields, *parts).read(PATH)
    storage = PartedStorage()
    storage.put(PATH, raw)
    predicate = Leaf(fields[0], Op.GREATER_OR_EQUAL, (11,))

    with open_reader(storage, PATH, fields, "parquet", len(raw)) as reader:
        if at_once:
            rows = reader.read_table(fields[:2], predicate)
        else:
            rows = pa.Table.from_batches(b for _, b in reader.read(fields[:2], predicate))

    assert rows["k"].to_pylist()[-2:] == [20, 21]
    assert storage.turns == [0, 1]  # of the two groups that may match
    metadata = pq.read_metadata(pa.BufferReader(raw))
    for chunks, group in zip(storage.parts, (1, 2), strict=True):
        found = [metadata.row_group(group).column(leaf) for leaf in (0, 1)]
        assert [stop - start for start, stop in chunks] == [c.total_compressed_size for c in found]


def test_the_footer_of_a_parted_file_is_read_once() -> None:
    fields = fields_of(v="TIMESTAMP(9)")
    raw = write_file("parquet", fields, table_of(fields, [7, None])).read(PATH)
    storage = PartedStorage()
    storage.put(PATH, raw)
    with open_reader(storage, PATH, fields, "parquet", len(raw)) as reader:
        first = reader.read_table(fields)

    storage.put(PATH, raw[:-8] + b"no foot.")
    with open_reader(storage, PATH, fields, "parquet", len(raw)) as reader:
        second = reader.read_table(fields)

    assert first == second


def test_where_sending_takes_long_columns_are_sent_while_others_are_encoded(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    texts = [f"{n:>200}" for n in range(5_000)]
    fields = fields_of(small="INT", large="STRING", last="STRING")
    table = table_of(fields, range(5_000), texts, texts)
    remote = RemoteStorage()
    writer = open_writer(remote, PATH, fields, TableOptions({}), "parquet")
    begins, encode = writer.bytes_written, writer._encode
    was_sent = []

    def encode_slowly(part: pa.Table, group: tuple[int, ...], sample: np.ndarray) -> object:
        deadline = time.monotonic() + 10
        while 2 in group and writer.bytes_written == begins and time.monotonic() < deadline:
            time.sleep(0.001)
        was_sent.append(2 not in group or writer.bytes_written > begins)
        return encode(part, group, sample)

    monkeypatch.setattr(pa, "cpu_count", lambda: 2)
    monkeypatch.setattr(writer, "_encode", encode_slowly)
    writer.write(table)
    writer.close()

    assert was_sent == [True] * 3
    assert remote.storage.read(PATH) == write_file("parquet", fields, table).read(PATH)


def test_a_null_in_a_required_field_of_a_row_that_is_there_is_refused() -> None:
    row = RowType(True, (DataField(1, "a", AtomicType("INT", nullable=False)),))
    fields = (DataField(0, "s", row),)
    rows = pa.table({"s": [None, {"a": None}]}, arrow_schema(fields))

    with pytest.raises(DataMismatch, match="'a' is declared non-nullable"):
        write_file("parquet", fields, rows)
