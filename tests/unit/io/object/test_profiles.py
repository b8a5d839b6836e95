import json
import pickle
import shlex
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from emberlake.errors import InvalidOption, Unsupported
from emberlake.io.object.config import StoreConfig, parse_config
from emberlake.io.object.location import locate
from emberlake.io.object.profiles import CredentialProcessFailed, ProcessKeys
from emberlake.io.object.roles import AssumedRole

CREDENTIALS = """
[default]
aws_access_key_id = default-key
aws_secret_access_key = hidden

[guest]
aws_access_key_id = guest-key
aws_secret_access_key = hidden%too
aws_session_token = hidden-token

[half]
aws_access_key_id = half-key
"""
CONFIG = """
[default]
region = eu-west-1
s3 =
    addressing_style = path

[profile guest]
region = eu-west-2
endpoint_url = http://127.0.0.1:9000

[profile "with blank"]
aws_access_key_id = blank-key
aws_secret_access_key = hidden

[profile web]
role_arn = arn:aws:iam::1:role/r
web_identity_token_file = /token

[profile role]
role_arn = arn:aws:iam::1:role/r
source_profile = guest
external_id = 7

[profile second-role]
role_arn = arn:aws:iam::1:role/s
source_profile = role

[profile own-role]
role_arn = arn:aws:iam::1:role/r
source_profile = own-role
aws_access_key_id = own-key
aws_secret_access_key = hidden

[profile env-role]
role_arn = arn:aws:iam::1:role/r
credential_source = Environment

[profile machine-role]
role_arn = arn:aws:iam::1:role/r
credential_source = Ec2InstanceMetadata

[profile factor]
role_arn = arn:aws:iam::1:role/r
source_profile = default
mfa_serial = arn:aws:iam::1:mfa/me

[profile lone-role]
role_arn = arn:aws:iam::1:role/r

[profile circle]
role_arn = arn:aws:iam::1:role/r
source_profile = other-circle

[profile other-circle]
role_arn = arn:aws:iam::1:role/r
source_profile = circle

[profile sso]
sso_session = mine

[profile place]
region = eu-west-3

[sso-session mine]
sso_region = eu-west-1
"""


@pytest.fixture
def files(tmp_path: Path) -> dict[str, str]:
    """A home with both files in it."""
    (tmp_path / ".aws").mkdir()
    (tmp_path / ".aws" / "credentials").write_text(CREDENTIALS)
    (tmp_path / ".aws" / "config").write_text(CONFIG)
    return {"HOME": str(tmp_path)}


def parse(options: dict[str, Any], environment: dict[str, str]) -> StoreConfig:
    return parse_config(locate("s3://lake"), options, environment)


def keys_of(config: StoreConfig) -> dict[str, Any]:
    assert config.credentials.provider is not None
    return dict(config.credentials.provider())


@pytest.mark.parametrize(
    ("options", "environment", "key", "region", "endpoint"),
    [
        ({}, {}, "default-key", "eu-west-1", "Amazon S3"),
        ({}, {"AWS_PROFILE": "guest"}, "guest-key", "eu-west-2", "http://127.0.0.1:9000"),
        ({"s3.profile": "guest"}, {}, "guest-key", "eu-west-2", "http://127.0.0.1:9000"),
        ({"s3.profile": "with blank"}, {}, "blank-key", "us-east-1", "Amazon S3"),
        (
            {"s3.profile": "guest", "s3.region": "own", "s3.endpoint": "https://own"},
            {"AWS_ACCESS_KEY_ID": "of-env", "AWS_SECRET_ACCESS_KEY": "s", "AWS_PROFILE": "sso"},
            "guest-key",
            "own",
            "https://own",
        ),
        (
            {},
            {"AWS_ACCESS_KEY_ID": "of-env", "AWS_SECRET_ACCESS_KEY": "s", "AWS_REGION": "of-env"},
            "of-env",
            "of-env",
            "Amazon S3",
        ),
        (
            {"s3.access-key": "own", "s3.secret-key": "s"},
            {"AWS_PROFILE": "no-such-profile"},
            "own",
            "us-east-1",
            "Amazon S3",
        ),
    ],
)
def test_a_profile_says_what_options_and_environment_do_not(
    files: dict[str, str],
    options: dict[str, str],
    environment: dict[str, str],
    key: str,
    region: str,
    endpoint: str,
) -> None:
    config = parse(options, {**files, **environment})

    assert keys_of(config)["access_key_id"] == key
    assert (config.region, config.endpoint) == (region, endpoint)


def test_a_session_token_belongs_to_its_keys(files: dict[str, str]) -> None:
    found = keys_of(parse({"s3.profile": "guest"}, {**files, "AWS_SESSION_TOKEN": "of-others"}))

    assert (found["secret_access_key"], found["token"]) == ("hidden%too", "hidden-token")


def test_the_environment_names_the_files(files: dict[str, str], tmp_path: Path) -> None:
    moved = tmp_path / "elsewhere"
    (tmp_path / ".aws").rename(moved)
    environment = {"AWS_CONFIG_FILE": f"{moved}/config"}
    environment["AWS_SHARED_CREDENTIALS_FILE"] = f"{moved}/credentials"

    assert keys_of(parse({}, environment))["access_key_id"] == "default-key"


def test_a_web_identity_of_a_profile_is_taken(files: dict[str, str]) -> None:
    found = dict(parse({"s3.profile": "web"}, files).credentials.settings)

    assert found == {"role_arn": "arn:aws:iam::1:role/r", "web_identity_token_file": "/token"}


ENVIRONMENT = {"AWS_ACCESS_KEY_ID": "env-key", "AWS_SECRET_ACCESS_KEY": "hidden"}


@pytest.mark.parametrize(
    ("name", "environment", "key"),
    [
        ("role", {}, "guest-key"),
        ("own-role", {}, "own-key"),
        ("env-role", ENVIRONMENT, "env-key"),
    ],
)
def test_a_role_of_a_profile_is_assumed_with_the_keys_that_it_names(
    files: dict[str, str], name: str, environment: dict[str, str], key: str
) -> None:
    config = parse({"s3.profile": name}, {**files, **environment})

    role = config.credentials.provider
    assert isinstance(role, AssumedRole)
    assert role.source()["access_key_id"] == key
    assert ("ExternalId" in dict(role.asked)) is (name == "role")
    assert role.service.region == "us-east-1"
    assert "hidden" not in repr(role)


def test_a_role_may_be_assumed_with_another_role(files: dict[str, str]) -> None:
    second = parse({"s3.profile": "second-role"}, files).credentials.provider

    assert isinstance(second, AssumedRole)
    assert isinstance(second.source, AssumedRole)
    assert (second.role, second.source.role) == ("arn:aws:iam::1:role/s", "arn:aws:iam::1:role/r")


@pytest.mark.parametrize(
    ("options", "expected", "message"),
    [
        ({"s3.profile": "gest"}, InvalidOption, "no profile gest .*did you mean guest"),
        ({"s3.profile": "half"}, InvalidOption, "the profile half has no aws_secret_access_key"),
        ({"s3.profile": "place"}, InvalidOption, "no credentials for s3"),
        ({"s3.profile": "machine-role"}, Unsupported, "Ec2.*credential_process = aws configure"),
        ({"s3.profile": "factor"}, Unsupported, "factor asks for a second factor"),
        ({"s3.profile": "lone-role"}, InvalidOption, "lone-role has no credentials to assume"),
        ({"s3.profile": "env-role"}, InvalidOption, "env-role has no credentials to assume"),
        ({"s3.profile": "circle"}, InvalidOption, "circle is its own source_profile"),
        ({"s3.profile": "sso"}, Unsupported, "sso signs in with SSO.*s3.credentials-provider"),
        ({"s3.profile": "guest", "s3.access-key": "k"}, InvalidOption, "contradict"),
        ({"s3.profile": "guest", "s3.credentials-provider": dict}, InvalidOption, "contradict"),
    ],
)
def test_a_profile_that_cannot_be_used_is_refused(
    files: dict[str, str], options: dict[str, Any], expected: type[Exception], message: str
) -> None:
    with pytest.raises(expected, match=message):
        parse(options, files)


@pytest.mark.parametrize("text", [b"aws_secret_access_key = hidden", b"[default]\nhidden", b"\xff"])
def test_a_file_that_cannot_be_read_is_named_and_not_shown(
    files: dict[str, str], tmp_path: Path, text: bytes
) -> None:
    (tmp_path / ".aws" / "credentials").write_bytes(text)

    with pytest.raises(InvalidOption, match=r"\.aws/credentials cannot be read") as raised:
        parse({}, files)

    assert "hidden" not in str(raised.value)


def printing(answer: object) -> str:
    return shlex.join([sys.executable, "-S", "-c", f"print({json.dumps(answer)!r})"])


def test_a_program_prints_the_keys_and_says_when_they_end(
    files: dict[str, str], tmp_path: Path
) -> None:
    answer = {"Version": 1, "AccessKeyId": "k", "SecretAccessKey": "hidden", "SessionToken": "t"}
    command = printing({**answer, "Expiration": "2030-01-02T03:04:05Z"})
    (tmp_path / ".aws" / "config").write_text(f"[profile p]\ncredential_process = {command}")

    config = parse({"s3.profile": "p"}, files)
    again = pickle.loads(pickle.dumps(config))

    ends = datetime(2030, 1, 2, 3, 4, 5, tzinfo=UTC)
    assert keys_of(again) == {
        "access_key_id": "k",
        "secret_access_key": "hidden",
        "token": "t",
        "expires_at": ends,
    }
    assert again == config
    assert "hidden" not in repr(config.credentials.provider)


@pytest.mark.parametrize(
    "command",
    [
        "/no/such/program",
        "false",
        'an "open quote',
        printing("hidden"),
        printing({"Version": 2, "AccessKeyId": "k", "SecretAccessKey": "hidden"}),
        printing({"Version": 1, "AccessKeyId": "hidden"}),
        printing({"Version": 1, "AccessKeyId": "k", "SecretAccessKey": "s", "Expiration": "soon"}),
    ],
)
def test_a_program_that_prints_no_keys_has_failed(command: str) -> None:
    with pytest.raises(CredentialProcessFailed) as raised:
        ProcessKeys("p", command)()

    assert str(raised.value) == ""


def test_a_home_that_cannot_be_entered_has_no_profiles() -> None:
    config = parse({}, {**ENVIRONMENT, "HOME": "/" + "x" * 300})

    assert keys_of(config)["access_key_id"] == "env-key"
