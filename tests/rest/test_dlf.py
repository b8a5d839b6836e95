"""Requests that are signed for Data Lake Formation, and where their keys come from."""

import json
import pickle
from datetime import UTC, datetime
from pathlib import Path

import pytest

from builders import FakeEnv
from emberlake.catalog import RestCatalog
from emberlake.errors import NotAuthenticated
from emberlake.io.rest.dlf_keys import DlfFile, DlfInstance, DlfKeys
from emberlake.io.rest.options import parse_session
from rest_server import RestServer

HOUR = 3_600_000
KEYS = {"AccessKeyId": "id", "AccessKeySecret": "hidden-secret", "SecurityToken": "hidden-token"}


def expiring(world: FakeEnv, hours: float, **more: str) -> str:
    moment = datetime.fromtimestamp((world.time_ms + hours * HOUR) / 1000, tz=UTC)
    return json.dumps({**KEYS, "Expiration": moment.strftime("%Y-%m-%dT%H:%M:%SZ"), **more})


def test_every_request_is_signed(server: RestServer) -> None:
    options = {
        **{key: value for key, value in server.options.items() if key != "token"},
        "token.provider": "dlf",
        "dlf.access-key-id": "id",
        "dlf.access-key-secret": "hidden-secret",
        "dlf.region": "cn-hangzhou",
    }

    with pytest.raises(NotAuthenticated) as refused:  # the server knows bearers only
        RestCatalog.connect(options, FakeEnv().env())

    sent = server.headers[0]
    start = (
        "DLF4-HMAC-SHA256 Credential=id/20250615/cn-hangzhou/DlfNext/aliyun_v4_request,Signature="
    )
    assert sent["Authorization"].startswith(start)
    assert sent["x-dlf-version"] == "v1"
    assert "hidden-secret" not in str(refused.value) + repr(parse_session(options))


def test_a_file_is_read_again_before_its_keys_end(tmp_path: Path) -> None:
    world, file = FakeEnv(), tmp_path / "keys.json"
    keys = DlfKeys(DlfFile(str(file)))
    file.write_text(expiring(world, 3))

    first = keys.current(world.env())
    file.write_text(expiring(world, 9, AccessKeyId="second"))
    same = keys.current(world.env())
    world.time_ms += int(2.5 * HOUR)
    later = keys.current(world.env())

    assert (first.access_key_id, same.access_key_id, later.access_key_id) == ("id", "id", "second")
    assert "hidden" not in repr(first) + repr(keys)
    assert pickle.loads(pickle.dumps(keys)) == keys


def test_a_file_that_is_being_written_is_waited_for_and_then_given_up(tmp_path: Path) -> None:
    world, file = FakeEnv(), tmp_path / "half.json"
    file.write_text('{"AccessKeySecret": "hidden-se')

    with pytest.raises(NotAuthenticated, match="cannot be loaded from") as failed:
        DlfKeys(DlfFile(str(file))).current(world.env())

    assert world.slept == [1000, 2000, 3000, 4000]
    assert "hidden" not in str(failed.value)


def test_the_role_of_a_machine_is_asked_for_and_then_its_keys(server: RestServer) -> None:
    """The metadata service answers in plain words, whoever asks."""
    world = FakeEnv()
    server.plain = {"/roles/": b"my-role\n", "/roles/my-role": expiring(world, 5).encode()}
    keys = DlfKeys(DlfInstance(f"{server.uri}/roles/"))

    assert keys.current(world.env()).security_token == "hidden-token"


@pytest.mark.parametrize("address", ["{}/nothing/", "http://127.0.0.1:1/gone/"])
def test_a_missing_metadata_service_is_reported(server: RestServer, address: str) -> None:
    keys = DlfKeys(DlfInstance(address.format(server.uri), "role"))

    with pytest.raises(NotAuthenticated, match="cannot be loaded from http"):
        keys.current(FakeEnv().env())
