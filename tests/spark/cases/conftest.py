"""Where the tables of the cases live: on the disk, or on S3 with EMBERLAKE_SPARK_TABLES=s3."""

import os
import tempfile
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from servers import Server, s3_server
from spark.store_path import IS_ON_S3, StorePath


@pytest.fixture(scope="session", autouse=True)
def store() -> Iterator[Server | None]:
    """The server, which Spark's processes find in their environment; none for the disk."""
    if not IS_ON_S3:
        yield None
        return
    with tempfile.TemporaryDirectory() as folder, s3_server(Path(folder)) as server:
        os.environ.update(server.environment)
        yield server


@pytest.fixture
def tmp_path(tmp_path: Path, store: Server | None) -> Path | StorePath:
    """A folder for tables."""
    return tmp_path if store is None else StorePath(f"{store.root}/{uuid.uuid4()}")


@pytest.fixture
def local_path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder for all else."""
    return tmp_path_factory.mktemp("local")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Leave out, on S3, what is about the disk."""
    if IS_ON_S3:
        items[:] = [item for item in items if item.get_closest_marker("on_disk") is None]
