"""LATERAL VIEW, and LATERAL with functions that generate rows, as subqueries of DuckDB."""

from sqlglot import exp


def without_views(select: exp.Select) -> exp.Select:
    """The query with joins instead of LATERAL VIEW."""
    laterals = select.args.get("laterals")
    if not laterals:
        return select
    joins = [exp.Join(this=_subquery(lateral), kind="CROSS") for lateral in laterals]
    select.set("laterals", None)
    select.set("joins", [*(select.args.get("joins") or ()), *joins])
    return select


def as_subquery(lateral: exp.Lateral) -> exp.Lateral:
    """The same for a function behind LATERAL."""
    return _subquery(lateral) if isinstance(lateral.this, _MAKERS) else lateral


_MAKERS = (exp.Explode, exp.ExplodeOuter, exp.Posexplode, exp.PosexplodeOuter, exp.Inline)


def _subquery(lateral: exp.Lateral) -> exp.Lateral:
    maker = lateral.this
    alias = lateral.args.get("alias")
    columns = list(alias.args.get("columns") or ()) if alias is not None else []
    name = exp.to_identifier("__made") if alias is None else alias.this
    if not isinstance(maker, _MAKERS) or isinstance(maker, exp.Inline):
        return lateral
    is_outer = lateral.args.get("outer") or isinstance(
        maker, exp.ExplodeOuter | exp.PosexplodeOuter
    )
    with_place = isinstance(maker, exp.Posexplode)
    is_map = len(columns) == 2 + with_place
    parts = _parts(maker.this, is_map=is_map)
    names = ["key", "value"] if is_map else ["col"]
    if with_place:
        size = _call("coalesce", _call("len", parts[0].copy()), exp.Literal.number(0))
        parts, names = [_call("range", size), *parts], ["pos", *names]
    if is_outer:
        parts = [or_one_null(part) for part in parts]
    outputs: list[exp.Expr] = [_call("unnest", part) for part in parts]
    if with_place:
        outputs[0] = exp.Cast(this=outputs[0], to=exp.DataType.build("int"))
    if not columns:
        columns = [exp.to_identifier(column, quoted=True) for column in names]
    query = exp.Subquery(this=exp.Select(expressions=outputs))
    return exp.Lateral(this=query, alias=exp.TableAlias(this=name, columns=columns))


def _parts(value: exp.Expr, *, is_map: bool) -> list[exp.Expr]:
    if not is_map:
        return [value.copy()]
    return [_call(name, value.copy()) for name in ("map_keys", "map_values")]


def or_one_null(part: exp.Expr) -> exp.Expr:
    """OUTER: an empty value gives a row of nulls."""
    has_some = exp.GT(this=_call("len", part.copy()), expression=exp.Literal.number(0))
    one = exp.Array(expressions=[exp.Null()])
    return exp.Case(ifs=[exp.If(this=has_some, true=part)], default=one)


def _call(name: str, *arguments: exp.Expr) -> exp.Expr:
    return exp.Anonymous(this=name, expressions=list(arguments))
