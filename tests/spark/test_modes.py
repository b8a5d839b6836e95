"""The cases hold on a cluster of separate processes and through Spark Connect as well.

A process can hold one Spark session only, so each mode gets its own.
"""

from pathlib import Path
from typing import Final

import pytest

from spark.children import run_pytest

CASES: Final = Path(__file__).parent / "cases"
MODES: Final = ("cluster", "connect")
TIMEOUT_S: Final = 1800
# What goes another way in every mode: tasks, their errors, Arrow.
ESSENTIAL: Final = (
    "test_a_bucket_is_written_by_one_task",
    "test_a_null_key_found_in_a_task_is_the_same_error_as_without_spark",
    "test_a_table_that_both_read_is_one_dataframe",
    "test_a_resource_profile_is_given_to_tasks_or_refused_before_they_start",
)


@pytest.mark.timeout(TIMEOUT_S + 30)  # the subprocess is stopped before
@pytest.mark.parametrize("mode", [pytest.param("cluster", marks=pytest.mark.slow), "connect"])
def test_the_essential_cases_hold_in_the_mode(mode: str) -> None:
    run_cases(mode, "-m", "not slow", "-k", " or ".join(ESSENTIAL))


@pytest.mark.slow
@pytest.mark.timeout(TIMEOUT_S + 30)
@pytest.mark.parametrize("mode", MODES)
def test_every_case_holds_in_the_mode(mode: str) -> None:
    run_cases(mode)


def run_cases(mode: str, *arguments: str) -> None:
    run_pytest(CASES, *arguments, environment={"EMBERLAKE_SPARK": mode}, timeout_s=TIMEOUT_S)
