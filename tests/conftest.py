"""Fixtures and settings that every folder of tests shares."""

import gc
from collections.abc import Generator, Iterator
from typing import Any

import pytest
from hypothesis import settings
from xdist.scheduler import LoadScopeScheduling

import effort
from golden.reads import ROWS_ARCHIVE, Golden, unpack
from interop.judges import JavaJudge, Peer, java_judge, peer
from servers import Server, azurite, fake_gcs, minio, missing, program, s3_server

settings.load_profile("emberlake")  # pytest --hypothesis-profile=quick comes after it

# A session of Spark, or a process that holds one, belongs to one process of the test run. These
# take longest, so they come first: no process is left with one of them when the others are done.
WHOLE = ("spark", "spark programs", "docs", "bench", "ui", "architecture")


def scope_of(nodeid: str) -> str:
    """What one process of a test run has to do: a file of tests, or a part that stays whole."""
    path = nodeid.partition("::")[0]
    match path.split("/"):
        case ["tests", "spark", _]:  # they start Spark in processes of their own
            return "spark programs"
        case ["tests", "cli", "test_ingest.py"]:  # on the session of the process
            return "spark"
        case ["tests", folder, *_] if folder in WHOLE:
            return folder
        case _:
            return path


@pytest.hookimpl(trylast=True)  # after -m and -k: the sample is of the tests that they leave
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if effort.is_quick():
        kept = effort.sample(items, lambda item: item.nodeid.partition("[")[0])
        config.hook.pytest_deselected(items=list(set(items).difference(kept)))
        items[:] = kept
    places = {scope: place for place, scope in enumerate(WHOLE)}
    items.sort(key=lambda item: places.get(scope_of(item.nodeid), len(WHOLE)))


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    with effort.made_to_stay():
        return (yield)


def pytest_sessionfinish() -> None:
    gc.unfreeze()


class InOrder(LoadScopeScheduling):
    """Deals the scopes out to the processes of a run, in the order of the tests."""

    def _split_scope(self, nodeid: str) -> str:
        return scope_of(nodeid)


def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> InOrder:
    config.option.loadscopereorder = False  # it would put what has most tests first
    return InOrder(config, log)


def pytest_runtest_setup(item: pytest.Item) -> None:
    is_on_s3 = "s3" in item.name or {"s3", "secured"} & set(getattr(item, "fixturenames", ()))
    if is_on_s3 and item.get_closest_marker("versitygw") and not program("versitygw"):
        missing("versitygw")


@pytest.fixture(scope="session")
def golden(tmp_path_factory: pytest.TempPathFactory) -> Golden:
    """The golden tables, unpacked."""
    return unpack(tmp_path_factory.mktemp("golden"))


@pytest.fixture(scope="session")
def golden_rows(tmp_path_factory: pytest.TempPathFactory) -> Golden:
    """The golden tables whose rows were changed, unpacked."""
    return unpack(tmp_path_factory.mktemp("golden_rows"), ROWS_ARCHIVE)


@pytest.fixture(scope="session")
def s3(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server of S3's protocol with an empty bucket, or a skip that says what is missing."""
    with s3_server(tmp_path_factory.mktemp("s3")) as server:
        yield server


@pytest.fixture(scope="session", name="minio")
def minio_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """MinIO, another server of S3's protocol."""
    with minio(tmp_path_factory.mktemp("minio")) as server:
        yield server


@pytest.fixture(scope="session")
def azure(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """The same for Azure's protocol."""
    with azurite(tmp_path_factory.mktemp("azure")) as server:
        yield server


@pytest.fixture(scope="session")
def gcs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """The same for Google's protocol."""
    with fake_gcs(tmp_path_factory.mktemp("gcs")) as server:
        yield server


@pytest.fixture(scope="session")
def java() -> JavaJudge:
    """Java Paimon, or a skip that says what is missing."""
    return java_judge()


@pytest.fixture(scope="session")
def pypaimon() -> Peer:
    return peer("pypaimon")


@pytest.fixture(scope="session")
def rust() -> Peer:
    return peer("rust")
