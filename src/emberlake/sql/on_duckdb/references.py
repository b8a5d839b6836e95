"""Which tables a query names, and where: CTEs hide tables, aliases rename them."""

from collections.abc import Collection, Iterator
from itertools import zip_longest

from sqlglot import exp

from emberlake.sql.names import TableName


def table_references(tree: exp.Expr) -> list[exp.Table]:
    """The places of a query that name a table, and not a CTE or a function."""
    return [
        node
        for node in tree.find_all(exp.Table)
        if isinstance(node.this, exp.Identifier) and not _is_cte(node)
    ]


def name_of(node: exp.Table) -> TableName:
    """The name as it was written."""
    return TableName(tuple(part.name for part in node.parts))


def _is_cte(node: exp.Table) -> bool:
    if node.args.get("db") is not None:
        return False
    name = node.name.lower()
    return any(cte.alias_or_name.lower() == name for cte in _visible_ctes(node))


def _visible_ctes(node: exp.Expr) -> Iterator[exp.CTE]:
    """The CTEs around a place; inside of one, only those before it."""
    inside: exp.Expr = node
    parent = node.parent
    while parent is not None:
        if isinstance(parent, exp.With):
            is_recursive = bool(parent.args.get("recursive"))
            for cte in parent.expressions:
                if cte is inside and not is_recursive:
                    break
                yield cte
            inside, parent = parent, parent.parent
            # The query that the WITH belongs to sees the same CTEs, which were just returned.
            if parent is not None:
                inside, parent = parent, parent.parent
            continue
        with_ = parent.args.get("with_") or parent.args.get("with")
        if isinstance(with_, exp.With) and inside is not with_:
            yield from with_.expressions
        inside, parent = parent, parent.parent


def replace_reference(node: exp.Table, stand_in: str) -> None:
    """Let a place name something else; the old name still qualifies its columns."""
    alias = node.args.get("alias")
    if alias is None or alias.this is None:
        columns = alias.args.get("columns") if alias is not None else None
        name = exp.to_identifier(node.name, quoted=True)
        node.set("alias", exp.TableAlias(this=name, columns=columns))
    node.set("this", exp.to_identifier(stand_in, quoted=True))
    for part in ("db", "catalog", "version"):
        node.set(part, None)


def drop_qualifiers(tree: exp.Expr, tables: Collection[tuple[str, str]]) -> None:
    """Turn ``db.t.c`` into ``t.c``: the database is gone from the query.

    Args:
        tree: The query; it is changed.
        tables: Its tables, as pairs of database and name in lower case. Other names of several
            parts lead into structs: ``s.a.b``.
    """
    for column in tree.find_all(exp.Column):
        parts = [part.name.lower() for part in column.parts]
        at = next((at for at in (0, 1) if tuple(parts[at : at + 2]) in tables), None)
        if at is None or len(parts) < at + 3:
            continue
        kept = column.parts[at + 1 :]
        for key, part in zip_longest(("this", "table", "db", "catalog"), reversed(kept)):
            column.set(key, part)
