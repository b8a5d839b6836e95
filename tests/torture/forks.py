"""Processes that are cheap to make and to kill: forked from one that has everything loaded.

``python -m torture.forks`` reads one JSON line for each job, forks for it and answers with its
process id; asked to wait for one, it answers how that ended. It runs nothing itself, so that no
thread is lost in a fork.
"""

import importlib
import json
import os
import pkgutil
import signal
import subprocess
import sys
import traceback
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self

import emberlake

TESTS = Path(__file__).parents[1]
APART = {"cli", "datasource", "jobs", "lance", "spark", "torch_data"}  # what no job uses
LIBRARIES = ("obstore", "pyarrow.dataset", "pyarrow.orc", "pyarrow.parquet")
FAILED = 70  # the exit code of a job that ended by an exception


class Forks:
    """The process that forks, as others see it."""

    def __init__(self) -> None:
        path = os.pathsep.join(filter(None, (os.environ.get("PYTHONPATH"), str(TESTS))))
        environment = {**os.environ, "PYTHONPATH": path}
        self._process = subprocess.Popen(
            [sys.executable, "-m", "torture.forks"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=environment,
            text=True,
        )

    def start(self, job: str, **arguments: Any) -> int:
        """The process id of a job that runs from now on."""
        return int(self._ask({"job": job, "arguments": arguments})["pid"])

    def wait(self, pid: int) -> int:
        """How a job ended: its exit code, or the negative number of the signal that killed it."""
        return int(self._ask({"wait": pid})["status"])

    def kill(self, pid: int) -> int:
        os.kill(pid, signal.SIGKILL)
        return self.wait(pid)

    def _ask(self, request: Mapping[str, Any]) -> dict[str, Any]:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()
        answer: dict[str, Any] = json.loads(self._process.stdout.readline())
        return answer

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *problem: object) -> None:
        self._process.communicate(timeout=60)


def _serve() -> None:
    from torture.jobs import JOBS  # noqa: PLC0415 - only the process that forks needs it

    _load_all()
    for line in sys.stdin:
        request = json.loads(line)
        if "wait" in request:
            _, status = os.waitpid(request["wait"], 0)
            answer = {"status": os.waitstatus_to_exitcode(status)}
        else:
            answer = {"pid": _fork(JOBS[request["job"]], request["arguments"])}
        sys.stdout.write(json.dumps(answer) + "\n")
        sys.stdout.flush()


def _load_all() -> None:
    """Load what would be loaded on first use: a process that is killed then was at its work."""
    for module in pkgutil.walk_packages(emberlake.__path__, "emberlake."):
        if not APART & {*module.name.split(".")}:
            importlib.import_module(module.name)
    for name in LIBRARIES:
        importlib.import_module(name)


def _fork(job: Any, arguments: dict[str, Any]) -> int:
    pid = os.fork()
    if pid:
        return pid
    status = FAILED
    try:
        job(**arguments)
        status = 0
    except BaseException:  # noqa: BLE001 - it is reported, and then the process ends
        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(status)


if __name__ == "__main__":
    _serve()
