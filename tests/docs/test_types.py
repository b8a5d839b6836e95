"""What make check reads as types: the code of the pages, and what the first calls give."""

from pathlib import Path
from typing import get_type_hints

import pytest

from docs.check_types import code_of
from docs.pages import PAGES, blocks_of, name_of
from emberlake import Catalog, SystemTable, Table


@pytest.mark.parametrize("page", [page for page in PAGES if blocks_of(page)], ids=name_of)
def test_code_stands_where_it_does_in_its_page(page: Path) -> None:
    lines, shown = code_of(page).splitlines(), page.read_text(encoding="utf-8").splitlines()

    assert sum(map(len, lines)) == sum(len(b.code.replace("\n", "")) for b in blocks_of(page))
    assert [at for at, line in enumerate(lines) if line and line != shown[at]] == []


def test_a_table_is_a_table_to_type_checkers() -> None:
    """With a union, the first lines of README.md would not pass."""
    assert get_type_hints(Catalog.get_table)["return"] is Table
    assert get_type_hints(Catalog.get_system_table)["return"] is SystemTable
