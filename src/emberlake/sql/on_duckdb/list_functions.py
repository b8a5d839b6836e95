"""Functions of Spark that take functions, and those of maps, as DuckDB calls them."""

from collections.abc import Callable
from typing import Final

from sqlglot import exp

from emberlake.errors import Unsupported
from emberlake.sql.on_duckdb.calls import Arguments, call, typed_as
from emberlake.sql.on_duckdb.spark_functions import words


def _lambda(node: exp.Expr) -> exp.Lambda:
    if not isinstance(node, exp.Lambda):
        raise Unsupported("without Spark, a function has to be written as x -> ...")
    return node


def _renamed(body: exp.Expr, name: str, value: exp.Expr) -> exp.Expr:
    """The body with another expression for a variable."""

    def swap(node: exp.Expr) -> exp.Expr:
        is_variable = isinstance(node, exp.Identifier) and not isinstance(
            node.parent, exp.Column | exp.Dot | exp.Lambda | exp.TableAlias | exp.Alias
        )
        is_column = isinstance(node, exp.Column) and not node.table
        if (is_variable or is_column) and node.name.lower() == name.lower():
            return value.copy()
        return node

    return body.transform(swap)


def with_place(written: exp.Expr) -> exp.Lambda:
    """A function of values and places: those count from 0 in Spark, from 1 in DuckDB."""
    function = _lambda(written)
    if len(function.expressions) < 2:
        return function
    place = function.expressions[1]
    before = exp.Paren(this=exp.Sub(this=place.copy(), expression=exp.Literal.number(1)))
    as_int = exp.Cast(this=before, to=exp.DataType.build("int"))
    body = _renamed(function.this, place.name, as_int)
    return exp.Lambda(this=body, expressions=function.expressions)


def over_list(name: str) -> Callable[[Arguments], exp.Expr]:
    """A function of DuckDB for each element of a list."""

    def rewrite(arguments: Arguments) -> exp.Expr:
        values, function = arguments
        return call(name, values, with_place(function))

    return rewrite


def exists_of(arguments: Arguments) -> exp.Expr:
    """``exists`` of Spark."""
    values, function = arguments
    found = call("list_transform", values, _lambda(function))
    return call("spark_array_contains", found, exp.true())


def forall(arguments: Arguments) -> exp.Expr:
    """``forall`` of Spark."""
    values, function = arguments
    found = call("list_transform", values, _lambda(function))
    return exp.Not(this=call("spark_array_contains", found, exp.false()))


def aggregate_of(arguments: Arguments) -> exp.Expr:
    """``aggregate`` of Spark."""
    values, start, function, *finish = arguments
    total = call("list_reduce", values, _lambda(function), start)
    if not finish:
        return total
    end = _lambda(*finish)
    return call("list_extract", call("list_transform", call("list_value", total), end), one())


def one() -> exp.Expr:
    """The number 1."""
    return exp.Literal.number(1)


def _entries(arguments: Arguments) -> tuple[exp.Expr, exp.Expr]:
    """The entries of a map, and a body in which ``e.key`` and ``e.value`` are its variables."""
    values, function = arguments
    function = _lambda(function)
    body = function.this
    for variable, part in zip(function.expressions, ("key", "value"), strict=True):
        field = call("struct_extract", exp.to_identifier(_ENTRY), exp.Literal.string(part))
        body = _renamed(body, variable.name, field)
    return call("map_entries", values), body


_ENTRY: Final = "__entry"


def _entry(part: str) -> exp.Expr:
    return call("struct_extract", exp.to_identifier(_ENTRY), exp.Literal.string(part))


def _each(name: str, entries: exp.Expr, body: exp.Expr) -> exp.Expr:
    function = exp.Lambda(this=body, expressions=[exp.to_identifier(_ENTRY)])
    return call("map_from_entries", call(name, entries, function))


def map_filter(arguments: Arguments) -> exp.Expr:
    """``map_filter`` of Spark."""
    entries, body = _entries(arguments)
    return _each("list_filter", entries, body)


def transform_values(arguments: Arguments) -> exp.Expr:
    """``transform_values`` of Spark."""
    entries, body = _entries(arguments)
    return _each("list_transform", entries, _pair(_entry("key"), body))


def transform_keys(arguments: Arguments) -> exp.Expr:
    """``transform_keys`` of Spark."""
    entries, body = _entries(arguments)
    return _each("list_transform", entries, _pair(body, _entry("value")))


def _pair(key: exp.Expr, value: exp.Expr) -> exp.Expr:
    return exp.Struct(
        expressions=[
            exp.PropertyEQ(this=exp.to_identifier(name), expression=part)
            for name, part in (("key", key), ("value", value))
        ]
    )


def map_concat(arguments: Arguments) -> exp.Expr:
    """``map_concat`` of Spark."""
    first, *rest = arguments
    for one in rest:
        first = call("spark_map_concat", first, one)
    return first


def is_map(node: exp.Expr) -> bool:
    """Whether an expression is certainly a map."""
    is_function = isinstance(node, exp.Anonymous) and node.name.lower() in _MAPS
    return is_function or isinstance(node, exp.Map | exp.VarMap | exp.ToMap)


def item(name: str) -> Callable[[Arguments], exp.Expr]:
    """A value of a map, or an element of an array."""

    def rewrite(arguments: Arguments) -> exp.Expr:
        value, key = arguments
        is_text = isinstance(key, exp.Literal) and key.is_string
        return call("map_extract_value" if is_text or is_map(value) else name, value, key)

    return rewrite


_MAPS: Final = words(
    """map_concat map_filter map_from_arrays map_from_entries transform_keys transform_values
    spark_map_concat spark_map_from_arrays"""
)


def size(arguments: Arguments) -> exp.Expr:
    """``size`` of Spark."""
    (value,) = arguments
    return typed_as("INTEGER", call("cardinality", value))
