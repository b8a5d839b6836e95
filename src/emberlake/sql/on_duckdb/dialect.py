"""Spark's SQL in, DuckDB's SQL out, by sqlglot; where the two differ, rules of our own."""

from contextlib import suppress
from typing import Final

import sqlglot
from sqlglot import exp
from sqlglot.dialects.duckdb import DuckDB
from sqlglot.dialects.spark import Spark
from sqlglot.errors import SqlglotError

from emberlake.errors import InvalidSql, Unsupported
from emberlake.sql.on_duckdb.laterals import as_subquery, without_views
from emberlake.sql.on_duckdb.spelling import (
    with_plain_travel,
    with_quoted_words,
    with_selects,
    with_travelled_options,
)


class LakeSpark(Spark):
    """Spark's dialect as Spark 4 reads it: a quote in a text may be doubled."""

    class Tokenizer(Spark.Tokenizer):
        """See above."""

        STRING_ESCAPES = ["\\", "'", '"']  # noqa: RUF012 - as sqlglot declares it


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
        text: str = _translated(tree).sql(dialect=DuckDB, identify=True)
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


def _rule(node: exp.Expr) -> exp.Expr:  # noqa: C901 - a list
    match node:
        case exp.Neg(this=exp.TryCast(this=exp.Literal() as number, to=kind)):
            return _rule(exp.TryCast(this=exp.Neg(this=number.copy()), to=kind.copy()))
        case exp.TryCast(this=exp.Literal(), parent=exp.Neg()):
            return node  # -128Y is one number
        case exp.TryCast() if not node.args.get("safe"):
            return _cast(node)
        case exp.Select() if node.args.get("laterals"):
            return without_views(node)
        case exp.Lateral():
            return as_subquery(node)
        case exp.TsOrDsAdd() | exp.AddMonths():
            return exp.Cast(this=node.copy(), to=exp.DataType.build("date"))  # no timestamp
        case exp.Hint():
            return exp.Hint()
        case exp.Values():
            return _named_values(node)
        case exp.Div():
            return _call("spark_divide", node.this, node.expression)
        case exp.Mod():
            return _call("spark_remainder", node.this, node.expression)
        case _:
            return node


def _cast(node: exp.TryCast) -> exp.Expr:
    """Spark's casts are strict (ANSI), and cut off fractions where DuckDB rounds."""
    value: exp.Expr = node.this
    if node.to.this in exp.DataType.SIGNED_INTEGER_TYPES:
        value = _call("spark_long", value)
    return exp.Cast(this=value, to=node.to)


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


def _call(name: str, *arguments: exp.Expr) -> exp.Expr:
    return exp.Anonymous(this=name, expressions=list(arguments))


# Functions of Spark that DuckDB lacks, or that mean something else there.
MACROS: Final = (
    """CREATE MACRO spark_divide(a, b) AS
       CASE WHEN b = 0 THEN error('[DIVIDE_BY_ZERO] division by zero') ELSE a / b END""",
    """CREATE MACRO spark_remainder(a, b) AS
       CASE WHEN b = 0 THEN error('[REMAINDER_BY_ZERO] division by zero') ELSE a % b END""",
    """CREATE MACRO spark_varchar(x, n) AS
       CASE WHEN length(x) > n AND length(rtrim(x)) <= n THEN left(x, n) ELSE x END""",
    """CREATE MACRO spark_char(x, n) AS
       CASE WHEN length(rtrim(x)) > n THEN x ELSE left(rpad(x, n, ' '), n) END""",
    """CREATE MACRO spark_integer(x) AS
       CASE WHEN x IS NULL OR regexp_full_match(trim(x), '[+-]?[0-9]+') THEN CAST(trim(x) AS BIGINT)
       ELSE error('[CAST_INVALID_INPUT] not a whole number: ' || x) END""",
    """CREATE MACRO spark_long(x) AS CASE
       WHEN typeof(x) IN ('FLOAT', 'DOUBLE') THEN CAST(trunc(TRY_CAST(x AS DOUBLE)) AS BIGINT)
       WHEN typeof(x) LIKE 'DECIMAL%' THEN CAST(split_part(CAST(x AS VARCHAR), '.', 1) AS BIGINT)
       WHEN typeof(x) = 'VARCHAR' THEN spark_integer(CAST(x AS VARCHAR))
       ELSE CAST(x AS BIGINT) END""",
)


def _first_line(error: Exception) -> str:
    return str(error).split("\n", maxsplit=1)[0]
