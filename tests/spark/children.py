"""Processes that tests start, and of which none is left behind."""

import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

ROOT = Path(__file__).parents[2]


def run_group(
    command: Sequence[str], environment: Mapping[str, str], timeout_s: float
) -> tuple[int, str]:
    """Run a program to its end; its exit code, and all that it and its children said."""
    # A file, since a pipe is open as long as any process has it that the program has started.
    with tempfile.TemporaryFile("w+") as said:
        started = subprocess.Popen(
            command,
            stdout=said,
            stderr=said,
            cwd=ROOT,
            env={**os.environ, **environment},
            start_new_session=True,
        )
        try:
            code = started.wait(timeout_s)
        except subprocess.TimeoutExpired:
            os.killpg(started.pid, signal.SIGQUIT)  # JVMs and drivers say what they wait for
            time.sleep(2)
            said.seek(0)
            raise TimeoutError(f"{command} hangs after {timeout_s} s\n{said.read()}") from None
        finally:
            with suppress(ProcessLookupError):
                os.killpg(started.pid, signal.SIGKILL)  # its JVMs are of its group
        said.seek(0)
        return code, said.read()


def run_pytest(
    folder: Path, *arguments: str, environment: Mapping[str, str], timeout_s: float
) -> None:
    """Run the tests of a folder in a process of their own, with a session of their own."""
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(folder)]
    code, said = run_group([*command, *arguments], environment, timeout_s)
    assert code == 0, said
    assert re.search(r"\b[1-9]\d* passed", said), said
