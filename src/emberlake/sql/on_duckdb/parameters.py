"""Parameters of a statement: ``:name`` stands for a value that is given separately."""

from collections.abc import Mapping
from typing import Any

from sqlglot import exp

from emberlake.errors import InvalidSql


def bind_parameters(tree: exp.Expr, args: Mapping[str, Any]) -> exp.Expr:
    """The tree with literals instead of parameters; values never become part of the text.

    Raises:
        InvalidSql: a parameter has no value, or a value that cannot be a literal.
    """

    def bind(node: exp.Expr) -> exp.Expr:
        if not isinstance(node, exp.Placeholder | exp.Parameter):
            return node
        name = node.name
        if not name or name not in args:
            raise InvalidSql(f"[UNBOUND_SQL_PARAMETER] the parameter :{name} has no value in args")
        value = args[name]
        if isinstance(value, float):  # a number that is written is a DECIMAL
            return exp.TryCast(
                this=exp.Literal.string(repr(value)), to=exp.DataType.build("double")
            )
        try:
            return exp.convert(value, copy=True)
        except ValueError as error:
            raise InvalidSql(f"the parameter :{name} cannot be a {type(value)}") from error

    has_some = any(True for _ in tree.find_all(exp.Placeholder, exp.Parameter))
    return tree.transform(bind) if has_some else tree
