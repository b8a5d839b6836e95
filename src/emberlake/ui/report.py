"""A report: the pictures of a table in one file, which needs no server and fetches nothing."""

import base64
import hashlib
from collections.abc import Sequence
from typing import Final

from markupsafe import Markup

from emberlake.expressions.query_auth import seeing_all
from emberlake.table import Table
from emberlake.ui import loading
from emberlake.ui.contents import LARGEST
from emberlake.ui.pages import VIEWS, Site, asset, render

_OPEN_BUCKETS: Final = 4  # the largest ones are drawn


def render_report(
    table: Table,
    *,
    made_ms: int,
    filters: Sequence[str] = (),
    read_data: bool = False,
    with_rows: bool = True,
) -> str:
    """The page of a table.

    Args:
        table: The table.
        made_ms: The time to put on it.
        filters: Each is explained; a read of all rows always is.
        read_data: Whether the check reads data files, too.
        with_rows: Whether the first rows are on it.

    Raises:
        InvalidPredicate: a filter does not fit the table.
    """
    seeing_all(table.store, "drawn")
    buckets = loading.load_buckets(table, None)
    opened = [
        loading.load_bucket(table, line.partition, line.bucket)
        for line in buckets.lines[:_OPEN_BUCKETS]
    ]
    partitions = loading.load_partitions(table)
    views = [view for view in VIEWS if with_rows or view != "rows"]
    style = asset("style.css").decode()
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    return render(
        "report.html",
        Site(is_live=False),
        identifier=str(table.identifier),
        made_ms=made_ms,
        views=views,
        style=Markup(style),  # noqa: S704 - our own file
        style_hash=f"sha256-{digest}",
        overview=loading.load_overview(table),
        sizes=loading.load_size_bars(table),
        history=loading.load_history(table, count=200),
        heat=loading.load_heat_map(table),
        largest=sorted(partitions, key=lambda p: -p.size)[:LARGEST],
        buckets=buckets,
        opened=opened,
        plans=[loading.load_plan(table, text) for text in dict.fromkeys(("", *filters))],
        rows=loading.load_rows(table) if with_rows else None,
        check=table.check(read_data=read_data),
    )
