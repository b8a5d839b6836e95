"""Runs programs in a process of their own, which stays for the next one."""

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from effort import JVM_OPTIONS
from interop.judges import LineProcess

WORKER = Path(__file__).with_name("program_worker.py")
WARNINGS = ("-W", "error")


class Programs:
    """What program_worker.py does, asked for by a test."""

    def __init__(self) -> None:
        self._process: LineProcess | None = None

    def run_blocks(
        self,
        folder: Path,
        blocks: list[tuple[str, int, str]],
        environment: Mapping[str, str] | None = None,
    ) -> list[str]:
        """What each block has printed; a block is a name, the line where it begins, and code."""
        request = {"folder": str(folder), "blocks": blocks, "environment": dict(environment or {})}
        return self._ask(request)

    def run_script(self, folder: Path, script: Path, *arguments: str) -> str:
        """What a script has printed."""
        request = {"folder": str(folder), "script": str(script), "arguments": arguments}
        (printed,) = self._ask(request)
        return printed

    def close(self) -> None:
        if self._process is not None:
            self._process.close()

    def _ask(self, request: dict[str, Any]) -> list[str]:
        if self._process is None:
            quick = f"SPARK_SUBMIT_OPTS={' '.join(JVM_OPTIONS)}"
            self._process = LineProcess(["env", quick, sys.executable, *WARNINGS, str(WORKER)])
        try:
            answer = self._process.ask(request)
        except BaseException:  # a timeout, say: a late answer must not be taken for the next one's
            self._process._process.kill()
            self._process.close()
            self._process = None
            raise
        assert "failure" not in answer, answer["failure"]
        printed: list[str] = answer["printed"]
        return printed
