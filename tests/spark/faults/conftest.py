"""A cluster of two workers on two addresses, which Spark takes for two machines.

Only so does it repeat failed tasks, start speculative attempts and survive its executors.
`tests/spark/test_faults.py` runs this folder in a process of its own.
"""

import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Final

import pyspark
import pytest
from pyspark.sql import SparkSession

from effort import JVM_OPTIONS
from spark.conftest import PYTHONPATH, SETTINGS
from spark.mischief import wait_until

collect_ignore_glob = [] if "EMBERLAKE_FAULTS" in os.environ else ["test_*.py"]

HOSTS: Final = ("127.0.0.1", "127.0.0.2")
SPARK_HOME: Final = Path(pyspark.__file__).parent
SPECULATION: Final = {
    "spark.speculation": "true",
    "spark.speculation.interval": "100ms",
    "spark.speculation.quantile": "0.5",
    "spark.speculation.minTaskRuntime": "1s",
}


@contextmanager
def running(home: Path, name: str, *arguments: str) -> Iterator[Path]:
    """A daemon of Spark, and where it writes what it does."""
    log = home / f"{arguments[1]}-{name.rpartition('.')[2]}.log"
    command = [str(SPARK_HOME / "bin" / "spark-class"), name, *arguments, "--webui-port", "0"]
    environment = {**os.environ, "SPARK_DAEMON_JAVA_OPTS": " ".join(JVM_OPTIONS)}
    with log.open("w") as sink:
        process = subprocess.Popen(command, stdout=sink, stderr=sink, env=environment)
    try:
        yield log
    finally:
        process.terminate()
        process.wait(60)


def free_port() -> str:
    with socket.socket() as probe:
        probe.bind((HOSTS[0], 0))
        return str(probe.getsockname()[1])


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """A session on the cluster."""
    home = tmp_path_factory.mktemp("cluster")
    port = free_port()
    master = f"spark://{HOSTS[0]}:{port}"
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    os.environ["PYTHONPATH"] = PYTHONPATH
    with ExitStack() as stack:
        deploy = "org.apache.spark.deploy"
        log = stack.enter_context(
            running(home, f"{deploy}.master.Master", "--host", HOSTS[0], "--port", port)
        )
        wait_until(lambda: "New state: ALIVE" in log.read_text(), "for the master")
        for host in HOSTS:
            size = ("--cores", "1", "--memory", "1g", "--work-dir", str(home / host))
            stack.enter_context(
                running(home, f"{deploy}.worker.Worker", "--host", host, *size, master)
            )
        wait_until(lambda: log.read_text().count("Registering worker") == 2, "for the workers")
        builder = SparkSession.builder.appName("emberlake-faults").master(master)
        for name, value in {**SETTINGS, **SPECULATION}.items():
            builder = builder.config(name, value)
        session = builder.config("spark.sql.warehouse.dir", str(home / "warehouse")).getOrCreate()
        yield session
        session.stop()
