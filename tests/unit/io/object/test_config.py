import pickle
from pathlib import Path
from typing import Any

import pytest

from emberlake.errors import EmberlakeWarning, InvalidOption, Unsupported
from emberlake.io.object.config import StoreConfig, parse_config
from emberlake.io.object.location import Cloud, locate
from emberlake.io.object.roles import AssumedRole
from emberlake.io.object.spellings import without_credentials

KEYS = {"s3.access-key": "the-key", "s3.secret-key": "hidden"}
AZURE = "abfss://c@account.dfs.core.windows.net/wh"


def parse(path: str, options: dict[str, Any], **environment: str) -> StoreConfig:
    return parse_config(locate(path), options, environment)


def keys_of(config: StoreConfig) -> dict[str, Any]:
    assert config.credentials.provider is not None
    return dict(config.credentials.provider())


@pytest.mark.parametrize("prefix", ["s3.", "s3a.", "fs.s3a.", "fs.s3."])
@pytest.mark.parametrize(
    ("key", "secret", "token"),
    [
        ("access-key", "secret-key", "session.token"),
        ("access.key", "secret.key", "session-token"),
        ("accessKeyId", "accessKeySecret", "securityToken"),
        ("Access-Key", "SECRET.KEY", "security.token"),
    ],
)
def test_keys_are_known_in_every_spelling(prefix: str, key: str, secret: str, token: str) -> None:
    given = {prefix + key: "k", prefix + secret: "s", prefix + token: "t"}

    found = keys_of(parse("s3://lake", given))

    assert found == {
        "access_key_id": "k",
        "secret_access_key": "s",
        "token": "t",
        "expires_at": None,
    }


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"s3.region": "eu-west-1"}, {"region": "eu-west-1"}),
        ({"fs.s3a.endpoint.region": "eu-west-1"}, {"region": "eu-west-1"}),
        ({}, {"region": "us-east-1", "virtual_hosted_style_request": "false"}),
        ({"s3.path-style-access": "false"}, {"virtual_hosted_style_request": "true"}),
        ({"s3.endpoint": "host:9000"}, {"endpoint": "https://host:9000"}),
        (
            {"s3.endpoint": "host:9000/", "s3.connection.ssl.enabled": "false"},
            {"endpoint": "http://host:9000"},
        ),
        ({"fs.s3a.encryption.algorithm": "SSE-S3"}, {"server_side_encryption": "AES256"}),
        (
            {"s3.sse.type": "sse-kms", "s3.sse.key": "id"},
            {"server_side_encryption": "aws:kms", "sse_kms_key_id": "id"},
        ),
    ],
)
def test_settings_of_s3(options: dict[str, str], expected: dict[str, str]) -> None:
    settings = dict(parse("s3://lake", {**KEYS, **options}).settings)

    assert {name: settings[name] for name in expected} == expected


def test_how_requests_are_made(tmp_path: Path) -> None:
    (tmp_path / "ca.pem").write_text("-----BEGIN")
    options = {
        "fs.s3a.connection.timeout": "200000",
        "fs.s3a.connection.establish.timeout": "7 s",
        "fs.s3a.attempts.maximum": "3",
        "fs.s3a.connection.maximum": "96",
        "fs.s3a.proxy.host": "proxy",
        "fs.s3a.proxy.port": "3128",
        "fs.s3a.proxy.username": "me",
        "fs.s3a.proxy.password": "a/b",
        "s3.ssl.ca-file": str(tmp_path / "ca.pem"),
        "s3.single-writer": True,
    }

    config = parse("s3://lake", {**KEYS, **options})

    assert (config.timeout_ms, config.connect_timeout_ms) == (200_000, 7_000)
    assert (config.max_retries, config.connections) == (2, 96)
    assert config.proxy_url == "http://me:a%2Fb@proxy:3128"
    assert config.ca_pem == b"-----BEGIN"
    assert config.is_single_writer


def test_payloads_are_signed_where_nothing_else_protects_them() -> None:
    assert parse("s3://lake", {**KEYS, "s3.endpoint": "http://h"}).signs_payload
    assert not parse("s3://lake", {**KEYS, "s3.endpoint": "https://h"}).signs_payload
    assert parse("s3://lake", {**KEYS, "s3.unsigned-payload": "false"}).signs_payload


@pytest.mark.parametrize(
    ("path", "options", "expected"),
    [
        ("gs://lake", {"gs.token": "t"}, {"bearer_token": "t"}),
        ("gs://lake", {"gcs.access-token": "t"}, {"bearer_token": "t"}),
        ("gs://lake", {"fs.gs.auth.service.account.json.keyfile": "f"}, {"service_account": "f"}),
        ("gs://lake", {"gs.allow-anonymous": "true"}, {"skip_signature": "true"}),
        (AZURE, {"azure.account.key": "k"}, {"account_key": "k"}),
        (
            AZURE,
            {"fs.azure.account.key.account.dfs.core.windows.net": "k"}
            | {"fs.azure.account.key.other.dfs.core.windows.net": "o"},
            {"account_key": "k"},
        ),
        (AZURE, {"abfs.sas-token": "s"}, {"sas_key": "s"}),
        (
            AZURE,
            {
                "fs.azure.account.oauth2.client.id": "i",
                "fs.azure.account.oauth2.client.secret": "s",
                "fs.azure.account.oauth2.client.endpoint": "https://login.microsoft.com/ten/oauth2",
            },
            {"client_id": "i", "client_secret": "s", "tenant_id": "ten"},
        ),
    ],
)
def test_credentials_of_other_clouds(
    path: str, options: dict[str, str], expected: dict[str, str]
) -> None:
    assert dict(parse(path, options).credentials.settings) == expected


def test_oss_is_an_s3_store_with_the_bucket_in_its_address() -> None:
    options = {"fs.oss.accessKeyId": "k", "fs.oss.accessKeySecret": "s", "fs.oss.impl": "x.Y"}

    config = parse("oss://lake/wh", {**options, "fs.oss.endpoint": "oss-cn-x.aliyuncs.com"})

    assert config.endpoint == "https://oss-cn-x.aliyuncs.com"
    assert dict(config.settings)["virtual_hosted_style_request"] == "true"
    assert parse("oss://lake.oss-cn-y.com/wh", options).endpoint == "https://oss-cn-y.com"
    with pytest.raises(InvalidOption, match=r"fs\.oss\.endpoint"):
        parse("oss://lake/wh", options)


def test_the_environment_is_taken_where_options_are_silent() -> None:
    environment = {
        "AWS_ACCESS_KEY_ID": "env",
        "AWS_SECRET_ACCESS_KEY": "secret",
        "AWS_SESSION_TOKEN": "token",
        "AWS_REGION": "eu-west-3",
        "AWS_ENDPOINT_URL": "http://env:1",
    }

    from_environment = parse("s3://lake", {}, **environment)
    from_options = parse("s3://lake", {**KEYS, "s3.endpoint": "http://own:2"}, **environment)

    assert keys_of(from_environment)["token"] == "token"
    assert (from_environment.region, from_environment.endpoint) == ("eu-west-3", "http://env:1")
    assert keys_of(from_options)["access_key_id"] == "the-key"
    assert keys_of(from_options)["token"] is None
    assert from_options.endpoint == "http://own:2"


def test_a_web_identity_of_the_environment_is_taken() -> None:
    environment = {"AWS_WEB_IDENTITY_TOKEN_FILE": "/token", "AWS_ROLE_ARN": "arn:aws:iam::1:role/r"}

    found = dict(parse("s3://lake", {}, **environment).credentials.settings)

    assert found == {"role_arn": "arn:aws:iam::1:role/r", "web_identity_token_file": "/token"}


@pytest.mark.parametrize(
    ("path", "ways"),
    [
        ("s3://lake", "give s3.access-key and s3.secret-key, or set AWS_ACCESS_KEY_ID"),
        ("gs://lake", "give gs.credential-path or gs.token, or set GOOGLE_APPLICATION_CREDENTIALS"),
        (AZURE, "give azure.account-key or azure.sas-token"),
    ],
)
def test_without_credentials_a_store_is_refused_at_once(
    path: str, ways: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))

    with pytest.raises(InvalidOption) as raised:
        parse(path, {})

    assert ways in str(raised.value)
    assert "credentials=instance" in str(raised.value)


@pytest.mark.parametrize("path", ["s3://lake", "gs://lake", AZURE])
def test_the_machine_is_asked_only_on_request(path: str) -> None:
    prefix = {"s": "s3.", "g": "gs.", "a": "azure."}[path[0]]

    assert parse(path, {f"{prefix}credentials": "instance"}).credentials.provider is None
    with pytest.raises(InvalidOption, match="can only be instance"):
        parse(path, {f"{prefix}credentials": "magic"})


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({**KEYS, "s3.access.key": "other"}, "s3.access-key and s3.access.key contradict"),
        ({**KEYS, "s3.region": "a", "s3.endpoint.region": "b"}, "s3.region and s3.endpoint.region"),
        ({"s3.access-key": "the-key"}, "s3.access-key is given without s3.secret-key"),
        ({**KEYS, "s3.endpoint": "ftp://host"}, "s3.endpoint is not an address"),
        ({**KEYS, "s3.endpoint": "http://host:no"}, "s3.endpoint is not an address"),
        ({**KEYS, "s3.ssl.ca-file": "/no/file"}, "s3.ssl.ca-file=/no/file cannot be read"),
        ({**KEYS, "s3.sse.type": "rot13"}, "s3.sse.type=rot13: there are SSE-S3"),
        ({**KEYS, "s3.connection.timeout": "soon"}, "s3.connection.timeout='soon'"),
        ({"s3.credentials-provider": "a.b.C"}, "s3.credentials-provider=a.b.C names no function"),
    ],
)
def test_options_that_cannot_be_meant_are_refused(options: dict[str, str], message: str) -> None:
    with pytest.raises(InvalidOption) as raised:
        parse("s3://lake", options)

    assert message in str(raised.value)
    assert "hidden" not in str(raised.value)


@pytest.mark.parametrize(
    ("path", "options"),
    [
        ("s3://lake", {"s3.credentials": "instance", "s3.assumed.role.arn": "arn"}),
        (
            "oss://lake.oss-cn-x.com",
            {"oss.access-key": "k", "oss.secret-key": "s", "oss.assumed.role.arn": "arn"},
        ),
    ],
)
def test_a_role_that_cannot_be_assumed_is_refused(path: str, options: dict[str, str]) -> None:
    with pytest.raises(Unsupported, match=r"credentials-provider, a function that asks the token"):
        parse(path, options)


@pytest.mark.parametrize(
    ("options", "environment", "address", "region"),
    [
        ({}, {}, "https://sts.us-east-1.amazonaws.com", "us-east-1"),
        ({"s3.region": "cn-north-1"}, {}, "https://sts.cn-north-1.amazonaws.com.cn", "cn-north-1"),
        (
            {"s3.endpoint": "https://s3.eu-west-1.amazonaws.com", "s3.region": "eu-west-1"},
            {},
            "https://sts.eu-west-1.amazonaws.com",
            "eu-west-1",
        ),
        ({"s3.endpoint": "http://minio:9000"}, {}, "http://minio:9000", "us-east-1"),
        ({}, {"AWS_ENDPOINT_URL_STS": "http://own:1"}, "http://own:1", "us-east-1"),
        (
            {
                "fs.s3a.assumed.role.sts.endpoint": "sts.eu-west-2.amazonaws.com",
                "fs.s3a.assumed.role.sts.endpoint.region": "eu-west-2",
            },
            {},
            "https://sts.eu-west-2.amazonaws.com",
            "eu-west-2",
        ),
    ],
)
def test_a_role_is_assumed_at_the_token_service_of_the_store(
    options: dict[str, str], environment: dict[str, str], address: str, region: str
) -> None:
    config = parse("s3://lake", {**KEYS, "s3.assumed.role.arn": "arn", **options}, **environment)

    role = config.credentials.provider
    assert isinstance(role, AssumedRole)
    assert (role.role, role.service.address, role.service.region) == ("arn", address, region)


def test_two_spellings_that_agree_are_no_contradiction() -> None:
    assert keys_of(parse("s3://lake", {**KEYS, "fs.s3a.access.key": "the-key"}))


def test_unknown_options_are_one_warning_without_their_values() -> None:
    options = {**KEYS, "s3.secrt-key": "hidden", "fs.s3a.fast.upload": "hidden", "warehouse": "x"}

    with pytest.warns(EmberlakeWarning) as warned:
        parse("s3://lake", options)

    assert [str(one.message) for one in warned] == [
        "emberlake does not know these options of s3: fs.s3a.fast.upload, s3.secrt-key"
    ]


def test_no_text_of_a_config_has_a_secret() -> None:
    options = {**KEYS, "s3.session-token": "hidden-too", "s3.proxy.host": "p"}
    options |= {"s3.proxy.username": "u", "s3.proxy.password": "hidden-as-well"}
    config = parse("s3://lake", options)

    again = pickle.loads(pickle.dumps(config))

    assert again == config
    assert hash(again) == hash(config)
    for text in (repr(config), str(again), repr(config.credentials), f"{again!r}"):
        assert "hidden" not in text
        assert "the-key" not in text


def test_a_role_is_assumed_with_the_keys_of_a_provider() -> None:
    given = {"s3.credentials-provider": dict, "s3.assumed.role.arn": "arn"}

    role = parse("s3://lake", given).credentials.provider

    assert isinstance(role, AssumedRole)
    assert (role.role, role.source) == ("arn", dict)


def test_keys_that_are_given_count_more_than_a_web_identity_of_the_environment() -> None:
    given = {**KEYS, "s3.assumed.role.arn": "arn"}

    role = parse("s3://lake", given, AWS_WEB_IDENTITY_TOKEN_FILE="/token").credentials.provider

    assert isinstance(role, AssumedRole)
    with pytest.raises(
        InvalidOption, match=r"s3\.web-identity-token-file and s3\.access-key contradict"
    ):
        parse("s3://lake", {**given, "s3.web-identity-token-file": "/token"})


def test_a_profile_identifies_the_caller() -> None:
    assert without_credentials(Cloud.S3, {"s3.profile": "p", "s3.region": "r"}) == {
        "s3.region": "r"
    }


def test_credentials_under_a_wrong_name_are_not_shown() -> None:
    with pytest.raises(InvalidOption, match=r"gs\.credentials can only be inst") as raised:
        parse("gs://lake", {"gs.credentials": "hidden"})

    assert "hidden" not in str(raised.value)
