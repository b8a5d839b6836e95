"""A process that runs the programs of pages and examples, one after the other."""

from collections.abc import Iterator

import pytest

from docs.programs import Programs
from rest_server import TOKEN, serving


@pytest.fixture(scope="session")
def programs() -> Iterator[Programs]:
    runner = Programs()
    yield runner
    runner.close()


@pytest.fixture
def served_environment(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """How programs find a REST catalog whose warehouse is called ``lake``."""
    with serving(tmp_path_factory.mktemp("served"), warehouse="lake") as server:
        yield {"LAKE_URI": server.uri, "LAKE_TOKEN": TOKEN}
