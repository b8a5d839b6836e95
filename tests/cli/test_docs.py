"""The examples of docs/cli.md run, section by section, each in a shop of its own."""

import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from cli.shop import Cli
from emberlake import Catalog

PAGE = Path(__file__).parents[2] / "docs" / "cli.md"
SECTION = re.compile(r"^## (.+?)\n(.*?)(?=^## |\Z)", re.MULTILINE | re.DOTALL)
BLOCK = re.compile(r"^```console\n(.*?)^```", re.MULTILINE | re.DOTALL)
SHELL = re.compile(r"[|>]")
SLOW = {"Ingest"}  # starts Spark
SHOP = """
[default]
warehouse = "warehouse"
"""


@dataclass(frozen=True)
class Example:
    """A command and its expected output."""

    command: str
    expected: str


def sections() -> Iterator[object]:
    for title, text in SECTION.findall(PAGE.read_text(encoding="utf-8")):
        examples = [e for block in BLOCK.findall(text) for e in examples_of(block)]
        marks = [pytest.mark.slow] if title in SLOW else []
        if examples:
            yield pytest.param(examples, id=title, marks=marks)


def examples_of(block: str) -> Iterator[Example]:
    for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
        command, _, expected = part.partition("\n")
        yield Example(command, expected)


@pytest.fixture
def shop(
    catalog: Catalog, warehouse: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Path:
    """The folder that the page assumes."""
    del catalog
    monkeypatch.delenv("EMBERLAKE_WAREHOUSE")
    assert warehouse == tmp_path / "warehouse"
    (tmp_path / "emberlake.toml").write_text(SHOP, encoding="utf-8")
    (tmp_path / "customers.csv").write_text("id,name\n1,eve\n9,joe\n")
    (tmp_path / "prices.csv").write_text("item,price,dt\n1,9.5,2026-06-08\n2,3.25,2026-06-09\n")
    (tmp_path / "incoming").mkdir()
    rows = '{"id": 3, "name": "cleo"}\n{"id": 4, "name": "dan"}\n'
    (tmp_path / "incoming" / "a.json").write_text(rows)
    return tmp_path


@pytest.mark.parametrize("examples", list(sections()))
def test_the_examples_of_a_section_print_what_they_promise(
    examples: list[Example], shop: Path, cli: Cli
) -> None:
    for example in examples:
        found = run_in_shell(example.command, shop) if needs_shell(example) else run(example, cli)

        assert normal(found) == normal(example.expected), f"$ {example.command}\n{found}"


def needs_shell(example: Example) -> bool:
    """Pipes, redirections and Spark, which is started as a user's command does it."""
    bare = re.sub(r"'[^']*'|\"[^\"]*\"", "", example.command)
    return bool(SHELL.search(bare)) or example.command.startswith("emberlake ingest")


def run(example: Example, cli: Cli) -> str:
    program, *arguments = shlex.split(example.command)
    assert program == "emberlake"
    done = cli(*arguments)
    assert done.code == 0, done.err
    return done.out + done.err


def run_in_shell(command: str, folder: Path) -> str:
    tools = folder / "tools"
    tools.mkdir(exist_ok=True)
    if not (tools / "emberlake").exists():
        program = f'#!/bin/sh\nexec "{sys.executable}" -m emberlake "$@"\n'
        (tools / "emberlake").write_text(program)
        (tools / "emberlake").chmod(0o755)
    done = subprocess.run(
        [shutil.which("bash") or "sh", "-c", command],
        cwd=folder,
        env={**os.environ, "PATH": f"{tools}{os.pathsep}{os.environ['PATH']}"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    return done.stdout


# What differs from run to run, or from machine to machine.
VARYING = (
    (re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d"), "TIME"),
    (re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}"), "ID"),
    (re.compile(r"\b\d+(\.\d+)? (B|kB)\b"), "SIZE"),
    (re.compile(r"\b\d+ min \d\d s\b|\b\d+\.\d+ s\b"), "DURATION"),
    (re.compile(r'"(bytes\w*|start|read|check|write|commit)": [\d.]+'), r'"\1": N'),
    (re.compile(r"(?<=[\s\"])/\S+/(?=(warehouse|incoming)/)"), "/"),
    (re.compile(r"\u2500+"), "\u2500"),  # rules are as wide as what stands below them
    (re.compile(r"[ \n]+"), " "),
)


def normal(text: str) -> str:
    for pattern, stand_in in VARYING:
        text = pattern.sub(stand_in, text)
    return text.strip()


def test_every_command_has_an_example() -> None:
    text = PAGE.read_text(encoding="utf-8")
    commands = {
        *("db list", "db create", "db drop", "table list", "table show", "table create"),
        *("table alter", "table rename", "table drop", "ingest", "read", "plan", "snapshots"),
        *("files", "manifests", "schemas", "partitions", "partitions drop", "tags"),
        *("tags create", "tags rename", "tags delete", "branches", "branches create"),
        *("branches delete", "branches fast-forward", "rollback", "compact", "expire"),
        *("orphans", "check", "report", "sql"),
    }

    assert {name for name in commands if f"$ emberlake {name} " not in text} - {"db list"} == set()
    assert "$ emberlake db list\n" in text
