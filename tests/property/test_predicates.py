"""Filters against a plain model of SQL: on rows, on statistics, and through their text."""

import math
import pickle
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from emberlake.predicates import (
    ColumnRange,
    PredicateBuilder,
    evaluate,
    filter_rows,
    parse_predicate,
    prune,
)
from emberlake.spec.values import to_arrow_array
from emberlake.types import AtomicType, DataField, arrow_schema

SECOND = 10**9
DAY = 86_400 * SECOND


@dataclass(frozen=True)
class Kind:
    """A column type with its values, its literals, and how the model sees both."""

    type: str
    values: st.SearchStrategy[Any]
    literals: st.SearchStrategy[str]  # texts that both Python and the SQL text can carry
    number: Any  # a value as the model compares it
    literal: Any  # a literal's text as the model compares it


def as_float32(text: str) -> float:
    return float(np.float32(float(text)))


def iso_nanos(text: str) -> Fraction:
    seconds, _, fraction = text.partition(".")
    whole = int(np.datetime64(seconds.replace(" ", "T"), "s").astype(np.int64))
    return whole * SECOND + Fraction(int(fraction or 0) * SECOND, 10 ** len(fraction))


def iso_times() -> st.SearchStrategy[str]:
    return st.builds(
        lambda day, second, fraction: f"1970-01-0{day} 00:00:0{second}{fraction}",
        st.integers(1, 3),
        st.integers(0, 2),
        st.sampled_from(["", ".5", ".001", ".000000001", ".5000000001"]),
    )


def timestamps(type_: str, step: int) -> Kind:
    ticks = st.integers(-2, 2).map(lambda n: n * step) | st.sampled_from(
        [n * step for day in (0, DAY, 2 * DAY) for n in (day // step, (day + SECOND) // step)]
    )
    return Kind(type_, ticks, iso_times() | st.just("1500-01-01 00:00:00"), Fraction, iso_nanos)


def integers(type_: str, bits: int) -> Kind:
    limit = 1 << (bits - 1)
    return Kind(
        type_,
        st.integers(-3, 3) | st.sampled_from([-limit, limit - 1]),
        st.sampled_from(["-2", "0", "1", "2", "1.5", "-0.25", "300", "1e30", "-1e30", f"-{limit}"]),
        Fraction,
        Fraction,
    )


def floats(type_: str, parse: Any) -> Kind:
    special = [0.0, -0.0, math.nan, math.inf, -math.inf, 0.5, 1.0, parse("0.1")]
    texts = ["0", "-0.0", "0.5", "0.1", "1", "nan", "inf", "-inf", "3.5"]
    return Kind(type_, st.sampled_from(special), st.sampled_from(texts), lambda x: x, parse)


words = st.text(st.sampled_from(["a", "b", "%", "_", "\\", "\n", "é", "𝄞"]), max_size=3)
KINDS = [
    integers("TINYINT", 8),
    integers("BIGINT", 64),
    floats("FLOAT", as_float32),
    floats("DOUBLE", float),
    Kind(
        "DECIMAL(4, 2)",
        st.integers(-9999, 9999).map(lambda n: Decimal(n).scaleb(-2)) | st.just(Decimal("1.50")),
        st.sampled_from(["1.5", "1.505", "-99.99", "1e9", "-1e9", "0", "0.001"]),
        Fraction,
        Fraction,
    ),
    Kind("STRING", words, words, str.encode, str.encode),
    Kind("BYTES", words.map(str.encode), words, lambda x: x, str.encode),
    Kind("BOOLEAN", st.booleans(), st.sampled_from(["true", "false"]), int, lambda t: t == "true"),
    Kind("DATE", st.integers(-2, 4), iso_times(), lambda d: Fraction(d * DAY), iso_nanos),
    Kind(
        "TIME(3)",
        st.integers(0, 3).map(lambda n: n * 500),
        iso_times().map(lambda t: t[11:]),
        lambda ms: Fraction(ms * 10**6),
        lambda t: iso_nanos(f"1970-01-01 {t}"),
    ),
    timestamps("TIMESTAMP(0)", SECOND),
    timestamps("TIMESTAMP(3)", SECOND // 1000),
    timestamps("TIMESTAMP(9)", 1),
    timestamps("TIMESTAMP(6) WITH LOCAL TIME ZONE", 1000),
]
KIND_OF = {f"c{i}": kind for i, kind in enumerate(KINDS)}
FIELDS = tuple(DataField(i, n, AtomicType(k.type)) for i, (n, k) in enumerate(KIND_OF.items()))
BUILDER = PredicateBuilder(FIELDS)
COMPARISONS = {
    "equal": "=",
    "not_equal": "<>",
    "less_than": "<",
    "less_or_equal": "<=",
    "greater_than": ">",
    "greater_or_equal": ">=",
}

# --- A filter as data: ("and" | "or", parts), ("not", part) or (method, column, literals) ---


@st.composite
def a_comparison(draw: st.DrawFn) -> tuple[Any, ...]:
    name = draw(st.sampled_from(sorted(KIND_OF)))
    kind = KIND_OF[name]
    literals = st.none() | kind.literals | kind.literals | kind.literals
    methods = [*COMPARISONS, "between", "not_between", "is_in", "is_not_in", "is_null"]
    if kind.type == "STRING":
        methods += ["startswith", "endswith", "contains", "like"] * 2
    method = draw(st.sampled_from([*methods, "is_not_null"]))
    if method in ("is_null", "is_not_null"):
        return method, name, []
    if method in ("is_in", "is_not_in"):
        return (
            method,
            name,
            draw(st.lists(literals, max_size=4) | st.lists(kind.literals, min_size=9, max_size=10)),
        )
    if method == "like":
        return method, name, [draw(words.map(lambda w: w.replace("\\", "\\\\")))]
    count = 2 if "between" in method else 1
    return method, name, [draw(literals) for _ in range(count)]


def filters(*, with_not: bool) -> st.SearchStrategy[tuple[Any, ...]]:
    def extend(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
        parts = st.lists(inner, min_size=1, max_size=3)
        joined = st.tuples(st.sampled_from(["and", "or"]), parts)
        return joined | st.tuples(st.just("not"), inner) if with_not else joined

    return st.recursive(a_comparison(), extend, max_leaves=4)


def build(spec: tuple[Any, ...]) -> Any:
    if spec[0] in ("and", "or"):
        parts = [build(part) for part in spec[1]]
        join = BUILDER.and_predicates if spec[0] == "and" else BUILDER.or_predicates
        return join(parts)
    method, name, literals = spec
    arguments = [literals] if method in ("is_in", "is_not_in") else literals
    return getattr(BUILDER, method)(name, *arguments)


def write(spec: tuple[Any, ...]) -> str:
    if spec[0] in ("and", "or"):
        return "(" + f" {spec[0]} ".join(write(part) for part in spec[1]) + ")"
    if spec[0] == "not":
        return f"NOT {write(spec[1])}"
    method, name, literals = spec
    texts = ["NULL" if x is None else "'" + x.replace("'", "''") + "'" for x in literals]
    if method in COMPARISONS:
        return f"{name} {COMPARISONS[method]} {texts[0]}"
    if "between" in method:
        return f"{name} {method.replace('_', ' ')} {texts[0]} and {texts[1]}"
    if method in ("is_in", "is_not_in"):
        return f"{name} {method[3:].replace('_', ' ')} ({', '.join(texts)})"
    if method in ("is_null", "is_not_null"):
        return f"{name} {method.replace('_', ' ')}"
    if literals[0] is None:
        return f"{name} LIKE NULL"
    pattern = literals[0]
    if method != "like":
        pattern = pattern.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
        pattern = {"startswith": "{}%", "endswith": "%{}", "contains": "%{}%"}[method].format(
            pattern
        )
    return f"{name} LIKE '{pattern}'"


# --- The model: SQL's three truth values, a row at a time ---


def model(spec: tuple[Any, ...], row: dict[str, Any]) -> bool | None:
    if spec[0] == "not":
        inner = model(spec[1], row)
        return None if inner is None else not inner
    if spec[0] in ("and", "or"):
        results = [model(part, row) for part in spec[1]]
        decisive = spec[0] == "or"
        if decisive in results:
            return decisive
        return None if None in results else not decisive
    method, name, literals = spec
    kind, value = KIND_OF[name], row[name]
    if method in ("is_null", "is_not_null"):
        return (value is None) == (method == "is_null")
    if method in ("is_in", "is_not_in"):
        found = model(("or", [("equal", name, [x]) for x in literals]), row)
        return found if method == "is_in" or found is None else not found
    if "between" in method:
        low, high = literals
        parts = [("greater_or_equal", name, [low]), ("less_or_equal", name, [high])]
        inside = model(("and", parts), row)
        return inside if method == "between" or inside is None else not inside
    if value is None or literals[0] is None:
        return None
    if method in COMPARISONS:
        return compare(method, kind.number(value), kind.literal(literals[0]))
    if method == "like":
        return like(value, literals[0])
    return {
        "startswith": value.startswith,
        "endswith": value.endswith,
        "contains": value.__contains__,
    }[method](literals[0])


def compare(method: str, left: Any, right: Any) -> bool:
    return {
        "equal": left == right,
        "not_equal": left != right,
        "less_than": left < right,
        "less_or_equal": left <= right,
        "greater_than": left > right,
        "greater_or_equal": left >= right,
    }[method]


def like(text: str, pattern: str) -> bool:
    if not pattern:
        return not text
    if pattern[0] == "%":
        return any(like(text[i:], pattern[1:]) for i in range(len(text) + 1))
    if pattern[0] == "_":
        return bool(text) and like(text[1:], pattern[1:])
    literal = pattern[1] if pattern[0] == "\\" else pattern[0]
    rest = pattern[2:] if pattern[0] == "\\" else pattern[1:]
    return text[:1] == literal and like(text[1:], rest)


def a_row() -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries({n: st.none() | k.values | k.values for n, k in KIND_OF.items()})


def table_of(rows: list[dict[str, Any]]) -> pa.Table:
    columns = [to_arrow_array(f.type, [row[f.name] for row in rows]) for f in FIELDS]
    return pa.Table.from_arrays(columns, schema=arrow_schema(FIELDS))


def matching(spec: tuple[Any, ...], rows: list[dict[str, Any]]) -> list[bool]:
    return [model(spec, row) is True for row in rows]


@given(spec=filters(with_not=False), rows=st.lists(a_row(), max_size=8))
def test_a_built_filter_keeps_the_rows_that_sql_keeps(spec, rows):
    table = table_of(rows)

    mask = evaluate(pickle.loads(pickle.dumps(build(spec))), table)

    assert [keep is True for keep in mask.to_pylist()] == matching(spec, rows)


@given(spec=filters(with_not=True), rows=st.lists(a_row(), max_size=8))
def test_a_filter_from_text_keeps_the_rows_that_sql_keeps(spec, rows):
    batch = table_of(rows).combine_chunks().to_batches()
    expected = [keep for keep in matching(spec, rows) if keep]

    predicate = parse_predicate(write(spec), FIELDS)

    assert sum(filter_rows(predicate, b).num_rows for b in batch) == len(expected)
    for b in batch:
        mask = evaluate(predicate, b).to_pylist()
        assert [keep is True for keep in mask] == matching(spec, rows)


@given(spec=filters(with_not=True))
def test_the_text_of_a_filter_is_read_back_as_the_same_filter(spec):
    predicate = parse_predicate(write(spec), FIELDS)

    assert parse_predicate(str(predicate), FIELDS) == predicate


# --- Statistics ---


@st.composite
def ranges_of(draw: st.DrawFn, kind: Kind, files: list[list[Any]]) -> ColumnRange | None:
    """True statistics of files, of which some things are unknown or only roughly known."""
    lows, highs, counts = [], [], []
    for values in files:
        present = [v for v in values if v is not None and v == v]
        known = bool(present) and draw(st.integers(0, 3)) > 0
        low = min(present, key=kind.number) if known else None
        high = max(present, key=kind.number) if known else None
        if known and kind.type == "STRING" and draw(st.booleans()):
            low, high = low[:1], high[:1] + "\U0001d11f"
        lows.append(low)
        highs.append(high)
        count = sum(v is None for v in values)
        counts.append(draw(st.sampled_from([count, count, count, None, -1])))
    if draw(st.integers(0, 9)) == 0:
        return None
    data_type = AtomicType(kind.type)
    return ColumnRange(
        to_arrow_array(data_type, lows),
        to_arrow_array(data_type, highs),
        pa.array(counts, pa.int64()) if draw(st.integers(0, 9)) else None,
    )


@given(
    spec=filters(with_not=True),
    files=st.lists(st.lists(a_row(), min_size=1, max_size=3), min_size=1, max_size=5),
    data=st.data(),
)
def test_pruning_never_loses_a_row_and_never_promises_too_much(spec, files, data):
    predicate = parse_predicate(write(spec), FIELDS)
    row_counts = np.array([len(rows) for rows in files])

    def lookup(field: DataField) -> ColumnRange | None:
        columns = [[row[field.name] for row in rows] for rows in files]
        return data.draw(ranges_of(KIND_OF[field.name], columns))

    verdict = prune.test_ranges(predicate, row_counts, lookup)

    for rows, may, every in zip(files, verdict.may, verdict.all, strict=True):
        matches = matching(spec, rows)
        assert may or not any(matches)
        assert not every or all(matches)


@given(spec=filters(with_not=True), row=a_row())
def test_a_unit_of_one_known_value_per_column_is_decided_exactly(spec, row):
    predicate = parse_predicate(write(spec), FIELDS)
    [keep] = matching(spec, [row])

    def lookup(field: DataField) -> ColumnRange:
        value = to_arrow_array(field.type, [row[field.name]])
        return ColumnRange(value, value, pa.array([int(row[field.name] is None)]))

    verdict = prune.test_ranges(predicate, np.array([1]), lookup)

    has_float = any(KIND_OF[n].type in ("FLOAT", "DOUBLE") for n in names_of(spec))
    assert verdict.may.tolist() == [keep] or has_float
    assert verdict.all.tolist() == [keep] or has_float


def names_of(spec: tuple[Any, ...]) -> set[str]:
    if spec[0] in ("and", "or"):
        return set().union(*(names_of(part) for part in spec[1]))
    return names_of(spec[1]) if spec[0] == "not" else {spec[1]}
