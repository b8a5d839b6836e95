"""A server on a folder, without a socket."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from catalog_server import Client, serving


@pytest.fixture
def client(tmp_path: Path) -> Iterator[Client]:
    """The administrator of a server with one database."""
    with serving(tmp_path) as found:
        yield found.database()
