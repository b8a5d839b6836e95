"""ARCHITECTURE.md describes every part of the package, and names files that exist."""

import re
from pathlib import Path

from architecture.test_layers import LEVEL

ROOT = Path(__file__).parents[2]
DOCUMENT = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
PLACES = (ROOT, ROOT / "src/emberlake", ROOT / "tests")
# The version, and the module behind ``python -m emberlake``.
NOT_DESCRIBED = {"_version", "__main__"}


def test_every_part_is_described() -> None:
    described = set(re.findall(r"\*\*(\w+)\*\*", DOCUMENT))

    assert sorted(LEVEL.keys() - NOT_DESCRIBED - described) == []


def test_every_file_that_is_named_exists() -> None:
    named = {n for n in re.findall(r"`([\w./-]+\.py)`", DOCUMENT) if "/" in n}

    assert len(named) > 20
    assert [n for n in sorted(named) if not any((place / n).is_file() for place in PLACES)] == []
