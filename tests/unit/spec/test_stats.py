import math
from decimal import Decimal

import pyarrow as pa
import pytest

from emberlake.errors import InvalidOption
from emberlake.options import TableOptions
from emberlake.spec.binary_row import decode_row, encode_row
from emberlake.spec.manifest import EMPTY_STATS
from emberlake.spec.stats import (
    COUNTS,
    FULL,
    KEY_STATS_MODE,
    NONE,
    StatsCollector,
    column_stats_modes,
    encode_stats,
    parse_stats_mode,
    partition_stats,
    truncate,
    truncate_max,
    truncate_min,
)
from emberlake.spec.values import to_arrow_array
from emberlake.types import ArrayType, AtomicType, DataField, arrow_type


def fields_of(*types) -> tuple[DataField, ...]:
    parsed = [AtomicType(t) if isinstance(t, str) else t for t in types]
    return tuple(DataField(i, f"c{i}", t) for i, t in enumerate(parsed))


def bounds_of(type_text: str, *batches: list, mode=FULL) -> tuple:
    """Least and greatest value and null count of a column written in batches."""
    fields = fields_of(type_text)
    collector = StatsCollector(fields, [mode])
    for batch in batches:
        collector.update(pa.table({"c0": to_arrow_array(fields[0].type, batch)}))
    stats, _ = collector.finish(dense=False)
    types = [fields[0].type]
    (low,), (high,) = decode_row(types, stats.min_values), decode_row(types, stats.max_values)
    return low, high, stats.null_counts[0]


@pytest.mark.parametrize(
    ("text", "mode"),
    [("none", NONE), ("COUNTS", COUNTS), (" full ", FULL), ("Truncate(16)", truncate(16))],
)
def test_modes_are_read_from_text(text: str, mode) -> None:
    assert parse_stats_mode(text) == mode


@pytest.mark.parametrize("text", ["", "truncate", "truncate(0)", "truncate(-1)", "all"])
def test_a_text_that_is_no_mode_is_refused(text: str) -> None:
    with pytest.raises(InvalidOption, match="truncate"):
        parse_stats_mode(text)


def test_columns_are_cut_to_16_characters_by_default() -> None:
    assert column_stats_modes(fields_of("INT", "STRING"), TableOptions()) == (truncate(16),) * 2


def test_a_column_can_have_its_own_mode() -> None:
    options = TableOptions({"metadata.stats-mode": "counts", "fields.c1.stats-mode": "full"})

    assert column_stats_modes(fields_of("INT", "INT", "INT"), options) == (COUNTS, FULL, COUNTS)


def test_only_the_first_columns_can_be_kept() -> None:
    options = TableOptions(
        {"metadata.stats-keep-first-n-columns": "2", "fields.c3.stats-mode": "full"}
    )

    modes = column_stats_modes(fields_of("INT", "INT", "INT", "INT"), options)

    assert modes == (truncate(16), truncate(16), NONE, FULL)


def test_system_columns_keep_long_statistics_and_do_not_count() -> None:
    fields = (
        DataField(1, "_KEY_k", AtomicType("INT")),
        DataField(2, "_SEQUENCE_NUMBER", AtomicType("BIGINT")),
        DataField(3, "k", AtomicType("INT")),
        DataField(4, "v", AtomicType("INT")),
    )
    options = TableOptions({"metadata.stats-keep-first-n-columns": "1"})

    assert column_stats_modes(fields, options) == (
        KEY_STATS_MODE,
        KEY_STATS_MODE,
        truncate(16),
        NONE,
    )


@pytest.mark.parametrize(
    ("type_text", "batch", "low", "high"),
    [
        ("BOOLEAN", [True, False], False, True),
        ("TINYINT", [3, -128], -128, 3),
        ("BIGINT", [2**63 - 1, -(2**63)], -(2**63), 2**63 - 1),
        ("DECIMAL(9, 2)", [Decimal("1.50"), Decimal("-0.01")], Decimal("-0.01"), Decimal("1.50")),
        ("DECIMAL(38, 0)", [Decimal(10**37), Decimal(-1)], Decimal(-1), Decimal(10**37)),
        ("STRING", ["b", "é", "a"], "a", "é"),
        ("BYTES", [b"\x80", b"\x7f\xff"], b"\x7f\xff", b"\x80"),
        ("DATE", [19737, -1], -1, 19737),
        ("TIME(3)", [1, 86_399_999], 1, 86_399_999),
        ("TIMESTAMP(0)", [10**9, -(10**9)], -(10**9), 10**9),
        ("TIMESTAMP(9)", [1, -1], -1, 1),
        ("TIMESTAMP(6) WITH LOCAL TIME ZONE", [1000, 2000], 1000, 2000),
        ("FLOAT", [1.5, -2.5], -2.5, 1.5),
        ("DOUBLE", [math.inf, -math.inf], -math.inf, math.inf),
    ],
)
@pytest.mark.parametrize("nulls", [0, 2])
def test_bounds_of_every_type(type_text, batch, low, high, nulls) -> None:
    assert bounds_of(type_text, batch + [None] * nulls) == (low, high, nulls)


def test_batches_add_up() -> None:
    assert bounds_of("INT", [5, None], [None], [], [-1, 3]) == (-1, 5, 2)
    assert bounds_of("STRING", ["b"], ["a", None], ["c"]) == ("a", "c", 1)


def test_a_column_of_nulls_has_no_bounds() -> None:
    assert bounds_of("STRING", [None, None]) == (None, None, 2)


@pytest.mark.parametrize("nulls", [0, 1])
@pytest.mark.parametrize("type_text", ["FLOAT", "DOUBLE"])
def test_a_column_with_a_nan_has_no_bounds(type_text: str, nulls: int) -> None:
    assert bounds_of(type_text, [1.0], [math.nan, 2.0] + [None] * nulls, [3.0]) == (
        None,
        None,
        nulls,
    )


@pytest.mark.parametrize("batch", [[0.0], [-0.0], [0.0, -0.0]])
def test_zero_bounds_hold_whichever_zero_is_less(batch: list) -> None:
    low, high, _ = bounds_of("DOUBLE", batch)

    assert (math.copysign(1, low), math.copysign(1, high)) == (-1, 1)


def test_text_is_cut_and_the_greatest_rounded_up() -> None:
    text = "a much longer string than sixteen"

    assert bounds_of("STRING", [text], mode=truncate(16)) == (
        "a much longer st",
        "a much longer su",
        0,
    )


@pytest.mark.parametrize(
    ("value", "length", "low", "high"),
    [
        ("abc", 3, "abc", "abc"),
        ("abcd", 3, "abc", "abd"),
        ("日本語です", 2, "日本", "日札"),
        ("ab\U0010ffffx", 3, "ab\U0010ffff", "ac"),
        ("\U0010ffff" * 3, 2, "\U0010ffff" * 2, None),
        ("a\ud7ffx", 2, "a\ud7ff", "a\ue000"),
        ("😀😀😀", 2, "😀😀", "😀😁"),
        (b"abcd", 3, b"abc", b"abd"),
        (b"a\xff\xff\x00", 3, b"a\xff\xff", b"b"),
        (b"\xff\xff\xff", 2, b"\xff\xff", None),
        (b"\xff\xff", 2, b"\xff\xff", b"\xff\xff"),
        (12345, 2, 12345, 12345),
        (None, 2, None, None),
    ],
)
def test_truncation_keeps_the_order(value, length, low, high) -> None:
    assert truncate_min(value, length) == low
    assert truncate_max(value, length) == high


def test_a_text_that_cannot_be_rounded_up_has_no_bounds() -> None:
    assert bounds_of("STRING", ["a", "\U0010ffff" * 20], mode=truncate(16)) == (None, None, 0)


def test_counts_have_no_bounds() -> None:
    assert bounds_of("INT", [1, None], mode=COUNTS) == (None, None, 1)


def test_nested_columns_have_a_null_count_only() -> None:
    nested = ArrayType(True, AtomicType("INT"))
    fields = fields_of(nested)
    collector = StatsCollector(fields, [FULL])

    collector.update(pa.table({"c0": pa.array([[1], None, []], arrow_type(nested))}))
    stats, columns = collector.finish(dense=True)

    assert (decode_row([nested], stats.min_values), stats.null_counts) == ((None,), (1,))
    assert columns is None


def test_a_dense_store_leaves_out_columns_without_statistics() -> None:
    fields = fields_of("INT", "STRING", "INT")
    table = pa.table(
        {"c2": pa.array([7], pa.int32()), "c1": ["x"], "c0": pa.array([1], pa.int32())}
    )
    collector = StatsCollector(fields, [truncate(16), NONE, COUNTS])

    collector.update(table)
    dense, dense_columns = collector.finish(dense=True)
    whole, whole_columns = collector.finish(dense=False)

    two = [AtomicType("INT")] * 2
    assert dense_columns == ("c0", "c2")
    assert decode_row(two, dense.min_values) == (1, None)
    assert dense.null_counts == (0, 0)
    assert whole_columns is None
    assert decode_row([f.type for f in fields], whole.max_values) == (1, None, None)
    assert whole.null_counts == (0, None, 0)


def test_no_statistics_at_all_are_an_empty_list_of_columns() -> None:
    collector = StatsCollector(fields_of("INT"), [NONE])

    collector.update(pa.table({"c0": pa.array([1], pa.int32())}))

    assert collector.finish(dense=True) == (EMPTY_STATS, ())


def test_record_batches_and_chunked_tables_are_taken() -> None:
    collector = StatsCollector(fields_of("INT"), [FULL])
    chunks = pa.chunked_array([pa.array([3, 4], pa.int32()), pa.array([None, 9], pa.int32())])

    collector.update(pa.record_batch({"c0": pa.array([5], pa.int32())}))
    collector.update(pa.table({"c0": chunks}))
    stats, _ = collector.finish(dense=True)

    assert stats == encode_stats([AtomicType("INT")], [3], [9], [1])


def test_sliced_batches_are_taken_as_they_are() -> None:
    decimals = to_arrow_array(AtomicType("DECIMAL(9, 2)"), [Decimal(i) for i in (9, 1, 2, 0)])
    collector = StatsCollector(fields_of("DECIMAL(9, 2)"), [FULL])

    collector.update(pa.table({"c0": decimals}).slice(1, 2))
    stats, _ = collector.finish(dense=True)

    assert stats == encode_stats([AtomicType("DECIMAL(9, 2)")], [Decimal(1)], [Decimal(2)], [0])


def test_statistics_have_the_bytes_of_the_reference() -> None:
    names = "BIGINT; STRING; DECIMAL(10,2); TIMESTAMP(6); BIGINT; DECIMAL(30,3); STRING"
    fields = fields_of(*names.split("; "))
    values = (
        42,
        "a much longer string than sixteen",
        Decimal("12.34"),
        1_700_000_000_123_456_000,
        None,
        Decimal("-1.5"),
        "p 2",
    )
    columns = {f.name: to_arrow_array(f.type, [v]) for f, v in zip(fields, values, strict=True)}
    collector = StatsCollector(fields, [truncate(16)] * 7)

    collector.update(pa.table(columns))
    stats, _ = collector.finish(dense=True)

    # The fifth column stands for one without statistics, which leaves its slot empty.
    low = (
        "0000000700100000000000002a000000000000001000000040000000d20400000000000040f5060050000000"
        "00000000000000000200000058000000702032000000008361206d756368206c6f6e6765722073747b68e5cf"
        "8b010000fa240000000000000000000000000000"
    )
    assert stats.min_values.hex() == low
    assert stats.max_values.hex() == low.replace("7374" + "7b68e5cf", "7375" + "7b68e5cf")


def test_keys_and_partitions_have_the_bytes_of_the_reference() -> None:
    string, bigint = AtomicType("STRING"), AtomicType("BIGINT")

    assert encode_row([string], ["p 2"]).hex() == "0000000100000000000000007020320000000083"
    assert encode_row([string], ["p=1"]).hex() == "000000010000000000000000703d310000000083"
    assert encode_row([bigint], [42]).hex() == "0000000100000000000000002a00000000000000"


def test_partition_statistics_count_every_entry() -> None:
    types = [AtomicType("STRING"), AtomicType("DATE")]
    long = "a partition value that is longer than any cut"
    rows = [encode_row(types, v) for v in ((long, 1), (None, 5), ("b", None), (None, 3))]

    assert partition_stats(types, rows) == encode_stats(types, [long, 1], ["b", 5], [2, 1])


@pytest.mark.parametrize("value", [7.5, -0.0, 0.0, math.nan, None])
def test_one_partition_has_the_statistics_of_itself_and_no_other(value: float | None) -> None:
    types = [AtomicType("DOUBLE"), AtomicType("STRING")]
    row, later = encode_row(types, (value, "a")), encode_row(types, (value, "b"))

    one, two = partition_stats(types, [row] * 3), partition_stats(types, [row, row, later])

    (low, text), (high, _) = decode_row(types, one.min_values), decode_row(types, one.max_values)
    assert [low, high] == [decode_row(types, b)[0] for b in (two.min_values, two.max_values)]
    assert (text, one.null_counts) == ("a", two.null_counts)


def test_unpartitioned_manifests_have_empty_partition_statistics() -> None:
    assert partition_stats([], [bytes(12), bytes(12)]) == EMPTY_STATS
