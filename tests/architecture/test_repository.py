"""What the repository holds."""

import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
LARGEST = 3 * 1024 * 1024  # bytes; the archive of golden tables is the largest file


@pytest.fixture(scope="module")
def tracked() -> list[Path]:
    """The files that git knows; none in a package that was unpacked somewhere."""
    if not (ROOT / ".git").exists() or shutil.which("git") is None:
        return []
    return [ROOT / name for name in _git("ls-files", "-z").split("\0") if name]


def test_nothing_that_git_ignores_is_committed() -> None:
    ignored = _git("ls-files", "-z", "--cached", "--ignored", "--exclude-standard")

    assert [name for name in ignored.split("\0") if name][:10] == []


def test_files_are_small(tracked: list[Path]) -> None:
    large = [str(path) for path in tracked if path.is_file() and path.stat().st_size > LARGEST]

    assert large == []


def _git(*arguments: str) -> str:
    if not (ROOT / ".git").exists() or shutil.which("git") is None:
        return ""
    done = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=True)
    return done.stdout
