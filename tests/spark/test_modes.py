"""The cases hold on a cluster of separate processes and through Spark Connect as well.

A process can hold one Spark session only, so each mode gets its own.
"""

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

CASES: Final = Path(__file__).parent / "cases"
ROOT: Final = CASES.parents[2]
HAS_CASES: Final = any(CASES.glob("test_*.py"))


@pytest.mark.slow
@pytest.mark.timeout(330)  # the subprocess is stopped before
@pytest.mark.skipif(not HAS_CASES, reason="there are no cases yet")
@pytest.mark.parametrize("mode", ["cluster", "connect"])
def test_every_case_holds_in_the_mode(mode: str) -> None:
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(CASES)]

    ended = subprocess.run(
        command,
        capture_output=True,
        check=False,
        cwd=ROOT,
        env=os.environ | {"EMBERLAKE_SPARK": mode},
        text=True,
        timeout=300,
    )

    report = ended.stdout + ended.stderr
    assert ended.returncode == 0, report
    assert re.search(r"\b[1-9]\d* passed", ended.stdout), report
