"""Fixtures and settings that every folder of tests shares."""

import pytest
from hypothesis import settings

from golden.reads import Golden, unpack
from interop.judges import JavaJudge, Peer, java_judge, peer

# Machines are shared and slow at times; a property that holds late still holds.
settings.register_profile("emberlake", deadline=None, max_examples=100)
settings.load_profile("emberlake")


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
