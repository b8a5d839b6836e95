"""Turns what users give as a filter into a predicate on the columns of a table, or an error."""

from collections.abc import Mapping

from emberlake.base.names import choices
from emberlake.errors import ColumnNotFound, InvalidPredicate
from emberlake.predicates.expressions import (
    And,
    Computed,
    Leaf,
    Or,
    Predicate,
    columns_of,
    computed_of,
    leaves_of,
)
from emberlake.predicates.text import parse_predicate
from emberlake.spec.row_tracking import readable_fields
from emberlake.spec.schema import TableSchema

Aliases = Mapping[str, tuple[str, ...]]


def bind_filter(
    given: Predicate | str | None, schema: TableSchema, aliases: Aliases | None = None
) -> Predicate | None:
    """A filter on columns of a table; in text, ``aliases`` are more names for them.

    Raises:
        InvalidPredicate: it is not a filter, or a predicate on columns of another table.
        ColumnNotFound: there is no such column.
    """
    if isinstance(given, str):
        return parse_predicate(given, readable_fields(schema), aliases)
    if given is None:
        return None
    if not isinstance(given, Leaf | And | Or | Computed):
        raise InvalidPredicate(
            "a filter is text, such as \"city = 'paris' AND price > 5\", or made by "
            f"new_predicate_builder(), not {given!r}"
        )
    known = {f.name: f for f in readable_fields(schema)}
    tested = [(leaf, leaf.column) for leaf in leaves_of(given)]
    computed = [(part, column) for part in computed_of(given) for column in part.columns]
    for test, tested_column in (*tested, *computed):
        column = known.get(tested_column.name)
        if column is None:
            raise ColumnNotFound(
                f"there is no column {tested_column.name!r} to filter on; "
                + choices(tested_column.name, schema.field_names, "choose one of")
            )
        if column.id != tested_column.id or column.type != tested_column.type:
            raise InvalidPredicate(
                f"the filter {test} is on {tested_column}, but this table has {column}; "
                "make it with this table's new_predicate_builder()"
            )
    return given


def bind_partition_filter(
    given: Predicate | str | None, schema: TableSchema, aliases: Aliases | None = None
) -> Predicate | None:
    """A filter on partition columns alone.

    Raises:
        InvalidPredicate: it is not a filter, or names other columns.
        ColumnNotFound: there is no such column.
    """
    bound = bind_filter(given, schema, aliases)
    others = columns_of(bound) - set(schema.partition_keys) if bound else ()
    if others:
        raise InvalidPredicate(
            f"no partition columns: {', '.join(sorted(others))}; use with_filter for them"
        )
    return bound
