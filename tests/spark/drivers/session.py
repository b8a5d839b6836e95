"""Programs of their own, which tests start and kill: `python -m spark.drivers.<name>`."""

import faulthandler
import os
import signal
import sys
from collections.abc import Mapping
from pathlib import Path

from pyspark.sql import SparkSession

from spark.children import run_group
from spark.conftest import MASTERS, PYTHONPATH, SETTINGS

KILLED = -signal.SIGKILL


def run_driver(
    name: str,
    *arguments: object,
    timeout_s: float = 240,
    environment: Mapping[str, str] | None = None,
) -> int:
    """Run a program to its end; its exit code, negative when a signal has ended it."""
    command = [sys.executable, "-m", f"spark.drivers.{name}", *map(str, arguments)]
    own = {"PYTHONPATH": PYTHONPATH, "PYTHONWARNINGS": "ignore", **(environment or {})}
    code, said = run_group(command, own, timeout_s)
    assert code in (0, KILLED), said
    return code


def own_session(home: Path) -> SparkSession:
    """The session of such a program."""
    faulthandler.register(signal.SIGQUIT)  # for whoever finds it hanging
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    builder = SparkSession.builder.appName("emberlake-driver").master(MASTERS["classic"])
    for name, value in SETTINGS.items():
        builder = builder.config(name, value)
    return builder.config("spark.sql.warehouse.dir", str(home / "warehouse")).getOrCreate()


def kill_me() -> None:
    os.kill(os.getpid(), signal.SIGKILL)
