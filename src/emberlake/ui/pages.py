"""Renders templates to HTML: everything that is not markup made here is escaped."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cache
from importlib.resources import files
from typing import Any, Final
from urllib.parse import quote, urlencode

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from emberlake._version import __version__
from emberlake.base.texts import count_text, size_text
from emberlake.base.times import local_time
from emberlake.spec.identifier import Identifier
from emberlake.spec.layout import MAIN_BRANCH
from emberlake.ui import charts
from emberlake.ui.charts import Mark, Share, element
from emberlake.ui.views.history import History
from emberlake.ui.views.lsm import Run
from emberlake.ui.views.plan import PlanView, ReasonTotal

NOTHING: Final = "\u2013"  # a dash

# The views of a table, in the order of their tabs.
VIEWS: Final = {
    "overview": "Overview",
    "history": "History",
    "partitions": "Partitions",
    "buckets": "Buckets",
    "plan": "Plan",
    "rows": "Rows",
    "check": "Check",
}


@dataclass(frozen=True)
class Site:
    """What all pages have in common; ``is_live`` is false in a report, where nothing is served."""

    is_live: bool = True
    allow_writes: bool = False
    token: str = field(default="", repr=False)  # that forms send back

    def table(self, identifier: str, view: str = "overview", **query: object) -> str:
        """The address of a view of a table."""
        path = f"/table/{quote(identifier, safe='')}/{view}"
        given = {key: value for key, value in query.items() if value is not None}
        return f"{path}?{urlencode(given)}" if given else path

    def branch(self, identifier: str, branch: str) -> str:
        """The address of the history of a branch of the same table."""
        table = Identifier.parse(identifier)
        name = None if branch == MAIN_BRANCH else branch
        other = Identifier(table.database, table.table, branch=name)
        return self.table(str(other), "history")

    def database(self, name: str) -> str:
        return f"/database/{quote(name, safe='')}"

    def tree(self, name: str) -> str:
        return f"/tree/{quote(name, safe='')}"


def render(template: str, site: Site, **values: object) -> str:
    """The text of a page or of a part of one."""
    return _templates().get_template(template).render(site=site, **values)


@cache
def asset(name: str) -> bytes:
    """A file that is shipped with the package."""
    return (files("emberlake.ui") / "assets" / name).read_bytes()


@cache
def _templates() -> Environment:
    found = Environment(
        loader=PackageLoader("emberlake.ui"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    shown: Mapping[str, Callable[..., Any]] = {
        "size": shown_size,
        "number": shown_number,
        "change": shown_change,
        "size_change": shown_size_change,
        "when": shown_time,
        "count": count_text,
        "size_words": size_text,
    }
    found.filters.update(shown)
    found.globals.update(
        VIEWS=VIEWS,
        version=__version__,
        rail=charts.rail,
        rows_curve=rows_curve,
        bytes_curve=bytes_curve,
        reason_bar=reason_bar,
        share_bar=share_bar,
        run_picture=run_picture,
    )
    return found


# --- values as text -------------------------------------------------------------------------------


def shown_size(size: int | None) -> Markup:
    """A size as people read it, with the exact one on hover."""
    if size is None:
        return element("span", NOTHING, title="not known")
    return element("span", size_text(size), title=f"{size:,} bytes")


def shown_number(number: int | None) -> str:
    """``12,345``."""
    return NOTHING if number is None else f"{number:,}"


def shown_change(number: int | None) -> Markup:
    """``+12``, ``-3``; nothing for no change."""
    if not number:
        return Markup("")
    return element("span", f"{number:+,}", kind="more" if number > 0 else "less")


def shown_size_change(size: int | None) -> Markup:
    """The same for sizes."""
    if not size:
        return Markup("")
    text = f"{'+' if size > 0 else '-'}{size_text(abs(size))}"
    return element("span", text, kind="more" if size > 0 else "less", title=f"{size:+,} bytes")


def shown_time(millis: int) -> Markup:
    """The wall clock of this machine, with the exact instant on hover."""
    exact = datetime.fromtimestamp(millis / 1000, tz=UTC).isoformat(timespec="milliseconds")
    text = local_time(millis).strftime("%Y-%m-%d %H:%M")
    return element("time", text, datetime=exact, title=exact)


# --- pictures -------------------------------------------------------------------------------------


def rows_curve(history: History) -> Markup:
    """The number of rows over time."""
    return charts.curve([
        Mark(p.time_ms, p.rows, f"snapshot {p.snapshot_id}: {count_text(p.rows, 'row')}")
        for p in history.points
    ])  # fmt: skip


def bytes_curve(history: History) -> Markup:
    """The size of the live files over time."""
    return charts.curve([
        Mark(p.time_ms, p.bytes, f"snapshot {p.snapshot_id}: {size_text(p.bytes)}")
        for p in history.points
        if p.bytes is not None
    ])  # fmt: skip


def reason_bar(plan: PlanView) -> Markup:
    """How much of the table is read, and what skips the rest, by bytes."""
    return charts.bar([
        Share(_share(total, plan), f"reason {total.reason.name.lower()}", str(total.reason))
        for total in plan.totals
    ])  # fmt: skip


def _share(total: ReasonTotal, plan: PlanView) -> float:
    return total.bytes_share if plan.bytes else total.files_share


def share_bar(share: float) -> Markup:
    """A bar that is as long as its share."""
    return charts.bar([Share(share, "part", "")], "bar share")


def run_picture(run: Run) -> Markup:
    """The files of a sorted run."""
    texts = [
        f"{b.text}\n{count_text(b.rows, 'row')}, {size_text(b.size)}"
        + (f", {b.gone:.0%} deleted" if b.gone else "")
        for b in run.blocks
    ]
    return charts.run(run, texts)
