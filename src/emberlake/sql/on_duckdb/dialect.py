"""Spark's SQL in, DuckDB's SQL out, by sqlglot; where the two differ, rules of our own."""

from contextlib import suppress
from typing import Final

import sqlglot
from sqlglot import exp
from sqlglot.dialects.duckdb import DuckDB
from sqlglot.dialects.spark import Spark
from sqlglot.errors import ErrorLevel, SqlglotError
from sqlglot.parsers.spark import SparkParser
from sqlglot.tokenizer_core import TokenType

from emberlake.errors import InvalidSql, Unsupported
from emberlake.sql.on_duckdb.binding import bound_once
from emberlake.sql.on_duckdb.calls import call, converted, own_call
from emberlake.sql.on_duckdb.clauses import grouped, interval, is_of_days
from emberlake.sql.on_duckdb.functions import cast, joined, translated
from emberlake.sql.on_duckdb.laterals import as_subquery, or_one_null, without_views
from emberlake.sql.on_duckdb.list_functions import item, with_place
from emberlake.sql.on_duckdb.spark_functions import words
from emberlake.sql.on_duckdb.spelling import (
    with_plain_travel,
    with_quoted_words,
    with_selects,
    with_travelled_options,
)
from emberlake.sql.on_duckdb.time_functions import field_of, tried

_PARSED: Final = words(
    """ANY_VALUE ARRAY AVG CEIL CEILING COALESCE COUNT CUBE CURDATE CURRENT_CATALOG CURRENT_DATABASE
    CURRENT_DATE CURRENT_SCHEMA CURRENT_TIMESTAMP DIV EXPLODE EXPLODE_OUTER FIRST FIRST_VALUE FLOOR
    GROUPING GROUPING_ID IF ILIKE INLINE LAG LAST LAST_VALUE LEAD LIKE MAP MAX MIN NAMED_STRUCT
    NTH_VALUE NULLIF POSEXPLODE POSEXPLODE_OUTER RLIKE ROLLUP ROUND STRUCT SUM"""
)
_PARSED_SPECIALLY: Final = words(
    """BROADCAST BROADCASTJOIN CAST EXTRACT LISTAGG MAPJOIN MERGE MERGEJOIN OVERLAY POSITION
    SHUFFLEMERGE SHUFFLE_HASH SHUFFLE_REPLICATE_NL STRING_AGG SUBSTR SUBSTRING TRIM
    TRY_CAST"""
)


def _mean(arguments: list[exp.Expr]) -> exp.Expr:
    node = exp.Avg(this=_only("mean", arguments))
    node.meta["name"] = "mean"  # so the column of the result is called
    return node


def _is_null(arguments: list[exp.Expr]) -> exp.Expr:
    return exp.Is(this=_only("isnull", arguments), expression=exp.Null())


def _only(name: str, arguments: list[exp.Expr]) -> exp.Expr:
    if len(arguments) != 1:
        raise InvalidSql(f"[WRONG_NUM_ARGS] {name} does not take {len(arguments)} arguments")
    return arguments[0]


class LakeSpark(Spark):
    """Spark's dialect as Spark 4 reads it: a quote in a text may be doubled.

    Functions keep the names by which they were called, and ``functions`` says what they mean; only
    those whose arguments have a grammar of their own, or whose type matters, become nodes.
    """

    class Tokenizer(Spark.Tokenizer):
        """See above."""

        STRING_ESCAPES = ["\\", "'", '"']  # noqa: RUF012 - as sqlglot declares it

    class Parser(SparkParser):
        """See above."""

        FUNCTIONS = {  # noqa: RUF012
            **{n: f for n, f in SparkParser.FUNCTIONS.items() if n in _PARSED},
            "MEAN": _mean,
            "ISNULL": lambda arguments: exp.Paren(this=_is_null(arguments)),
            "ISNOTNULL": lambda arguments: exp.Paren(this=exp.Not(this=_is_null(arguments))),
        }
        TERM = {**SparkParser.TERM, TokenType.DPIPE: exp.DPipe}  # noqa: RUF012
        FUNCTION_PARSERS = {  # noqa: RUF012
            n: f for n, f in SparkParser.FUNCTION_PARSERS.items() if n in _PARSED_SPECIALLY
        }


def parse_query(text: str) -> exp.Expr:
    """The tree of a query.

    Raises:
        InvalidSql: the text is not a query.
    """
    text = with_selects(with_plain_travel(with_travelled_options(text)))
    try:
        found = _parsed(text)
    except (SqlglotError, RecursionError) as error:
        found = _parsed_again(text, error)
    if len(found) != 1:
        raise InvalidSql(f"[PARSE_SYNTAX_ERROR] expected one statement, found {len(found)}")
    (tree,) = found
    if isinstance(tree, exp.Values):
        return exp.select("*").from_(tree)
    if isinstance(tree, exp.Command):
        raise InvalidSql(f"[PARSE_SYNTAX_ERROR] this is not a query: {text[:80]}")
    return tree


def _parsed(text: str) -> list[exp.Expr]:
    return [tree for tree in sqlglot.parse(text, read=LakeSpark) if tree]


def _parsed_again(text: str, error: Exception) -> list[exp.Expr]:
    """Spark accepts most keywords as names; sqlglot needs quotes around them."""
    quoted = with_quoted_words(text)
    if quoted != text:
        with suppress(SqlglotError, RecursionError):
            return _parsed(quoted)
    raise InvalidSql(f"[PARSE_SYNTAX_ERROR] {_first_line(error)}") from error


def to_duckdb(tree: exp.Expr) -> str:
    """The text for DuckDB."""
    try:
        text: str = bound_once(_translated(tree)).sql(
            DuckDB, identify=True, normalize_functions=False, unsupported_level=_STRICT
        )
    except (SqlglotError, LookupError, AttributeError, TypeError) as error:
        said = " ".join(tree.sql(dialect=LakeSpark).split())
        raise Unsupported(f"DuckDB's SQL cannot express this: {said[:120]}") from error
    return text


def _translated(tree: exp.Expr) -> exp.Expr:
    for node in reversed(list(tree.dfs())):  # inner ones first: rules wrap what they hold
        new = _rule(node)
        if new is not node and node is tree:
            tree = new
        elif new is not node:
            node.replace(new)
    return tree


def _rule(node: exp.Expr) -> exp.Expr:  # noqa: C901, PLR0912 - a list
    match node:
        case exp.Anonymous():
            return _function(node)
        case exp.Neg(this=exp.TryCast(this=exp.Literal() as number, to=kind)):
            if kind.this in exp.DataType.SIGNED_INTEGER_TYPES:  # -128Y is one number
                return exp.Cast(this=exp.Neg(this=number.copy()), to=kind.copy())
            return exp.Neg(this=exp.Cast(this=number.copy(), to=kind.copy()))
        case exp.TryCast(this=exp.Literal(), parent=exp.Neg()):
            return node
        case exp.TryCast():
            made = cast(node.this, node.to)
            return tried(made) if node.args.get("safe") else made
        case exp.Select() if node.args.get("laterals"):
            return without_views(node)
        case exp.Lateral():
            return as_subquery(node)
        case exp.Hint():
            return exp.Hint()
        case exp.Values():
            return _named_values(node)
        case exp.Div():
            return call("spark_divide", node.this, node.expression)
        case exp.IntDiv():
            return call("spark_whole", node.this, node.expression)
        case exp.Mod():
            return call("spark_remainder", node.this, node.expression)
        case exp.Round():
            return call("spark_round", *_given(node.this, node.args.get("decimals")))
        case exp.Ceil() | exp.Floor():
            return _whole(node)
        case exp.DPipe():
            return joined(node.this, node.expression)
        case exp.RegexpLike():
            return own_call("rlike", [node.this, node.expression])
        case exp.Like() | exp.ILike() if _may_be_escaped(node):
            return exp.Escape(this=node.copy(), expression=exp.Literal.string("\\"))
        case exp.Substring():
            return _part_of(node.this, _given(*map(node.args.get, ("start", "length"))))
        case exp.Overlay():
            return own_call("overlay", _given(node.this, *map(node.args.get, _OVERLAID)))
        case exp.StrPosition():
            parts = _given(node.args["substr"], node.this, node.args.get("position"))
            return own_call("locate", parts)
        case exp.Trim():
            side = _SIDES.get((node.args.get("position") or "").upper(), "trim")
            return own_call(side, _given(node.this, node.expression))
        case exp.Extract():
            return field_of(node.this.name, node.expression)
        case exp.Add() | exp.Sub() if isinstance(node.expression, exp.Interval):
            return _moved(node, node.this, node.expression)
        case exp.Add() if isinstance(node.this, exp.Interval):
            return _moved(node, node.expression, node.this)
        case exp.Transform():
            return call("list_transform", node.this, with_place(node.expression))
        case exp.Group():
            return grouped(node)
        case exp.Interval():
            return interval(node)
        case exp.Any(this=exp.Paren() as inner) if not isinstance(node.parent, exp.Binary):
            return call("bool_or", inner.this)
        case exp.AnyValue():
            return call("first", node.this)
        case exp.IgnoreNulls(this=exp.First() | exp.Last() | exp.FirstValue() | exp.LastValue()):
            return node if isinstance(node.parent, exp.Window) else _first_there(node.this)
        case exp.First() | exp.FirstValue() | exp.Last() | exp.LastValue():
            return _first(node)
        case exp.WithinGroup(this=exp.Anonymous() as function, expression=exp.Order() as order):
            return _percentile(node, function, order)
        case exp.Count(this=value, expressions=[_, *_] as others):
            return _count_of_rows(value, others)
        case exp.PosexplodeOuter() if not isinstance(node.parent, exp.Lateral):
            raise Unsupported("posexplode_outer is for LATERAL VIEW here: use ... OUTER posexplode")
        case exp.ExplodeOuter() if not isinstance(node.parent, exp.Lateral):
            return exp.Explode(this=or_one_null(node.this))
        case exp.Pivot() if not node.args.get("unpivot") and any(node.find_all(exp.Count)):
            raise Unsupported("count in PIVOT needs Spark; use sum(if(..., 1, 0)) with GROUP BY")
        case exp.Bracket(expressions=[key]):
            return item("spark_item")([node.this, key])
        case exp.Window() | exp.Filter() if _list_inside(node) is not None:
            return _listed(node)
        case exp.Window(this=exp.Anonymous() as ranking) if ranking.name.lower() in _RANKINGS:
            return exp.Cast(this=node.copy(), to=exp.DataType.build("int"))
        case _:
            return node


_STRICT: Final = ErrorLevel.RAISE
_OVERLAID: Final = ("expression", "from_", "for_")
_SIDES: Final = {"LEADING": "left_trim", "TRAILING": "right_trim"}
_RANKINGS: Final = ("row_number", "rank", "dense_rank", "ntile")
_LISTS: Final = ("collect_list", "array_agg", "collect_set")


def _may_be_escaped(node: exp.Expr) -> bool:
    """Whether a pattern may have a backslash; without ESCAPE, DuckDB looks for prefixes faster."""
    pattern = node.expression
    is_plain = isinstance(pattern, exp.Literal) and "\\" not in pattern.name
    return not is_plain and not isinstance(node.parent, exp.Escape)


def _first(node: exp.Expr) -> exp.Expr:
    """Windows call it first_value, aggregates first."""
    parent = node.parent.parent if isinstance(node.parent, exp.IgnoreNulls) else node.parent
    if isinstance(parent, exp.Window):
        kind = exp.FirstValue if isinstance(node, exp.First | exp.FirstValue) else exp.LastValue
        return kind(this=node.this)
    return node if isinstance(node.parent, exp.IgnoreNulls) else call(_end(node), node.this)


def _first_there(node: exp.Expr) -> exp.Expr:
    is_there = exp.Not(this=exp.Is(this=node.this.copy(), expression=exp.Null()))
    found = call(_end(node), node.this)
    return exp.Filter(this=found, expression=exp.Where(this=is_there))


def _end(node: exp.Expr) -> str:
    return "first" if isinstance(node, exp.First | exp.FirstValue) else "last"


def _percentile(node: exp.WithinGroup, function: exp.Anonymous, order: exp.Order) -> exp.Expr:
    name = {"percentile_cont": "quantile_cont", "percentile_disc": "quantile_disc"}.get(
        function.name.lower()
    )
    if name is None:
        return node
    (ordered,) = order.expressions
    if ordered.args.get("desc"):
        raise Unsupported(f"{function.name} with DESC needs Spark; take 1 - the fraction")
    value = exp.Cast(this=ordered.this, to=exp.DataType.build("double"))
    return call(name, value, *function.expressions)


def _count_of_rows(value: exp.Expr, others: list[exp.Expr]) -> exp.Expr:
    """``count(a, b)``: rows in which none is NULL."""
    are_there = [exp.Not(this=exp.Is(this=v, expression=exp.Null())) for v in (value, *others)]
    one = exp.If(this=exp.and_(*are_there, dialect=LakeSpark), true=exp.Literal.number(1))
    return exp.Count(this=exp.Case(ifs=[one]))


def _given(*parts: exp.Expr | None) -> list[exp.Expr]:
    return [part for part in parts if part is not None]


def _function(node: exp.Anonymous) -> exp.Expr:
    if node.name.lower() not in _LISTS:
        return translated(node)
    is_inside = isinstance(node.parent, exp.Window | exp.Filter) and node.arg_key == "this"
    return node if is_inside else _listed(node)


def _list_inside(node: exp.Expr) -> exp.Anonymous | None:
    """The collect_list in a window or filter that is not inside another one."""
    if isinstance(node.parent, exp.Window) and node.arg_key == "this":
        return None
    inner: exp.Expr = node
    while isinstance(inner, exp.Window | exp.Filter):
        inner = inner.this
    is_list = isinstance(inner, exp.Anonymous) and inner.name.lower() in _LISTS
    return inner if is_list and isinstance(inner, exp.Anonymous) else None


def _listed(node: exp.Expr) -> exp.Expr:
    """A list of values: never NULL, and without nulls."""
    made = node.copy()
    inner = made
    while isinstance(inner, exp.Window | exp.Filter):
        inner = inner.this
    value = inner.expressions[0]
    if inner.name.lower() == "collect_set" and not isinstance(value, exp.Distinct):
        inner.set("expressions", [exp.Distinct(expressions=[value.copy()])])
    while isinstance(value, exp.Distinct | exp.Order):
        value = value.expressions[0] if isinstance(value, exp.Distinct) else value.this
    is_there = exp.Not(this=exp.Is(this=value.copy(), expression=exp.Null()))
    inner.set("this", "list")
    if isinstance(inner.parent, exp.Filter):
        old = inner.parent.expression
        both = exp.and_(old.this.copy(), is_there, dialect=LakeSpark)
        inner.parent.set("expression", exp.Where(this=both))
    else:
        filtered = exp.Filter(this=inner.copy(), expression=exp.Where(this=is_there))
        if inner is made:
            made = filtered
        else:
            inner.replace(filtered)
    return exp.Coalesce(this=made, expressions=[exp.Array(expressions=[])])


def _part_of(text: exp.Expr, bounds: list[exp.Expr]) -> exp.Expr:
    """Some characters of a text. From a known place on, DuckDB counts them as Spark does."""
    is_known = all(isinstance(bound, exp.Literal) and bound.is_int for bound in bounds)
    if is_known and int(bounds[0].name) > 0:  # a negative number is no literal
        return call("substring", converted(text, "characters"), *bounds)
    return own_call("substring", [text, *bounds])


def _whole(node: exp.Ceil | exp.Floor) -> exp.Expr:
    name = "ceil" if isinstance(node, exp.Ceil) else "floor"
    if node.args.get("decimals") is not None:
        raise Unsupported(f"{name} to some digits needs Spark")
    return call(f"spark_{name}", node.this)


def _moved(node: exp.Expr, moment: exp.Expr, distance: exp.Interval) -> exp.Expr:
    """A date stays a date, unless the interval has hours."""
    sign = exp.Neg(this=distance.copy()) if isinstance(node, exp.Sub) else distance
    name = "plus_days" if is_of_days(distance) else "plus_time"
    return call(f"spark_{name}", moment, sign)


def _named_values(node: exp.Values) -> exp.Values:
    """Columns of VALUES are called col1, col2, ...; DuckDB begins with col0."""
    alias = node.args.get("alias")
    rows = node.expressions
    if (alias is not None and alias.args.get("columns")) or not rows:
        return node
    width = len(rows[0].expressions) if isinstance(rows[0], exp.Tuple) else 1
    columns = [exp.to_identifier(f"col{at}", quoted=True) for at in range(1, width + 1)]
    name = exp.to_identifier("v") if alias is None else alias.this
    node.set("alias", exp.TableAlias(this=name, columns=columns))
    return node


def _first_line(error: Exception) -> str:
    return str(error).split("\n", maxsplit=1)[0]
