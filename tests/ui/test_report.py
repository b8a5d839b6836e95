"""The report: one file that needs nothing else."""

import re
from pathlib import Path

import pyarrow as pa
import pytest
from playwright.sync_api import Browser, expect

from builders import append, create_key_table, create_table
from emberlake import CatalogFactory
from emberlake.errors import ColumnNotFound
from emberlake.ui.report import render_report

NOW = 1_750_000_000_000
FETCHES = re.compile(r"""(?:src|href|action)=["'](?!#)[^"']*|url\(|@import|<script|<link|<form""")


def test_a_report_is_one_file_that_fetches_nothing() -> None:
    table = create_table(partition_keys=["day"])
    append(table, pa.table({"id": [1, 2], "day": ["<b>mon", "tue"]}))

    page = render_report(table, made_ms=NOW, filters=["id > 1"])

    assert FETCHES.findall(page) == []
    assert "<b>mon" not in page
    assert "Rows where <code>id &gt; 1</code>" in page
    assert "Nothing is wrong" in page


def test_a_report_of_an_empty_table_is_a_report() -> None:
    assert "Nothing has been committed yet" in render_report(create_table(), made_ms=NOW)


def test_rows_can_be_left_out() -> None:
    table = create_key_table()
    append(table, [(1, "private")])

    assert "private" in render_report(table, made_ms=NOW)
    assert 'id="rows"' not in render_report(table, made_ms=NOW, with_rows=False)
    assert "private" not in render_report(table, made_ms=NOW, with_rows=False)


def test_a_filter_that_does_not_fit_is_an_error() -> None:
    with pytest.raises(ColumnNotFound):
        render_report(create_table(), made_ms=NOW, filters=["nothing = 1"])


@pytest.mark.thorough
def test_a_report_opens_in_a_browser_as_it_is(lake: Path, tmp_path: Path, browser: Browser) -> None:
    table = CatalogFactory.create({"warehouse": str(lake)}).get_table("shop.orders")
    file = tmp_path / "report.html"
    file.write_text(render_report(table, made_ms=NOW), encoding="utf-8")
    page = browser.new_page(viewport={"width": 400, "height": 800})
    asked: list[str] = []
    complaints: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.on("console", lambda message: complaints.append(message.text))

    page.goto(file.as_uri())

    expect(page.locator("h1")).to_have_text("shop.orders")
    expect(page.locator(".bucket")).to_have_count(2)
    assert page.evaluate("getComputedStyle(document.querySelector('.top')).display") == "flex"
    assert page.evaluate("document.documentElement.scrollWidth") <= 400
    assert asked == [file.as_uri()]
    assert complaints == []
    page.close()
