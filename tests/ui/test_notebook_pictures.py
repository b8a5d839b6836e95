"""The pictures of docs/notebooks.md: what a notebook shows, wide and narrow, light and dark.

``make screenshots`` writes them into docs/images; a plain run only checks that they can be taken.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from html import escape
from io import BytesIO
from pathlib import Path

import pytest
from PIL import Image
from playwright.sync_api import Browser, Page

from emberlake import CatalogFactory

pytestmark = pytest.mark.thorough

FOLDER = Path(__file__).parents[2] / "docs" / "images"
LARGEST = 120_000
CELLS = {
    "catalog": "catalog",
    "orders": "orders",
    "events.scan(filter=\"dt >= '2026-06-08' AND user_id < 10\")": "scan",
    "orders.latest_snapshot()": "snapshot",
    "orders.check()": "check",
}
# As JupyterLab does it: the page has its colours, outputs inherit them.
STYLE = """
body { margin: 0; padding: 16px; font: 14px system-ui, sans-serif; color: #1f1f1f;
       background: #fff; }
.in { font: 13px ui-monospace, monospace; background: #f5f5f5; border: 1px solid #e0e0e0;
      padding: 6px 10px; border-radius: 3px; white-space: pre-wrap; overflow-wrap: anywhere; }
.out { padding: 6px 10px 18px; }
@media (prefers-color-scheme: dark) {
  body { color: #e0e0e0; background: #111; } .in { background: #212121; border-color: #424242; }
}
"""
# name -> width, scheme; each is as high as the page, so that nothing is cut off
PICTURES = {
    "notebook": (1000, "light"),
    "notebook-dark": (1000, "dark"),
    "notebook-narrow": (420, "dark"),
}


@pytest.fixture(scope="module")
def cells(lake: Path) -> dict[str, str]:
    """What was typed, and the HTML that answers it."""
    catalog = CatalogFactory.create({"warehouse": str(lake)})
    orders, events = catalog.get_table("shop.orders"), catalog.get_table("logs.events")
    values = {
        "catalog": catalog,
        "orders": orders,
        "scan": events.scan(filter="dt >= '2026-06-08' AND user_id < 10"),
        "snapshot": orders.latest_snapshot(),
        "check": orders.check(),
    }
    shown = {typed: values[name]._repr_html_() for typed, name in CELLS.items()}
    return {typed: html.replace(str(lake), "/data/lake") for typed, html in shown.items()}


@contextmanager
def notebook(browser: Browser, cells: dict[str, str], width: int, scheme: str) -> Iterator[Page]:
    context = browser.new_context(
        viewport={"width": width, "height": 600},
        color_scheme=scheme,  # type: ignore[arg-type]
    )
    page = context.new_page()
    body = "".join(
        f'<div class="in">{escape(typed)}</div><div class="out">{html}</div>'
        for typed, html in cells.items()
    )
    page.set_content(f"<!doctype html><style>{STYLE}</style>{body}")
    try:
        yield page
    finally:
        context.close()


def test_every_picture_can_be_taken_and_nothing_sticks_out(
    browser: Browser, cells: dict[str, str], tmp_path: Path
) -> None:
    is_wanted = os.environ.get("EMBERLAKE_SCREENSHOTS") == "write"
    folder = FOLDER if is_wanted else tmp_path
    for name, (width, scheme) in PICTURES.items():
        with notebook(browser, cells, width, scheme) as page:
            taken = Image.open(BytesIO(page.screenshot(full_page=True))).convert("RGB")
            wide = page.evaluate("document.documentElement.scrollWidth")
        file = folder / f"{name}.webp"
        taken.save(file, lossless=True, method=4)

        assert wide <= width, name
        assert len(taken.getcolors(1 << 24) or ()) > 50, f"{name} is empty"
        assert (sum(taken.getpixel((2, taken.height - 2))) < 3 * 128) == (scheme == "dark"), name
        assert file.stat().st_size < LARGEST, name


def test_the_page_shows_every_picture() -> None:
    text = (FOLDER.parent / "notebooks.md").read_text(encoding="utf-8")

    assert [name for name in PICTURES if f"images/{name}.webp" not in text] == []
    assert {file.stem for file in FOLDER.glob("notebook*")} == set(PICTURES)
