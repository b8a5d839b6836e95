"""Fixtures and settings that every folder of tests shares."""

from pathlib import Path

import pytest
from hypothesis import settings

from golden.reads import Golden, unpack
from interop.judges import JavaJudge, Peer, java_judge, peer

TESTS = Path(__file__).parent

# Machines are shared and slow at times; a property that holds late still holds.
settings.register_profile("emberlake", deadline=None, max_examples=100)
settings.load_profile("emberlake")

# A session of Spark, or a process that holds one, belongs to one process of the test run.
ONE_PROCESS = ("spark", "docs", "bench")


def pytest_itemcollected(item: pytest.Item) -> None:
    """Keep what shares a session in one process."""
    if (folder := _folder(item)) in ONE_PROCESS:
        item.add_marker(pytest.mark.xdist_group(folder))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Start with what takes longest."""
    items.sort(key=lambda item: _folder(item) != "spark")


def _folder(item: pytest.Item) -> str:
    return item.path.relative_to(TESTS).parts[0]


@pytest.fixture(scope="session")
def golden(tmp_path_factory: pytest.TempPathFactory) -> Golden:
    """The golden tables, unpacked."""
    return unpack(tmp_path_factory.mktemp("golden"))


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
