"""The pictures of docs/ui.md: taken of the pages as they are, wide and narrow, light and dark.

``make screenshots`` writes them into docs/images; a plain run only checks that they can be taken.
"""

import os
from io import BytesIO
from pathlib import Path
from urllib.parse import quote

import pytest
from PIL import Image

from ui.conftest import Open, Served

pytestmark = pytest.mark.thorough

FOLDER = Path(__file__).parents[2] / "docs" / "images"
LARGEST = 150_000
FILTER = "?filter=" + quote("dt >= '2026-06-08' AND user_id < 10")
# name -> table, view, width, height, scheme
PICTURES = {
    "ui-history": ("shop.orders", "history", 1200, 900, "light"),
    "ui-partitions": ("logs.events", "partitions", 1200, 760, "dark"),
    "ui-bucket": ("shop.orders", "buckets", 1200, 620, "light"),
    "ui-plan": ("logs.events", f"plan{FILTER}", 1200, 900, "light"),
    "ui-phone": ("shop.orders", "history", 400, 800, "dark"),
}


def test_every_picture_can_be_taken_and_is_small(site: Served, visit: Open, tmp_path: Path) -> None:
    is_wanted = os.environ.get("EMBERLAKE_SCREENSHOTS") == "write"
    folder = FOLDER if is_wanted else tmp_path
    folder.mkdir(exist_ok=True)
    for name, (table, view, width, height, scheme) in PICTURES.items():
        with visit(site, width=width, height=height, scheme=scheme) as visiting:
            page = visiting.goto(site.table(table, view))
            taken = Image.open(BytesIO(page.screenshot())).convert("RGB")
        file = folder / f"{name}.webp"
        taken.save(file, lossless=True, method=4)

        assert taken.size == (width, height)
        assert len(taken.getcolors(1 << 24) or ()) > 50, f"{name} is empty"
        is_dark = sum(taken.getpixel((2, height - 2))) < 3 * 128
        assert is_dark == (scheme == "dark"), name
        assert file.stat().st_size < LARGEST, name


def test_the_page_shows_every_picture() -> None:
    text = (FOLDER.parent / "ui.md").read_text(encoding="utf-8")

    assert [name for name in PICTURES if f"images/{name}.webp" not in text] == []
    assert {file.stem for file in FOLDER.glob("ui-*")} == set(PICTURES)
