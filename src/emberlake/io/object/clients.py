"""Clients of stores: one for each config, bucket and purpose in a process.

The library hangs forever in the child of a process that has used it, so in such a child we raise an
error immediately. A client is made in the process that uses it, and never sent to another.
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from enum import Enum, auto
from threading import Lock
from typing import Any, Final

from emberlake.base.extras import load_extra
from emberlake.errors import InvalidState
from emberlake.io.object.aside import forget_helpers
from emberlake.io.object.config import StoreConfig
from emberlake.io.object.credentials import CredentialsProvider, FixedKeys
from emberlake.io.object.location import Cloud, Location
from emberlake.io.object.roles import RoleRefused

_CLIENTS_KEPT: Final = 64
_REACHED_KEPT: Final = 1024  # catalogs that hand out keys make one config per key
_CONTACT_MS: Final = 3_000  # to connect, until a store has answered for the first time
_PUBLISH_MS: Final = 20_000  # for a small body; a lost answer is settled, not waited for
_HINT_MS: Final = 5_000


class Purpose(Enum):
    """What a client is for, which decides how patient it is."""

    DATA = auto()
    PUBLISH = auto()  # one request per call: the publisher decides what to repeat
    CREATE = auto()  # the same, with time for a large body
    HINT = auto()  # nobody waits for it


class ProviderFailed(Exception):
    """A provider of credentials raised an error; its text may hold secrets."""


@dataclass
class _Process:
    """What this process has: reset in the child of a fork."""

    lock: Any = field(default_factory=Lock)
    clients: dict[tuple[object, ...], Any] = field(default_factory=dict)
    reached: dict[tuple[StoreConfig, str], None] = field(default_factory=dict)  # oldest first
    has_used_library: bool = False
    is_broken: bool = False


_process = _Process()


def library(cloud: Cloud) -> Any:
    """obstore, or an error that says what to install."""
    return load_extra("obstore", extra=cloud)


def client_of(config: StoreConfig, location: Location, purpose: Purpose = Purpose.DATA) -> Any:
    """The client of a location's bucket.

    Raises:
        InvalidState: this process was forked from one that had used the library.
    """
    if _process.is_broken:
        raise InvalidState(
            "this process was forked from one that had used an object store, and the client "
            "library hangs in such a process; start processes with multiprocessing's 'spawn', or "
            "use the store only in the children"
        )
    is_reached = has_reached(config, location)
    key = (config, location.root, purpose, is_reached)
    with _process.lock:
        client = _process.clients.get(key)
        if client is None:
            client = _new_client(config, location, purpose, is_reached=is_reached)
            while len(_process.clients) >= _CLIENTS_KEPT:
                del _process.clients[next(iter(_process.clients))]
            _process.clients[key] = client
        _process.has_used_library = True
        return client


def has_reached(config: StoreConfig, location: Location) -> bool:
    """Whether the store has answered this process before, so its options are right."""
    return (config, location.root) in _process.reached


def note_reached(config: StoreConfig, location: Location) -> None:
    """Note that the store has answered: from now on failures are worth many retries."""
    if has_reached(config, location):
        return
    with _process.lock:
        while len(_process.reached) >= _REACHED_KEPT:
            del _process.reached[next(iter(_process.reached))]
        _process.reached[config, location.root] = None


def forget_clients(config: StoreConfig) -> None:
    """Make new clients from now on: the credentials of the old ones have expired."""
    with _process.lock:
        for key in [key for key in _process.clients if key[0] == config]:
            del _process.clients[key]


def _new_client(
    config: StoreConfig, location: Location, purpose: Purpose, *, is_reached: bool
) -> Any:
    stores = load_extra("obstore.store", extra=config.cloud)
    settings = {**dict(config.settings), **dict(config.credentials.settings)}
    shared: dict[str, Any] = {
        "client_options": _client_options(config, purpose, is_reached=is_reached),
        "retry_config": _retry_config(config, purpose, is_reached=is_reached),
    }
    if config.credentials.provider is not None:
        shared["credential_provider"] = AskedProvider(config.cloud, config.credentials.provider)
    match config.cloud:
        case Cloud.S3 | Cloud.OSS:
            is_large = purpose in (Purpose.DATA, Purpose.CREATE)
            is_unsigned = is_large and not config.signs_payload
            settings["unsigned_payload"] = str(is_unsigned).lower()
            if "endpoint" in settings:
                # The library expects the bucket in the address, unless it belongs in the path.
                if settings["virtual_hosted_style_request"] == "true":
                    settings["endpoint"] = with_bucket(settings["endpoint"], location.bucket)
                settings["aws_endpoint_url_s3"] = settings["endpoint"]
            return stores.S3Store(location.bucket, config=settings, **shared)
        case Cloud.GCS:
            return stores.GCSStore(location.bucket, config=settings, **shared)
        case Cloud.AZURE:
            settings.setdefault("account_name", location.host.partition(".")[0])
            return stores.AzureStore(location.bucket, config=settings, **shared)


def with_bucket(endpoint: str, bucket: str) -> str:
    """The address of a bucket that has a host of its own."""
    scheme, _, host = endpoint.partition("://")
    return f"{scheme}://{bucket}.{host}"


def _client_options(config: StoreConfig, purpose: Purpose, *, is_reached: bool) -> dict[str, Any]:
    limits = {Purpose.PUBLISH: _PUBLISH_MS, Purpose.HINT: _HINT_MS}
    timeout_ms = min(config.timeout_ms, limits.get(purpose, config.timeout_ms))
    connect_ms = config.connect_timeout_ms
    if not is_reached:
        connect_ms = min(connect_ms, _CONTACT_MS)
    options: dict[str, Any] = {
        "timeout": timedelta(milliseconds=timeout_ms),
        "connect_timeout": timedelta(milliseconds=connect_ms),
        "allow_http": config.is_plain_http,
    }
    if config.connections is not None:
        options["pool_max_idle_per_host"] = str(config.connections)
    if config.proxy_url:
        options["proxy_url"] = config.proxy_url
    if config.ca_pem:
        options["root_certificate"] = config.ca_pem
    if config.cloud is Cloud.OSS and purpose in (Purpose.PUBLISH, Purpose.CREATE):
        options["default_headers"] = {"x-oss-forbid-overwrite": "true"}  # its If-None-Match
    return options


def _retry_config(config: StoreConfig, purpose: Purpose, *, is_reached: bool) -> dict[str, Any]:
    retries = config.max_retries if purpose is Purpose.DATA else 0
    if not is_reached:
        retries = min(retries, 1)
    return {
        "max_retries": retries,
        "retry_timeout": timedelta(milliseconds=2 * config.timeout_ms),
    }


@dataclass(frozen=True)
class AskedProvider:
    """A provider as the library calls it: it has all keys, and its errors reveal nothing."""

    cloud: Cloud
    provider: CredentialsProvider = field(repr=False)

    def __call__(self) -> Mapping[str, Any]:
        try:
            found = dict(self.provider())
        except RoleRefused as error:
            raise ProviderFailed(str(error)) from None
        except Exception as error:  # noqa: BLE001 - it is the user's
            raise ProviderFailed(type(error).__name__) from None
        if isinstance(self.provider, FixedKeys):
            return found
        found.setdefault("expires_at", None)
        if self.cloud in (Cloud.S3, Cloud.OSS):
            found.setdefault("token", None)
        return found


def _after_fork() -> None:
    is_broken = _process.is_broken or _process.has_used_library
    # A lock may be held by a thread that is not in this process.
    _process.__init__()  # type: ignore[misc]
    _process.is_broken = is_broken
    forget_helpers()


os.register_at_fork(after_in_child=_after_fork)
