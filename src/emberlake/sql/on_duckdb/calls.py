"""Calls of functions and macros of DuckDB."""

from collections.abc import Sequence
from typing import Final

from sqlglot import exp

from emberlake.errors import Unsupported
from emberlake.sql.on_duckdb.spark_functions import words

Arguments = Sequence[exp.Expr]

TEXT: Final = "spark_joined"  # marks what is a text already
LIST: Final = "spark_list"  # marks an argument that is an array
CHAINED: Final = "spark_chain"  # the arguments one behind the other: arrays, or bytes


def call(name: str, *arguments: exp.Expr) -> exp.Expr:
    """A call of a function of DuckDB."""
    return exp.Anonymous(this=name, expressions=list(arguments))


def is_call(node: exp.Expr, name: str) -> bool:
    """Whether a function of that name is called."""
    return isinstance(node, exp.Anonymous) and node.name.lower() == name


def own_call(name: str, arguments: Arguments) -> exp.Expr:
    """A call of a macro, whose arguments are converted to what it takes."""
    taken = _TAKEN.get(name, ())
    if name in ("ltrim", "rtrim") and len(arguments) == 2:
        taken = ("", "text")
    kinds = [*taken, *[""] * len(arguments)]
    given = [converted(value, kind) for value, kind in zip(arguments, kinds, strict=False)]
    return call(f"spark_{name}", *given)


def given(node: exp.Anonymous) -> str:
    """What a macro gives: a text, a date or a timestamp; or nothing that is known."""
    return _GIVEN.get(node.name.lower().removeprefix("spark_"), "")


def converted(value: exp.Expr, kind: str) -> exp.Expr:
    """A value as a macro takes it; what has the type already is not wrapped, as wraps add up."""
    inner = value
    while isinstance(inner, exp.Paren):
        inner = inner.this
    name = inner.name.lower().removeprefix("spark_") if isinstance(inner, exp.Anonymous) else ""
    is_text = isinstance(inner, exp.Literal) and inner.is_string
    known = _GIVEN.get(name) or ("text" if is_text else "")
    wanted = "text" if kind == "characters" else kind
    return value if not kind or known == wanted else call(f"spark_{kind}", value)


_TEXTS: Final = words(
    """upper lower initcap trim left_trim right_trim ltrim rtrim replace translate overlay split
    split_part substring_index ascii startswith endswith contains encode regexp_replace
    regexp_extract regexp_extract_all regexp_count regexp_substr rlike find_in_set levenshtein
    repeat reverse get_json_object"""
)
_CUT: Final = words("substring left right lpad rpad")
_OF_DATES: Final = words(
    """year month day quarter dayofyear weekofyear dayofweek weekday isodow isoyear
    date_add date_sub add_months last_day next_day trunc unix_date dayname monthname"""
)
_OF_MOMENTS: Final = words(
    """hour minute second seconds unix_timestamp unix_seconds unix_millis unix_micros formatted
    from_utc_timestamp to_utc_timestamp"""
)
# What macros take, by their names.
_TAKEN: Final[dict[str, tuple[str, ...]]] = {
    **dict.fromkeys(_TEXTS, ("text",)),
    **dict.fromkeys(_CUT, ("characters",)),
    **dict.fromkeys(_OF_DATES, ("date",)),
    **dict.fromkeys(_OF_MOMENTS, ("timestamp",)),
    "instr": ("characters", "characters"),
    "locate": ("characters", "characters"),
    "datediff": ("date", "date"),
    "months_between": ("timestamp", "timestamp"),
    "whole_months": ("timestamp", "timestamp"),
    "date_trunc": ("", "timestamp"),
}
# What macros give.
_GIVEN: Final = {
    **dict.fromkeys(
        words(
            """text joined upper lower initcap trim left_trim right_trim ltrim rtrim substring left
            right lpad rpad repeat space replace translate overlay split_part substring_index chr
            md5 sha1 sha2 sha256 hex base64 regexp_replace regexp_extract regexp_substr formatted
            dayname monthname characters array_join array_to_string"""
        ),
        "text",
    ),
    **dict.fromkeys(words("date date_add date_sub add_months last_day next_day trunc"), "date"),
    **dict.fromkeys(
        words(
            """timestamp date_trunc from_utc_timestamp to_utc_timestamp timestamp_seconds
            timestamp_millis timestamp_micros make_timestamp now"""
        ),
        "timestamp",
    ),
}


def text_of(node: exp.Expr, what: str) -> str:
    """The text of a literal."""
    if not (isinstance(node, exp.Literal) and node.is_string):
        raise Unsupported(f"without Spark, {what} has to be a text literal")
    return str(node.this)


def typed_as(kind: str, value: exp.Expr) -> exp.Expr:
    """A cast of DuckDB."""
    return exp.Cast(this=value, to=exp.DataType.build(kind, dialect="duckdb"))
