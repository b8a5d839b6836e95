"""One Spark session for all tests, of the mode that EMBERLAKE_SPARK names.

classic   the driver and its tasks in one JVM (the default)
cluster   executors are processes of their own
connect   the driver is a server that the test talks to

The session's zone, the JVM's zone and UTC differ, so that a zone that slips in shows.
"""

import os
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pyspark
import pytest
from pyspark.sql import SparkSession

from effort import JVM_OPTIONS

MODE: Final = os.environ.get("EMBERLAKE_SPARK", "classic")
MASTERS: Final = {
    "classic": "local[2]",
    "cluster": "local-cluster[2,1,1024]",
    "connect": "local[2]",
}
# Workers import the module of a test that hands them a function, by either of its names. The
# package is installed in their Python; if it were on this path, none could be without it.
INHERITED: Final = os.environ.get("PYTHONPATH")
PYTHONPATH: Final = os.pathsep.join(
    [*map(str, Path(__file__).parents[1:3]), *([INHERITED] if INHERITED else [])]
)
# Derby, the database of a test, would leave a log where pytest runs.
JAVA_OPTIONS: Final = " ".join(
    [
        *JVM_OPTIONS,
        "-Duser.timezone=America/St_Johns",
        f"-Dderby.stream.error.file={os.devnull}",
    ]
)
SETTINGS: Final = {
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.extraJavaOptions": JAVA_OPTIONS,
    "spark.executor.extraJavaOptions": JAVA_OPTIONS,
    "spark.executorEnv.PYTHONPATH": PYTHONPATH,
    "spark.log.level": "ERROR",
    "spark.pyspark.driver.python": sys.executable,
    "spark.pyspark.python": sys.executable,
    "spark.sql.session.timeZone": "Asia/Kolkata",
    "spark.sql.shuffle.partitions": "4",
    "spark.ui.showConsoleProgress": "false",
    "spark.ui.enabled": "false",
}


def pytest_configure(config: pytest.Config) -> None:
    if MODE not in MASTERS:
        raise pytest.UsageError(f"EMBERLAKE_SPARK={MODE}: choose one of {', '.join(MASTERS)}")


def linked_spark(home: Path) -> Path:
    """The installed Spark under another path: executors leave their files below Spark's home."""
    home.mkdir()
    for part in Path(pyspark.__file__).parent.iterdir():
        if part.name != "work":
            (home / part.name).symlink_to(part)
    return home


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """The session; tests that change a setting of it put it back."""
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    os.environ["PYTHONPATH"] = PYTHONPATH
    builder = SparkSession.builder.appName("emberlake-tests")
    builder = builder.remote(MASTERS[MODE]) if MODE == "connect" else builder.master(MASTERS[MODE])
    for name, value in SETTINGS.items():
        builder = builder.config(name, value)
    home = tmp_path_factory.mktemp("spark")
    if MODE == "cluster":
        os.environ["SPARK_HOME"] = str(linked_spark(home / "home"))
    builder = builder.config("spark.sql.warehouse.dir", str(home / "warehouse"))
    with warnings.catch_warnings():
        if MODE == "connect":  # its server has the settings; the session cannot set them again
            warnings.filterwarnings("ignore", "Failed to set")
        session = builder.getOrCreate()
    yield session
    session.stop()
