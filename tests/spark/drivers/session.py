"""Programs of their own, which tests start and kill: `python -m spark.drivers.<name>`."""

import os
import signal
import subprocess
import sys
import tempfile
from contextlib import suppress
from pathlib import Path

from pyspark.sql import SparkSession

from spark.conftest import MASTERS, PYTHONPATH, SETTINGS

KILLED = -signal.SIGKILL


def run_driver(name: str, *arguments: object, timeout_s: float = 240) -> int:
    """Run a program to its end; its exit code, negative when a signal has ended it."""
    command = [sys.executable, "-m", f"spark.drivers.{name}", *map(str, arguments)]
    environment = os.environ | {"PYTHONPATH": PYTHONPATH, "PYTHONWARNINGS": "ignore"}
    # A file, since a pipe is open as long as any process has it that the program has started.
    with tempfile.TemporaryFile("w+") as said:
        driver = subprocess.Popen(
            command, stdout=said, stderr=said, env=environment, start_new_session=True
        )
        try:
            code = driver.wait(timeout_s)
        finally:
            with suppress(ProcessLookupError):
                os.killpg(driver.pid, signal.SIGKILL)  # its JVM is of its group
        said.seek(0)
        assert code in (0, KILLED), said.read()
    return code


def own_session(home: Path) -> SparkSession:
    """The session of such a program."""
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    builder = SparkSession.builder.appName("emberlake-driver").master(MASTERS["classic"])
    for name, value in SETTINGS.items():
        builder = builder.config(name, value)
    return builder.config("spark.sql.warehouse.dir", str(home / "warehouse")).getOrCreate()


def kill_me() -> None:
    os.kill(os.getpid(), signal.SIGKILL)
