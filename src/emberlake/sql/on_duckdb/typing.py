"""The types that expressions of a query have in Spark, from the tables that its names are bound to.

Only what changes the meaning of an expression is worked out: which column a name refers to, and the
precision of decimals. The type of everything else is unknown.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from sqlglot import exp
from sqlglot.errors import SqlglotError
from sqlglot.optimizer.scope import Scope, traverse_scope

from emberlake.types import AtomicType, DataField, DataType, TypeRoot

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
        return self._exact(node, 0)

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
            return None if isinstance(node, exp.Div) else str(kinds[0])
        a, b = (self._exact(part, depth) for part in (node.this, node.expression))
        if a is None or b is None:
            return None
        match node:
            case exp.Mul():
                return Digits.adjusted(a.precision + b.precision + 1, a.scale + b.scale)
            case exp.Div():
                return divided(a, b)
            case _:
                scale = max(a.scale, b.scale)
                whole = max(a.precision - a.scale, b.precision - b.scale)
                return Digits.adjusted(whole + scale + 1, scale)

    def _exact(self, node: exp.Expr, depth: int) -> Digits | None:
        inner = node
        while isinstance(inner, exp.Paren | exp.Neg):
            inner = inner.this
        if isinstance(inner, exp.Literal) and inner.is_int:
            return Digits(len(inner.name.lstrip("0")) or 1, 0)
        kind = self._kind(node, depth)
        return Digits(_DIGITS[TypeRoot(kind)], 0) if isinstance(kind, str) else kind

    def _widest(self, parts: Sequence[exp.Expr | None], depth: int) -> Digits | str | None:
        kinds = [
            (self._kind(part, depth), self._exact(part, depth))
            for part in parts
            if part is not None and not isinstance(part, exp.Null)
        ]
        if not kinds or any(kind is None for kind, _ in kinds):
            return None
        if not any(isinstance(kind, Digits) for kind, _ in kinds):
            return kinds[0][0]
        exact = [digits for _, digits in kinds if digits is not None]
        scale = max(d.scale for d in exact)
        whole = max(d.precision - d.scale for d in exact)
        return Digits.bounded(whole + scale, scale)


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
