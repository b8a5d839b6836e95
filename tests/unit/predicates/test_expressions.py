"""Filters as values."""

from dataclasses import replace

import pytest

from emberlake.errors import InvalidPredicate
from emberlake.predicates import (
    And,
    Leaf,
    Op,
    Or,
    and_all,
    columns_of,
    leaves_of,
    never,
    or_all,
    split_conjuncts,
)
from emberlake.types import AtomicType, DataField, RowType

A = DataField(0, "a", AtomicType("INT"))
B = DataField(1, "b", RowType(True, (DataField(2, "x", AtomicType("DOUBLE")),)))
A1, A2 = Leaf(A, Op.EQUAL, (1,)), Leaf(A, Op.EQUAL, (2,))
BX = Leaf(B, Op.LESS_THAN, (1.0,), ("x",))


def test_columns_and_leaves_are_found_at_any_depth():
    predicate = And((Or((A1, BX)), A2))

    assert columns_of(predicate) == {"a", "b"}
    assert leaves_of(predicate) == [A1, BX, A2]


def test_the_type_of_a_nested_leaf_is_that_of_the_field():
    assert BX.type == AtomicType("DOUBLE")


def test_a_path_that_leads_nowhere_is_refused():
    with pytest.raises(InvalidPredicate, match="has no field y"):
        _ = replace(BX, path=("y",)).type


def test_conjuncts_are_split_and_joined():
    assert split_conjuncts(And((A1, And((A2, BX))))) == [A1, A2, BX]
    assert split_conjuncts(Or((A1, A2))) == [Or((A1, A2))]
    assert split_conjuncts(None) == []
    assert and_all([None, A1, And((A2, BX))]) == And((A1, A2, BX))
    assert and_all([None]) is None
    assert or_all([A1, Or((A2, BX))]) == Or((A1, A2, BX))
    assert or_all([A1]) == A1


def test_names_are_quoted_only_where_needed():
    leaf = never(DataField(0, 'odd "name"', RowType(True, (DataField(1, "in", A.type),))), ("in",))

    assert str(leaf) == '"odd ""name"""."in" IN ()'
