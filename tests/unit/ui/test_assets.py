"""The shipped assets name no other host, and those of others have their licence."""

import hashlib
import re
from importlib.resources import files

from emberlake.ui.app import ASSETS
from emberlake.ui.pages import asset

UI = files("emberlake.ui")
# htmx 2.0.11 as published; a new version has another hash, and perhaps other habits.
HTMX = "d6fdc75f204e6bdefa99b69bf1e6d4ac69b8a364f77929f45c13476b4000f717"
ELSEWHERE = re.compile(r"(?<!xmlns=\")https?://|@import|url\(")


def texts() -> dict[str, str]:
    folders = [UI / "templates", UI / "templates" / "parts"]
    pages = {
        f.name: f.read_text(encoding="utf-8")
        for folder in folders
        for f in folder.iterdir()
        if f.is_file()
    }
    return {**pages, **{name: asset(name).decode() for name in ASSETS if "htmx" not in name}}


def test_no_page_and_no_style_names_another_host() -> None:
    assert [name for name, text in texts().items() if ELSEWHERE.search(text)] == []


def test_no_template_has_a_style_or_a_script_inside() -> None:
    inside = re.compile(r"style=|<script(?! src)|\son\w+=|\|\s*safe")

    assert [name for name, text in texts().items() if inside.search(text)] == []


def test_the_script_is_the_published_one_and_has_its_licence() -> None:
    assert hashlib.sha256(asset("htmx.min.js")).hexdigest() == HTMX
    assert "Zero-Clause BSD" in asset("htmx-LICENSE.txt").decode()
