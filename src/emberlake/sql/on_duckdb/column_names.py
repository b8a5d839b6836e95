"""Names of columns that a query does not name: Spark calls them as it writes the expression."""

from collections.abc import Iterable
from typing import Final

from sqlglot import exp
from sqlglot.dialects.spark import Spark

_OPERATORS: Final = {
    exp.Add: "+",
    exp.Sub: "-",
    exp.Mul: "*",
    exp.Div: "/",
    exp.Mod: "%",
    exp.IntDiv: "div",
    exp.And: "AND",
    exp.Or: "OR",
    exp.EQ: "=",
    exp.LT: "<",
    exp.LTE: "<=",
    exp.GT: ">",
    exp.GTE: ">=",
    exp.NullSafeEQ: "<=>",
    exp.BitwiseAnd: "&",
    exp.BitwiseOr: "|",
    exp.BitwiseXor: "^",
}
_CALLED: Final = {exp.Coalesce: "coalesce", exp.If: "if", exp.Nullif: "nullif"}
_UNNAMED: Final = (
    exp.Alias,
    exp.Aliases,
    exp.Column,
    exp.Star,
    exp.Dot,
    exp.Explode,
    exp.ExplodeOuter,
    exp.Posexplode,
    exp.PosexplodeOuter,
    exp.Inline,
)


def name_columns(tree: exp.Expr) -> None:
    """Give a name to each column of a query, and of those inside it, that has none."""
    for select in tree.find_all(exp.Select):
        for output in select.expressions:
            name = _name(output)
            if name is not None:
                alias = exp.to_identifier(name, quoted=True)
                output.replace(exp.Alias(this=output.copy(), alias=alias))


def _name(output: exp.Expr) -> str | None:
    match output:
        case exp.Explode() | exp.ExplodeOuter():
            return "col"
        case exp.Column(this=exp.Identifier()):
            return output.name
        case exp.TryCast(this=exp.Column() as column):
            return column.name
        case _:
            return None if isinstance(output, _UNNAMED) else written(output)


def written(node: exp.Expr) -> str:  # noqa: C901, PLR0912 - a list
    """An expression as Spark writes it in a name."""
    match node:
        case exp.Literal():
            return str(node.this)
        case exp.Boolean():
            return "true" if node.this else "false"
        case exp.Null():
            return "NULL"
        case exp.Column() | exp.Identifier():
            return node.name
        case exp.Paren():
            return written(node.this)
        case exp.Binary() if type(node) in _OPERATORS:
            sides = written(node.this), _OPERATORS[type(node)], written(node.expression)
            return f"({' '.join(sides)})"
        case exp.NEQ():
            return f"(NOT ({written(node.this)} = {written(node.expression)}))"
        case exp.Neg(this=exp.Literal()):
            return f"-{written(node.this)}"
        case exp.Neg():
            return f"(- {written(node.this)})"
        case exp.Not(this=exp.Is() as test):
            return f"({written(test.this)} IS NOT {written(test.expression)})"
        case exp.Not():
            return f"(NOT {written(node.this)})"
        case exp.Is():
            return f"({written(node.this)} IS {written(node.expression)})"
        case exp.In() if node.expressions:
            return f"({written(node.this)} IN ({_listed(node.expressions)}))"
        case exp.Between():
            return _call("between", [node.this, node.args["low"], node.args["high"]])
        case exp.Like():
            return f"{written(node.this)} LIKE {written(node.expression)}"
        case exp.DPipe():
            return f"concat({written(node.this)}, {written(node.expression)})"
        case exp.TryCast(this=exp.Literal() as literal) if literal.is_number:
            return written(literal)  # 1L
        case exp.TryCast():
            kind = node.to.sql(Spark).upper()
            name = "TRY_CAST" if node.args.get("safe") else "CAST"
            return f"{name}({written(node.this)} AS {kind})"
        case exp.Case():
            return _case(node)
        case exp.Bracket(expressions=[key]):
            return f"{written(node.this)}[{written(key)}]"
        case exp.Subquery():
            return "scalarsubquery()"
        case exp.Count(this=exp.Star()):
            return "count(1)"
        case exp.Distinct():
            return f"DISTINCT {_listed(node.expressions)}"
        case exp.Star():
            return "1"
        case exp.Anonymous():
            return _call(node.name.lower(), node.expressions)
        case exp.If():
            return _call("if", [node.this, node.args["true"], node.args.get("false")])
        case exp.Count() | exp.Sum() | exp.Avg() | exp.Min() | exp.Max() | exp.First() | exp.Last():
            return _call(node.meta.get("name", node.key), [node.this, *node.expressions])
        case exp.Coalesce() | exp.Nullif():
            rest = node.expressions or [node.args.get("expression")]
            return _call(_CALLED[type(node)], [node.this, *rest])
        case exp.Array():
            return _call("array", node.expressions)
        case exp.Round() | exp.Ceil() | exp.Floor():
            default = exp.Literal.number(0) if isinstance(node, exp.Round) else None
            places = node.args.get("decimals") or default
            return _call(node.key.upper() if default is None else node.key, [node.this, places])
        case _:
            return str(node.sql(Spark, normalize_functions="lower"))


def _call(name: str, arguments: Iterable[exp.Expr | None]) -> str:
    given = [argument for argument in arguments if argument is not None]
    if given and isinstance(given[0], exp.Distinct):
        return f"{name}(DISTINCT {_listed([*given[0].expressions, *given[1:]])})"
    return f"{name}({_listed(given)})"


def _listed(nodes: Iterable[exp.Expr]) -> str:
    return ", ".join(map(written, nodes))


def _case(node: exp.Case) -> str:
    said = [f" {written(node.this)}"] if node.args.get("this") else []
    said += [
        f" WHEN {written(branch.this)} THEN {written(branch.args['true'])}"
        for branch in node.args.get("ifs", ())
    ]
    default = node.args.get("default")
    said += [f" ELSE {written(default)}"] if default is not None else []
    return f"CASE{''.join(said)} END"
