"""The config of a store, from which its clients are made, and how catalog options express it."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final
from urllib.parse import SplitResult, quote, urlsplit

from emberlake.errors import InvalidOption
from emberlake.io.object.credentials import Credentials, find_credentials, find_profile
from emberlake.io.object.location import Cloud, Location
from emberlake.io.object.profiles import Profile
from emberlake.io.object.roles import TokenService
from emberlake.io.object.spellings import Given, given_options

_DEFAULT_REGION: Final = "us-east-1"
_AMAZON: Final = ("amazonaws.com", "amazonaws.com.cn")
_OWN_NAMES: Final = {
    Cloud.S3: "Amazon S3",
    Cloud.GCS: "Google Cloud Storage",
    Cloud.AZURE: "Azure Blob Storage",
    Cloud.OSS: "Alibaba Cloud OSS",
}
# Hadoop's names for the kinds of encryption -> the store's names.
_ENCRYPTIONS: Final = {
    "aes256": "AES256",
    "sse-s3": "AES256",
    "sse-kms": "aws:kms",
    "aws:kms": "aws:kms",
    "dsse-kms": "aws:kms:dsse",
    "aws:kms:dsse": "aws:kms:dsse",
    "sse-c": "sse-c",
}


@dataclass(frozen=True, kw_only=True)
class StoreConfig:
    """How to reach a store. It travels between processes; its repr shows no secret."""

    cloud: Cloud
    endpoint: str  # the address, or the name of the cloud's own
    settings: tuple[tuple[str, str], ...] = field(default=(), repr=False)  # in obstore's words
    credentials: Credentials = field(default=Credentials(), repr=False)
    timeout_ms: int = 60_000
    connect_timeout_ms: int = 5_000
    max_retries: int = 5
    connections: int | None = None
    proxy_url: str | None = field(default=None, repr=False)
    ca_pem: bytes | None = field(default=None, repr=False)
    is_plain_http: bool = False
    signs_payload: bool = True
    is_single_writer: bool = False  # the user vouches that nobody else writes

    @property
    def region(self) -> str | None:
        return dict(self.settings).get("region")


def parse_config(
    location: Location,
    options: Mapping[str, object],
    environment: Mapping[str, str] = os.environ,
) -> StoreConfig:
    """The config that catalog options ask for.

    Raises:
        InvalidOption: an option that cannot be read, two that contradict each other, or no
            credentials anywhere.
    """
    given = given_options(location, options)
    profile = find_profile(given, environment)
    address = _address(location, given, environment, profile)
    is_http = address is not None and address.startswith("http://")
    ca_file = given.text("ca_file")
    settings = _settings(location, given, address, environment, profile)
    reach: dict[str, Any] = {
        "timeout_ms": given.millis("timeout", 60_000),
        "connect_timeout_ms": given.millis("connect_timeout", 5_000),
        "proxy_url": _proxy(given),
        "ca_pem": None if ca_file is None else _read_pem(given.key("ca_file"), ca_file),
    }
    service = None
    if location.cloud is Cloud.S3:
        region = given.text("token_region") or settings["region"]
        service = TokenService(_token_address(given, environment, address, region), region, **reach)
    return StoreConfig(
        cloud=location.cloud,
        endpoint=address or _OWN_NAMES[location.cloud],
        settings=tuple(sorted(settings.items())),
        credentials=find_credentials(given, environment, profile, service),
        max_retries=max(given.count("attempts", 6) - 1, 0),
        connections=given.count("connections", 0) or None,
        is_plain_http=is_http,
        # Over TLS a hash of the body adds no protection, and it takes a third of the write time.
        signs_payload=not given.flag("unsigned_payload", default=not is_http),
        is_single_writer=given.flag("single_writer"),
        **reach,
    )


def _address(
    location: Location, given: Given, environment: Mapping[str, str], profile: Profile | None
) -> str | None:
    """The endpoint with its scheme; None for the cloud's own."""
    name = "base_url" if location.cloud is Cloud.GCS else "endpoint"
    text = given.text(name)
    if not text and location.cloud is Cloud.S3:
        text = environment.get("AWS_ENDPOINT_URL_S3") or environment.get("AWS_ENDPOINT_URL")
        text = text or (None if profile is None else profile.text("endpoint_url"))
    if not text and location.cloud is Cloud.OSS:
        text = location.host
        if not text:
            raise InvalidOption(
                "oss:// needs the option fs.oss.endpoint, such as oss-cn-hangzhou.aliyuncs.com"
            )
    return _whole_address(given, name, text) if text else None


def _token_address(
    given: Given, environment: Mapping[str, str], address: str | None, region: str
) -> str:
    """The address where roles are assumed. For stores that are not Amazon's it is their own."""
    text = given.text("token_address") or environment.get("AWS_ENDPOINT_URL_STS")
    if text:
        return _whole_address(given, "token_address", text)
    host = urlsplit(address).hostname or "" if address else ""
    if address and not host.endswith(_AMAZON):
        return address
    return f"https://sts.{region}.{_AMAZON[1] if region.startswith('cn-') else _AMAZON[0]}"


def _whole_address(given: Given, name: str, text: str) -> str:
    if "://" not in text:
        text = f"{'https' if given.flag('ssl', default=True) else 'http'}://{text}"
    parts = _split(text)
    if parts is None or parts.scheme.lower() not in ("http", "https") or not parts.hostname:
        raise InvalidOption(f"{given.key(name)} is not an address; write https://host or host:port")
    if "@" in parts.netloc:  # every error would show it
        raise InvalidOption(
            f"{given.key(name)} has a user in it; credentials have options of their own"
        )
    return f"{parts.scheme.lower()}://{parts.netloc}{parts.path.rstrip('/')}"


def _split(text: str) -> SplitResult | None:
    try:
        parts = urlsplit(text)
        parts.port  # noqa: B018 - it is parsed when it is asked for
    except ValueError:
        return None
    return parts


def _settings(
    location: Location,
    given: Given,
    address: str | None,
    environment: Mapping[str, str],
    profile: Profile | None,
) -> dict[str, str]:
    """What we tell the client library besides credentials.

    The library also reads the environment, so we pass everything that matters, even defaults.
    """
    match location.cloud:
        case Cloud.GCS:
            return {"base_url": address} if address else {}
        case Cloud.AZURE:
            settings = {"use_emulator": "false", "endpoint": address or ""}
            settings |= {k: given.text(k) or "" for k in ("account_name", "authority_host")}
            return {name: text for name, text in settings.items() if text}
        case Cloud.S3 | Cloud.OSS:
            return _s3_settings(location, given, address, environment, profile)


def _s3_settings(
    location: Location,
    given: Given,
    address: str | None,
    environment: Mapping[str, str],
    profile: Profile | None,
) -> dict[str, str]:
    # OSS accepts no requests with the bucket in their path.
    is_path_style = given.flag("path_style", default=location.cloud is Cloud.S3)
    settings = {
        "region": given.text("region")
        or environment.get("AWS_REGION")
        or environment.get("AWS_DEFAULT_REGION")
        or (None if profile is None else profile.text("region"))
        or _DEFAULT_REGION,
        "virtual_hosted_style_request": str(not is_path_style).lower(),
        "skip_signature": "false",
        "conditional_put": "etag",
        "disable_bulk_delete": str(location.cloud is Cloud.OSS).lower(),
    }
    if address:
        settings["endpoint"] = address
    kind, key = given.text("server_side_encryption"), given.text("encryption_key")
    if kind:
        if kind.lower() not in _ENCRYPTIONS:
            raise InvalidOption(
                f"{given.key('server_side_encryption')}={kind}: there are SSE-S3, SSE-KMS, "
                "DSSE-KMS and SSE-C"
            )
        settings["server_side_encryption"] = _ENCRYPTIONS[kind.lower()]
        if key:
            is_customer = settings["server_side_encryption"] == "sse-c"
            settings["sse_customer_key_base64" if is_customer else "sse_kms_key_id"] = key
    return settings


def _proxy(given: Given) -> str | None:
    host = given.text("proxy_host")
    if not host:
        return None
    user, password = given.text("proxy_username"), given.text("proxy_password") or ""
    login = f"{quote(user, safe='')}:{quote(password, safe='')}@" if user else ""
    scheme, _, name = host.rpartition("://")
    return f"{scheme or 'http'}://{login}{name}:{given.count('proxy_port', 8080)}"


def _read_pem(key: str, file: str) -> bytes:
    # Read here, so that workers on other machines need not have the file.
    try:
        return Path(file).read_bytes()
    except OSError as error:
        raise InvalidOption(f"{key}={file} cannot be read: {error.strerror}") from error
