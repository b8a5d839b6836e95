"""The harness finds the code of pages and runs it."""

from pathlib import Path

import pytest

from docs.pages import Block, anchors_of, blocks_of, links_of, section_of
from docs.programs import Programs

PAGE = """# A page

[away](other.md#two-words) and `[no link](x)`

```python
print(1)
```

```text
1
```

## Two words: `code`!

```python
print(2)
```

Words between.

```text
not its output
```

### Below

## Two words: `code`!
"""


@pytest.fixture
def page(tmp_path: Path) -> Path:
    path = tmp_path / "page.md"
    path.write_text(PAGE, encoding="utf-8")
    return path


def test_a_text_right_after_a_block_is_its_output(page: Path) -> None:
    assert blocks_of(page) == [Block(6, "print(1)\n", "1\n"), Block(16, "print(2)\n", None)]


def test_links_and_anchors_are_found(page: Path) -> None:
    assert links_of(page) == ["other.md#two-words"]
    assert anchors_of(page) == {"a-page", "two-words-code", "below", "two-words-code-1"}


def test_a_section_ends_where_the_next_one_begins(page: Path) -> None:
    section = section_of(page, "Two words: `code`!")

    assert "print(2)" in section
    assert "### Below" in section
    assert "## Two words" not in section


def test_a_block_that_fails_is_named_by_its_line(programs: Programs, tmp_path: Path) -> None:
    with pytest.raises(AssertionError, match=r'"page.md", line 7(?s:.*)ZeroDivisionError'):
        programs.run_blocks(tmp_path, [("page.md", 6, "a = 1\na / 0\n")])


def test_temporary_folders_of_a_block_are_in_the_folder_of_its_test(
    programs: Programs, tmp_path: Path
) -> None:
    code = "import tempfile; print(tempfile.mkdtemp())"

    (printed,) = programs.run_blocks(tmp_path, [("page.md", 1, code)])

    assert Path(printed.strip()).parent == tmp_path


def test_blocks_of_one_page_share_their_names_and_pages_do_not(
    programs: Programs, tmp_path: Path
) -> None:
    assert programs.run_blocks(tmp_path, [("a", 1, "x = 1"), ("a", 2, "print(x)")]) == ["", "1\n"]
    with pytest.raises(AssertionError, match="NameError"):
        programs.run_blocks(tmp_path, [("b", 1, "print(x)")])
