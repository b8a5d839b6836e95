"""The Python code of README.md and of docs/ runs, page by page, in a folder of its own."""

import doctest
import re
from pathlib import Path

import pytest

from docs.pages import DOCS, PAGES, blocks_of, languages_of, name_of
from docs.programs import Programs

# What may stand in a block: what is run (console: by tests/cli), what is checked (vectors: by
# test_format), and what shows no program at all.
LANGUAGES = {"python", "console", "vectors", "text", "json", "toml", ""}
# Programs of others, shown beside ours.
OTHERS = {"from-delta": {"delta"}, "from-iceberg": {"iceberg"}, "migration": {"pypaimon"}}
ON_S3 = {DOCS / "object-stores.md"}  # they find a server with a bucket by their environment
SERVED = {DOCS / "rest.md"}  # they find a REST catalog by their environment
FIXED_FOLDER = re.compile(r"[\"'](/|~/)")
AS_SHOWN = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


@pytest.mark.parametrize("page", [page for page in PAGES if blocks_of(page)], ids=name_of)
def test_the_code_of_a_page_runs_and_prints_what_it_shows(
    page: Path, programs: Programs, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    blocks = blocks_of(page)
    environment = request.getfixturevalue("s3").environment if page in ON_S3 else {}
    if page in SERVED:
        environment = request.getfixturevalue("served_environment")

    outputs = programs.run_blocks(
        tmp_path, [(name_of(page), b.line, b.code) for b in blocks], environment
    )

    checker = doctest.OutputChecker()
    for block, printed in zip(blocks, outputs, strict=True):
        if block.output is not None:
            is_shown = checker.check_output(block.output, printed, AS_SHOWN)
            assert is_shown, f"{name_of(page)}:{block.line} prints\n{printed}not\n{block.output}"


def test_the_first_example_prints_what_it_promises(programs: Programs, tmp_path: Path) -> None:
    readme = blocks_of(PAGES[0])[0]

    (printed,) = programs.run_blocks(tmp_path, [("README.md", readme.line, readme.code)])

    assert "id: [[1]]" in printed
    assert "price: [[9.5]]" in printed


@pytest.mark.parametrize("page", [page for page in PAGES if blocks_of(page)], ids=name_of)
def test_a_page_can_be_run_after_any_other_and_again(page: Path) -> None:
    """Each works in a new folder: a fixed one would have the tables of the run before."""
    codes = [block.code for block in blocks_of(page)]

    assert [code for code in codes if FIXED_FOLDER.search(code)] == []


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_every_block_is_of_a_kind_that_a_test_runs(page: Path) -> None:
    shown = LANGUAGES - (set() if page.stem == "cli" else {"console"})
    assert languages_of(page) <= shown | OTHERS.get(page.stem, set())
