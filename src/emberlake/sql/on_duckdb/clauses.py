"""Clauses of a query that DuckDB writes or reads in another way: grouping, stars, intervals."""

from collections.abc import Mapping, Sequence

from sqlglot import exp

from emberlake.errors import Unsupported
from emberlake.types import DataField


def grouped(group: exp.Group) -> exp.Group:
    """``GROUP BY a, b WITH ROLLUP`` and ``GROUP BY a, b GROUPING SETS (...)`` in standard SQL."""
    for kind in ("rollup", "cube"):
        for node in group.args.get(kind) or ():
            if not node.expressions:
                node.set("expressions", [part.copy() for part in group.expressions])
                group.set("expressions", None)
    sets = group.args.get("grouping_sets")
    if sets and group.expressions:
        group.set("expressions", None)
    return group


def interval(node: exp.Interval) -> exp.Interval:
    """``'1 2:3:4' DAY TO SECOND`` and ``'1-2' YEAR TO MONTH`` as texts with units."""
    unit = node.args.get("unit")
    if not isinstance(unit, exp.IntervalSpan):
        return node
    first, last = unit.this.name.upper(), unit.expression.name.upper()
    text = str(node.this.name).strip()
    sign, text = (-1, text[1:]) if text.startswith("-") else (1, text.removeprefix("+"))
    if (first, last) == ("YEAR", "MONTH"):
        years, _, months = text.partition("-")
        return _interval([(years, "years"), (months, "months")], sign)
    if (first, last) == ("DAY", "SECOND"):
        days, _, time = text.partition(" ")
        hours, minutes, seconds = time.split(":")
        parts = [(days, "days"), (hours, "hours"), (minutes, "minutes"), (seconds, "seconds")]
        return _interval(parts, sign)
    raise Unsupported(f"INTERVAL ... {first} TO {last} needs Spark; write each unit by itself")


def _interval(parts: Sequence[tuple[str, str]], sign: int) -> exp.Interval:
    text = " ".join(f"{'-' if sign < 0 else ''}{count} {unit}" for count, unit in parts)
    return exp.Interval(this=exp.Literal.string(text))


def is_of_days(distance: exp.Interval) -> bool:
    """Whether a date that is moved by it stays a date."""
    unit = distance.args.get("unit")
    if unit is None:
        text = str(distance.this.name).lower()
        return not any(part in text for part in ("hour", "minute", "second"))
    name = str(unit.name).upper().rstrip("S")
    return name in ("DAY", "WEEK", "MONTH", "YEAR")


def with_joined_columns_first(
    select: exp.Select, tables: Mapping[str, Sequence[DataField]]
) -> None:
    """Let ``*`` begin with the columns of USING and NATURAL, as in Spark.

    Raises:
        Unsupported: the columns of a NATURAL JOIN are not known.
    """
    stars = [output for output in select.expressions if isinstance(output, exp.Star)]
    joins = select.args.get("joins") or ()
    if not stars or not any(join.args.get("using") or _is_natural(join) for join in joins):
        return
    left = [select.args["from_"].this]
    first: list[str] = []
    for join in joins:
        is_kept = (join.args.get("kind") or "").upper() not in ("SEMI", "ANTI")
        if is_kept:
            names = _common(left, join.this, tables) if _is_natural(join) else _using(join)
            first = [*names, *(name for name in first if name not in names)]
            left.append(join.this)
    for star in stars:
        hidden = [name.name for name in star.args.get("except_") or ()]
        columns = [exp.column(exp.to_identifier(n, quoted=True)) for n in first if n not in hidden]
        star.set("except_", [exp.to_identifier(n, quoted=True) for n in (*hidden, *first)])
        at = select.expressions.index(star)
        outputs = [*select.expressions[:at], *columns, *select.expressions[at:]]
        select.set("expressions", outputs)


def _is_natural(join: exp.Join) -> bool:
    return str(join.args.get("method") or "").upper() == "NATURAL"


def _using(join: exp.Join) -> list[str]:
    return [name.name for name in join.args.get("using") or ()]


def _common(
    left: Sequence[exp.Expr], right: exp.Expr, tables: Mapping[str, Sequence[DataField]]
) -> list[str]:
    known = [tables.get(part.name) if isinstance(part, exp.Table) else None for part in left]
    others = tables.get(right.name) if isinstance(right, exp.Table) else None
    if others is None or None in known:
        raise Unsupported("* of a NATURAL JOIN of queries needs Spark; name the columns, or USING")
    names = {field.name.lower() for field in others}
    found = (
        field.name for fields in known for field in fields or () if field.name.lower() in names
    )
    return list(dict.fromkeys(found))
