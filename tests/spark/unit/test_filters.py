"""Filters as Spark expressions keep exactly the rows that our own evaluation keeps.

Rows are read from a Parquet file of tiny row groups with dictionaries, so that what Spark skips by
statistics and dictionaries is under test as well.
"""

import functools
import itertools
import math
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sql

from emberlake.predicates import And, Leaf, Op, Or, Predicate, PredicateBuilder, filter_rows
from emberlake.spark.filters import to_column
from emberlake.spark.types import handed_out, to_spark_batch
from emberlake.types import ArrayType, AtomicType, DataField, RowType, TypeRoot
from spark.border import HARD, YEAR_1, YEAR_9999, a_field, hard_table

ID = DataField(0, "id", AtomicType("INT", False))
FINER_THAN_SPARK = ("TIMESTAMP(9)", "TIMESTAMP_LTZ(9)")
LITERALS = {
    text: values
    for text, values in HARD.items()
    if not text.startswith("TIME(") and text not in FINER_THAN_SPARK
}
FIELDS = {text: a_field(text) for text in LITERALS}
FLOATS = ("FLOAT", "DOUBLE")
COMPARISONS = (
    Op.EQUAL,
    Op.NOT_EQUAL,
    Op.LESS_THAN,
    Op.LESS_OR_EQUAL,
    Op.GREATER_THAN,
    Op.GREATER_OR_EQUAL,
)
PATTERNS = ("", "%", "_", "__", "a%", "%a", "%\\%%", "a\\%\\_\\\\", "\\a", "_%_", "%\n%", "%b_")
ROWS = 48


def comparisons(text: str) -> list[Predicate]:
    """Every operator with every literal of a type, and with null."""
    field = FIELDS[text]
    literals = tuple(
        v for v in LITERALS[text] if to_column(Leaf(field, Op.EQUAL, (v,))) is not None
    )
    few = literals[:6]
    pairs = itertools.product((*few, None), repeat=2)
    lists = [(), (None,), literals, literals * 3, (few[0], None), few[:2], few[1:2]]
    return [
        Leaf(field, Op.IS_NULL),
        Leaf(field, Op.IS_NOT_NULL),
        *(Leaf(field, op, (v,)) for op in COMPARISONS for v in (*literals, None)),
        *(Leaf(field, op, p) for p in pairs for op in (Op.BETWEEN, Op.NOT_BETWEEN)),
        *(Leaf(field, op, values) for values in lists for op in (Op.IN, Op.NOT_IN)),
    ]


def text_matches(text: str) -> list[Predicate]:
    """Every test of texts."""
    field, literals = FIELDS[text], LITERALS[text]
    plain = (Op.STARTS_WITH, Op.ENDS_WITH, Op.CONTAINS)
    return [
        *(Leaf(field, op, (v,)) for op in plain for v in (*literals, None)),
        *(Leaf(field, op, (p,)) for op in (Op.LIKE, Op.NOT_LIKE) for p in (*PATTERNS, None)),
    ]


@pytest.fixture(scope="module")
def rows() -> pa.Table:
    """A column of every type, in which each literal fills a row group and shares another."""
    columns = []
    for values in LITERALS.values():
        shared = zip(values, (*values[1:], None), strict=True)
        column: list[Any] = [x for value in values for x in (value, value)]
        columns.append([*column, *itertools.chain(*shared), *[None] * ROWS][:ROWS])
    return hard_table((ID, *FIELDS.values()), [list(range(ROWS)), *columns])


@pytest.fixture(scope="module")
def df(spark, rows: pa.Table, tmp_path_factory: pytest.TempPathFactory) -> DataFrame:
    path = str(tmp_path_factory.mktemp("filters") / "rows.parquet")
    handed = to_spark_batch(rows, handed_out((ID, *FIELDS.values())))
    pq.write_table(handed, path, row_group_size=2, use_dictionary=True)
    return spark.read.option("datetimeRebaseMode", "CORRECTED").parquet(path)


Kept = dict[str, list[int]]  # the ids of the rows that a filter keeps


def kept(rows: pa.Table, predicates: list[Predicate]) -> Kept:
    """By our own evaluation."""
    return {repr(p): filter_rows(p, rows)["id"].to_pylist() for p in predicates}


def selected(df: DataFrame, predicates: list[Predicate]) -> Kept:
    """By Spark, all filters in one pass over the rows."""
    truths = [sql.coalesce(column_of(p), sql.lit(False)) for p in predicates]
    columns = [truth.alias(str(i)) for i, truth in enumerate(truths)]
    table = df.select("id", *columns).toArrow().sort_by("id")
    return {
        repr(p): table.filter(table[str(i)])["id"].to_pylist() for i, p in enumerate(predicates)
    }


def filtered(df: DataFrame, predicates: list[Predicate]) -> Kept:
    """By Spark's WHERE, in which its reader takes part."""
    found: Kept = {repr(p): [] for p in predicates}
    for start in range(0, len(predicates), 50):
        parts = [
            df.where(column_of(p)).select(sql.lit(repr(p)).alias("p"), "id")
            for p in predicates[start : start + 50]
        ]
        for row in functools.reduce(DataFrame.unionAll, parts).collect():
            found[row.p].append(row.id)
    return {name: sorted(ids) for name, ids in found.items()}


def column_of(predicate: Predicate) -> Column:
    column = to_column(predicate)
    assert column is not None, predicate
    return column


@pytest.mark.parametrize("text", LITERALS)
def test_every_comparison_keeps_our_rows(df, rows, text):
    predicates = comparisons(text)

    assert selected(df, predicates) == kept(rows, predicates)


@pytest.mark.parametrize("text", ["STRING", "CHAR(4)"])
def test_every_match_of_texts_keeps_our_rows(df, rows, text):
    predicates = text_matches(text)

    assert selected(df, predicates) == kept(rows, predicates)


@pytest.mark.parametrize("text", FLOATS)
def test_no_row_with_nan_or_zero_is_skipped_by_sparks_reader(df, rows, text):
    field, zeros = FIELDS[text], (0.0, -0.0, 1.5, math.nan)
    predicates = [
        *(Leaf(field, op, (v,)) for op in COMPARISONS for v in zeros),
        *(Leaf(field, Op.NOT_BETWEEN, (low, high)) for low in (0.0, -1.5) for high in (-0.0, 1.5)),
        *(Leaf(field, op, values) for op in (Op.IN, Op.NOT_IN) for values in ((0.0, 1.5), zeros)),
    ]

    assert filtered(df, predicates) == kept(rows, predicates)


@pytest.mark.parametrize("text", ["DATE", "TIMESTAMP(6)", "TIMESTAMP_LTZ(6)"])
def test_no_row_is_skipped_because_the_calendar_of_the_jvm_differs(df, rows, text):
    field = FIELDS[text]
    literals = [v for v in LITERALS[text] if to_column(Leaf(field, Op.EQUAL, (v,))) is not None]
    predicates = [Leaf(field, op, (v,)) for op in COMPARISONS for v in literals]

    assert filtered(df, predicates) == kept(rows, predicates)


def test_sparks_reader_skips_no_row_of_ours(df, rows):
    predicates = [p for text in LITERALS for p in comparisons(text)[::23]]
    predicates += text_matches("STRING")[::5]

    assert filtered(df, predicates) == kept(rows, predicates)


def test_filters_are_joined(df, rows):
    build = PredicateBuilder((ID, *FIELDS.values()))
    null, low, high = build.is_null("INT"), build.less_than("INT", 0), build.greater_than("INT", 0)
    predicates: list[Predicate] = [
        And((low, build.not_equal("DOUBLE", "nan"))),
        Or((null, And((high, build.is_not_null("id"))))),
        And((Or((low, null)), Or((high, null)))),
        And(()),
        Or(()),
    ]

    assert filtered(df, predicates) == kept(rows, predicates)


def test_a_path_leads_into_rows_whatever_the_names(spark):
    inner = DataField(0, "x.y", RowType(True, (DataField(0, "`z` w", AtomicType("INT")),)))
    field = DataField(0, "a.`b`", RowType(True, (inner,)))
    table = hard_table((ID, field), [[0, 1, 2, 3], [None, (None,), ((None,),), ((7,),)]])
    df = spark.createDataFrame(to_spark_batch(table, handed_out((ID, field))))
    predicates: list[Predicate] = [
        Leaf(field, Op.EQUAL, (7,), ("x.y", "`z` w")),
        Leaf(field, Op.IS_NULL, (), ("x.y", "`z` w")),
        Leaf(field, Op.IS_NULL, (), ("x.y",)),
        Leaf(field, Op.IS_NOT_NULL),
    ]

    assert filtered(df, predicates) == kept(table, predicates)


@pytest.mark.parametrize("text", [*FINER_THAN_SPARK, "TIME(3)"])
def test_what_spark_cannot_compare_exactly_is_left_to_us(spark, text):
    field = a_field(text)
    leaf = Leaf(field, Op.EQUAL, (0,))

    assert to_column(leaf) is None
    assert to_column(And((Leaf(field, Op.IS_NULL), leaf))) is None
    assert to_column(Leaf(field, Op.IS_NULL)) is not None


@pytest.mark.parametrize("text", ["TIMESTAMP(3)", "TIMESTAMP_LTZ(3)"])
def test_a_literal_that_spark_cannot_count_to_is_left_to_us(spark, text):
    field = a_field(text)

    assert to_column(Leaf(field, Op.IN, (YEAR_1, YEAR_9999, None))) is not None
    assert to_column(Leaf(field, Op.IN, (0, 2**64 * 1000))) is None


def test_nested_values_are_only_tested_for_null(spark):
    field = DataField(0, "a", ArrayType(True, AtomicType("INT")))

    assert to_column(Leaf(field, Op.IS_NOT_NULL)) is not None
    assert to_column(Leaf(field, Op.EQUAL, ([1],))) is None


def test_every_type_is_compared_or_left_to_us_on_purpose():
    compared = {AtomicType(text).root for text in LITERALS}

    left = {TypeRoot.TIME, *(root for root in TypeRoot if root.is_opaque)}
    assert compared | left == set(TypeRoot)
