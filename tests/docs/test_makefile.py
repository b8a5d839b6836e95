"""What `make` installs, and what it prints about that."""

import re
import subprocess
from functools import cache

import pytest

from docs.pages import ROOT

EXTRAS = re.compile(r"-e '\.\[(.*?)\]'")


@cache
def would_run(*arguments: str) -> str:
    """The commands that make would run in an empty checkout."""
    done = subprocess.run(
        ["make", "--dry-run", "--always-make", *arguments],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout


def test_the_demo_installs_what_it_needs_and_says_how_much_that_is() -> None:
    commands = would_run("demo")

    assert EXTRAS.findall(commands) == ["spark,cli"]
    assert re.search(r"about \d+ MB to download, \d+ MB on disk", commands)
    assert commands.index("require-java") < commands.index("pip install")


def test_the_demo_on_s3_installs_a_server_and_runs_beside_it() -> None:
    commands = would_run("demo", "S3=1")

    assert EXTRAS.findall(commands) == ["spark,cli", "spark,cli,s3"]
    assert ".ci/object-stores one" in commands
    assert ".ci/with-s3 .venv/bin/python examples/demo.py demo --warehouse s3://" in commands
    assert ".ci/with-s3" not in would_run("demo")


def test_quick_tests_need_neither_java_nor_peers() -> None:
    commands = would_run("quick")

    assert "java" not in commands
    assert ".venv-peers" not in commands
    (run,) = [line for line in commands.splitlines() if " pytest " in line]
    assert run.endswith("tests/unit tests/property tests/conformance tests/architecture")


def test_tests_get_the_servers_that_they_start() -> None:
    assert ".ci/object-stores" in would_run("test")
    assert ".ci/object-stores" not in would_run("quick")


def test_development_tools_come_on_top_in_the_same_environment() -> None:
    run, development = EXTRAS.findall(would_run(".venv/.stamp"))

    assert set(run.split(",")) < set(development.split(","))
    assert "dev" in development.split(",")


def test_all_versions_are_pinned() -> None:
    installs = [line for line in would_run("setup").splitlines() if "pip install" in line]

    assert [line for line in installs if " -c constraints" not in line] == []
    assert len(installs) == 5


@pytest.mark.parametrize("folder", ["src", "examples", "Makefile", ".ci"])
def test_no_warning_is_hidden_from_users(folder: str) -> None:
    place = ROOT / folder
    files = [place] if place.is_file() else [p for p in place.rglob("*") if p.is_file()]
    texts = {p: p.read_text(encoding="utf-8") for p in files if p.suffix not in (".pyc", ".so")}
    hiding = re.compile(r"-W *ignore|filterwarnings|simplefilter|PYTHONWARNINGS")

    assert [str(path) for path, text in texts.items() if hiding.search(text)] == []


def test_torture_takes_minutes_and_can_be_done_again() -> None:
    given = ("MINUTES=60", "SEED=7", "PLACE=s3", "PARTS=faults kills")

    assert "-m torture --minutes 10 " in would_run("torture")
    commands = would_run("torture", *given)
    assert "-m torture --minutes 60 --seed 7 --place s3 faults kills" in commands
