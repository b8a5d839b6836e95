"""The types that expressions of a query have in Spark, from the tables that its names are bound to.

Only what changes the meaning of an expression is worked out: which column a name refers to, and the
precision of decimals. The type of everything else is unknown.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from sqlglot import exp
from sqlglot.errors import SqlglotError
from sqlglot.optimizer.scope import Scope, traverse_scope

from emberlake.sql.on_duckdb.spark_functions import words
from emberlake.types import (
    ArrayType,
    AtomicType,
    DataField,
    DataType,
    MapType,
    RowType,
    TypeRoot,
)

_MOST_DIGITS: Final = 38
_LEAST_SCALE: Final = 6
_DIGITS: Final = {
    TypeRoot.TINYINT: 3,
    TypeRoot.SMALLINT: 5,
    TypeRoot.INT: 10,
    TypeRoot.BIGINT: 20,
}
_INTEGERS: Final = {
    exp.DType.TINYINT: "TINYINT",
    exp.DType.SMALLINT: "SMALLINT",
    exp.DType.INT: "INT",
    exp.DType.BIGINT: "BIGINT",
}
# Functions by what they return: the type of the first argument, the widest type, or always one.
_SAME_AS_FIRST: Final = frozenset({"abs", "positive", "negative"})
_WIDEST: Final = frozenset({"greatest", "least", "nvl", "ifnull"})
_RESULTS: Final = {
    **dict.fromkeys(
        words("""array_size ascii bit_length cardinality char_length character_length date_diff
        dayofmonth dayofweek dayofyear datediff day hour instr length locate minute month
        octet_length position quarter second size unix_date weekday weekofyear year rank dense_rank
        row_number ntile levenshtein find_in_set regexp_count"""),
        "INT",
    ),
    **dict.fromkeys(
        words("count_if array_position unix_timestamp unix_seconds unix_millis unix_micros"),
        "BIGINT",
    ),
}
_DATES: Final = words(
    "to_date date date_add date_sub add_months last_day next_day trunc make_date curdate"
)
_ARRAYS: Final = words(
    """array array_agg array_append array_compact array_distinct array_except array_insert
    array_intersect array_prepend array_remove array_repeat array_sort array_union collect_list
    collect_set filter flatten map_entries map_keys map_values regexp_extract_all sequence slice
    sort_array split transform"""
)
_BYTES: Final = words("binary encode unbase64 unhex to_binary")
_ROOTS: Final = {
    exp.DType.DATE: TypeRoot.DATE,
    exp.DType.FLOAT: TypeRoot.FLOAT,
    exp.DType.TEXT: TypeRoot.VARCHAR,
    exp.DType.BINARY: TypeRoot.BINARY,
    exp.DType.DOUBLE: TypeRoot.DOUBLE,
    exp.DType.TIMESTAMP: TypeRoot.TIMESTAMP_LTZ,
    exp.DType.TIMESTAMPTZ: TypeRoot.TIMESTAMP_LTZ,
    exp.DType.TIMESTAMPNTZ: TypeRoot.TIMESTAMP,
}
_DEEPEST: Final = 50  # views of views of views


@dataclass(frozen=True)
class Digits:
    """A decimal type."""

    precision: int
    scale: int

    @staticmethod
    def adjusted(precision: int, scale: int) -> "Digits":
        """The type of a result; if it has too many digits, Spark reduces its scale."""
        if precision <= _MOST_DIGITS:
            return Digits(precision, scale)
        whole = precision - scale
        kept = max(_MOST_DIGITS - whole, min(scale, _LEAST_SCALE))
        return Digits(_MOST_DIGITS, kept)

    @staticmethod
    def bounded(precision: int, scale: int) -> "Digits":
        """The type of an aggregate, which keeps its scale."""
        return Digits(min(precision, _MOST_DIGITS), min(scale, _MOST_DIGITS))


def divided(a: Digits, b: Digits) -> Digits:
    """The type of ``a / b``."""
    scale = max(_LEAST_SCALE, a.scale + b.precision + 1)
    return Digits.adjusted(a.precision - a.scale + b.scale + scale, scale)


def averaged(a: Digits) -> Digits:
    """The type of ``avg(a)``."""
    return Digits.bounded(a.precision + 4, a.scale + 4)


class Types:
    """The types of the expressions of one query.

    Args:
        tree: The query.
        tables: The columns of its tables, by their names in the tree.
    """

    def __init__(self, tree: exp.Expr, tables: Mapping[str, Sequence[DataField]]) -> None:
        self._tables = tables
        self._scopes: dict[int, Scope] = {}
        try:
            self._scopes = {id(scope.expression): scope for scope in traverse_scope(tree)}
        except SqlglotError:  # a query that only DuckDB understands
            self._scopes = {}

    def of_column(self, column: exp.Column) -> DataType | None:
        """The type of a column of a table; None if it is something else."""
        found = self._resolve(column)
        return found if isinstance(found, DataType) else None

    def digits(self, node: exp.Expr | None, depth: int = 0) -> Digits | None:
        """The digits of an expression that is a decimal; None if it is something else."""
        if node is None or depth > _DEEPEST:
            return None
        found = self._kind(node, depth)
        return found if isinstance(found, Digits) else None

    def as_digits(self, node: exp.Expr) -> Digits | None:
        """The digits of a decimal, or of an integer that is combined with one."""
        return _exact(node, self._kind(node, 0))

    # --- names ------------------------------------------------------------------------------------

    def _scope(self, node: exp.Expr) -> Scope | None:
        parent: exp.Expr | None = node
        while parent is not None:
            scope = self._scopes.get(id(parent))
            if scope is not None:
                return scope
            parent = parent.parent
        return None

    def _resolve(self, column: exp.Column) -> DataType | exp.Expr | None:
        """The type of a table column, or the expression behind a column of a derived table."""
        scope = self._scope(column)
        while scope is not None:
            for name, source in scope.sources.items():
                if column.table and name.lower() != column.table.lower():
                    continue
                found = self._in_source(source, column.name)
                if found is not None:
                    return found
            scope = scope.parent
        return None

    def _in_source(self, source: exp.Expr | Scope, name: str) -> DataType | exp.Expr | None:
        if isinstance(source, Scope):
            return self._in_query(source.expression, name)
        if isinstance(source, exp.Table):
            for field in self._tables.get(source.name, ()):
                if field.name.lower() == name.lower():
                    return field.type
        return None

    def _in_query(self, tree: exp.Expr, name: str) -> DataType | exp.Expr | None:
        while isinstance(tree, exp.SetOperation):
            tree = tree.left
        if not isinstance(tree, exp.Select):
            return None
        for output in tree.expressions:
            if output.alias_or_name.lower() == name.lower():
                named: exp.Expr = output.unalias()
                return named
        is_open = any(isinstance(output, exp.Star) for output in tree.expressions)
        inner = self._scopes.get(id(tree))
        for below in inner.sources.values() if is_open and inner is not None else ():
            found = self._in_source(below, name)
            if found is not None:
                return found
        return None

    # --- kinds ------------------------------------------------------------------------------------

    def _kind(self, node: exp.Expr, depth: int) -> Digits | str | None:  # noqa: C901, PLR0912 - a list
        """Digits of a decimal, the name of an integer type, or None."""
        deeper = depth + 1
        match node:
            case exp.Paren() | exp.Neg() | exp.Min() | exp.Max() | exp.Alias():
                return self._kind(node.this, deeper) if deeper < _DEEPEST else None
            case exp.Anonymous():
                return self._function(node, deeper)
            case exp.Round() | exp.Ceil() | exp.Floor():
                return self._rounded(node, deeper)
            case exp.IntDiv():
                return "BIGINT"
            case exp.Grouping():
                return "TINYINT"
            case exp.Lag() | exp.Lead() | exp.NthValue() | exp.Nullif():
                return self._kind(node.this, deeper)
            case exp.Mod():
                return self._arithmetic(node, deeper)
            case exp.Subquery(this=exp.Select(expressions=[output])):
                return self._kind(output, deeper)
            case exp.Literal() if node.is_number:
                return _literal(node.name)
            case exp.Column():
                found = self._resolve(node)
                if isinstance(found, exp.Expr):
                    return self._kind(found, deeper) if deeper < _DEEPEST else None
                return _of_type(found)
            case exp.Cast() | exp.TryCast():
                return _of_cast(node.to)
            case exp.Add() | exp.Sub() | exp.Mul() | exp.Div():
                return self._arithmetic(node, deeper)
            case exp.Sum():
                inner = self._kind(_argument(node), deeper)
                if isinstance(inner, Digits):
                    return Digits.bounded(inner.precision + 10, inner.scale)
                return "BIGINT" if inner else None
            case exp.Avg():
                average = self.digits(_argument(node), deeper)
                return None if average is None else averaged(average)
            case exp.Count():
                return "BIGINT"
            case exp.Window():
                return self._kind(node.this, deeper)
            case exp.Filter():
                return self._kind(node.this, deeper)
            case exp.Case():
                branches = [branch.args["true"] for branch in node.args.get("ifs", ())]
                return self._widest([*branches, node.args.get("default")], deeper)
            case exp.If():
                return self._widest([node.args.get("true"), node.args.get("false")], deeper)
            case exp.Coalesce():
                return self._widest([node.this, *node.expressions], deeper)
            case _:
                return None

    def _arithmetic(self, node: exp.Binary, depth: int) -> Digits | str | None:
        kinds = [self._kind(part, depth) for part in (node.this, node.expression)]
        if None in kinds:
            return None
        if not any(isinstance(kind, Digits) for kind in kinds):
            return None if isinstance(node, exp.Div) else _widest_integer(map(str, kinds))
        # Kinds are not looked up again: a chain of n sums would take 2**n steps.
        a, b = map(_exact, (node.this, node.expression), kinds)
        if a is None or b is None:
            return None
        match node:
            case exp.Mul():
                return Digits.adjusted(a.precision + b.precision + 1, a.scale + b.scale)
            case exp.Div():
                return divided(a, b)
            case exp.Mod():
                scale = max(a.scale, b.scale)
                return Digits(min(a.precision - a.scale, b.precision - b.scale) + scale, scale)
            case _:
                scale = max(a.scale, b.scale)
                whole = max(a.precision - a.scale, b.precision - b.scale)
                return Digits.adjusted(whole + scale + 1, scale)

    def _function(self, node: exp.Anonymous, depth: int) -> Digits | str | None:
        name, arguments = node.name.lower(), node.expressions
        if name in _SAME_AS_FIRST and arguments:
            return self._kind(arguments[0], depth)
        if name in _WIDEST:
            return self._widest(arguments, depth)
        if name in ("datediff", "date_diff") and len(arguments) == 3:
            return "BIGINT"
        if name == "nvl2":
            return self._widest(arguments[1:], depth)
        return _RESULTS.get(name)

    def _rounded(self, node: exp.Expr, depth: int) -> Digits | str | None:
        kind = self._kind(node.this, depth)
        if isinstance(kind, str):
            return kind if isinstance(node, exp.Round) else "BIGINT"
        places = _places(node.args.get("decimals"))
        if kind is None or places is None:
            return None
        whole = kind.precision - kind.scale + 1
        if not isinstance(node, exp.Round):
            return Digits.bounded(whole, 0)
        if places < 0:
            return Digits.bounded(max(whole, 1 - places), 0)
        scale = min(kind.scale, places)
        return Digits.bounded(whole + scale, scale)

    def is_nested(self, node: exp.Expr) -> bool:
        """Whether an expression is certainly an array, a struct or a map."""
        if isinstance(node, exp.Column):
            found = self._resolve(node)
            if isinstance(found, exp.Expr):
                return not isinstance(found, exp.Column) and self.is_nested(found)
            return isinstance(found, ArrayType | RowType | MapType)
        return self.is_array(node) or isinstance(node, exp.Struct | exp.Map)

    def is_array(self, node: exp.Expr, seen: frozenset[int] = frozenset()) -> bool:
        """Whether an expression is certainly an array.

        Args:
            node: The expression.
            seen: Expressions that led here: a CTE may have the name of a table inside of it.
        """
        parts: list[exp.Expr] = []
        match node:
            case exp.Column():
                found = self._resolve(node)
                if not isinstance(found, exp.Expr):
                    return isinstance(found, ArrayType)
                if id(found) in seen or isinstance(found, exp.Column):
                    return False
                return self.is_array(found, seen | {id(found)})
            case exp.Paren():
                parts = [node.this]
            case exp.Anonymous() if node.name.lower() in ("concat", "reverse", "coalesce"):
                parts = node.expressions
            case exp.DPipe():
                parts = [node.this, node.expression]
            case exp.Coalesce():
                parts = [node.this, *node.expressions]
            case exp.Anonymous():
                return node.name.lower() in _ARRAYS
            case _:
                return isinstance(node, exp.Array | exp.Transform)
        return any(self.is_array(part, seen) for part in parts)

    def is_bytes(self, node: exp.Expr) -> bool:
        """Whether an expression is certainly binary."""
        root = self.root(node)
        if isinstance(node, exp.Anonymous):
            return node.name.lower() in _BYTES
        return isinstance(node, exp.HexString) or root in (TypeRoot.BINARY, TypeRoot.VARBINARY)

    def root(self, node: exp.Expr, depth: int = 0) -> TypeRoot | None:
        """What kind of value it is, where that is certain: a DATE, a FLOAT, a text, ..."""
        match node:
            case exp.Paren() | exp.Neg() | exp.Min() | exp.Max():
                return self.root(node.this, depth)
            case exp.Column():
                found = self._resolve(node)
                if isinstance(found, exp.Expr):
                    return self.root(found, depth + 1) if depth < _DEEPEST else None
                return found.root if isinstance(found, AtomicType) else None
            case exp.Literal() if node.is_string:
                return TypeRoot.VARCHAR
            case exp.Cast() | exp.TryCast():
                return _ROOTS.get(node.to.this)
            case exp.CurrentDate():
                return TypeRoot.DATE
            case exp.CurrentTimestamp():
                return TypeRoot.TIMESTAMP_LTZ
            case exp.Anonymous():
                return TypeRoot.DATE if node.name.lower() in _DATES else None
            case _:
                return None

    def integer(self, node: exp.Expr) -> str | None:
        """The name of the type of an expression that is an integer."""
        found = self._kind(node, 0)
        return found if isinstance(found, str) else None

    def _widest(self, parts: Sequence[exp.Expr | None], depth: int) -> Digits | str | None:
        given = (part for part in parts if part is not None and not isinstance(part, exp.Null))
        kinds = [self._kind(part, depth) for part in given]
        if not kinds or None in kinds:
            return None
        if not any(isinstance(kind, Digits) for kind in kinds):
            return _widest_integer(map(str, kinds))
        exact = [
            kind if isinstance(kind, Digits) else Digits(_DIGITS[TypeRoot(str(kind))], 0)
            for kind in kinds
        ]
        scale = max(d.scale for d in exact)
        whole = max(d.precision - d.scale for d in exact)
        return Digits.bounded(whole + scale, scale)


def _exact(node: exp.Expr, kind: Digits | str | None) -> Digits | None:
    """The digits of a number of a kind, where it is combined with a decimal."""
    inner = node
    while isinstance(inner, exp.Paren | exp.Neg):
        inner = inner.this
    if isinstance(inner, exp.Literal) and inner.is_int:
        return Digits(len(inner.name.lstrip("0")) or 1, 0)
    return Digits(_DIGITS[TypeRoot(kind)], 0) if isinstance(kind, str) else kind


def _places(node: exp.Expr | None) -> int | None:
    """The number of digits in a call of round; None if it is not written as a number."""
    match node:
        case None:
            return 0
        case exp.Literal() if node.is_int:
            return int(node.name)
        case exp.Neg(this=exp.Literal() as literal) if literal.is_int:
            return -int(literal.name)
        case _:
            return None


def _widest_integer(kinds: Iterable[str]) -> str:
    return max(kinds, key=lambda kind: _DIGITS[TypeRoot(kind)])


def _argument(node: exp.Expr) -> exp.Expr:
    inner: exp.Expr = node.this
    if isinstance(inner, exp.Distinct) and len(inner.expressions) == 1:
        distinct: exp.Expr = inner.expressions[0]
        return distinct
    return inner


def _literal(text: str) -> Digits | str | None:
    whole, dot, fraction = text.partition(".")
    if not (whole + fraction).isdigit():
        return None  # an exponent: a DOUBLE
    if not dot:
        return "INT" if len(whole) < 10 else "BIGINT"
    return Digits(max(len(whole.lstrip("0")) + len(fraction), len(fraction), 1), len(fraction))


def _of_type(found: DataType | None) -> Digits | str | None:
    if not isinstance(found, AtomicType):
        return None
    if found.root is TypeRoot.DECIMAL:
        return Digits(found.precision, found.scale)
    return found.root.value if found.root in _DIGITS else None


def _of_cast(to: exp.DataType) -> Digits | str | None:
    if to.this == exp.DType.DECIMAL:
        sizes = [int(part.name) for part in to.expressions]
        precision, scale = (*sizes, 0)[:2] if sizes else (10, 0)
        return Digits(precision, scale)
    return _INTEGERS.get(to.this)
