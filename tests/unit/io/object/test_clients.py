import pytest

from emberlake.errors import Unsupported
from emberlake.io import open_storage
from emberlake.io.object import clients
from emberlake.io.object.aside import run_aside
from emberlake.io.object.config import parse_config
from emberlake.io.object.location import locate

KEYS = {"s3.access-key": "k", "s3.secret-key": "s"}


def test_opening_a_store_makes_no_client_and_no_request() -> None:
    storage, root = open_storage("s3a://no-such-bucket/wh/", KEYS)

    assert root == "s3a://no-such-bucket/wh"
    assert storage.traits.is_shared
    assert not any(key[0] == storage.config for key in clients._process.clients)  # type: ignore[attr-defined]


def test_a_path_of_another_cloud_is_refused() -> None:
    storage, _ = open_storage("s3://lake", KEYS)

    with pytest.raises(Unsupported, match="is not on s3"):
        storage.read("gs://lake/file")


@pytest.mark.parametrize(
    ("path", "options"),
    [
        ("s3://lake", {**KEYS, "s3.path.style.access": "false", "s3.endpoint": "https://h"}),
        ("s3://lake", {**KEYS, "s3.sse.type": "SSE-KMS", "s3.sse.key": "id"}),
        ("s3://lake", {**KEYS, "s3.proxy.host": "127.0.0.1", "s3.connection.maximum": "8"}),
        ("gs://lake", {"gs.token": "t"}),
        ("gs://lake", {"gs.anonymous": "true"}),
        ("abfss://c@account.dfs.core.windows.net/wh", {"azure.account-key": "a2V5"}),
        ("abfss://c@account.dfs.core.windows.net/wh", {"azure.sas-token": "sv=1&sig=x"}),
        ("oss://lake.oss-cn-x.aliyuncs.com/wh", {"oss.access-key": "k", "oss.secret-key": "s"}),
    ],
)
@pytest.mark.parametrize("purpose", clients.Purpose)
def test_the_library_takes_every_setting(
    path: str, options: dict[str, str], purpose: clients.Purpose
) -> None:
    storage, _ = open_storage(path, options)
    location = storage._locate(path)  # type: ignore[attr-defined]

    made = clients._new_client(storage.config, location, purpose, is_reached=True)  # type: ignore[attr-defined]

    assert made is not None


def test_what_is_remembered_of_stores_that_answered_is_bounded(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(clients, "_process", clients._Process())
    monkeypatch.setattr(clients, "_REACHED_KEPT", 3)
    location = locate("s3://lake")
    configs = [parse_config(location, {**KEYS, "s3.session-token": str(n)}, {}) for n in range(5)]

    for config in (*configs, configs[-1]):
        clients.note_reached(config, location)

    assert [clients.has_reached(config, location) for config in configs] == [False] * 2 + [True] * 3


def test_work_aside_returns_and_raises_where_it_was_given() -> None:
    def fail() -> None:
        raise KeyError("x")

    assert run_aside(lambda: 42) == 42
    with pytest.raises(KeyError):
        run_aside(fail)
    assert run_aside(lambda: 43) == 43
