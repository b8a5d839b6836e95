"""Functions of Spark by their names: what DuckDB calls instead.

A function is the same in DuckDB, or a macro of our own (``macros``), or is written in another way,
or refused. A name that Spark does not know is a function of DuckDB.
"""

from collections.abc import Callable
from typing import Final

from sqlglot import exp

from emberlake.errors import InvalidSql, Unsupported
from emberlake.sql.on_duckdb.calls import (
    CHAINED,
    LIST,
    TEXT,
    Arguments,
    call,
    converted,
    given,
    is_call,
    own_call,
    typed_as,
)
from emberlake.sql.on_duckdb.list_functions import (
    aggregate_of,
    exists_of,
    forall,
    item,
    map_concat,
    map_filter,
    one,
    over_list,
    size,
    transform_keys,
    transform_values,
)
from emberlake.sql.on_duckdb.macros import MACROS
from emberlake.sql.on_duckdb.spark_functions import SPARK_FUNCTIONS, words
from emberlake.sql.on_duckdb.time_functions import (
    date_add,
    date_format,
    date_part,
    datediff,
    from_unixtime,
    timestampadd,
    timestampdiff,
    to_date,
    to_timestamp,
    to_timestamp_ntz,
    trying,
    unix_timestamp,
)

_OWN: Final = "duckdb_"  # a function of DuckDB, whatever Spark calls so

# The same name, meaning and type.
_SAME: Final = words(
    """abs atan atan2 avg bit_and bit_or bit_xor bool_and bool_or coalesce corr cos cosh count
    covar_pop covar_samp cume_dist degrees exp first_value greatest grouping lag last_value lead
    least map_entries map_from_entries map_keys map_values max min mode nth_value nullif
    percent_rank percentile_cont percentile_disc pi radians random regr_avgx regr_avgy regr_count
    regr_intercept regr_r2 regr_slope regr_sxx regr_sxy regr_syy sin sinh stddev stddev_pop
    stddev_samp sum tan tanh var_pop var_samp variance approx_count_distinct dense_rank ntile rank
    row_number any_value explode inline now array struct map range"""
)
# Other names of functions, of Spark or of DuckDB.
_CALLED: Final = {
    "approx_percentile": "quantile_disc",
    "array_size": "size",
    "bigint": "long",
    "bit_get": "getbit",
    "cardinality": "size",
    "ceiling": "ceil",
    "char": "chr",
    "char_length": "length",
    "character_length": "length",
    "dayofmonth": "day",
    "every": "bool_and",
    "any": "bool_or",
    "ifnull": "coalesce",
    "kurtosis": "kurtosis_pop",
    "lcase": "lower",
    "len": "length",
    "max_by": "arg_max_null",
    "min_by": "arg_min_null",
    "nvl": "coalesce",
    "percentile_approx": "quantile_disc",
    "position": "locate",
    "power": "pow",
    "rand": "random",
    "regexp": "rlike",
    "regexp_like": "rlike",
    "sha": "sha1",
    "signum": "sign",
    "some": "bool_or",
    "std": "stddev",
    "substr": "substring",
    "ucase": "upper",
}
_IN_DUCKDB: Final = frozenset(
    {"quantile_disc", "kurtosis_pop", "arg_max_null", "arg_min_null"} | _SAME
)


def translated(node: exp.Anonymous) -> exp.Expr:
    """What DuckDB calls instead of a function.

    Raises:
        Unsupported: only Spark has it.
        InvalidSql: it has the wrong number of arguments.
    """
    written = str(node.this)
    name = written.lower()
    if name == CHAINED:
        chain: exp.Expr = node.expressions[0]
        for part in node.expressions[1:]:
            chain = exp.Paren(this=exp.DPipe(this=chain, expression=part))
        return chain
    if name.startswith("spark_"):
        return node
    if name.startswith(_OWN):
        return call(name.removeprefix(_OWN), *node.expressions)
    rewrite = _REWRITES.get(name)
    if rewrite is not None:
        try:
            return rewrite(node.expressions)
        except (IndexError, ValueError) as error:
            raise InvalidSql(
                f"[WRONG_NUM_ARGS] {name} does not take {len(node.expressions)} arguments"
            ) from error
    known = _CALLED.get(name, name)
    if known in _IN_DUCKDB:
        return node if known == name else call(known, *node.expressions)
    if known in MACROS and (name in SPARK_FUNCTIONS or name in _CALLED):
        return own_call(known, node.expressions)
    if name in SPARK_FUNCTIONS:
        raise Unsupported(
            f"{name}: DuckDB has no function that does the same; run the statement on Spark, with "
            "lake.sql of emberlake.spark.attach"
        )
    return node


# --- texts ----------------------------------------------------------------------------------------


def _concat(arguments: Arguments) -> exp.Expr:
    if not arguments:
        return exp.Literal.string("")
    return joined(*arguments)


def joined(*parts: exp.Expr) -> exp.Expr:
    """``a || b || c`` of texts; arrays and bytes have been found by then."""
    first, *rest = (converted(part, "text") for part in parts)
    for part in rest:
        first = exp.DPipe(this=first, expression=part)
    return call(TEXT, first) if rest else first


def _length(arguments: Arguments) -> exp.Expr:
    (value,) = arguments
    if _known(value) == "text":
        return typed_as("INTEGER", call("length", value))
    return own_call("length", arguments)


def _concat_ws(arguments: Arguments) -> exp.Expr:
    separator, *parts = arguments
    if not parts:
        return exp.Literal.string("")
    lists = [part if is_call(part, LIST) else call("spark_texts", part) for part in parts]
    lists = [part.expressions[0] if is_call(part, LIST) else part for part in lists]
    return call("array_to_string", call("list_concat", *lists), separator)


def _decode(arguments: Arguments) -> exp.Expr:
    if len(arguments) == 2:
        return call("spark_to_text", *arguments)
    value, *rest = arguments
    ifs = [
        exp.If(this=exp.NullSafeEQ(this=value.copy(), expression=key), true=result)
        for key, result in zip(rest[0::2], rest[1::2], strict=False)
    ]
    return exp.Case(ifs=ifs, default=rest[-1] if len(rest) % 2 else None)


# --- aggregates -----------------------------------------------------------------------------------


def _percentile(arguments: Arguments) -> exp.Expr:
    value, part = arguments
    return call("quantile_cont", typed_as("DOUBLE", value), part)


def _median(arguments: Arguments) -> exp.Expr:
    (value,) = arguments
    return call("median", typed_as("DOUBLE", value))


def _count_if(arguments: Arguments) -> exp.Expr:
    (condition,) = arguments
    return exp.Count(this=exp.Case(ifs=[exp.If(this=condition, true=one())]))


# --- casts ----------------------------------------------------------------------------------------


def _cast(kind: str) -> Callable[[Arguments], exp.Expr]:
    def rewrite(arguments: Arguments) -> exp.Expr:
        (value,) = arguments
        return cast(value, exp.DataType.build(kind))

    return rewrite


_CASTS: Final = {
    exp.DType.TEXT: "spark_text",
    exp.DType.VARCHAR: "spark_text",
    exp.DType.CHAR: "spark_text",
    exp.DType.DATE: "spark_date",
    exp.DType.TIMESTAMP: "spark_timestamp",
    exp.DType.TIMESTAMPTZ: "spark_timestamp",
    exp.DType.TIMESTAMPLTZ: "spark_timestamp",
    exp.DType.TIMESTAMPNTZ: "spark_timestamp_ntz",
    exp.DType.BOOLEAN: "spark_boolean",
    exp.DType.DOUBLE: "spark_double",
    exp.DType.FLOAT: "spark_double",
    exp.DType.DECIMAL: "spark_exact",
    exp.DType.BINARY: "spark_binary",
}


def _known(value: exp.Expr) -> str:
    """What a value certainly is: macros that find it out multiply where they are nested."""
    match value:
        case exp.Paren():
            return _known(value.this)
        case exp.Literal():
            return "text" if value.is_string else "number"
        case exp.Anonymous(this="spark_double"):
            return "double"
        case exp.Anonymous():
            return given(value)
        case exp.Cast() if value.to.this in (exp.DType.DOUBLE, exp.DType.FLOAT):
            return "double"
        case exp.Cast() if value.to.this in (*exp.DataType.SIGNED_INTEGER_TYPES, exp.DType.DECIMAL):
            return "number" if value.to.this == exp.DType.DECIMAL else "integer"
        case _:
            return ""


def _cast_of_known(value: exp.Expr, kind: str, to: exp.DataType) -> exp.Expr | None:
    is_integer = to.this in exp.DataType.SIGNED_INTEGER_TYPES
    if is_integer and kind == "text":
        return exp.Cast(this=call("spark_integer", value), to=to)
    if is_integer and kind == "double":
        return exp.Cast(this=call("trunc", value), to=to)
    if to.this in (exp.DType.DOUBLE, exp.DType.FLOAT) and kind == "text":
        return exp.Cast(this=call("spark_float", value), to=to)
    if to.this == exp.DType.DATE and kind == "text":
        return call("spark_calendar_day", value)
    is_plain = to.this in (exp.DType.DOUBLE, exp.DType.TEXT) or is_integer
    return exp.Cast(this=value, to=to) if is_plain and kind == "integer" else None


def cast(value: exp.Expr, to: exp.DataType) -> exp.Expr:
    """A strict (ANSI) cast, which cuts off fractions where DuckDB rounds."""
    known = _cast_of_known(value, _known(value), to)
    if known is not None:
        return known
    if to.this in exp.DataType.SIGNED_INTEGER_TYPES:
        return exp.Cast(this=call("spark_long", value), to=to)
    name = _CASTS.get(to.this)
    if name is None or isinstance(value, exp.Null):
        return exp.Cast(this=value, to=to)
    made = call(name, value)
    if to.this == exp.DType.DECIMAL:
        sizes = to.expressions or [exp.DataTypeParam(this=exp.Literal.number(n)) for n in (10, 0)]
        return exp.Cast(this=made, to=exp.DataType(this=exp.DType.DECIMAL, expressions=sizes))
    return exp.Cast(this=made, to=to) if to.this == exp.DType.FLOAT else made


_REWRITES: Final[dict[str, Callable[[Arguments], exp.Expr]]] = {
    "aggregate": aggregate_of,
    "array_size": size,
    "bigint": _cast("bigint"),
    "binary": _cast("binary"),
    "boolean": _cast("boolean"),
    "btrim": lambda a: own_call("trim", a),
    "cardinality": size,
    "concat": _concat,
    "concat_ws": _concat_ws,
    "count_if": _count_if,
    "current_timezone": lambda a: exp.Literal.string("UTC"),  # noqa: ARG005
    "date": _cast("date"),
    "date_add": date_add,
    "date_diff": datediff,
    "date_format": date_format,
    "date_part": date_part,
    "dateadd": date_add,
    "datediff": datediff,
    "datepart": date_part,
    "decimal": _cast("decimal"),
    "decode": _decode,
    "double": _cast("double"),
    "element_at": item("spark_element_at"),
    "exists": exists_of,
    "filter": over_list("list_filter"),
    "float": _cast("float"),
    "forall": forall,
    "from_unixtime": from_unixtime,
    "int": _cast("int"),
    **dict.fromkeys(("char_length", "character_length", "len", "length"), _length),
    "map_concat": map_concat,
    "map_filter": map_filter,
    "median": _median,
    "mod": lambda a: call("spark_remainder", *_two(a)),
    "percentile": _percentile,
    "reduce": aggregate_of,
    "size": size,
    "smallint": _cast("smallint"),
    "string": _cast("string"),
    "timestamp": _cast("timestamp"),
    "timestamp_ntz": _cast("timestamp_ntz"),
    "timestamp_ltz": _cast("timestamp_ltz"),
    "timestampadd": timestampadd,
    "timestampdiff": timestampdiff,
    "tinyint": _cast("tinyint"),
    "to_date": to_date,
    "to_timestamp": to_timestamp,
    "to_timestamp_ltz": to_timestamp,
    "to_timestamp_ntz": to_timestamp_ntz,
    "to_unix_timestamp": unix_timestamp,
    "transform": over_list("list_transform"),
    "transform_keys": transform_keys,
    "transform_values": transform_values,
    "try_element_at": item("spark_try_element_at"),
    "try_to_date": trying(to_date),
    "try_to_timestamp": trying(to_timestamp),
    "unix_timestamp": unix_timestamp,
}


def _two(arguments: Arguments) -> tuple[exp.Expr, exp.Expr]:
    first, second = arguments
    return first, second
