"""Rules that depend on the types of columns: decimals, CHAR, and map keys."""

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from sqlglot import exp

from emberlake.errors import InvalidSql, Unsupported
from emberlake.sql.on_duckdb.calls import CHAINED, LIST
from emberlake.sql.on_duckdb.clauses import interval, is_of_days
from emberlake.sql.on_duckdb.typing import Digits, Types, averaged, divided
from emberlake.types import AtomicType, DataField, MapType, RowType, TypeRoot

# Gives the name of a function that divides decimals of these digits.
Divider = Callable[[Digits, Digits, Digits], str]
_COMPARISONS: Final = (exp.EQ, exp.NEQ, exp.NullSafeEQ, exp.LT, exp.LTE, exp.GT, exp.GTE, exp.In)
_ORDERED: Final = (exp.Ordered, exp.Max, exp.Min, exp.LT, exp.LTE, exp.GT, exp.GTE)
_BRANCHED: Final = (exp.Coalesce, exp.If, exp.Case, exp.SetOperation)
_TYPED: Final = (
    exp.Add,
    exp.Anonymous,
    exp.Avg,
    exp.Between,
    exp.Bracket,
    exp.Ceil,
    exp.DPipe,
    exp.Div,
    exp.Floor,
    exp.Mod,
    exp.Mul,
    exp.Round,
    exp.Sub,
    exp.Sum,
    *_ORDERED,
    *_BRANCHED,
)
_CONDITIONS: Final = (exp.Where, exp.Having, exp.Join, exp.And, exp.Or, exp.Not, exp.If)
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
    rules = _Rules(Types(tree, tables), divider)
    for condition in tree.find_all(*_CONDITIONS):
        rules.check_condition(condition)
    made = [rules.output(output) for output in _outputs(tree)]
    for node in tree.find_all(*_TYPED, *_COMPARISONS):
        rules.check(node)
        made.append(rules.replacement(node))
        made += rules.compared(node)
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

    def replacement(self, node: exp.Expr) -> _Replacement | None:  # noqa: C901 - a list
        """The expression to replace, and a function that makes the new one."""
        match node:
            case exp.Div():
                return self._division(node)
            case exp.Avg() | exp.Sum() if self._is_text(node.this):
                return _cast_to(node.this, exp.DataType.build("double"))
            case exp.Avg():
                return self._average(node)
            case exp.Bracket(this=exp.Column() as column, expressions=[key]):
                return self._map_value(node, column, key)
            case exp.Anonymous(expressions=[exp.Column() as column, key]) if node.name.lower() in (
                "element_at",
                "try_element_at",
            ):
                return self._map_value(node, column, key)
            case exp.Anonymous():
                return self._of_arrays(node)
            case exp.DPipe():
                return self._chain(node, [node.this, node.expression])
            case exp.Round() | exp.Ceil() | exp.Floor():
                return self._rounding(node)
            case exp.Add() | exp.Sub() | exp.Mul() | exp.Mod():
                return self._arithmetic(node)
            case (
                exp.EQ()
                | exp.NEQ()
                | exp.NullSafeEQ()
                | exp.LT()
                | exp.LTE()
                | exp.GT()
                | exp.GTE()
            ):
                self._pad(node)
                return None
            case exp.In():
                self._pad(node)
                return None
            case _:
                return None

    def check_condition(self, node: exp.Expr) -> None:
        """Refuse numbers, texts and dates that DuckDB would take for true or false.

        Raises:
            InvalidSql: a condition is not a boolean.
        """
        case = node.parent if isinstance(node, exp.If) else None
        if isinstance(case, exp.Case) and case.this is not None:
            return  # CASE x WHEN value
        on = node.args.get("on") if isinstance(node, exp.Join) else node.this
        for value in (on, node.expression) if isinstance(node, exp.Connector) else (on,):
            if value is None:
                continue
            inner = value.unnest()
            kind = self._types.of_column(inner) if isinstance(inner, exp.Column) else None
            is_other = isinstance(kind, AtomicType) and kind.root is not TypeRoot.BOOLEAN
            if is_other or isinstance(inner, exp.Literal):
                raise InvalidSql(
                    f"[DATATYPE_MISMATCH.FILTER_NOT_BOOLEAN] the condition "
                    f"{value.sql('spark')} is not a boolean"
                )

    def check(self, node: exp.Expr) -> None:
        """Refuse what DuckDB would do in another way.

        Raises:
            Unsupported: nested values are ordered, or texts and other values are put together.
        """
        if isinstance(node, _ORDERED):
            sides = [node.this, *([node.expression] if isinstance(node, exp.Binary) else [])]
            if any(map(self._types.is_nested, sides)):
                raise Unsupported("arrays and structs are put in order only by Spark")
        for values in self._branches(node):
            texts = [self._is_text(value) for value in values]
            if any(texts) and any(map(self._is_other, values)):
                said = " and ".join(value.sql("spark") for value in values[:4])
                raise Unsupported(f"{said}: without Spark, CAST them to the same type")

    def _branches(self, node: exp.Expr) -> list[list[exp.Expr]]:
        """Values that have one type in the result."""
        match node:
            case exp.Coalesce():
                return [[node.this, *node.expressions]]
            case exp.If() if not isinstance(node.parent, exp.Case):
                return [[v for v in (node.args["true"], node.args.get("false")) if v is not None]]
            case exp.Case():
                branches = [branch.args["true"] for branch in node.args.get("ifs", ())]
                default = node.args.get("default")
                return [branches if default is None else [*branches, default]]
            case exp.SetOperation():
                columns = [s.expressions for s in (node.left, node.right) if _is_open(s)]
                pairs = zip(*columns, strict=False) if len(columns) == 2 else ()
                return [[value.unalias() for value in pair] for pair in pairs]
            case _:
                return []

    def _is_text(self, node: exp.Expr) -> bool:
        root = self._types.root(node)
        return root is not None and root.is_text

    def _is_other(self, node: exp.Expr) -> bool:
        root = self._types.root(node)
        is_number = self._types.digits(node) or self._types.integer(node)
        return bool(is_number) or (root is not None and not root.is_text)

    def compared(self, node: exp.Expr) -> list[_Replacement | None]:
        """Sides of a comparison with the types that Spark gives them because of the other."""
        match node:
            case exp.Between():
                sides = [node.this, node.args["low"], node.args["high"]]
            case exp.In():
                sides = [node.this, *node.expressions]
            case _ if isinstance(node, _COMPARISONS):
                sides = [node.this, node.expression]
            case _:
                return self._widened(node)
        wide = [self._compared_with(side, sides) for side in sides]
        pairs = zip(sides, wide, strict=True)
        return [_cast_to(side, kind) for side, kind in pairs if kind is not None]

    def _widened(self, node: exp.Expr) -> list[_Replacement | None]:
        """A FLOAT becomes a DOUBLE where other numbers may stand instead of it."""
        double = exp.DataType.build("double")
        found: list[_Replacement | None] = []
        for values in self._branches(node):
            floats = [value for value in values if self._types.root(value) is TypeRoot.FLOAT]
            if any(self._types.integer(v) or self._types.digits(v) for v in values):
                found += [_cast_to(value, double) for value in floats]
        return found

    def _compared_with(self, side: exp.Expr, sides: Sequence[exp.Expr]) -> exp.DataType | None:
        others = [other for other in sides if other is not side]
        roots = {self._types.root(other) for other in others} - {None}
        if self._types.root(side) is TypeRoot.FLOAT:
            others_too = all(self._types.root(other) is TypeRoot.FLOAT for other in others)
            is_text = any(map(self._is_text, others))
            return None if others_too or is_text else exp.DataType.build("double")
        if not self._is_text(side):
            return None
        for root, kind in _TIMES.items():
            if root in roots:
                return exp.DataType.build(kind, dialect="spark")
        if any(map(self._types.digits, others)) or roots & {TypeRoot.FLOAT, TypeRoot.DOUBLE}:
            return exp.DataType.build("double")
        return exp.DataType.build("bigint") if any(map(self._types.integer, others)) else None

    def _division(self, node: exp.Div) -> _Replacement | None:
        sides = (node.this, node.expression)
        for side in sides:
            root = self._types.root(side)
            if root is not None and (root is TypeRoot.FLOAT or root.is_text):
                return _cast_to(side, exp.DataType.build("double"))
        if not any(self._types.digits(side) for side in sides):
            return None
        a, b = (self._types.as_digits(side) for side in sides)
        if a is None or b is None:
            return None
        name = self._divider(a, b, divided(a, b))
        return node, lambda: _call(name, node.this, node.expression)

    def _of_arrays(self, node: exp.Anonymous) -> _Replacement | None:
        """Functions of Spark that take texts as well as arrays or dates."""
        given = node.expressions
        match node.name.lower():
            case "concat":
                return self._chain(node, given)
            case "reverse" if self._types.is_array(given[0]):
                return node, lambda: _call("duckdb_list_reverse", *given)
            case "sequence" if self._types.root(given[0]) is TypeRoot.DATE:
                return node, lambda: _call("spark_date_sequence", *given)
            case "concat_ws" if any(map(self._types.is_array, given)):
                marks = [self._types.is_array(part) for part in given]
                pairs = list(zip(given, marks, strict=True))
                return node, lambda: _call(
                    "concat_ws", *(_call(LIST, part) if mark else part for part, mark in pairs)
                )
            case _:
                return None

    def _chain(self, node: exp.Expr, given: Sequence[exp.Expr]) -> _Replacement | None:
        is_chain = any(map(self._types.is_array, given)) or (
            bool(given) and all(map(self._types.is_bytes, given))
        )
        return (node, lambda: _call(CHAINED, *given)) if is_chain else None

    def _rounding(self, node: exp.Expr) -> _Replacement | None:
        digits = self._types.digits(node)
        is_whole = isinstance(node, exp.Round) or node.args.get("decimals") is None
        if digits is None or not is_whole:
            return None
        places = node.args.get("decimals")
        name = f"duckdb_{node.key}"

        def make() -> exp.Expr:
            given = [node.this] if places is None else [node.this, places]
            return _as_decimal(_call(name, *given), digits)

        return node, make

    def _arithmetic(self, node: exp.Expr) -> _Replacement | None:
        """One side with the type that Spark gives it because of the other."""
        sides = (node.this, node.expression)
        roots = [self._types.root(side) for side in sides]
        if isinstance(node, exp.Sub) and set(roots) == {TypeRoot.DATE}:
            raise Unsupported(
                f"{node.sql('spark')} is an interval, which needs Spark; datediff counts the days"
            )
        if isinstance(node.expression, exp.Interval) or isinstance(node.this, exp.Interval):
            return self._moved(node) if TypeRoot.DATE in roots else None
        for side, other in (sides, sides[::-1]):
            kind = self._wider(side, other)
            if kind is not None:
                return _cast_to(side, exp.DataType.build(kind))
        return None

    def _moved(self, node: exp.Expr) -> _Replacement | None:
        """A date and an interval with hours are a timestamp."""
        moved = node.expression if isinstance(node.expression, exp.Interval) else node.this
        if is_of_days(interval(moved.copy())):
            return None
        moment = node.this if moved is node.expression else node.expression
        return _cast_to(moment, exp.DataType.build("timestamp", dialect="spark"))

    def _wider(self, side: exp.Expr, other: exp.Expr) -> str | None:
        root, other_root = self._types.root(side), self._types.root(other)
        integer = self._types.integer(other)
        if root is TypeRoot.DATE or other_root is TypeRoot.DATE:
            return None
        if root is not None and root.is_text:
            return "bigint" if integer else "double"
        if root is TypeRoot.FLOAT and other_root is not TypeRoot.FLOAT:
            return "double"
        # A number that is written is an INT; in DuckDB it has the type of the other side.
        is_small = self._types.integer(side) in ("TINYINT", "SMALLINT")
        is_written = isinstance(other, exp.Literal) and other.is_int
        return "int" if is_small and is_written else None

    def output(self, node: exp.Expr) -> _Replacement | None:
        """A column of the result with the type that it has in Spark, where DuckDB's is another."""
        value = node.unalias()
        if isinstance(value, exp.Column | exp.TryCast | exp.Star):
            return None
        digits = self._types.digits(value)
        if digits is not None:
            return value, lambda: _as_decimal(value.copy(), digits)
        integer = self._types.integer(value)
        if integer is None or isinstance(value, exp.Literal | exp.Neg):
            return None
        return value, lambda: exp.Cast(this=value.copy(), to=exp.DataType.build(integer))

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

    def _map_value(self, node: exp.Expr, column: exp.Column, key: exp.Expr) -> _Replacement | None:
        """In ``m[1]``, 1 is a key, not a position."""
        kind = self._types.of_column(column)
        is_number = (
            isinstance(kind, MapType)
            and isinstance(kind.key, AtomicType)
            and kind.key.root.is_integer
        )
        if isinstance(kind, RowType) and isinstance(key, exp.Literal):
            return node, lambda: _call("struct_extract", column, key)
        is_number = is_number or isinstance(kind, MapType)
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


def _outputs(tree: exp.Expr) -> list[exp.Expr]:
    return list(tree.expressions) if isinstance(tree, exp.Select) else []


def _as_decimal(value: exp.Expr, digits: Digits) -> exp.Cast:
    sizes = [
        exp.DataTypeParam(this=exp.Literal.number(size))
        for size in (digits.precision, digits.scale)
    ]
    return exp.Cast(this=value, to=exp.DataType(this=exp.DType.DECIMAL, expressions=sizes))


_TIMES: Final = {
    TypeRoot.TIMESTAMP_LTZ: "timestamp",
    TypeRoot.TIMESTAMP: "timestamp_ntz",
    TypeRoot.DATE: "date",
}


def _cast_to(value: exp.Expr, kind: exp.DataType) -> _Replacement:
    return value, lambda: exp.TryCast(this=value.copy(), to=kind)


def _is_open(query: exp.Expr) -> bool:
    return isinstance(query, exp.Select)


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
