"""The pages as people use them: a real browser, the real program."""

import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest
from playwright.sync_api import Page, expect

from emberlake import CatalogFactory
from ui.conftest import Open, Served, served, views_of
from ui.lake import SECRET, make_many_files

pytestmark = pytest.mark.thorough

WIDE = "document.documentElement.scrollWidth - document.documentElement.clientWidth"


def colours(page: Page) -> tuple[str, str]:
    """The colours of text and ground."""
    style = "getComputedStyle(document.body)"
    return page.evaluate(f"{style}.color"), page.evaluate(f"{style}.backgroundColor")


def contrast(one: str, other: str) -> float:
    """The contrast between two colours, as WCAG defines it."""

    def light(colour: str) -> float:
        parts = [int(n) / 255 for n in re.findall(r"\d+", colour)[:3]]
        linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    dark, bright = sorted((light(one), light(other)))
    return (bright + 0.05) / (dark + 0.05)


@pytest.mark.parametrize(("width", "scheme"), [(1400, "light"), (400, "light"), (400, "dark")])
def test_every_page_loads_fits_and_asks_nobody_else(
    site: Served, visit: Open, width: int, scheme: str
) -> None:
    with visit(site, width=width, scheme=scheme) as visiting:
        for url in views_of(site):
            page = visiting.goto(url)
            expect(page.locator("main h1")).to_be_visible()
            assert page.evaluate(WIDE) <= 0, url
            assert contrast(*colours(page)) > 7
            for quiet in page.locator(".quiet, dt, thead th").all()[:3]:
                ground = colours(page)[1]
                colour = quiet.evaluate("e => getComputedStyle(e).color")
                assert contrast(colour, ground) > 4.5, quiet.inner_text()
            assert SECRET not in page.content()

        assert visiting.outside == []
        assert visiting.complaints == []


def test_a_filter_is_explained_while_it_is_typed(site: Served, visit: Open) -> None:
    with visit(site) as visiting:
        page = visiting.goto(site.table("logs.events", "plan"))
        expect(page.locator(".verdict")).to_contain_text("files are read")
        everything = page.locator(".verdict b").inner_text()

        page.fill("#filter", "dt = '2026-06-03'")
        expect(page.locator("table.reasons")).to_contain_text("its partition does not match")
        read = page.locator(".verdict b").inner_text()

        page.fill("#filter", "dt = '2026-06-03' AND user_id > 100000")
        expect(page.locator(".verdict b")).to_have_text("0")
        expect(page.locator("table.files")).to_contain_text("user_id: ")

        page.fill("#filter", "nonsense >")
        expect(page.locator("#plan .problem")).to_contain_text("nonsense")

    assert 0 < int(read) < int(everything)
    assert visiting.complaints == []


def test_the_tree_leads_to_a_table_and_its_pictures(site: Served, visit: Open) -> None:
    with visit(site) as visiting:
        page = visiting.page
        page.locator("nav.tree details details").nth(1).evaluate("e => { e.open = true; }")
        page.click("nav.tree a:text-is('orders')")
        page.click("nav.tabs a:text-is('History')")
        expect(page.locator(".version .label.tag")).to_have_text(["week-6", "week-2"])
        expect(page.locator(".version .label.head")).to_have_text(["main", "prices"])
        assert page.locator("svg.rail circle").count() == page.locator(".version").count()

        page.click("nav.tabs a:text-is('Buckets')")
        expect(page.locator(".bucket")).to_contain_text("sorted runs")
        page.click("section.buckets > .wide a:text-is('1')")
        expect(page.locator(".bucket h2")).to_contain_text("bucket 1")

        page.goto(site.table("logs.events", "partitions"))
        page.locator("table.matrix a.h8").first.click()
        expect(page.locator("section.buckets")).to_contain_text("1 bucket in dt=")


def test_a_check_runs_from_the_page(site: Served, visit: Open) -> None:
    with visit(site) as visiting:
        page = visiting.goto(site.table("shop.orders", "check"))
        page.check("input[name=data]")
        page.click("button:text-is('Check')")
        expect(page.locator("#checked .good")).to_contain_text("Nothing is wrong")


@pytest.fixture(scope="module")
def writable(lake: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """Pages that can write to a copy."""
    copy = tmp_path_factory.mktemp("writable")
    shutil.copytree(lake / "shop.db", copy / "shop.db")
    with served(copy, "--allow-writes") as running:
        yield running


@pytest.mark.parametrize("with_scripts", [True, False])
def test_tags_and_compaction_work_where_they_are_allowed(
    writable: Served, visit: Open, with_scripts: bool
) -> None:
    tag = f"by-hand-{with_scripts}"
    with visit(writable, java_script_enabled=with_scripts) as visiting:
        page = visiting.goto(writable.table("shop.orders"))
        page.fill("input[name=name]", tag)
        page.click("button:text-is('Create')")
        expect(page.locator(".good")).to_have_text(f"Created tag {tag}.")
        page.goto(writable.table("shop.orders"))
        page.check("input[name=full]")
        page.click("button:text-is('Compact')")
        expect(page.locator(".good")).to_contain_text(re.compile("ompact"))

    catalog = CatalogFactory.create({"warehouse": str(writable.warehouse)})
    table = catalog.get_table("shop.orders")
    assert tag in table.list_tags()
    assert table.latest_snapshot().commit_kind == "COMPACT"


@contextmanager
def page_of_others(text: str) -> Iterator[str]:
    """A page on another site: to browsers, localhost is not 127.0.0.1."""

    class Answers(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            self.end_headers()
            self.wfile.write(text.encode())

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Answers) as server:
        thread = Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield f"http://localhost:{server.server_port}/"
        finally:
            server.shutdown()
            thread.join()


def test_another_site_in_the_same_browser_gets_nothing_but_links(
    writable: Served, visit: Open
) -> None:
    address = writable.table("shop.orders", "tags")
    evil = f"""<form method="post" action="{address}"><input name="name" value="evil">
      <button>win</button></form> <a href="{writable.table("shop.orders")}">look</a>
      <img src="{writable.origin}/assets/icon.svg?evil">"""
    with visit(writable) as visiting, page_of_others(evil) as url:
        page = visiting.page
        with page.expect_event("requestfailed", lambda r: r.url.endswith("?evil")) as image:
            page.goto(url)
        with page.expect_response("**/tags") as form:
            page.click("button")
        page.goto(url)
        page.click("a")
        expect(page.locator("main h1")).to_have_text("shop.orders")

    assert "NotSameOrigin" in str(image.value.failure)
    assert form.value.status == 403
    catalog = CatalogFactory.create({"warehouse": str(writable.warehouse)})
    assert "evil" not in catalog.get_table("shop.orders").list_tags()


def test_50_000_files_stay_usable(tmp_path: Path, visit: Open) -> None:
    catalog = CatalogFactory.create({"warehouse": str(tmp_path)})
    make_many_files(catalog, 50_000)
    with served(tmp_path) as running, visit(running) as visiting:
        page = visiting.page
        for view in ("overview", "history", "partitions", "buckets", "plan"):
            page.goto(running.table("huge.t", view))
            expect(page.locator("main h1")).to_have_text("huge.t")
            assert page.evaluate("document.querySelectorAll('*').length") < 5_000, view
        page.fill("#filter", "dt = '2026-02-01' AND user_id >= 0")
        expect(page.locator(".verdict")).to_contain_text("500 of 50,000 files are read")

    assert visiting.complaints == []
