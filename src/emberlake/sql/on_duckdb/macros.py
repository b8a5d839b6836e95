"""Functions of Spark in DuckDB's SQL: ``spark_<name>``, as macros that take what Spark takes.

What depends on a type is decided by ``typeof``, before a row is read: definitions for different
types would be mixed up where an argument is an aggregate. A query defines only the macros that it
uses.
"""

import re
from collections.abc import Iterator
from collections.abc import Set as AbstractSet
from typing import Final

from emberlake.sql.on_duckdb.cast_macros import CASTS
from emberlake.sql.on_duckdb.text_macros import TEXTS, TIMES

_NAME: Final = re.compile(r"\bspark_\w+")


def definitions_in(text: str, known: AbstractSet[str]) -> Iterator[tuple[str, str]]:
    """The macros that a text calls, by name, each behind those that it calls itself.

    Args:
        text: SQL for DuckDB.
        known: Names of macros that are there already.
    """
    done = set(known)
    for name in sorted(set(_NAME.findall(text)) - done):
        definition = MACROS.get(name.removeprefix("spark_"))
        if definition is None or name in done:
            continue
        done.add(name)
        for inner, inner_text in definitions_in(definition, done):
            done.add(inner)
            yield inner, inner_text
        yield name, f"CREATE OR REPLACE MACRO {name}{definition}"


_NUMBERS: Final = {
    "divide": """(a, b) AS
        CASE WHEN b = 0 THEN error('[DIVIDE_BY_ZERO] division by zero') ELSE a / b END""",
    "remainder": """(a, b) AS
        CASE WHEN b = 0 THEN error('[REMAINDER_BY_ZERO] division by zero') ELSE a % b END""",
    "whole": """(a, b) AS CAST(CASE WHEN b = 0 THEN error('[DIVIDE_BY_ZERO] division by zero')
        ELSE trunc(a // b) END AS BIGINT)""",
    "pmod": """(a, b) AS CASE WHEN spark_remainder(a, b) < 0 THEN (a % b + b) % b
        ELSE a % b END""",
    "try_divide": "(a, b) AS CASE WHEN b = 0 THEN NULL ELSE a / b END",
    "try_mod": "(a, b) AS CASE WHEN b = 0 THEN NULL ELSE a % b END",
    "try_add": "(a, b) AS TRY(a + b)",
    "try_subtract": "(a, b) AS TRY(a - b)",
    "try_multiply": "(a, b) AS TRY(a * b)",
    "ceil": """(x) AS CASE WHEN typeof(x) LIKE '%INT' OR typeof(x) = 'INTEGER'
        THEN TRY_CAST(x AS BIGINT) ELSE CAST(ceil(x) AS BIGINT) END""",
    "floor": """(x) AS CASE WHEN typeof(x) LIKE '%INT' OR typeof(x) = 'INTEGER'
        THEN TRY_CAST(x AS BIGINT) ELSE CAST(floor(x) AS BIGINT) END""",
    "round": """(x) AS spark_rounded_as(x, 0), (x, n) AS spark_rounded_as(x, n)""",
    "rounded_as": """(x, n) AS CASE
        WHEN typeof(x) IN ('FLOAT', 'DOUBLE')
        THEN cast_to_type(spark_rounded(TRY_CAST(CAST(x AS VARCHAR) AS DOUBLE), n), x)
        WHEN n >= 0 AND typeof(x) NOT LIKE 'DECIMAL%' THEN x
        ELSE cast_to_type(round(x, n), x) END""",
    # Half up in decimal digits, as they are written; what is larger has no fraction.
    "rounded": """(x, n) AS CASE WHEN isfinite(x) AND abs(x) < 1e17 AND n >= 0
        THEN CAST(round(CAST(CAST(x AS VARCHAR) AS DECIMAL(38, 20)), n) AS DOUBLE)
        WHEN isfinite(x) AND n < 0 THEN round(x, n) ELSE x END""",
    "rint": "(x) AS round_even(CAST(x AS DOUBLE), 0)",
    "sqrt": "(x) AS CASE WHEN x < 0 THEN CAST('nan' AS DOUBLE) ELSE sqrt(x) END",
    "ln": "(x) AS CASE WHEN x <= 0 THEN NULL ELSE ln(x) END",
    "log": """(x) AS spark_ln(x), (b, x) AS CASE WHEN b <= 0 THEN NULL
        ELSE spark_ln(x) / ln(CAST(b AS DOUBLE)) END""",
    "log10": "(x) AS CASE WHEN x <= 0 THEN NULL ELSE log10(x) END",
    "log2": "(x) AS CASE WHEN x <= 0 THEN NULL ELSE log2(x) END",
    "log1p": "(x) AS CASE WHEN x <= -1 THEN NULL ELSE ln(1 + CAST(x AS DOUBLE)) END",
    "asin": "(x) AS CASE WHEN abs(x) > 1 THEN CAST('nan' AS DOUBLE) ELSE asin(x) END",
    "acos": "(x) AS CASE WHEN abs(x) > 1 THEN CAST('nan' AS DOUBLE) ELSE acos(x) END",
    "pow": "(x, y) AS pow(CAST(x AS DOUBLE), CAST(y AS DOUBLE))",
    "sign": """(x) AS CASE WHEN isnan(CAST(x AS DOUBLE)) OR x = 0 THEN CAST(x AS DOUBLE)
        ELSE CAST(sign(CAST(x AS DOUBLE)) AS DOUBLE) END""",
    "e": "() AS exp(CAST(1 AS DOUBLE))",
    "hypot": "(x, y) AS sqrt(CAST(x AS DOUBLE) * x + CAST(y AS DOUBLE) * y)",
    "factorial": """(x) AS CAST(CASE WHEN x BETWEEN 0 AND 20 THEN factorial(CAST(x AS INTEGER))
        END AS BIGINT)""",
    "cbrt": """(x) AS CASE WHEN power(round(cbrt(x)), 3) = x THEN round(cbrt(x))
        ELSE cbrt(x) END""",
    "isnan": "(x) AS coalesce(isnan(x), false)",
    "nanvl": "(a, b) AS CASE WHEN isnan(a) THEN b ELSE a END",
    "positive": "(x) AS x",
    "negative": "(x) AS -x",
    "bit_count": "(x) AS CAST(bit_count(x) AS INTEGER)",
    "getbit": "(x, n) AS CAST((CAST(x AS BIGINT) >> n) & 1 AS TINYINT)",
    "shiftleft": "(x, n) AS x << n",
    "shiftright": "(x, n) AS x >> n",
    "bin": "(x) AS bin(CAST(x AS BIGINT))",
}
_NESTED: Final = {
    "item": """(a, i) AS CASE WHEN i < 0 OR i >= len(a)
        THEN error('[INVALID_ARRAY_INDEX] the array has ' || len(a) || ' elements, not one at '
            || i || '; get() gives NULL there')
        WHEN i IS NOT NULL THEN a[i + 1] END""",
    "get": "(a, i) AS CASE WHEN i >= 0 THEN a[i + 1] END",
    "element_at": """(a, i) AS CASE
        WHEN i = 0 THEN error('[INVALID_INDEX_OF_ZERO] elements are counted from 1')
        WHEN abs(i) > len(a)
        THEN error('[INVALID_ARRAY_INDEX_IN_ELEMENT_AT] the array has ' || len(a)
            || ' elements, not one at ' || i || '; try_element_at gives NULL there')
        ELSE a[i] END""",
    "try_element_at": """(a, i) AS CASE
        WHEN i = 0 THEN error('[INVALID_INDEX_OF_ZERO] elements are counted from 1')
        ELSE a[i] END""",
    "has_null": "(a) AS len(a) > list_aggregate(a, 'count')",
    "array_contains": """(a, v) AS CASE WHEN a IS NULL OR v IS NULL THEN NULL
        WHEN list_contains(a, v) THEN true WHEN spark_has_null(a) THEN NULL ELSE false END""",
    "holds": """(a, v) AS CASE WHEN v IS NULL THEN spark_has_null(a)
        ELSE coalesce(list_contains(a, v), false) END""",
    "array_position": """(a, v) AS CASE WHEN a IS NULL OR v IS NULL THEN NULL
        ELSE CAST(coalesce(list_position(a, v), 0) AS BIGINT) END""",
    "sort_array": """(a) AS list_sort(a, 'ASC', 'NULLS FIRST'),
        (a, up) AS CASE WHEN up THEN list_sort(a, 'ASC', 'NULLS FIRST')
            ELSE list_sort(a, 'DESC', 'NULLS LAST') END""",
    "array_sort": "(a) AS list_sort(a, 'ASC', 'NULLS LAST')",
    "array_distinct": """(a) AS list_filter(a, lambda e, i: CASE
        WHEN e IS NULL THEN list_aggregate(a[1:i], 'count') = i - 1
        ELSE list_position(a, e) = i END)""",
    "array_max": "(a) AS list_max(a)",
    "array_min": "(a) AS list_min(a)",
    "array_join": """(a, d) AS array_to_string(a, d),
        (a, d, n) AS array_to_string(list_transform(a, lambda e: coalesce(e, n)), d)""",
    "array_union": """(a, b) AS CASE WHEN a IS NOT NULL AND b IS NOT NULL
        THEN spark_array_distinct(list_concat(a, b)) END""",
    "array_except": """(a, b) AS CASE WHEN b IS NOT NULL
        THEN spark_array_distinct(list_filter(a, lambda e: NOT spark_holds(b, e))) END""",
    "array_intersect": """(a, b) AS CASE WHEN b IS NOT NULL
        THEN spark_array_distinct(list_filter(a, lambda e: spark_holds(b, e))) END""",
    "arrays_overlap": """(a, b) AS CASE WHEN a IS NULL OR b IS NULL THEN NULL
        WHEN list_has_any(list_filter(a, lambda e: e IS NOT NULL), b) THEN true
        WHEN len(a) > 0 AND len(b) > 0 AND (spark_has_null(a) OR spark_has_null(b)) THEN NULL
        ELSE false END""",
    "array_remove": """(a, v) AS CASE WHEN v IS NOT NULL
        THEN list_filter(a, lambda e: e IS DISTINCT FROM v) END""",
    "array_append": "(a, v) AS CASE WHEN a IS NOT NULL THEN list_append(a, v) END",
    "array_prepend": "(a, v) AS CASE WHEN a IS NOT NULL THEN list_prepend(v, a) END",
    "array_compact": "(a) AS list_filter(a, lambda e: e IS NOT NULL)",
    "array_repeat": "(v, n) AS list_transform(range(CAST(n AS BIGINT)), lambda i: v)",
    "slice": """(a, p, n) AS CASE
        WHEN p = 0 THEN error('[INVALID_PARAMETER_VALUE.START] slice counts from 1')
        WHEN n < 0 THEN error('[INVALID_PARAMETER_VALUE.LENGTH] slice takes no negative length')
        WHEN (p < 0 AND -p > len(a)) OR n = 0 THEN list_slice(a, 1, 0)
        ELSE list_slice(a, CASE WHEN p < 0 THEN len(a) + p + 1 ELSE p END,
            CASE WHEN p < 0 THEN len(a) + p ELSE p - 1 END + n) END""",
    "flatten": "(a) AS CASE WHEN spark_has_null(a) THEN NULL ELSE flatten(a) END",
    "sequence": """(a, b) AS list_transform(spark_steps(CAST(a AS BIGINT), CAST(b AS BIGINT),
            CASE WHEN a <= b THEN 1 ELSE -1 END), lambda x: cast_to_type(x, a)),
        (a, b, s) AS list_transform(spark_steps(CAST(a AS BIGINT), CAST(b AS BIGINT),
            CAST(s AS BIGINT)), lambda x: cast_to_type(x, a))""",
    "date_sequence": """(a, b) AS list_transform(generate_series(a, b,
            CASE WHEN a <= b THEN INTERVAL 1 DAY ELSE INTERVAL (-1) DAY END),
            lambda x: CAST(x AS DATE)),
        (a, b, s) AS CASE WHEN day(a) > 28 AND date_part('month', s) <> 0
            THEN error('a sequence of months from the end of a month needs Spark')
            ELSE list_transform(generate_series(a, b, s), lambda x: CAST(x AS DATE)) END""",
    "steps": """(a, b, s) AS CASE WHEN (s > 0 AND a > b) OR (s < 0 AND a < b) OR (s = 0 AND a <> b)
        THEN error('[ILLEGAL_SEQUENCE_BOUNDARIES] the step does not lead to the end')
        WHEN a = b THEN generate_series(a, b) ELSE generate_series(a, b, s) END""",
    "map_contains_key": "(m, k) AS map_contains(m, k)",
    "map_concat": """(a, b) AS CASE WHEN list_has_any(map_keys(a), map_keys(b))
        THEN error('[DUPLICATED_MAP_KEY] a key is in both maps') WHEN a IS NULL OR b IS NULL
        THEN NULL ELSE map_concat(a, b) END""",
    "map_from_arrays": "(k, v) AS map(k, v)",
}
_OTHER: Final = {
    "nvl2": "(a, b, c) AS CASE WHEN a IS NOT NULL THEN b ELSE c END",
    "nullifzero": "(x) AS nullif(x, 0)",
    "zeroifnull": "(x) AS coalesce(x, 0)",
    "equal_null": "(a, b) AS a IS NOT DISTINCT FROM b",
    "raise_error": "(x) AS error(x)",
    "uuid": "() AS CAST(uuid() AS VARCHAR)",
}
MACROS: Final = {**CASTS, **_NUMBERS, **TEXTS, **TIMES, **_NESTED, **_OTHER}
