"""Filters. Built from Python or text, evaluated on rows, tested on statistics."""

from emberlake.predicates.bind import bind_filter, bind_partition_filter
from emberlake.predicates.builder import PredicateBuilder
from emberlake.predicates.evaluate import evaluate, filter_rows
from emberlake.predicates.expressions import (
    And,
    Computed,
    Leaf,
    Op,
    Or,
    Predicate,
    and_all,
    columns_of,
    computed_of,
    leaves_of,
    never,
    or_all,
    split_conjuncts,
)
from emberlake.predicates.prune import ColumnRange, Verdict, test_ranges
from emberlake.predicates.row_rules import ALL_SHOWN, Mask, RowRules
from emberlake.predicates.text import parse_predicate

__all__ = [
    "ALL_SHOWN",
    "And",
    "ColumnRange",
    "Computed",
    "Leaf",
    "Mask",
    "Op",
    "Or",
    "Predicate",
    "PredicateBuilder",
    "RowRules",
    "Verdict",
    "and_all",
    "bind_filter",
    "bind_partition_filter",
    "columns_of",
    "computed_of",
    "evaluate",
    "filter_rows",
    "leaves_of",
    "never",
    "or_all",
    "parse_predicate",
    "split_conjuncts",
    "test_ranges",
]
