"""CONTRIBUTING.md describes the tests, and the tools that run them, as they are."""

import os
import subprocess
from pathlib import Path

import pytest

from docs.pages import ROOT, section_of

PAGE = ROOT / "CONTRIBUTING.md"
MAKE = """#!/bin/sh
echo "make $*, CI=$CI" >> "$MADE"
[ "$1" != "$FAILING" ]
"""


def test_every_folder_of_tests_is_explained() -> None:
    folders = sorted({path.parent for path in (ROOT / "tests").glob("*/**/test_*.py")})
    names = {folder.relative_to(ROOT).parts[1] for folder in folders}

    assert [n for n in sorted(names) if f"`tests/{n}`" not in section_of(PAGE, "Tests")] == []


@pytest.mark.parametrize(
    ("failing", "made"),
    [
        ("nothing", "make check, CI=true\nmake test, CI=true\n"),
        ("check", "make check, CI=true\n"),
    ],
)
def test_continuous_integration_tests_what_passed_the_checks(
    failing: str, made: str, tmp_path: Path
) -> None:
    make = tmp_path / "make"
    make.write_text(MAKE)
    make.chmod(0o755)
    environment = {
        **{key: value for key, value in os.environ.items() if key != "CI"},
        "PATH": f"{tmp_path}{os.pathsep}{os.environ['PATH']}",
        "MADE": str(tmp_path / "made"),
        "FAILING": failing,
    }

    done = subprocess.run([ROOT / ".ci" / "run"], env=environment, check=False)

    assert (done.returncode == 0) is (failing == "nothing")
    assert (tmp_path / "made").read_text() == made
