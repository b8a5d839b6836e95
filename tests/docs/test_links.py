"""Links between the pages of the repository lead somewhere, and every page is found."""

from pathlib import Path

import pytest

from docs.pages import DOCS, ROOT, anchors_of, links_of, name_of

SKIPPED = (
    ".venv",
    ".venv-peers",
    ".venv-docs",
    "build",
    ".build",
    ".git",
    "node_modules",
    ".pytest_cache",
)
ALL_PAGES = sorted(
    page for page in ROOT.rglob("*.md") if not set(SKIPPED) & set(page.relative_to(ROOT).parts)
)


@pytest.mark.parametrize("page", ALL_PAGES, ids=name_of)
def test_every_link_of_a_page_leads_somewhere(page: Path) -> None:
    broken = []
    for link in links_of(page):
        if "://" in link or link.startswith("mailto:"):
            continue
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        if not target.exists() or (anchor and anchor not in anchors_of(target)):
            broken.append(link)

    assert broken == []


@pytest.mark.parametrize("index", sorted(DOCS.rglob("README.md")), ids=name_of)
def test_the_index_of_a_folder_names_every_page_in_it(index: Path) -> None:
    named = {(index.parent / link.partition("#")[0]).resolve() for link in links_of(index)}
    pages = [*index.parent.glob("*.md"), *index.parent.glob("*/README.md")]

    assert [name_of(page) for page in sorted(pages) if page not in {*named, index}] == []


def test_every_folder_of_pages_has_an_index() -> None:
    folders = {page.parent for page in DOCS.rglob("*.md")}

    assert [name_of(f) for f in sorted(folders) if not (f / "README.md").exists()] == []
