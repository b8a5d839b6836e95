"""What each page is filled with: reads the catalog, and names the values for the templates."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from emberlake.catalog import Catalog
from emberlake.errors import ColumnNotFound, EmberlakeError, InvalidInput
from emberlake.expressions.query_auth import seeing_all
from emberlake.spec.identifier import Identifier
from emberlake.table import Table
from emberlake.ui import loading
from emberlake.ui.views.heat import heat_map_of
from emberlake.ui.views.overview import Overview, kind_of

Values: TypeAlias = Mapping[str, Any]
LARGEST: Final = 20
_DESCRIBED_TABLES: Final = 200


@dataclass(frozen=True)
class TableLine:
    """A table in the list of a database."""

    name: str
    identifier: str
    kind: str = ""
    rows: int | None = None
    files: int | None = None
    size: int | None = None
    snapshot: int | None = None
    problem: str | None = None


def table_of(catalog: Catalog, identifier: str) -> Table:
    """A table, or a branch of one.

    Raises:
        InvalidInput: it is a system table, which has no files of its own.
        Unsupported: not all rows are shown to this user; pages tell of all of them.
    """
    table = catalog.get_table(identifier)
    if table.identifier.is_system_table():
        raise InvalidInput(f"{identifier} is a system table; look at the table itself")
    seeing_all(table.store, "drawn")
    return table


def tree_values(catalog: Catalog, database: str | None = None) -> Values:
    """The databases, and the tables of the one that is open."""
    return {
        "databases": tuple(sorted(catalog.list_databases())),
        "current_database": database,
        "tables": () if database is None else tuple(sorted(catalog.list_tables(database))),
        "current_table": None,
    }


def database_values(catalog: Catalog, database: str) -> Values:
    """The tables of a database with their sizes."""
    around = tree_values(catalog, database)
    described = around["tables"][:_DESCRIBED_TABLES]
    lines = tuple(_line(catalog, Identifier(database, name)) for name in described)
    return {**around, "lines": lines, "left_out": len(around["tables"]) - len(lines)}


def _line(catalog: Catalog, identifier: Identifier) -> TableLine:
    name = identifier.get_table_name()
    try:
        table = table_of(catalog, str(identifier))
        overview = loading.load_overview(table)
    except EmberlakeError as error:  # one bad table must not hide the rest
        return TableLine(name, str(identifier), problem=str(error))
    size, snapshot = overview.size, overview.snapshot
    return TableLine(
        name,
        str(identifier),
        kind_of(table.table_schema),
        size.rows,
        size.files,
        size.bytes,
        None if snapshot is None else snapshot.id,
    )


def view_values(table: Table, view: str, query: Mapping[str, str]) -> Values:
    """What one view of a table shows.

    Args:
        table: The table.
        view: One of ``pages.VIEWS``.
        query: What the address says after the question mark.
    """
    always: Values = {"view": view, "identifier": str(table.identifier)}
    # A check must work where nothing else does.
    match view:
        case "check":
            return {**always, "check": None}
        case "rows":
            return {**always, "rows": loading.load_rows(table)}
        case _:
            overview = loading.load_overview(table)
            return {**always, "overview": overview, **_of_view(table, view, query, overview)}


def _of_view(table: Table, view: str, query: Mapping[str, str], overview: Overview) -> Values:
    match view:
        case "history":
            before = query.get("before", "")
            first = int(before) if before.isdecimal() else None
            return {"history": loading.load_history(table, first)}
        case "partitions":
            partitions = loading.load_partitions(table)
            largest = sorted(partitions, key=lambda p: -p.size)[:LARGEST]
            return {"heat": heat_map_of(partitions), "largest": largest}
        case "buckets":
            return _bucket_values(table, query)
        case "plan":
            return _plan_values(table, query.get("filter", ""), overview)
        case _:
            return {"sizes": loading.load_size_bars(table)}


def _bucket_values(table: Table, query: Mapping[str, str]) -> Values:
    partition = query.get("partition") or None
    buckets = loading.load_buckets(table, partition)
    number = query.get("bucket", "")
    if number.lstrip("-").isdecimal():
        wanted = (query.get("inside", ""), int(number))
    elif buckets.lines:
        wanted = (buckets.lines[0].partition, buckets.lines[0].bucket)
    else:
        return {"buckets": buckets, "opened": ()}
    return {"buckets": buckets, "opened": (loading.load_bucket(table, *wanted),)}


def _plan_values(table: Table, text: str, overview: Overview) -> Values:
    asked: Values = {"filter": text, "example": f"{overview.columns[0].name} IS NOT NULL"}
    try:
        return {**asked, "plan": loading.load_plan(table, text)}
    except (InvalidInput, ColumnNotFound) as error:
        return {**asked, "problem": str(error), "plan": None}
