"""The site of the documentation: every page is in it, and it builds without a warning."""

import json
import re
import subprocess
from pathlib import Path

import pytest

from docs.pages import DOCS, ROOT
from needs import lacking

CONFIG = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
GENERATED = {"examples.md", "changelog.md"}
LOADED = re.compile(r"<(?:script|link|img|iframe|source)\b[^>]*?(?:src|href)=\"?(https?:[^ \">]+)")


def test_every_page_is_in_the_navigation() -> None:
    named = set(re.findall(r"(?:- |: )([\w/-]+\.md)$", CONFIG, re.MULTILINE))
    pages = {str(page.relative_to(DOCS)) for page in DOCS.rglob("*.md")}

    assert named == pages | GENERATED


@pytest.mark.slow
def test_the_site_builds_with_no_broken_link_and_asks_no_other_host(tmp_path: Path) -> None:
    mkdocs = ROOT / ".venv-docs" / "bin" / "mkdocs"
    if not mkdocs.exists():
        lacking("there is no MkDocs; run make docs")

    done = subprocess.run(
        [mkdocs, "build", "--strict", "--site-dir", str(tmp_path / "site")],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 0, done.stderr
    pages = list((tmp_path / "site").rglob("*.html"))
    assert len(pages) > 40
    asked = {url for page in pages for url in LOADED.findall(page.read_text(encoding="utf-8"))}
    assert asked == set()
    index = json.loads((tmp_path / "site" / "search" / "search_index.json").read_text())
    assert any("ILIKE" in entry["text"] for entry in index["docs"])
