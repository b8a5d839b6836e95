"""What the tests of the client share: a server in this process."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from rest_server import RestServer, serving


@pytest.fixture
def server(tmp_path: Path) -> Iterator[RestServer]:
    with serving(tmp_path / "served") as made:
        yield made
