"""What the tests of this folder share: a store behind a proxy that breaks requests on demand."""

import os
import uuid
from collections.abc import Callable, Iterator

import pytest

from emberlake.io import Storage, open_storage
from servers import Proxy, Server, proxy_of


@pytest.fixture(autouse=True)
def no_profiles(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests use no credentials of the user or of the machine's cloud."""
    monkeypatch.delenv("AWS_PROFILE", raising=False)
    for name in ("AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE"):
        monkeypatch.setenv(name, os.devnull)


@pytest.fixture(scope="session")
def proxy_process(s3: Server, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Proxy]:
    with proxy_of(s3, tmp_path_factory.mktemp("proxy")) as started:
        yield started


@pytest.fixture
def proxy(proxy_process: Proxy) -> Iterator[Proxy]:
    proxy_process.counted()
    yield proxy_process
    assert proxy_process.clear() == [], "a failure that was asked for did not happen"


@pytest.fixture
def root(s3: Server) -> str:
    """A folder of its own."""
    return f"{s3.root}/{uuid.uuid4()}"


@pytest.fixture
def plain(s3: Server) -> Storage:
    """The store itself, to look at what has become of a request."""
    return open_storage(s3.root, s3.options)[0]


@pytest.fixture
def open_proxied(s3: Server, proxy: Proxy) -> Callable[..., Storage]:
    def open_(**options: object) -> Storage:
        spelled = {f"s3.{name.replace('_', '-')}": value for name, value in options.items()}
        given = {**s3.options, "s3.endpoint": proxy.endpoint, **spelled}
        return open_storage(s3.root, {k: v for k, v in given.items() if v is not None})[0]

    return open_


@pytest.fixture
def storage(open_proxied: Callable[..., Storage], proxy: Proxy, root: str) -> Storage:
    """The store behind the proxy, which has been reached and probed."""
    opened = open_proxied(connection_timeout="1 s")
    assert opened.put_if_absent(f"{root}/reached", b"")
    proxy.counted()
    return opened
