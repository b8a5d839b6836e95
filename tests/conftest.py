"""Fixtures and settings that every folder of tests shares."""

from typing import Any

import pytest
from hypothesis import settings
from xdist.scheduler import LoadScopeScheduling

from golden.reads import Golden, unpack
from interop.judges import JavaJudge, Peer, java_judge, peer

# Machines are shared and slow at times; a property that holds late still holds.
settings.register_profile("emberlake", deadline=None, max_examples=100)
settings.load_profile("emberlake")

# A session of Spark, or a process that holds one, belongs to one process of the test run.
ONE_PROCESS = frozenset({"spark", "docs", "bench"})


class ByFolder(LoadScopeScheduling):
    """Deals out files of tests, or whole folders of them, to the processes of a run."""

    def _split_scope(self, nodeid: str) -> str:
        folder = nodeid.split("/")[1]
        return folder if folder in ONE_PROCESS else nodeid.split("::", maxsplit=1)[0]


def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> ByFolder:
    return ByFolder(config, log)


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
