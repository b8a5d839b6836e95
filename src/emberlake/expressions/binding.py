"""Tie expressions to columns, and find their types, before any row is read.

Names are looked up in sources, each a set of columns with an alias: an update has one, a merge two.
A comparison of a column with literals becomes the test that a filter would make, so that a
condition selects exactly the rows that a read with it returns; the others follow Spark's ANSI mode.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import pyarrow as pa

from emberlake.errors import (
    ColumnNotFound,
    InvalidExpression,
    InvalidInput,
    with_context,
)
from emberlake.expressions.coercion import STRING, assignment_problem, is_boolean
from emberlake.expressions.constants import constant_of
from emberlake.expressions.functions import apply, cast, explicit_cast
from emberlake.expressions.parser import parse_expression
from emberlake.expressions.scope import Scope
from emberlake.expressions.syntax import Call, CastTo, Lit, Name, Node, Written
from emberlake.expressions.typed import (
    BOOLEAN,
    UNTYPED_NULL,
    Column,
    Constant,
    Test,
    Typed,
)
from emberlake.predicates import Leaf, Op, Predicate
from emberlake.predicates.builder import Target
from emberlake.predicates.lexer import TEMPORAL_ROOTS, Temporal, WrittenNumber
from emberlake.spec.literals import cast_literal
from emberlake.spec.values import to_arrow_scalar
from emberlake.types import AtomicType, DataField, DataType, arrow_type

_OPS: Final = {
    "=": Op.EQUAL,
    "<>": Op.NOT_EQUAL,
    "<": Op.LESS_THAN,
    "<=": Op.LESS_OR_EQUAL,
    ">": Op.GREATER_THAN,
    ">=": Op.GREATER_OR_EQUAL,
}
_REVERSED: Final = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}
_CONDITIONS: Final = frozenset(
    {*_OPS, "AND", "OR", "NOT", "IS NULL", "BETWEEN", "IN", "LIKE", "ILIKE"}
)


@dataclass(frozen=True)
class Expression:
    """A typed expression together with its text, for messages."""

    typed: Typed
    text: str

    @property
    def type(self) -> DataType | None:
        """The type of its values; None for a NULL."""
        return self.typed.type


def bind_condition(text: str, scope: Scope) -> Expression:
    """A condition on rows.

    Raises:
        InvalidExpression: the text is not an expression, or its type is not BOOLEAN.
        ColumnNotFound: it names a column that does not exist.
    """
    if not isinstance(text, str):
        raise InvalidExpression(f"a condition is text, not {text!r}")
    bound = _bound(text, scope, _condition)
    if bound.type is not None and not is_boolean(bound.type):
        raise InvalidExpression(f"a condition is true or false, but {text!r} is {bound.type}")
    return Expression(cast(bound, BOOLEAN), text)


def bind_expression(text: str, scope: Scope) -> Expression:
    """An expression with the type that it has by itself."""
    return Expression(_bound(text, scope, _bind), text)


def _bound(text: str, scope: Scope, bind: Callable[[Node, Scope], Typed]) -> Typed:
    node = parse_expression(text)
    try:
        return bind(node, scope)
    except (InvalidInput, ColumnNotFound) as error:
        raise with_context(error, f"in {text!r}") from error


def equality(left: Column, right: Column) -> Typed:
    """Whether two columns are equal.

    Raises:
        InvalidExpression: their types cannot be compared.
    """
    return apply("=", [left, right])


def bind_assignment(value: object, field: DataField, scope: Scope) -> Expression:
    """The new value of a column: an expression if it is text, otherwise the value itself.

    Raises:
        InvalidExpression: it does not fit the column.
        ColumnNotFound: it names a column that does not exist.
    """
    if not isinstance(value, str):
        return _bind_value(value.value if isinstance(value, Lit) else value, field)
    try:
        typed = bind_expression(value, scope).typed
    except ColumnNotFound as error:
        if error.column != value.strip():
            raise
        meant = f'{error}; text is given as lit("{value}")'
        raise ColumnNotFound(meant, column=error.column) from error
    if typed.type is None and not field.type.nullable:
        raise InvalidExpression(f"{field.name} is NOT NULL, but is set to NULL")
    if typed.type is not None:
        problem = assignment_problem(typed.type, field.type)
        if problem is not None:
            raise InvalidExpression(
                f"{value!r} does not fit {field}: {problem}{_hint(value, typed)}"
            )
    return Expression(_stored_as(typed, field.type), value)


def _stored_as(typed: Typed, target: DataType) -> Typed:
    is_cast = isinstance(target, AtomicType) and not (target.root.is_text or target.root.is_bytes)
    # A cast would cut off what is too long; the writer refuses it. It also knows fields by name.
    return cast(typed, target) if is_cast or typed.type is None else typed


def _hint(text: str, typed: Typed) -> str:
    if isinstance(typed, Constant) and typed.type == STRING:
        return f"; a value is given as lit({text.strip()})"
    return ""


def _bind_value(value: object, field: DataField) -> Expression:
    text = repr(value.as_py() if isinstance(value, pa.Scalar) else value)
    is_null = value is None or (isinstance(value, pa.Scalar) and not value.is_valid)
    if is_null and not field.type.nullable:
        raise InvalidExpression(f"{field.name} is NOT NULL, but is set to null")
    plain = field.type.with_nullable(True)
    try:
        if isinstance(plain, AtomicType) and not plain.root.is_opaque:
            scalar = to_arrow_scalar(plain, cast_literal(plain, value))
        else:
            raw = value.as_py() if isinstance(value, pa.Scalar) else value
            scalar = pa.scalar(raw, arrow_type(plain))
    except (InvalidInput, pa.ArrowInvalid, pa.ArrowTypeError, TypeError) as error:
        raise InvalidExpression(f"{text:.80} does not fit {field}: {error}") from error
    return Expression(Constant(scalar, plain), text)


# --- nodes ----------------------------------------------------------------------------------------


def _bind(node: Node, scope: Scope) -> Typed:
    match node:
        case Name(parts):
            return scope.resolve(parts)
        case Written(value):
            return constant_of(value)
        case CastTo(inner, target):
            return explicit_cast(_bind(inner, scope), target)
        case Call(function) if function in _CONDITIONS:
            return _bind_test(node, scope, negated=False)
        case Call("NULLIF", args):
            return _nullif(args, scope)
        case Call("CASE" | "IF" as function, args):
            last = len(args) - 1
            bound = [
                _bind(arg, scope) if place % 2 or place == last else _condition(arg, scope)
                for place, arg in enumerate(args)
            ]
            return apply(function, bound)
        case Call(function, args):
            return apply(function, [_bind(arg, scope) for arg in args])


def _nullif(args: tuple[Node, ...], scope: Scope) -> Typed:
    if len(args) != 2:
        raise InvalidExpression(f"NULLIF takes 2 arguments, not {len(args)}")
    return apply("CASE", [_bind(Call("=", args, 0), scope), UNTYPED_NULL, _bind(args[0], scope)])


def _condition(node: Node, scope: Scope, *, negated: bool = False) -> Typed:
    """A condition, or its complement; NOT is resolved here, with SQL's rules for null."""
    if isinstance(node, Call) and node.function in _CONDITIONS:
        return _bind_test(node, scope, negated=negated)
    bound = _bind(node, scope)
    if isinstance(bound, Column) and is_boolean(bound.type):
        target = _target(bound)
        value = True
        made = target.not_compare(Op.EQUAL, value) if negated else target.compare(Op.EQUAL, value)
        return Test(bound.source, _leaf(made))
    return apply("NOT", [bound]) if negated else bound


def _bind_test(node: Call, scope: Scope, *, negated: bool) -> Typed:
    function, args = node.function, node.args
    match function:
        case "NOT":
            return _condition(args[0], scope, negated=not negated)
        case "AND" | "OR":
            joined = ("OR" if function == "AND" else "AND") if negated else function
            return apply(joined, [_condition(arg, scope, negated=negated) for arg in args])
        case "BETWEEN" if (test := _between(args, scope, negated=negated)) is not None:
            return test
        case "BETWEEN":
            value, low_node, high_node = args
            parts = (
                Call(">=", (value, low_node), node.position),
                Call("<=", (value, high_node), node.position),
            )
            return _bind_test(Call("AND", parts, node.position), scope, negated=negated)
        case "IN":
            return _bind_in(node, scope, negated=negated)
        case _:
            return _bind_single(node, scope, negated=negated)


def _between(args: tuple[Node, ...], scope: Scope, *, negated: bool) -> Test | None:
    found = _column_and_literals(args, scope)
    if found is None:
        return None
    column, (low, high) = found
    target = _target(column)
    return _test(column, target.not_between(low, high) if negated else target.between(low, high))


def _bind_in(node: Call, scope: Scope, *, negated: bool) -> Typed:
    found = _column_and_literals(node.args, scope)
    if found is not None:
        column, literals = found
        target = _target(column)
        made = target.is_not_in(literals) if negated else target.is_in(literals)
        if (test := _test(column, made)) is not None:
            return test
    value, *choices_ = node.args
    if not choices_:
        return Constant(pa.scalar(negated), BOOLEAN)
    tests = tuple(Call("=", (value, choice), node.position) for choice in choices_)
    joined = tests[0] if len(tests) == 1 else Call("OR", tests, node.position)
    return _condition(joined, scope, negated=negated)


def _bind_single(node: Call, scope: Scope, *, negated: bool) -> Typed:
    """A comparison, a pattern or a test for null."""
    function, args = node.function, node.args
    if function in _REVERSED and isinstance(args[0], Written):
        function, args = _REVERSED[function], args[::-1]
    elif function in ("=", "<>") and isinstance(args[0], Written):
        args = args[::-1]
    bound = _bind(args[0], scope)
    if isinstance(bound, Column) and function == "IS NULL":
        return Test(bound.source, _target(bound).leaf(Op.IS_NOT_NULL if negated else Op.IS_NULL))
    found = _column_and_literals(args, scope)
    if found is not None and (test := _compared(function, *found, negated=negated)) is not None:
        return test
    made = apply(function, [bound, *(_bind(arg, scope) for arg in args[1:])])
    return apply("NOT", [made]) if negated else made


def _compared(
    function: str, column: Column, literals: list[object], *, negated: bool
) -> Test | None:
    target, literal = _target(column), literals[0]
    if function in _OPS:
        op = _OPS[function]
        return _test(column, (target.not_compare if negated else target.compare)(op, literal))
    if function == "LIKE":
        return _test(column, target.not_like(literal) if negated else target.like(literal))
    return None


def _column_and_literals(
    args: tuple[Node, ...], scope: Scope
) -> tuple[Column, list[object]] | None:
    """A column that can be compared, and literals; None if the arguments are something else."""
    first, *rest = args
    if not isinstance(first, Name) or not rest:
        return None
    column = scope.resolve(first.parts)
    if not isinstance(column.type, AtomicType) or column.type.root.is_opaque:
        return None
    literals: list[object] = []
    for arg in rest:
        if not isinstance(arg, Written) or arg.value is None:
            return None
        literals.append(_plain(arg.value, column.type))
    return column, literals


def _plain(value: object, target: AtomicType) -> object:
    if isinstance(value, WrittenNumber):
        return value.value
    if not isinstance(value, Temporal):
        return value
    if target.root not in TEMPORAL_ROOTS[value.word]:
        raise InvalidExpression(f"{target} is not comparable with {value.word} {value.text!r}")
    return value.text


def _target(column: Column) -> Target:
    return Target(column.field, column.path, column.type)


def _test(column: Column, made: Predicate) -> Test | None:
    """The test of a filter; None if that is false where SQL says unknown.

    A literal that the column cannot hold makes a filter that no row passes, or every row that has
    a value. For selecting rows that is the same, but not for asking whether a value is unknown.
    """
    leaf = _leaf(made)
    is_known = leaf.op is Op.IS_NOT_NULL or (leaf.op is Op.IN and not leaf.literals)
    return None if is_known else Test(column.source, leaf)


def _leaf(made: Predicate) -> Leaf:
    assert isinstance(made, Leaf)
    return made
