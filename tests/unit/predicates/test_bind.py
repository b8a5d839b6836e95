"""Filters that users give are bound to the columns of their table."""

import pytest

from builders import create_table
from emberlake.errors import ColumnNotFound, InvalidPredicate
from emberlake.predicates import PredicateBuilder, bind_filter, bind_partition_filter
from emberlake.types import AtomicType, DataField

SCHEMA = create_table(partition_keys=["day"]).store.schema


def test_text_and_predicates_become_the_same_predicate() -> None:
    made = PredicateBuilder(list(SCHEMA.fields)).equal("day", "mon")

    assert bind_filter("day = 'mon'", SCHEMA) == bind_filter(made, SCHEMA) == made
    assert bind_filter(None, SCHEMA) is None


def test_a_predicate_on_columns_of_another_table_is_refused() -> None:
    retyped = DataField(SCHEMA.field_by_name["id"].id, "id", AtomicType("STRING"))
    unknown = DataField(9, "nowhere", AtomicType("STRING"))

    with pytest.raises(InvalidPredicate, match="make it with this table's"):
        bind_filter(PredicateBuilder([retyped]).equal("id", "1"), SCHEMA)
    with pytest.raises(ColumnNotFound, match="nowhere"):
        bind_filter(PredicateBuilder([unknown]).equal("nowhere", "1"), SCHEMA)


def test_a_partition_filter_takes_partition_columns_only() -> None:
    assert bind_partition_filter("day = 'mon'", SCHEMA) is not None
    with pytest.raises(InvalidPredicate, match="no partition columns: id; use with_filter"):
        bind_partition_filter("day = 'mon' AND id = 1", SCHEMA)
