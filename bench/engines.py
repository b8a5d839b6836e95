"""The engines that are compared, each in a process of its own that takes requests."""

import json
import os
import platform
import subprocess
import sys
import tempfile
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
ROOT = HERE.parent
PEERS_PYTHON = str(ROOT / ".venv-peers" / "bin" / "python")
DELTA_PYTHON = str(ROOT / ".venv-delta" / "bin" / "python")  # bench/README.md says how to make it
DELTALAKE_PYTHON = str(ROOT / ".venv-deltalake" / "bin" / "python")  # without Spark


@dataclass(frozen=True)
class Engine:
    """How the process of an engine is started."""

    name: str
    title: str
    python: str
    script: str
    source: Path | None = None  # another checkout's sources, before those that are installed

    @property
    def command(self) -> list[str]:
        return [self.python, str(HERE / self.script), "emberlake" if self.source else self.name]

    @property
    def environment(self) -> dict[str, str]:
        return {**os.environ, "PYTHONPATH": str(self.source)} if self.source else dict(os.environ)


LOCAL = {
    engine.name: engine
    for engine in (
        Engine("emberlake", "emberlake", sys.executable, "engine_worker.py"),
        Engine("rust", "pypaimon-rust", PEERS_PYTHON, "engine_worker.py"),
        Engine("pypaimon", "pypaimon", PEERS_PYTHON, "engine_worker.py"),
        Engine("parquet", "pyarrow Parquet", sys.executable, "engine_worker.py"),
    )
}
# pyarrow goes through its own filesystem there.
S3 = {
    **LOCAL,
    "parquet": Engine("bucket", "pyarrow Parquet", sys.executable, "engine_worker.py"),
}
SPARK = {
    engine.name: engine
    for engine in (
        Engine("emberlake", "emberlake on Spark", sys.executable, "spark_worker.py"),
        Engine("parquet", "Spark's Parquet", sys.executable, "spark_worker.py"),
    )
}
ROWS = {
    engine.name: engine
    for engine in (
        Engine("emberlake", "emberlake", sys.executable, "row_worker.py"),
        Engine("deltalake", "deltalake", DELTALAKE_PYTHON, "row_worker.py"),
    )
}
ROW_CHANGES = {
    engine.name: engine
    for engine in (
        Engine("emberlake", "emberlake on Spark", sys.executable, "row_change_worker.py"),
        Engine("delta", "Delta Lake on Spark", DELTA_PYTHON, "row_change_worker.py"),
        Engine("parquet", "Spark's Parquet write", sys.executable, "row_change_worker.py"),
    )
}


def add_baseline(checkout: Path) -> None:
    """Let another checkout of emberlake take part in every job of this one."""
    source = checkout.resolve() / "src"
    if not (source / "emberlake").is_dir():
        raise SystemExit(f"{checkout} is no checkout of emberlake: it has no src/emberlake")
    for engines in (LOCAL, S3, SPARK, ROWS, ROW_CHANGES):
        own = engines["emberlake"]
        title = f"{own.title}, baseline"
        engines["baseline"] = replace(own, name="baseline", title=title, source=source)


@dataclass(frozen=True)
class Measurement:
    """What one run of a job took."""

    seconds: float
    peak_bytes: int | None = None  # on top of what the process had before; None: not known
    cpu_seconds: float | None = None  # of the process of the engine

    @staticmethod
    def of(answer: dict[str, Any]) -> "Measurement":
        return Measurement(answer["seconds"], answer.get("peak_bytes"), answer.get("cpu_seconds"))


class EngineProcess:
    """A running engine."""

    def __init__(self, engine: Engine, *arguments: str) -> None:
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115  closed with the process
        self._process = subprocess.Popen(
            [*engine.command, *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            env=engine.environment,
        )

    def ask(self, operation: str, **request: Any) -> dict[str, Any]:
        """Let the engine do something.

        Raises:
            EngineFailed: it could not.
        """
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        try:
            self._process.stdin.write(
                json.dumps({"operation": operation, **request}).encode() + b"\n"
            )
            self._process.stdin.flush()
        except BrokenPipeError:
            pass  # it died at its start: the empty answer below says so
        line = self._process.stdout.readline()
        answer = json.loads(line) if line else {"error": self._last_words()}
        if "error" in answer:
            raise EngineFailed(answer["error"])
        return answer

    def close(self) -> None:
        self._process.communicate()
        self._errors.close()

    def _last_words(self) -> str:
        self._process.wait()
        self._errors.seek(0)
        return self._errors.read().decode()[-3000:]


class EngineFailed(Exception):
    """An engine could not do a job; the others are measured all the same."""


def versions() -> dict[str, str]:
    """The versions of what is compared."""
    own = ("emberlake", "pyarrow", "pyspark")
    peers = ("pypaimon", "pypaimon-rust")
    found = {"python": platform.python_version()}
    for python, names in ((sys.executable, own), (PEERS_PYTHON, peers)):
        program = (
            "import importlib.metadata as m, json, sys;"
            "print(json.dumps({n: m.version(n) for n in sys.argv[1:]}))"
        )
        command = [python, "-c", program, *names]
        found |= json.loads(subprocess.run(command, check=True, capture_output=True).stdout)
    return found
