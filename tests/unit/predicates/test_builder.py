"""Filters from Python: names, literals, and literals that a column cannot hold."""

import datetime as dt
import math
import pickle
import re

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from emberlake.errors import ColumnNotFound, InvalidPredicate
from emberlake.predicates import Leaf, Op, Or, PredicateBuilder
from emberlake.types import ArrayType, AtomicType, DataField, RowType

ADDRESS = RowType(
    True, (DataField(11, "city", AtomicType("STRING")), DataField(12, "geo.x", AtomicType("INT")))
)
FIELDS = [
    DataField(0, "i", AtomicType("TINYINT")),
    DataField(1, "name", AtomicType("VARCHAR(5)")),
    DataField(2, "price", AtomicType("DECIMAL(10, 2)")),
    DataField(3, "at", AtomicType("TIMESTAMP(0)")),
    DataField(4, "ns", AtomicType("TIMESTAMP(9)")),
    DataField(5, "f", AtomicType("FLOAT")),
    DataField(6, "address", ADDRESS),
    DataField(7, "address.zip", AtomicType("STRING")),
    DataField(8, "tags", ArrayType(True, AtomicType("STRING"))),
    DataField(9, "day", AtomicType("DATE")),
]
builder = PredicateBuilder(FIELDS)


@pytest.mark.parametrize(
    ("predicate", "text"),
    [
        (builder.equal("i", 1), "i = 1"),
        (builder.not_equal("i", "1"), "i <> 1"),
        (builder.less_than("i", np.int64(1)), "i < 1"),
        (builder.less_or_equal("i", 1), "i <= 1"),
        (builder.greater_than("i", 1), "i > 1"),
        (builder.greater_or_equal("i", 1), "i >= 1"),
        (builder.between("i", 1, 2), "i BETWEEN 1 AND 2"),
        (builder.not_between("i", 1, 2), "i NOT BETWEEN 1 AND 2"),
        (builder.is_null("i"), "i IS NULL"),
        (builder.is_not_null("i"), "i IS NOT NULL"),
        (builder.startswith("name", "a%"), r"name LIKE 'a\%%'"),
        (builder.endswith("name", "a"), "name LIKE '%a'"),
        (builder.contains("name", "a"), "name LIKE '%a%'"),
        (builder.is_in("i", pa.array([1, 2, 1])), "i IN (1, 2)"),
        (builder.is_not_in("i", {1}), "i NOT IN (1)"),
    ],
)
def test_every_method_makes_its_comparison(predicate, text):
    assert str(predicate) == text


@pytest.mark.parametrize(
    ("predicate", "text"),
    [
        (builder.equal("i", 1.5), "i IN ()"),
        (builder.not_equal("i", 1.5), "i IS NOT NULL"),
        (builder.less_than("i", 1.5), "i <= 1"),
        (builder.less_or_equal("i", -1.5), "i <= -2"),
        (builder.greater_than("i", 1.5), "i >= 2"),
        (builder.between("i", 0.5, 3.5), "i BETWEEN 1 AND 3"),
        (builder.between("i", 200, 300), "i IN ()"),
        (builder.not_between("i", 200, 300), "i IS NOT NULL"),
        (builder.less_than("i", 300), "i <= 127"),
        (builder.greater_than("i", 300), "i IN ()"),
        (builder.less_than("i", -math.inf), "i IN ()"),
        (builder.equal("i", math.nan), "i IN ()"),
        (builder.not_equal("i", math.nan), "i IS NOT NULL"),
        (builder.is_in("i", [1, 1.5, 300]), "i IN (1)"),
        (builder.is_not_in("i", [1.5]), "i IS NOT NULL"),
        (builder.greater_than("price", "1.005"), "price >= 1.01"),
        (builder.less_than("at", "1970-01-01 12:00:00.5"), "at <= TIMESTAMP '1970-01-01 12:00:00'"),
        (
            builder.less_or_equal("day", pd.Timestamp("1970-01-02 12:00")),
            "day <= DATE '1970-01-02'",
        ),
        (builder.greater_or_equal("day", dt.date(1970, 1, 2)), "day >= DATE '1970-01-02'"),
        (builder.less_than("f", 1e300), "f <= 3.4028235e+38"),
        (builder.equal("f", 0.1), "f = 0.1"),
    ],
)
def test_a_literal_that_the_column_cannot_hold_is_compared_exactly(predicate, text):
    assert str(predicate) == text


@pytest.mark.parametrize(
    "literal",
    [
        "2026-06-26 10:00:00.123456789",
        pd.Timestamp("2026-06-26 10:00:00.123456789"),
        np.datetime64("2026-06-26T10:00:00.123456789"),
    ],
)
def test_nanoseconds_of_a_literal_are_kept(literal):
    assert builder.equal("ns", literal).literals == (1_782_468_000_123_456_789,)


@pytest.mark.parametrize(
    ("predicate", "text"),
    [
        (builder.equal("i", None), "i IN ()"),
        (builder.not_equal("i", None), "i IN ()"),
        (builder.less_than("at", pd.NaT), "at IN ()"),
        (builder.between("i", None, 3), "i IN ()"),
        (builder.not_between("i", None, 3), "i > 3"),
        (builder.not_between("i", 3, None), "i < 3"),
        (builder.startswith("name", None), "name IN ()"),
        (builder.like("name", None), "name IN ()"),
        (builder.is_in("i", [1, None]), "i IN (1)"),
        (builder.is_not_in("i", [1, None]), "i IN ()"),
        (builder.is_not_in("i", []), "i NOT IN ()"),
    ],
)
def test_null_literals_follow_sql(predicate, text):
    assert str(predicate) == text


@pytest.mark.parametrize(
    ("pattern", "op", "literal"),
    [
        ("abc", Op.EQUAL, "abc"),
        ("", Op.EQUAL, ""),
        ("abc%", Op.STARTS_WITH, "abc"),
        ("%abc", Op.ENDS_WITH, "abc"),
        ("%%abc%", Op.CONTAINS, "abc"),
        ("%", Op.CONTAINS, ""),
        (r"100\%%", Op.STARTS_WITH, "100%"),
        ("a%c", Op.LIKE, "a%c"),
        ("a_", Op.LIKE, "a_"),
    ],
)
def test_a_like_pattern_becomes_the_simplest_test(pattern, op, literal):
    leaf = builder.like("name", pattern)

    assert (leaf.op, leaf.literals) == (op, (literal,))


def test_a_dotted_name_addresses_a_field_of_a_row():
    leaf = builder.equal("address.city", "paris")

    assert (leaf.column.name, leaf.path, leaf.type) == ("address", ("city",), AtomicType("STRING"))
    assert builder.is_null("address.geo.x").path == ("geo.x",)


def test_a_column_that_has_a_dot_in_its_name_goes_before_a_nested_one():
    leaf = builder.equal("address.zip", "75001")

    assert (leaf.column.name, leaf.path) == ("address.zip", ())


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("nope", "choose one of i, name, price, "),
        ("address.nope", "did you mean address.zip or address or address.geo.x?"),
        ("i.x", "choose one of i, name, price, "),
        ("I", "did you mean i?"),
        ("", "choose one of i, name, price, "),
    ],
)
def test_an_unknown_column_is_an_error_that_says_what_was_meant(name, hint):
    with pytest.raises(ColumnNotFound, match=re.escape(hint)):
        builder.equal(name, 1)


@pytest.mark.parametrize(
    ("method", "arguments"),
    [
        ("equal", ("i", "x")),
        ("equal", ("name", 5)),
        ("equal", ("tags", "x")),
        ("equal", ("tags", None)),
        ("less_than", ("address", "x")),
        ("startswith", ("i", "1")),
        ("contains", ("tags", "1")),
        ("like", ("name", "a\\")),
        ("is_in", ("name", "abc")),
        ("is_in", ("i", 5)),
    ],
)
def test_a_comparison_that_makes_no_sense_is_refused_by_name(method, arguments):
    with pytest.raises(InvalidPredicate):
        getattr(builder, method)(*arguments)


def test_nested_columns_can_be_tested_for_null():
    assert builder.is_null("tags") == Leaf(FIELDS[8], Op.IS_NULL)


def test_a_text_longer_than_its_column_is_compared_as_it_is():
    assert builder.equal("name", "longer than five").literals == ("longer than five",)


def test_filters_are_joined_flat():
    a, b, c = builder.equal("i", 1), builder.equal("i", 2), builder.is_null("f")
    either = PredicateBuilder.or_predicates([a, b])

    both = PredicateBuilder.and_predicates([either, PredicateBuilder.and_predicates([b, c])])

    assert str(both) == "(i = 1 OR i = 2) AND i = 2 AND f IS NULL"
    assert either == Or((a, b))
    assert PredicateBuilder.and_predicates([a]) == a
    assert PredicateBuilder.or_predicates([]) is None
    assert PredicateBuilder.and_predicates([]) is None


def test_filters_and_builders_pickle():
    predicate = PredicateBuilder.and_predicates(
        [builder.equal("price", "1.50"), builder.is_in("ns", ["2026-06-26 10:00:00.123456789"])]
    )

    assert pickle.loads(pickle.dumps(predicate)) == predicate
    assert pickle.loads(pickle.dumps(builder)).equal("i", 1) == builder.equal("i", 1)


def test_filters_have_the_names_that_pypaimon_gives_to_their_parts():
    builder = PredicateBuilder(FIELDS)
    leaf = builder.equal("address.city", "rome")
    either = PredicateBuilder.or_predicates([leaf, builder.is_null("i")])
    both = PredicateBuilder.and_predicates([leaf, either])

    assert (leaf.method, leaf.field, list(leaf.literals)) == ("equal", "address.city", ["rome"])
    assert (either.method, either.field) == ("or", None)
    assert (both.method, both.literals) == ("and", (leaf, either))
    assert [part.method for part in either.literals] == ["equal", "isNull"]
