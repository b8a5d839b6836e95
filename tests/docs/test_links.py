"""Links between the pages of the repository lead somewhere, and every page is found."""

from pathlib import Path

import pytest

from docs.pages import DOCS, ROOT, anchors_of, links_of, name_of

SKIPPED = (".venv", ".venv-peers", ".build", ".git", "node_modules", ".pytest_cache")
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


def test_the_index_names_every_page() -> None:
    index = DOCS / "README.md"
    named = {(DOCS / link.partition("#")[0]).resolve() for link in links_of(index)}

    missing = [name_of(page) for page in sorted(DOCS.rglob("*.md")) if page not in {*named, index}]

    assert missing == []
