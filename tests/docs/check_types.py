"""Type-checks the package, and the code of README.md, docs/ and examples/ as its users write it.

One run of mypy does it all. A page becomes a module whose lines are those of the page, so that an
error names the line to look at.
"""

import subprocess
import sys
from pathlib import Path

from docs.pages import PAGES, ROOT, blocks_of, name_of

# Next to what mypy remembers, for which files must not move. The name is known to pyproject.toml.
FOLDER = ROOT / ".mypy_cache" / "typed_pages"


def main() -> int:
    """Write the pages that have code, and run mypy."""
    modules = [FOLDER / "__init__.py", *map(write_page, PAGES)]
    modules[0].touch()
    for stale in set(FOLDER.glob("*.py")) - set(modules):
        stale.unlink()
    targets = [ROOT / "src", ROOT / "examples", *modules]
    return subprocess.run(
        [sys.executable, "-m", "mypy", *map(str, targets)], cwd=ROOT, check=False
    ).returncode


def write_page(page: Path) -> Path:
    """The module of a page."""
    module = FOLDER / name_of(page).replace("/", "_").replace("-", "_").replace(".md", ".py")
    module.parent.mkdir(parents=True, exist_ok=True)
    code = code_of(page)
    if not module.exists() or module.read_text(encoding="utf-8") != code:
        module.write_text(code, encoding="utf-8")
    return module


def code_of(page: Path) -> str:
    """The blocks of Python of a page, each where it stands there."""
    lines: list[str] = []
    for block in blocks_of(page):
        lines += [""] * (block.line - 1 - len(lines))
        lines += block.code.splitlines()
    return "".join(f"{line}\n" for line in lines)


if __name__ == "__main__":
    sys.exit(main())
