"""compatibility.md names the versions that the tests run with, and the tables that they read."""

import re
from pathlib import Path

import pytest

from docs.pages import DOCS, ROOT
from golden.reads import reads_of

PAGE = (DOCS / "compatibility.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("package", ["pypaimon", "pypaimon-rust"])
def test_the_versions_of_peers_are_those_that_are_installed(package: str) -> None:
    pins = (ROOT / "constraints-peers.txt").read_text(encoding="utf-8")
    version = re.search(rf"^{package}==(\S+)$", pins, re.MULTILINE)

    assert version is not None
    assert f"| {package} | {version[1]} |" in PAGE


def test_the_version_of_java_is_the_one_that_is_built() -> None:
    build = (ROOT / "tests" / "interop" / "java" / "build").read_text(encoding="utf-8")
    version = re.search(r"^PAIMON=(\S+)$", build, re.MULTILINE)

    assert version is not None
    assert f"| Java Paimon | {version[1]} | live" in PAGE


def test_the_number_of_golden_tables_is_right() -> None:
    tables = {read.table for read in reads_of("")}

    assert f"`tests/golden`, {len(tables)} tables" in PAGE


def test_the_suites_that_are_named_are_there() -> None:
    named = re.findall(r"`(tests/[\w/.]+)`", PAGE)

    assert len(named) > 3
    assert [name for name in named if not Path(ROOT / name).exists()] == []
