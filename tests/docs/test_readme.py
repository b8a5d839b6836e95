"""The Python code of README.md and of docs/ runs, page by page, in a folder of its own."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
BLOCK = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)
WAREHOUSE = "/tmp/warehouse"  # what the pages write to


def code_of(page: Path) -> str:
    """All blocks of a page as one program: later ones go on where earlier ones ended."""
    return "\n".join(BLOCK.findall(page.read_text(encoding="utf-8")))


@pytest.mark.parametrize(
    "page",
    [page for page in PAGES if code_of(page)],
    ids=lambda page: page.relative_to(ROOT).as_posix(),
)
def test_the_code_of_a_page_runs(page: Path, tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(
        code_of(page).replace(WAREHOUSE, str(tmp_path / "warehouse")), encoding="utf-8"
    )

    done = subprocess.run(
        # PySpark warns of the pandas that it is not made for yet.
        [sys.executable, "-W", "error", "-W", "ignore::FutureWarning", str(program)],
        cwd=tmp_path,
        env={**os.environ, "PYSPARK_PYTHON": sys.executable},
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 0, done.stderr


def test_the_first_example_prints_what_it_promises(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    code = BLOCK.findall((ROOT / "README.md").read_text(encoding="utf-8"))[0]
    program.write_text(code.replace(WAREHOUSE, str(tmp_path / "warehouse")), encoding="utf-8")

    done = subprocess.run(
        [sys.executable, str(program)], cwd=tmp_path, capture_output=True, text=True, check=True
    )

    assert "id: [[1]]" in done.stdout
    assert "price: [[9.5]]" in done.stdout
