"""Functions of Spark about dates and times, as DuckDB calls them."""

from collections.abc import Callable
from typing import Final

from sqlglot import exp

from emberlake.errors import InvalidSql
from emberlake.sql.on_duckdb.calls import Arguments, call, own_call, text_of, typed_as
from emberlake.sql.on_duckdb.date_patterns import reading_pattern, writing_pattern


def date_format(arguments: Arguments) -> exp.Expr:
    """``date_format`` of Spark."""
    value, pattern = arguments
    return own_call("formatted", [value, _pattern(pattern)])


def _pattern(pattern: exp.Expr) -> exp.Expr:
    return exp.Literal.string(writing_pattern(text_of(pattern, "the pattern of a date")))


def _parsed(value: exp.Expr, pattern: exp.Expr) -> exp.Expr:
    text, is_padded = reading_pattern(text_of(pattern, "the pattern of a date"))
    name = "spark_parsed" if is_padded else "spark_parsed_loosely"
    return call(name, value, exp.Literal.string(text))


def to_date(arguments: Arguments) -> exp.Expr:
    """``to_date`` of Spark."""
    value, *pattern = arguments
    if not pattern:
        return call("spark_date", value)
    return typed_as("DATE", _parsed(value, *pattern))


def to_timestamp(arguments: Arguments) -> exp.Expr:
    """``to_timestamp`` of Spark."""
    value, *pattern = arguments
    if not pattern:
        return call("spark_timestamp", value)
    return typed_as("TIMESTAMPTZ", _parsed(value, *pattern))


def to_timestamp_ntz(arguments: Arguments) -> exp.Expr:
    """``to_timestamp_ntz`` of Spark."""
    value, *pattern = arguments
    return _parsed(value, *pattern) if pattern else call("spark_timestamp_ntz", value)


def trying(rewrite: Callable[[Arguments], exp.Expr]) -> Callable[[Arguments], exp.Expr]:
    """The same function, NULL where it is an error."""
    return lambda arguments: tried(rewrite(arguments))


def tried(value: exp.Expr) -> exp.Expr:
    """The value, or NULL where it is an error."""
    return call("try", value)


def unix_timestamp(arguments: Arguments) -> exp.Expr:
    """``unix_timestamp`` of Spark."""
    value, *pattern = arguments or (call("now"),)
    return own_call("unix_timestamp", [_parsed(value, *pattern) if pattern else value])


def from_unixtime(arguments: Arguments) -> exp.Expr:
    """``from_unixtime`` of Spark."""
    value, *pattern = arguments
    text = _pattern(pattern[0]) if pattern else exp.Literal.string("%Y-%m-%d %H:%M:%S")
    return own_call("formatted", [call("spark_timestamp_seconds", value), text])


_UNITS: Final = (
    "MICROSECOND",
    "MILLISECOND",
    "SECOND",
    "MINUTE",
    "HOUR",
    "DAY",
    "WEEK",
    "MONTH",
    "QUARTER",
    "YEAR",
)


def _unit(node: exp.Expr) -> str:
    name: str = node.name.upper()
    if name not in _UNITS:
        raise InvalidSql(f"{node.name} is no unit of time; these are: {', '.join(_UNITS)}")
    return name.lower()


def datediff(arguments: Arguments) -> exp.Expr:
    """``datediff`` of Spark."""
    if len(arguments) == 2:
        return own_call("datediff", arguments)
    return timestampdiff(arguments)


def timestampdiff(arguments: Arguments) -> exp.Expr:
    """``timestampdiff`` of Spark."""
    unit, start, end = arguments
    months = {"month": 1, "quarter": 3, "year": 12}.get(_unit(unit))
    if months is not None:
        count = own_call("whole_months", [start, end])
        return exp.IntDiv(this=count, expression=exp.Literal.number(months))
    moments = (call("spark_timestamp", value) for value in (start, end))
    return call("date_sub", exp.Literal.string(_unit(unit)), *moments)


def timestampadd(arguments: Arguments) -> exp.Expr:
    """``timestampadd`` of Spark."""
    unit, count, value = arguments
    name = _unit(unit)
    factor = {"quarter": 3, "week": 7}.get(name, 1)
    maker = {"quarter": "to_months", "week": "to_days"}.get(name, f"to_{name}s")
    many = exp.Mul(
        this=typed_as("INTEGER", exp.Paren(this=count)), expression=exp.Literal.number(factor)
    )
    return exp.Add(this=call("spark_timestamp", value), expression=call(maker, many))


def date_add(arguments: Arguments) -> exp.Expr:
    """``date_add`` of Spark."""
    if len(arguments) == 3:
        return timestampadd(arguments)
    return own_call("date_add", arguments)


_FIELDS: Final = {
    **dict.fromkeys(("YEAR", "Y", "YEARS", "YR", "YRS"), "year"),
    "YEAROFWEEK": "isoyear",
    **dict.fromkeys(("QUARTER", "QTR"), "quarter"),
    **dict.fromkeys(("MONTH", "MON", "MONS", "MONTHS"), "month"),
    **dict.fromkeys(("WEEK", "W", "WEEKS"), "weekofyear"),
    **dict.fromkeys(("DAY", "D", "DAYS"), "day"),
    **dict.fromkeys(("DAYOFWEEK", "DOW"), "dayofweek"),
    **dict.fromkeys(("DAYOFWEEK_ISO", "DOW_ISO"), "isodow"),
    "DOY": "dayofyear",
    **dict.fromkeys(("HOUR", "H", "HOURS", "HR", "HRS"), "hour"),
    **dict.fromkeys(("MINUTE", "M", "MIN", "MINS", "MINUTES"), "minute"),
    **dict.fromkeys(("SECOND", "S", "SEC", "SECS", "SECONDS"), "seconds"),
}


def field_of(name: str, value: exp.Expr) -> exp.Expr:
    """A part of a date or time."""
    field = _FIELDS.get(name.upper())
    if field is None:
        raise InvalidSql(f"[INVALID_EXTRACT_FIELD] {name} is no part of a date or time")
    return own_call(field, [value])


def date_part(arguments: Arguments) -> exp.Expr:
    """``date_part`` of Spark."""
    name, value = arguments
    return field_of(text_of(name, "the part of a date"), value)
