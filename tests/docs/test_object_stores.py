"""docs/object-stores.md names every option of object stores, in every spelling."""

import re

import pytest

from docs.pages import DOCS, section_of
from emberlake.io.object.location import Cloud
from emberlake.io.object.spellings import _NAMES, PREFIXES

OPTIONS = section_of(DOCS / "object-stores.md", "Options")
NAMED = {name.lower().replace("-", ".") for name in re.findall(r"`([^`\s]+)`", OPTIONS)}


@pytest.mark.parametrize("cloud", Cloud)
def test_every_spelling_of_an_option_is_in_the_page(cloud: Cloud) -> None:
    assert {*_NAMES[cloud], *PREFIXES[cloud]} - NAMED == set()
