"""Filters on Spark itself: the same rows whether Spark applies them or the source does."""

import math
from decimal import Decimal
from functools import reduce
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql.functions import lit

from spark.tables import new_table

PUSHDOWN = "spark.sql.python.filterPushdown.enabled"

FILTERS = (
    "x = 0.0",
    "x = double('NaN')",
    "x != 1.0",
    "x > 1.0",
    "x >= 1.0",
    "x < double('NaN')",
    "x <= 1.0",
    "x > double('Infinity')",
    "NOT x > 1.0",
    "x <=> null",
    "NOT x <=> 1.0",
    "x IN (1.0, double('NaN'))",
    "x NOT IN (1.0, 0.0)",
    "f > float('1.5')",
    "f = 1.5",
    "t LIKE 'a%'",
    "t NOT LIKE 'a%'",
    "t LIKE '%b'",
    "t LIKE '%_b%'",
    "t > 'a'",
    "t IN ('a', null)",
    "t NOT IN ('a', 'ab')",
    "t IS NULL",
    "ltz = TIMESTAMP'2026-01-02 03:04:05.000006'",
    "ltz > TIMESTAMP'2026-01-02 00:00:00'",
    "ntz <= TIMESTAMP_NTZ'2026-01-02 03:04:05.000006'",
    "ns = TIMESTAMP_NTZ'2026-01-02 03:04:05.000006'",
    "day = DATE'2026-01-02'",
    "d >= 1.50",
    "raw = X'FF'",
    "b",
    "NOT b",
    "s.x = 1",
    "s.x IS NULL",
    "s IS NOT NULL",
    "list IS NULL",
)


def test_a_filter_keeps_the_same_rows_wherever_it_is_applied(
    spark: SparkSession, tmp_path: Path
) -> None:
    columns = pa.schema(
        [
            ("id", pa.int64()),
            ("x", pa.float64()),
            ("f", pa.float32()),
            ("t", pa.string()),
            ("ltz", pa.timestamp("us", tz="UTC")),
            ("ntz", pa.timestamp("us")),
            ("ns", pa.timestamp("ns")),
            ("day", pa.date32()),
            ("d", pa.decimal128(9, 2)),
            ("raw", pa.binary()),
            ("b", pa.bool_()),
            ("s", pa.struct([("x", pa.int64())])),
            ("list", pa.list_(pa.int32())),
        ]
    )
    table = new_table(tmp_path, columns=columns)
    micros = 1_767_323_045_000_006
    values = {
        "x": [None, math.nan, -0.0, 0.0, 1.0, 2.0, math.inf],
        "f": [None, math.nan, 1.5, 1.4, 2.0, -1.0, math.inf],
        "t": [None, "", "a", "ab", "a_b", "b", "ä"],
        "ltz": [None, 0, micros, micros + 1, micros - 19_800_000_000, -1, 1],
        "ntz": [None, 0, micros, micros + 1, micros - 1, -1, 1],
        "ns": [None, 0, micros * 1000 + 999, micros * 1000, -1, 1, 2],
        "day": [None, 0, 20455, 20454, 20456, -1, 1],
        "d": [None, *map(Decimal, ("0.00", "1.49", "1.50", "1.51", "2.00", "-1.50"))],
        "raw": [None, b"", b"\xff", b"\x7f", b"\xff\x00", b"a", b"b"],
        "b": [None, True, False, True, False, True, False],
        "s": [None, {"x": None}, {"x": 1}, {"x": 2}, {"x": 1}, None, {"x": 3}],
        "list": [None, [], [1], None, [2], [3], []],
    }
    rows = pa.table({"id": range(7), **values}, schema=columns)
    builder = table.new_batch_write_builder()
    with builder.new_write() as writer:
        for part in range(7):  # a file a row, so that statistics matter
            writer.write_arrow(rows.slice(part, 1))
        builder.new_commit().commit(writer.prepare_commit())

    reader = spark.read.format("emberlake").option("warehouse", str(tmp_path))

    def kept() -> list[tuple[Any, ...]]:
        """Every filter with the rows that it keeps, in one query."""
        parts = [
            reader.load("db.t").where(condition).select(lit(condition), "id")
            for condition in FILTERS
        ]
        rows = reduce(lambda left, right: left.unionAll(right), parts)
        return sorted(map(tuple, rows.collect()))

    by_spark = kept()
    spark.conf.set(PUSHDOWN, "true")
    pushed = kept()
    spark.conf.unset(PUSHDOWN)

    assert pushed == by_spark
    assert len({condition for condition, _ in pushed}) == len(FILTERS)  # none keeps nothing
