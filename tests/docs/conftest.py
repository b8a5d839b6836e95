"""A process that runs the programs of pages and examples, one after the other."""

from collections.abc import Iterator

import pytest

from docs.programs import Programs


@pytest.fixture(scope="session")
def programs() -> Iterator[Programs]:
    runner = Programs()
    yield runner
    runner.close()
