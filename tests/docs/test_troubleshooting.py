"""Every error that emberlake raises on purpose is explained in troubleshooting.md."""

import inspect
import re

import pytest

from docs.pages import DOCS, ROOT, section_of
from emberlake import errors

PAGE = DOCS / "troubleshooting.md"
CLASSES = sorted(
    {
        value.__name__
        for value in vars(errors).values()
        if inspect.isclass(value)
        and value.__module__ == errors.__name__
        and not value.__name__.startswith("_")
    }
)


@pytest.mark.parametrize("name", CLASSES)
def test_every_error_has_a_section_that_says_something(name: str) -> None:
    assert len(section_of(PAGE, name).split()) > 4


@pytest.mark.parametrize("reason", errors.ConflictReason)
def test_every_reason_of_a_conflict_is_explained(reason: errors.ConflictReason) -> None:
    row = re.search(
        rf"^\| `{reason.name}` \| `(.+?)` \| .+ \| .+ \|$", PAGE.read_text(), re.MULTILINE
    )

    assert row is not None
    assert row[1] == reason.value


def test_every_message_of_a_snapshot_that_stands_is_explained() -> None:
    """Its rows are in the table: who takes it for a commit that was refused writes them twice."""
    sources = [path.read_text(encoding="utf-8") for path in (ROOT / "src").rglob("*.py")]
    said = {text for source in sources for text in re.findall(r"stands, but [a-z ]+[a-z]", source)}

    assert said
    assert [text for text in said if text not in section_of(PAGE, "A snapshot stands")] == []


def test_sections_follow_the_tree_of_errors() -> None:
    """An error stands under the one that it is a kind of, so that what is said there holds."""
    for name in CLASSES:
        parent = getattr(errors, name).__mro__[1].__name__
        if parent in CLASSES and parent != "EmberlakeError":
            assert f"### {name}\n" in section_of(PAGE, parent)
