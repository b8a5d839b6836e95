"""The Python code of README.md and of docs/ runs, page by page, in a folder of its own."""

import doctest
from pathlib import Path

import pytest

from docs.pages import PAGES, WAREHOUSE, blocks_of, languages_of, name_of
from docs.programs import Programs

# What may stand in a block: what is run (console: by tests/cli), and what shows no program at all.
LANGUAGES = {"python", "console", "text", "json", "toml", ""}
AS_SHOWN = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


@pytest.mark.parametrize("page", [page for page in PAGES if blocks_of(page)], ids=name_of)
def test_the_code_of_a_page_runs_and_prints_what_it_shows(
    page: Path, programs: Programs, tmp_path: Path
) -> None:
    warehouse = str(tmp_path / "warehouse")
    blocks = blocks_of(page)
    codes = [(name_of(page), b.line, b.code.replace(WAREHOUSE, warehouse)) for b in blocks]

    outputs = programs.run_blocks(tmp_path, codes)

    checker = doctest.OutputChecker()
    for block, printed in zip(blocks, outputs, strict=True):
        if block.output is not None:
            found = printed.replace(warehouse, WAREHOUSE)
            is_shown = checker.check_output(block.output, found, AS_SHOWN)
            assert is_shown, f"{name_of(page)}:{block.line} prints\n{found}not\n{block.output}"


def test_the_first_example_prints_what_it_promises(programs: Programs, tmp_path: Path) -> None:
    readme = blocks_of(PAGES[0])[0]
    code = readme.code.replace(WAREHOUSE, str(tmp_path / "warehouse"))

    (printed,) = programs.run_blocks(tmp_path, [("README.md", readme.line, code)])

    assert "id: [[1]]" in printed
    assert "price: [[9.5]]" in printed


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_every_block_is_of_a_kind_that_a_test_runs(page: Path) -> None:
    assert languages_of(page) <= LANGUAGES - (set() if page.stem == "cli" else {"console"})
