"""Expressions from text: what they mean on rows, what type they have, and what is refused."""

import datetime as dt
import math
from decimal import Decimal as D  # noqa: N817

import pyarrow as pa
import pytest

from emberlake.errors import ColumnNotFound, DataMismatch, InvalidExpression, InvalidInput
from emberlake.expressions import (
    Frame,
    Scope,
    Source,
    bind_assignment,
    bind_condition,
    bind_each,
    bind_expression,
    evaluate,
    lit,
    select,
    split_condition,
)
from emberlake.types import AtomicType, DataField, RowType, arrow_schema


def moment(*clock: int, day: dt.date = dt.date(2026, 6, 26)) -> dt.datetime:
    return dt.datetime.combine(day, dt.time(*clock))


ROW = RowType(True, (DataField(20, "x", AtomicType("INT")),))
FIELDS = tuple(
    DataField(i, name, AtomicType(kind) if isinstance(kind, str) else kind)
    for i, (name, kind) in enumerate(
        {
            "i": "INT",
            "j": "INT",
            "tiny": "TINYINT",
            "big": "BIGINT",
            "d": "DOUBLE",
            "f": "FLOAT",
            "price": "DECIMAL(10, 2)",
            "rate": "DECIMAL(5, 3)",
            "s": "STRING",
            "b": "BOOLEAN",
            "day": "DATE",
            "ts": "TIMESTAMP(6)",
            "ltz": "TIMESTAMP_LTZ(3)",
            "raw": "BYTES",
            "r": ROW,
            "end": "INT",
        }.items()
    )
)
SCOPE = Scope((Source("t", FIELDS),))
ONE = {
    "i": 7, "j": 2, "tiny": 100, "big": 2**40, "d": 2.5, "f": 1.5, "price": D("8.25"),
    "rate": D("1.100"), "s": "Rome", "b": True, "day": dt.date(2026, 6, 26),
    "ts": moment(12, 30), "ltz": dt.datetime(2026, 6, 26, 12, tzinfo=dt.UTC),
    "raw": b"ab", "r": {"x": 5}, "end": 1,
}  # fmt: skip
NOW_MS = 1_750_000_000_000


def frame(*rows: dict) -> Frame:
    table = pa.Table.from_pylist([{**ONE, **row} for row in rows], arrow_schema(FIELDS))
    return Frame(table.num_rows, {0: table}, NOW_MS)


def value(text: str, **row: object) -> object:
    return evaluate(bind_expression(text, SCOPE), frame(row))[0].as_py()


def type_of(text: str) -> str:
    return str(bind_expression(text, SCOPE).type)


@pytest.mark.parametrize(
    ("text", "kind", "expected"),
    [
        ("i + j", "INT", 9),
        ("i - -1", "INT", 8),
        ("i-1", "INT", 6),
        ("-i", "INT", -7),
        ("+i", "INT", 7),
        ("i * j + 1", "INT", 15),
        ("1 + i * j", "INT", 15),
        ("(i + 1) * j", "INT", 16),
        ("i / j", "DOUBLE", 3.5),
        ("i % j", "INT", 1),
        ("-7 % 2", "INT", -1),
        ("tiny + big", "BIGINT", 2**40 + 100),
        ("i + d", "DOUBLE", 9.5),
        ("f + f", "FLOAT", 3.0),
        ("f + i", "DOUBLE", 8.5),
        ("price + rate", "DECIMAL(12, 3)", D("9.350")),
        ("price * 1.1", "DECIMAL(13, 3)", D("9.075")),
        ("price * rate", "DECIMAL(16, 5)", D("9.07500")),
        ("price / 3", "DECIMAL(14, 6)", D("2.750000")),
        ("price % 3", "DECIMAL(3, 2)", D("2.25")),
        ("i * 1.5", "DECIMAL(13, 1)", D("10.5")),
        ("price * d", "DOUBLE", 20.625),
        ("1e2", "DOUBLE", 100.0),
        ("1.50", "DECIMAL(3, 2)", D("1.50")),
        ("3000000000", "BIGINT", 3_000_000_000),
        ("s || '-' || i", "STRING", "Rome-7"),
        ("CONCAT(s, i, d)", "STRING", "Rome72.5"),
        ("UPPER(s)", "STRING", "ROME"),
        ("lower(s)", "STRING", "rome"),
        ("TRIM('  a ')", "STRING", "a"),
        ("LENGTH(s)", "INT", 4),
        ("LENGTH(raw)", "INT", 2),
        ("SUBSTRING(s, 2)", "STRING", "ome"),
        ("SUBSTRING(s, 2, 2)", "STRING", "om"),
        ("SUBSTR(s, -2)", "STRING", "me"),
        ("SUBSTRING(s, -6, 3)", "STRING", "R"),
        ("SUBSTRING(s, 0, 2)", "STRING", "Ro"),
        ("SUBSTRING(s, 9)", "STRING", ""),
        ("ABS(-i)", "INT", 7),
        ("ROUND(2.675, 2)", "DECIMAL(4, 2)", D("2.68")),
        ("ROUND(d)", "DOUBLE", 3.0),
        ("ROUND(CAST(2.675 AS DOUBLE), 2)", "DOUBLE", 2.68),
        ("ROUND(-d)", "DOUBLE", -3.0),
        ("ROUND(i, -1)", "INT", 10),
        ("FLOOR(d)", "BIGINT", 2),
        ("CEIL(d)", "BIGINT", 3),
        ("CEILING(-d)", "BIGINT", -2),
        ("FLOOR(price)", "DECIMAL(9, 0)", D(8)),
        ("GREATEST(i, j, NULL)", "INT", 7),
        ("LEAST('b', 'a', s)", "STRING", "Rome"),
        ("COALESCE(NULL, i, j)", "INT", 7),
        ("NULLIF(j, 2)", "INT", None),
        ("NULLIF(i, 2)", "INT", 7),
        ("IF(i > 5, 'many', 'few')", "STRING", "many"),
        ("CASE WHEN i > 10 THEN 1 WHEN i > 5 THEN 2.5 ELSE 3 END", "DECIMAL(11, 1)", D("2.5")),
        ("CASE j WHEN 1 THEN 'one' WHEN 2 THEN 'two' END", "STRING", "two"),
        ("CASE WHEN FALSE THEN 1 END", "INT", None),
        ("CAST(i AS STRING)", "STRING", "7"),
        ("CAST(' 12 ' AS INT)", "INT", 12),
        ("CAST(d AS INT)", "INT", 2),
        ("CAST(-2.9 AS INT)", "INT", -2),
        ("CAST(8.255 AS DECIMAL(10, 2))", "DECIMAL(10, 2)", D("8.26")),
        ("CAST('2026-06-26' AS DATE)", "DATE", dt.date(2026, 6, 26)),
        ("CAST(ts AS DATE)", "DATE", dt.date(2026, 6, 26)),
        ("CAST(b AS INT)", "INT", 1),
        ("CAST(i AS TIMESTAMP(3) WITH LOCAL TIME ZONE) IS NULL", "BOOLEAN", False),
        ("DATE '2026-01-02'", "DATE", dt.date(2026, 1, 2)),
        ("TIMESTAMP '2026-06-26 03:04:05'", "TIMESTAMP(6)", moment(3, 4, 5)),
        ("CURRENT_DATE", "DATE", dt.date(2025, 6, 15)),
        ("X'6162'", "BYTES", b"ab"),
        ("r.x + 1", "INT", 6),
        ("t.i", "INT", 7),
        ("t.r.x", "INT", 5),
        ("`end` + end", "INT", 2),
        ("'it''s'", "STRING", "it's"),
    ],
)  # fmt: skip
def test_an_expression_has_the_type_and_the_value_that_spark_gives_it(
    text: str, kind: str, expected: object
) -> None:
    assert (type_of(text), value(text)) == (kind, expected)


def test_the_current_timestamp_is_that_of_the_environment() -> None:
    assert type_of("CURRENT_TIMESTAMP()") == "TIMESTAMP(6) WITH LOCAL TIME ZONE"
    found = value("CURRENT_TIMESTAMP")
    assert found == dt.datetime.fromtimestamp(NOW_MS / 1000, tz=dt.UTC)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("i = 7", True),
        ("7 <> i", False),
        ("2 < i", True),
        ("i > j", True),
        ("i < 7.5 AND s = 'Rome'", True),
        ("NOT (i > j)", False),
        ("NOT b", False),
        ("b AND i IS NOT NULL", True),
        ("i BETWEEN 1 AND 7", True),
        ("i NOT BETWEEN j AND 7", False),
        ("i IN (1, 7)", True),
        ("i NOT IN (1, 7)", False),
        ("i IN (j, 5 + 2)", True),
        ("i + 0 IN (1, NULL)", None),
        ("s LIKE 'R_m%'", True),
        ("s NOT LIKE 'R%'", False),
        ("UPPER(s) LIKE 'RO%'", True),
        ("s ILIKE 'ro%'", True),
        ("s NOT ILIKE 'x%'", True),
        ("NULL = 1", None),
        ("i = NULL", None),
        ("i <=> NULL", False),
        ("NULL <=> NULL", True),
        ("NULL AND FALSE", False),
        ("NULL OR TRUE", True),
        ("NULL AND TRUE", None),
        ("NOT NULL", None),
        ("i + 1 IS NULL", False),
        ("s < 'a'", True),  # by bytes
        ("day = '2026-06-26'", True),
        ("day < ts", True),
        ("ts >= DATE '2026-06-26'", True),
        ("tiny = 300", False),
        ("(i = NULL) IS NULL", True),
        ("i BETWEEN 1 AND NULL", None),
        ("ltz = '2026-06-26T12:00:00Z'", True),
        ("price * 2 > '16'", True),
        ("i = 7 OR 1 / 0 > 1", True),
        ("j = 0 AND 1 / j > 1", False),
        ("CASE WHEN j = 2 THEN 0 ELSE 1 / (j - 2) END = 0", True),
        ("COALESCE(i, 1 / (j - 2)) = 7", True),
    ],
)
def test_a_condition_is_true_false_or_unknown(text: str, expected: bool | None) -> None:
    assert evaluate(bind_condition(text, SCOPE), frame({}))[0].as_py() is expected


def test_only_true_selects_a_row() -> None:
    rows = frame({"i": 1}, {"i": None}, {"i": 9})
    assert select(bind_condition("i > 5", SCOPE), rows).tolist() == [False, False, True]
    assert select(bind_condition("NOT (i > 5)", SCOPE), rows).tolist() == [True, False, False]
    guarded = bind_condition("i > 5 AND 10 / (i - 1) > 1", SCOPE)
    assert select(guarded, rows).tolist() == [False, False, True]


def test_nan_compares_as_filters_say_but_is_the_greatest() -> None:
    assert value("d = d", d=math.nan) is False
    assert math.isnan(value("GREATEST(d, 5.0)", d=math.nan))
    assert value("LEAST(d, 5e0)", d=math.nan) == 5.0


@pytest.mark.parametrize(
    ("text", "row"),
    [
        ("i + 2147483647", {}),
        ("tiny + tiny", {}),
        ("-big", {"big": -(2**63)}),
        ("i / 0", {}),
        ("d / 0e0", {}),
        ("price / (j - 2)", {}),
        ("i % 0", {}),
        ("CAST('x' AS INT)", {}),
        ("CAST('1.5' AS INT)", {}),
        ("CAST(big AS INT)", {}),
        ("CAST(d AS INT)", {"d": math.nan}),
        ("CAST(d AS BIGINT)", {"d": 1e30}),
        ("CAST(price AS DECIMAL(2, 2))", {}),
        ("CAST('2026-13-01' AS DATE)", {}),
        ("CAST('5' AS DATE)", {}),
        ("CAST(s AS BOOLEAN)", {}),
    ],
)
def test_what_cannot_be_computed_is_an_error_that_shows_the_expression(
    text: str, row: dict
) -> None:
    with pytest.raises(DataMismatch) as raised:
        value(text, **row)
    assert text in str(raised.value)


@pytest.mark.parametrize("text", ["i / 0", "CAST('x' AS INT)", "i + 2147483647"])
def test_a_null_row_does_not_fail(text: str) -> None:
    nulls = frame({"i": None})
    if text.startswith("CAST"):
        text = "CAST(CAST(NULL AS STRING) AS INT)"
    assert evaluate(bind_expression(text, SCOPE), nulls)[0].as_py() is None


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "found the end"),
        ("i +", "a column, a literal or a function"),
        ("i i", "an operator or the end"),
        ("(i", "')'"),
        ("nothing", "there is no column 'nothing'; "),
        ("FLOR(d)", "did you mean FLOOR"),
        ("__import__('os')", "there is no function"),
        ("SOUNDEX(s)", "there are ABS, CAST, CEIL, COALESCE, CONCAT, CONCAT_WS, "),
        ("LENGTH(s, s)", "LENGTH takes 1 argument, not 2"),
        ("LENGTH(i)", "takes text, not INT"),
        ("s + 1", "+ takes numbers, not STRING"),
        ("s = i", "STRING and INT together"),
        ("i = 'x'", "is not of type INT"),
        ("i + 'x'", "takes numbers"),
        ("b AND i", "AND takes conditions, not INT"),
        ("r = r", "does not compare ROW"),
        ("CAST(r AS INT)", "cannot be cast to INT"),
        ("CAST(i AS NUMBER)", "is not a type"),
        ("CASE WHEN i THEN 1 END", "takes conditions"),
        ("CASE i END", "expected WHEN"),
        ("CASE WHEN b THEN 1 ELSE day END", "INT and DATE together"),
        ("SUBSTRING(s, i)", "positions that are numbers"),
        ("i ~ 1", "not understood"),
        ("'open", "a quote that is not closed"),
        ("123456789012345678901234567890123456789", "more than 38 digits"),
        ("DATE 'soon'", "DATE 'soon'"),
        ("(" * 51 + "i" + ")" * 51, "levels of nesting"),
        ("CASE WHEN b THEN 1 ELSE " * 99 + "i" + " END" * 99, "levels of nesting"),
        ("i" + " + 0" * 999, "too long"),
        ("- " * 9999 + "i", "too long"),
        ("i -- + 1", "no comment"),
        ("--i", "no comment"),
    ],
)
def test_what_does_not_fit_is_refused_before_any_row_is_read(text: str, said: str) -> None:
    with pytest.raises((InvalidInput, ColumnNotFound)) as raised:
        bind_expression(text, SCOPE)
    assert said in str(raised.value)


def test_a_condition_is_a_condition() -> None:
    with pytest.raises(InvalidExpression, match=r"true or false, but 'i \+ 1' is INT"):
        bind_condition("i + 1", SCOPE)


# --- two sources ----------------------------------------------------------------------------------

TWO = Scope((Source("t", FIELDS[:2]), Source("s", FIELDS[:1])))


def test_an_alias_distinguishes_the_sources() -> None:
    left, right = pa.table({"i": [1], "j": [2]}), pa.table({"i": [5]})
    both = Frame(1, {0: left, 1: right})
    assert evaluate(bind_expression("t.i + s.i + j", TWO), both).to_pylist() == [8]


def test_a_name_that_both_sources_have_needs_an_alias() -> None:
    with pytest.raises(InvalidExpression, match=r"write t\.i or s\.i"):
        bind_expression("i + 1", TWO)


def test_a_source_that_has_no_row_here_cannot_be_named() -> None:
    scope = Scope(TWO.sources, frozenset({1}))
    assert bind_expression("i", scope).typed.source == 1
    with pytest.raises(ColumnNotFound, match="only columns of s have"):
        bind_expression("t.j", scope)


# --- assignments ----------------------------------------------------------------------------------


def test_text_that_was_meant_as_a_value_gets_a_hint() -> None:
    field = DataField(1, "city", AtomicType("STRING"))

    with pytest.raises(ColumnNotFound, match=r'text is given as lit\("rome"\)'):
        bind_assignment("rome", field, SCOPE)


def assigned(given: object, column: str, kind: str) -> object:
    field = DataField(0, column, AtomicType(kind))
    return evaluate(bind_assignment(given, field, SCOPE), frame({}))[0].as_py()


@pytest.mark.parametrize(
    ("given", "kind", "expected"),
    [
        ("price * 1.1", "DECIMAL(10, 2)", D("9.08")),
        ("i", "BIGINT", 7),
        ("i + 1", "TINYINT", 8),
        ("d", "FLOAT", 2.5),
        ("ROUND(price, 0)", "INT", 8),
        ("NULL", "INT", None),
        ("day", "TIMESTAMP(3)", moment()),
        ("CURRENT_TIMESTAMP", "TIMESTAMP(6)", moment(15, 6, 40, day=dt.date(2025, 6, 15))),
        (lit("rome"), "STRING", "rome"),
        (lit("2026-01-01"), "DATE", dt.date(2026, 1, 1)),
        (5, "BIGINT", 5),
        (None, "STRING", None),
        (dt.date(2026, 1, 1), "DATE", dt.date(2026, 1, 1)),
        (pa.scalar(3, pa.int8()), "DOUBLE", 3.0),
    ],
)
def test_a_value_takes_the_type_of_its_column(given: object, kind: str, expected: object) -> None:
    assert assigned(given, "x", kind) == expected


@pytest.mark.parametrize(
    ("given", "kind", "said"),
    [
        ("price", "INT", "fraction would be lost"),
        ("s", "INT", "CAST it"),
        ("'2026-01-01'", "DATE", "lit('2026-01-01')"),
        ("r", "INT", "does not fit"),
        ("NULL", "INT NOT NULL", "NOT NULL"),
        (None, "INT NOT NULL", "NOT NULL"),
        (lit("x"), "INT", "does not fit"),
        (1.5, "INT", "does not fit"),
        (300, "TINYINT", "does not fit"),
        (object(), "INT", "does not fit"),
    ],
)
def test_a_value_that_does_not_fit_its_column_is_refused(
    given: object, kind: str, said: str
) -> None:
    with pytest.raises(InvalidExpression, match=said.replace("(", r"\(").replace(")", r"\)")):
        assigned(given, "x", kind)


def test_one_error_lists_every_value_that_does_not_fit() -> None:
    with pytest.raises(InvalidExpression) as raised:
        bind_each([("i", "s"), ("nope", "1"), ("day", lit(5))], FIELDS, SCOPE)
    text = str(raised.value)
    assert "'s' does not fit i INT" in text
    assert "no column 'nope'" in text
    assert "5 does not fit day DATE" in text


# --- filters --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "predicate", "has_rest"),
    [
        ("i = 5", "i = 5", False),
        ("5 < i AND s LIKE 'a%'", "i > 5 AND s LIKE 'a%'", False),
        ("NOT (i = 5 OR s IS NULL)", "i <> 5 AND s IS NOT NULL", False),
        ("i = 5 AND UPPER(s) = 'A'", "i = 5", True),
        ("i = 5 OR UPPER(s) = 'A'", "None", True),
        ("i IN (1, 2) OR day > DATE '2026-01-01'", "i IN (1, 2) OR day > DATE '2026-01-01'", False),
        ("b", "b = TRUE", False),
        ("i < j", "None", True),
        ("r.x BETWEEN 1 AND 2", "r.x BETWEEN 1 AND 2", False),
    ],
)
def test_what_a_filter_can_express_prunes_files(text: str, predicate: str, has_rest: bool) -> None:
    found, rest = split_condition(bind_condition(text, SCOPE).typed)
    assert (str(found), rest is not None) == (predicate, has_rest)
