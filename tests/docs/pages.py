"""The pages of the documentation: where they are, the code that is in them, their links."""

import re
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = [ROOT / "README.md", *sorted(DOCS.rglob("*.md"))]

_FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"\[[^\]\n]*\]\(([^)\s]+)\)")
_HEADING = re.compile(r"^#{1,6} +(.+?) *$", re.MULTILINE)
_INLINE_CODE = re.compile(r"`[^`\n]*`")


@dataclass(frozen=True)
class Block:
    """A block of Python, and the output that the page promises right after it."""

    line: int
    code: str
    output: str | None


def name_of(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


def blocks_of(page: Path) -> list[Block]:
    """The blocks of Python of a page; a block of text right after one is what it prints."""
    text = page.read_text(encoding="utf-8")
    fences = list(_FENCE.finditer(text))
    blocks = []
    for fence, after in zip_longest(fences, fences[1:]):
        if fence[1] != "python":
            continue
        follows = after is not None and not text[fence.end() : after.start()].strip()
        output = after[2] if after is not None and follows and after[1] == "text" else None
        line = text.count("\n", 0, fence.start(2)) + 1
        blocks.append(Block(line, fence[2], output))
    return blocks


def languages_of(page: Path) -> set[str]:
    return {fence[1] for fence in _FENCE.finditer(page.read_text(encoding="utf-8"))}


def prose_of(page: Path) -> str:
    """A page without its blocks of code."""
    return _FENCE.sub("", page.read_text(encoding="utf-8"))


def links_of(page: Path) -> list[str]:
    return _LINK.findall(_INLINE_CODE.sub("", prose_of(page)))


def anchors_of(page: Path) -> set[str]:
    """The names by which links reach the headings of a page, as GitHub gives them."""
    seen: dict[str, int] = {}
    anchors = set()
    for heading in _HEADING.findall(prose_of(page)):
        text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).lower()
        anchor = re.sub(r"[^\w\- ]", "", text).replace(" ", "-")
        count = seen.get(anchor, 0)
        seen[anchor] = count + 1
        anchors.add(f"{anchor}-{count}" if count else anchor)
    return anchors


def section_of(page: Path, heading: str) -> str:
    """What stands under a heading, up to the next one of its level or above."""
    text = page.read_text(encoding="utf-8")
    start = re.search(rf"^(#+) {re.escape(heading)}$", text, re.MULTILINE)
    assert start is not None, f"{name_of(page)} has no heading {heading!r}"
    level = len(start[1])
    end = re.search(rf"^#{{1,{level}}} ", text[start.end() :], re.MULTILINE)
    return text[start.end() :][: end.start() if end else None]
