"""For folders of tests whose tables can live anywhere: each test runs in memory and on S3.

The ``conftest`` of such a folder imports all names. On S3 all tests are in ``make test-all``, and
those that are marked ``also_on_s3`` are in ``make test``.
"""

import shutil
import tempfile
import uuid
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from emberlake.base.requests import settle
from places import Place, disk, living_at, s3
from servers import s3_server

__all__ = ["bucket", "home", "pytest_generate_tests"]

MEMORY = Path("/dev/shm")


@pytest.fixture(scope="session")
def bucket() -> Iterator[tuple[Place, Path]]:
    """A server of their own, and the folder that it keeps its objects in."""
    within = MEMORY if MEMORY.is_dir() else None
    with tempfile.TemporaryDirectory(dir=within) as folder, s3_server(Path(folder)) as server:
        yield s3(server), Path(folder)


@pytest.fixture(autouse=True)
def home(request: pytest.FixtureRequest) -> Iterator[Place]:
    """Where the tables of a test live."""
    name = getattr(request, "param", "memory")
    if name != "s3":
        folder = request.getfixturevalue("tmp_path") if name == "disk" else None
        with living_at(disk(folder) if folder else Place()) as place:
            yield place
        return
    server, folder = request.getfixturevalue("bucket")
    name = str(uuid.uuid4())
    with living_at(replace(server, root=f"{server.root}/{name}")) as place:
        yield place
    settle()
    # Thousands of files, which the server would delete one by one.
    for kept in folder.glob(f"*/*/{name}"):
        shutil.rmtree(kept, ignore_errors=True)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    marks = {mark.name for mark in metafunc.definition.iter_markers()}
    if "memory_only" in marks:
        return
    mark = pytest.mark.thorough if "also_on_s3" in marks else pytest.mark.slow
    metafunc.parametrize("home", ["memory", pytest.param("s3", marks=mark)], indirect=True)
