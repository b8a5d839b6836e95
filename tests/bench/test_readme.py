"""The figures in the README are those that were measured."""

import json
import runpy
from pathlib import Path

ROOT = Path(__file__).parents[2]
REPORT = json.loads((ROOT / "bench" / "results" / "results.json").read_text(encoding="utf-8"))


def test_the_tables_of_the_readme_are_those_of_the_results() -> None:
    with_tables = runpy.run_path(str(ROOT / "bench" / "readme.py"))["with_tables"]
    text = (ROOT / "README.md").read_text(encoding="utf-8")

    assert with_tables(text, REPORT) == text


def test_no_job_of_the_results_has_failed() -> None:
    engines = [found for job in REPORT["jobs"].values() for found in job["engines"].values()]

    assert engines
    assert all(found["seconds"] for found in engines)
