"""Arguments of macros that are computed once, although the macro repeats them.

DuckDB puts an argument wherever a macro names it. Macros inside of macros would grow without limit,
and a random number would be another one at each place. Such an argument becomes the parameter of a
lambda: ``list_transform([argument], lambda v: macro(v))[1]``.
"""

import re
from collections import Counter
from functools import cache
from typing import Final

from sqlglot import exp

from emberlake.sql.on_duckdb.calls import call
from emberlake.sql.on_duckdb.macros import MACROS
from emberlake.sql.on_duckdb.spark_functions import words

_LARGEST: Final = 2000  # places of one argument, macros in macros counted
_PARAMETER: Final = "v"
_VOLATILE: Final = words("random spark_uuid")
_PLAIN: Final = (exp.Literal, exp.Null, exp.Boolean, exp.Interval, exp.Cast, exp.Neg)
_PIECE: Final = re.compile(r"'[^']*'|\((?:\w+(?: VARCHAR)?(?:, )?)*\) AS\s|\w*\(|\)|\w+")


def bound_once(tree: exp.Expr) -> exp.Expr:
    """The query, in which no macro repeats an argument that is large, volatile or a subquery."""
    nodes = list(tree.dfs())
    sizes: dict[int, int] = {}
    singular: set[int] = set()  # what has to be computed once
    kept = []  # so that no other node gets the same id
    for node in reversed(nodes):  # inner ones first
        parts = list(node.iter_expressions())
        if any(id(part) in singular for part in parts) or _is_singular(node):
            singular.add(id(node))
        counts = _counts(node)
        arguments = list(zip(node.expressions, counts, strict=False))
        places = [count * sizes[id(value)] for value, count in arguments]
        large = [
            count > 1 and not _is_constant(value) and (size > _LARGEST or id(value) in singular)
            for (value, count), size in zip(arguments, places, strict=True)
        ]
        if not any(large):
            sizes[id(node)] = sum(places) if counts else 1 + sum(sizes[id(p)] for p in parts)
            continue
        new = _bound(node)
        kept.append(new)
        sizes[id(new)] = 1 + sum(sizes[id(value)] for value in node.expressions)
        if id(node) in singular:
            singular.add(id(new))
        if node is tree:
            tree = new
        node.replace(new)
    return tree


def _is_singular(node: exp.Expr) -> bool:
    is_volatile = isinstance(node, exp.Anonymous) and node.name.lower() in _VOLATILE
    return is_volatile or isinstance(node, exp.Subquery | exp.Exists)


def _bound(node: exp.Expr) -> exp.Expr:
    """The call of a macro in a lambda, whose parameter holds the arguments."""
    held: list[exp.Expr] = []
    given: list[exp.Expr] = []
    for value in node.expressions:
        if _is_constant(value):
            given.append(value.copy())
            continue
        held.append(value)
        place = exp.Literal.number(len(held))
        given.append(call("struct_extract", exp.column(_PARAMETER), place))
    packed = call("row", *(value.copy() for value in held))
    body = exp.Lambda(
        this=call(node.name, *given), expressions=[exp.to_identifier(_PARAMETER, quoted=True)]
    )
    rows = call("list_transform", exp.Array(expressions=[packed]), body)
    return call("list_extract", rows, exp.Literal.number(1))


def _is_constant(value: exp.Expr) -> bool:
    return isinstance(value, _PLAIN) and not any(
        value.find_all(exp.Column, exp.Func, exp.Query, exp.Identifier)
    )


def _counts(node: exp.Expr) -> list[int]:
    """How often a macro names each of its arguments; nothing if it is no macro."""
    if not isinstance(node, exp.Anonymous) or not node.name.startswith("spark_"):
        return []
    if any(isinstance(value, exp.Lambda) for value in node.expressions):
        return []  # a function is no value
    found = _repeats(node.name.removeprefix("spark_"))
    return list(found.get(len(node.expressions), ()))


@cache
def _repeats(name: str) -> dict[int, tuple[int, ...]]:
    """How often a macro names its parameters, by their number; macros that it calls counted."""
    found: dict[int, tuple[int, ...]] = {}
    parameters: list[str] = []
    seen: Counter[str] = Counter()
    around = [1]
    for piece in _PIECE.findall(MACROS.get(name, "")):
        if len(around) == 1 and piece.startswith("(") and piece.rstrip().endswith(" AS"):
            header = piece[1 : piece.index(")")]
            parameters = [part.split()[0] for part in header.split(", ") if part]
            seen = Counter()
        elif piece.endswith("("):
            inner = _repeats(piece[:-1].removeprefix("spark_")) if piece[:6] == "spark_" else {}
            most = max((max(counts, default=1) for counts in inner.values()), default=1)
            around.append(around[-1] * max(most, 1))
        elif piece == ")":
            around.pop()
        elif piece in parameters:
            seen[piece] += around[-1]
        found[len(parameters)] = tuple(seen[parameter] for parameter in parameters)
    return found
