"""docs/rest.md names every option of REST catalogs."""

import re
from pathlib import Path

from docs.pages import DOCS, ROOT, section_of
from emberlake.rest.option_names import is_rest_option

NAMED = set(re.findall(r"`([a-z][^`\s]*)`", section_of(DOCS / "rest.md", "Options")))
SOURCES = [
    *(ROOT / "src" / "emberlake" / "io" / "rest").rglob("*.py"),
    *(ROOT / "src" / "emberlake" / "rest").rglob("*.py"),
]


def options_in(source: Path) -> set[str]:
    text = source.read_text(encoding="utf-8")
    found = set(re.findall(r"\"((?:dlf|token|data-token)[.a-z-]*|uri|prefix)\"", text))
    found |= {f"rest.client.{name}" for name in re.findall(r"{CLIENT}([a-z-]+)", text)}
    found |= {f"rest.client.{name}" for name in re.findall(r"_parsed\(options, \"([a-z-]+)", text)}
    return {name for name in found if is_rest_option(name) and not name.endswith(".")}


def test_every_option_is_in_the_page() -> None:
    options = set().union(*map(options_in, SOURCES))

    assert len(options) > 20
    assert options - NAMED == set()
