"""The examples run, each in a warehouse of its own, and print what they are about."""

import re
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

from docs.pages import ROOT
from docs.programs import Programs
from emberlake import CatalogFactory

EXAMPLES = ROOT / "examples"
COMMAND = re.compile(r"^\.venv/bin/emberlake (.+)$", re.MULTILINE)
# What each must have printed.
SHOWN = {
    "quickstart": ["snapshot 2: ", "rows in snapshot 1: 3"],
    "walkthrough": [
        "replaced 1000 rows with 10",
        "now: 1010 rows; before: 2000 rows",
        "refused: rows of another writer have the same sequence numbers",
    ],
    "first_hour": [
        "created with 1000 rows in snapshot 1",
        "now 1001 rows, in snapshot 1 1000 with ['id', 'day', 'price']",
        "written 1, rejected 2",
        "price: 'cheap' is not a DOUBLE",
        "id: is null, and is in the primary key",
        "into 3",
    ],
    "ingest_job": [
        "snapshot 1: 180 orders appended",
        "  2026-06-23   30 orders    777.50 in total",
        "snapshot 1 still has 180 orders",
    ],
    "upsert_job": [
        "  2  Emmy  bryn mawr  2026-06-23 09:30:00",
        "  1  Ada  london  2026-06-22 08:00:00",
        "compacted: 5 files became 2",
    ],
    "streaming_job": [
        "after 600 clicks: /page-0 200, /page-1 200, /page-2 200",
        "after a crash, with the last batch repeated: /page-0 334, /page-1 333, /page-2 333",
    ],
}


@pytest.mark.parametrize("name", SHOWN)
def test_an_example_runs_in_a_fresh_warehouse(
    name: str, programs: Programs, tmp_path: Path
) -> None:
    path = EXAMPLES / f"{name}.py"
    warehouse = str(tmp_path / "warehouse")
    takes_options = "argparse" in path.read_text(encoding="utf-8")
    arguments = ["--warehouse", warehouse] if takes_options else [warehouse]

    printed = programs.run_script(tmp_path, path, *arguments)

    assert [line for line in SHOWN[name] if line not in printed] == [], printed


def test_the_demo_runs_and_hides_no_warning(programs: Programs, tmp_path: Path) -> None:
    arguments = ("demo", "--rows", "600", "--master", "local[2]")

    printed = programs.run_script(tmp_path, EXAMPLES / "demo.py", *arguments)

    assert "Done in" in printed
    assert "snapshot 1 has 600 orders" in printed


@pytest.mark.slow
def test_the_demo_runs_on_an_s3_server_that_ends_with_it(tmp_path: Path) -> None:
    python = sys.executable
    demo = f"{python} -W error {EXAMPLES / 'demo.py'} demo --rows 600 --master local[2]"
    demo += " --warehouse s3://lake/demo"

    printed = in_shell(f"{python} {ROOT / '.ci' / 'with-s3'} {demo}", tmp_path)

    assert "snapshot 1 has 600 orders" in printed
    assert "The tables are in s3://lake/demo." in printed
    assert not (tmp_path / "demo" / "warehouse").exists()


@pytest.mark.slow
def test_the_commands_of_the_readme_run_on_what_the_demo_leaves(tmp_path: Path) -> None:
    demo = tmp_path / "demo"
    runpy.run_path(str(EXAMPLES / "demo.py"))["make_raw_files"](demo / "raw", 60)
    CatalogFactory.create({"warehouse": str(demo / "warehouse")}).create_database("shop")
    commands = COMMAND.findall((ROOT / "README.md").read_text(encoding="utf-8"))

    printed = [in_shell(f"{sys.executable} -m emberlake {c}", tmp_path) for c in commands]

    assert len(printed) == 3
    assert "loaded 60 rows into shop.sales" in printed[0]
    assert "1 of 3 read" in printed[1]
    assert "shop.sales is intact" in printed[2]


def in_shell(command: str, folder: Path) -> str:
    done = subprocess.run(
        command, shell=True, cwd=folder, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_every_example_is_run() -> None:
    names = {path.stem for path in EXAMPLES.glob("*.py") if not path.stem.startswith("demo")}

    assert names == set(SHOWN)
