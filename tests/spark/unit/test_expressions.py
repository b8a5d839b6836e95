"""Expressions give the types and values that Spark gives them in ANSI mode."""

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from emberlake.errors import DataMismatch
from emberlake.expressions import Frame, Scope, Source, bind_expression, evaluate
from emberlake.spark.types import paimon_fields

ROW = (
    "SELECT 7 AS i, 2 AS j, CAST(100 AS TINYINT) AS tiny, 1099511627776L AS big, 2.5D AS d, "
    "CAST(1.5 AS FLOAT) AS f, CAST(8.25 AS DECIMAL(10, 2)) AS price, CAST(1.1 AS DECIMAL(5, 3)) AS "
    "rate, CAST(12345678901234567890.123456789 AS DECIMAL(38, 18)) AS wide, 'Rome' AS s, true AS b,"
    " DATE '2026-06-26' AS day, TIMESTAMP_NTZ '2026-06-26 12:30:00' AS ts, CAST(NULL AS INT) AS nul"
)
TEXTS = [
    "i + j", "i - big", "tiny - tiny", "i / j", "i % j", "-7 % 2", "-i % 2", "i * 1.5",
    "price + rate", "price - rate", "price * rate", "price / rate", "price / 3", "price % rate",
    "price * 1.1", "price + 1", "price + big", "price / i", "price * d",
    "wide + price", "wide * price", "wide / price", "wide / wide", "-price", "ABS(-price)",
    "f + f", "f + i", "f * d", "d / f", "d % 2", "-d % 2", "1.50", "1e2", "3000000000", "-5",
    "i = 7", "i <=> nul", "nul = 1", "nul IS NULL", "i > 6.5", "price = 8.25", "d >= 2",
    "i BETWEEN j AND 7", "i NOT IN (1, 2)", "nul NOT IN (1, 2)", "i IN (1, nul)", "s LIKE 'R_m%'",
    "s ILIKE 'ro%'", "s < 'a'", "NOT b", "b AND nul = 1", "b OR nul = 1", "NOT (nul = 1)",
    "s || '-' || i", "CONCAT(s, price, d, b, day)", "UPPER(s)", "TRIM('  a ')", "LENGTH(s)",
    "SUBSTRING(s, 2)", "SUBSTRING(s, 2, 2)", "SUBSTRING(s, -2)", "SUBSTRING(s, -6, 3)",
    "SUBSTRING(s, 0, 2)", "SUBSTRING(s, 9)", "ABS(-i)", "ROUND(2.675, 2)", "ROUND(d)", "ROUND(-d)",
    "ROUND(price, 1)", "ROUND(i, -1)", "ROUND(CAST(2.675 AS DOUBLE), 2)", "FLOOR(d)", "CEIL(-d)",
    "FLOOR(price)", "CEIL(price)", "FLOOR(i)", "GREATEST(i, j, nul)", "LEAST('b', 'a', s)",
    "GREATEST(i, price)", "COALESCE(nul, i, j)", "COALESCE(nul, 1.5)", "NULLIF(j, 2)",
    "IF(i > 5, 'many', 'few')", "CASE WHEN i > 10 THEN 1 WHEN i > 5 THEN 2.5 ELSE 3 END",
    "CASE j WHEN 1 THEN 'one' WHEN 2 THEN 'two' END", "CAST(i AS STRING)", "CAST(' 12 ' AS INT)",
    "CAST(d AS INT)", "CAST(-2.9 AS INT)", "CAST(8.255 AS DECIMAL(10, 2))", "CAST(d AS STRING)",
    "CAST(price AS DOUBLE)", "CAST(price AS STRING)", "CAST(1e20 AS STRING)", "CAST(b AS INT)",
    "CAST('2026-06-26' AS DATE)", "CAST(ts AS DATE)", "CAST(day AS STRING)", "CAST(i AS BOOLEAN)",
    "CAST('true' AS BOOLEAN)", "CAST('1.5' AS DOUBLE)", "CAST('8.255' AS DECIMAL(10, 2))",
    "day < ts", "day = DATE '2026-06-26'", "DATE '2026-01-02'",
]  # fmt: skip
FAILING = [
    "i + 2147483647", "tiny + tiny", "i / 0", "d / 0", "price / (j - 2)", "i % 0",
    "CAST('x' AS INT)", "CAST('1.5' AS INT)", "CAST(big AS INT)", "CAST('2026-13-01' AS DATE)",
    "CAST(price AS DECIMAL(2, 2))", "CAST('maybe' AS BOOLEAN)",
]  # fmt: skip


def test_types_and_values_are_those_of_spark(spark: SparkSession) -> None:
    row = spark.sql(ROW)
    theirs = row.selectExpr(*[f"{text} AS c{i}" for i, text in enumerate(TEXTS)])
    fields, table = tuple(paimon_fields(row.schema)), row.toArrow()
    scope = Scope((Source("t", fields),))
    frame = Frame(1, {0: table.cast(pa.schema([(f.name, f.type) for f in table.schema]))})
    expected = list(zip(paimon_fields(theirs.schema), theirs.toArrow().columns, strict=True))
    different = []
    for text, (field, column) in zip(TEXTS, expected, strict=True):
        bound = bind_expression(text, scope)
        found = str(bound.type), evaluate(bound, frame)[0].as_py()
        wanted = str(field.type.with_nullable(True)), column[0].as_py()
        if found != wanted:
            different.append((text, found, wanted))
    assert different == []


def test_what_fails_in_spark_fails_here(spark: SparkSession) -> None:
    row = spark.sql(ROW)
    scope = Scope((Source("t", tuple(paimon_fields(row.schema))),))
    frame = Frame(1, {0: row.toArrow()})
    for text in FAILING:
        with pytest.raises(PySparkException):
            row.selectExpr(text).collect()
        with pytest.raises(DataMismatch):
            evaluate(bind_expression(text, scope), frame)
