"""The memory of a catalog server does not grow with the requests that it answers."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from servers import free_ports

pytestmark = [pytest.mark.bench, pytest.mark.slow, pytest.mark.timeout(900)]

SCRIPT = Path(__file__).parents[2] / "bench" / "rest_load.py"
_LINE = re.compile(r"([\d,]+) done .* (\d+) failures +(\d+) MB")
_MOST_MB = 10  # what 90,000 requests may add, while each has kilobytes of its own


def test_the_memory_of_a_server_is_flat_over_100000_requests() -> None:
    (port,) = free_ports(1)
    arguments = ["table", "--tables", "100", "--seconds", "1", "--requests", "100000"]

    shown = subprocess.run(
        [sys.executable, str(SCRIPT), *arguments, "--port", str(port)],
        capture_output=True,
        text=True,
        check=True,
    ).stdout

    steps = [
        (int(done.replace(",", "")), int(failures), int(memory))
        for done, failures, memory in _LINE.findall(shown)
    ]
    warm = next(memory for done, _, memory in steps if done >= 10_000)
    print(shown)  # noqa: T201 - for the figures of docs/server.md: pytest -rP
    assert steps[-1][0] + 20_000 > 100_000  # each line says what was done before it
    assert max(failures for _, failures, _ in steps) == 0
    assert max(memory for *_, memory in steps) - warm <= _MOST_MB
