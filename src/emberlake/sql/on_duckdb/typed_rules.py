"""Rules that depend on the types of columns: decimals, CHAR, and map keys."""

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from sqlglot import exp

from emberlake.sql.on_duckdb.typing import Digits, Types, averaged, divided
from emberlake.types import AtomicType, DataField, MapType, TypeRoot

# Gives the name of a function that divides decimals of these digits.
Divider = Callable[[Digits, Digits, Digits], str]
_COMPARISONS: Final = (exp.EQ, exp.NEQ, exp.NullSafeEQ, exp.LT, exp.LTE, exp.GT, exp.GTE, exp.In)
_COUNT: Final = Digits(20, 0)


def apply_types(
    tree: exp.Expr, tables: Mapping[str, Sequence[DataField]], divider: Divider
) -> exp.Expr:
    """Spell out in the query what Spark does because of types.

    Args:
        tree: The query; it is changed.
        tables: The columns of its tables, by their names in the tree.
        divider: Gives the function that divides decimals.
    """
    nodes = list(tree.find_all(exp.Div, exp.Avg, exp.Bracket, *_COMPARISONS))
    if not nodes:
        return tree
    rules = _Rules(Types(tree, tables), divider)
    made = [rules.replacement(node) for node in nodes]
    for replacement in reversed(made):  # inner ones first
        if replacement is not None:
            outer, make = replacement
            new = make()
            if outer is tree:
                tree = new
            outer.replace(new)
    return tree


_Replacement = tuple[exp.Expr, Callable[[], exp.Expr]]


class _Rules:
    def __init__(self, types: Types, divider: Divider) -> None:
        self._types, self._divider = types, divider

    def replacement(self, node: exp.Expr) -> _Replacement | None:
        """The expression to replace, and a function that makes the new one."""
        match node:
            case exp.Div():
                return self._division(node)
            case exp.Avg():
                return self._average(node)
            case exp.Bracket(this=exp.Column() as column, expressions=[key]):
                return self._map_value(node, column, key)
            case exp.Binary() | exp.In():
                self._pad(node)
                return None
            case _:
                return None

    def _division(self, node: exp.Div) -> _Replacement | None:
        sides = (node.this, node.expression)
        if not any(self._types.digits(side) for side in sides):
            return None
        a, b = (self._types.as_digits(side) for side in sides)
        if a is None or b is None:
            return None
        name = self._divider(a, b, divided(a, b))
        return node, lambda: _call(name, node.this, node.expression)

    def _average(self, node: exp.Avg) -> _Replacement | None:
        inner = node.this
        if isinstance(inner, exp.Distinct) and len(inner.expressions) == 1:
            inner = inner.expressions[0]
        digits = self._types.digits(inner)
        if digits is None:
            return None
        total = Digits.bounded(digits.precision + 10, digits.scale)
        name = self._divider(total, _COUNT, averaged(digits))
        outer: exp.Expr = node
        while isinstance(outer.parent, exp.Filter | exp.Window) and outer.arg_key == "this":
            outer = outer.parent

        def make() -> exp.Expr:
            return _call(
                name, _with_function(outer, node, exp.Sum), _with_function(outer, node, exp.Count)
            )

        return outer, make

    def _map_value(
        self, node: exp.Bracket, column: exp.Column, key: exp.Expr
    ) -> _Replacement | None:
        """In ``m[1]``, 1 is a key, not a position."""
        kind = self._types.of_column(column)
        is_number = (
            isinstance(kind, MapType)
            and isinstance(kind.key, AtomicType)
            and kind.key.root.is_integer
        )
        return (node, lambda: _call("map_extract_value", column, key)) if is_number else None

    def _pad(self, node: exp.Expr) -> None:
        """A string that is compared with a CHAR(n) is padded with spaces, too."""
        values = [node.this, *(node.expressions or [node.args.get("expression")])]
        columns = [value for value in values if isinstance(value, exp.Column)]
        kinds = [self._types.of_column(column) for column in columns]
        lengths = [
            kind.length
            for kind in kinds
            if isinstance(kind, AtomicType) and kind.root is TypeRoot.CHAR
        ]
        for value in values if lengths else ():
            if isinstance(value, exp.Literal) and value.is_string:
                value.set("this", value.name.ljust(max(lengths)))


def _with_function(outer: exp.Expr, average: exp.Avg, function: type[exp.Func]) -> exp.Expr:
    """A copy of an average, perhaps with a filter or a window, with another function in it."""
    new = function(this=average.this.copy())
    if outer is average:
        return new
    copied = outer.copy()
    place = copied
    while not isinstance(place, exp.Avg):
        place = place.this
    place.replace(new)
    return copied


def _call(name: str, *arguments: exp.Expr) -> exp.Expr:
    return exp.Anonymous(this=name, expressions=[argument.copy() for argument in arguments])
