"""Connections to servers: pooled by settings, and never shared with a forked process.

Two processes on one connection would read each other's answers, so the child of a fork forgets the
connections of its parent.
"""

import os
import ssl
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from email.utils import parsedate_to_datetime
from typing import Any, Final
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

from emberlake.base.extras import load_extra
from emberlake.errors import InvalidOption

_POOLED: Final = 16  # connections to one server


@dataclass(frozen=True, kw_only=True)
class HttpSettings:
    """How to reach a server. They travel between processes; their repr shows no password."""

    connect_timeout_ms: int = 10_000
    read_timeout_ms: int = 60_000
    max_retries: int = 5
    proxy_url: str | None = field(default=None, repr=False)
    ca_pem: bytes | None = field(default=None, repr=False)


@dataclass(frozen=True)
class Answer:
    """The answer of a server; header names are in lower case."""

    status: int
    body: bytes = field(repr=False)
    headers: Mapping[str, str] = field(default_factory=dict)

    @property
    def request_id(self) -> str | None:
        found = (text for name, text in self.headers.items() if "request-id" in name)
        return next(found, None)

    @property
    def clock_ms(self) -> int | None:
        """The time by the server's clock, to the second; None if the answer does not have it."""
        try:
            return int(parsedate_to_datetime(self.headers["date"]).timestamp() * 1000)
        except (KeyError, ValueError):
            return None


class NotSent(Exception):
    """The server was not reached, so the request had no effect."""

    def __init__(self, reason: str, *, is_lasting: bool = False) -> None:
        super().__init__(reason)
        self.is_lasting = is_lasting  # another attempt would fail in the same way


class AnswerLost(Exception):
    """The request was sent, or part of it, but no whole answer came: its effect is unknown."""


@dataclass
class _Process:
    """The connections of this process: reset in the child of a fork."""

    lock: Any = field(default_factory=threading.Lock)
    pools: dict[tuple[HttpSettings, str | None], Any] = field(default_factory=dict)


_process = _Process()
_abandoned: list[_Process] = []  # connections of parents, which the parents close


def send_once(
    settings: HttpSettings, method: str, url: str, headers: Mapping[str, str], body: bytes | None
) -> Answer:
    """Send one request and wait for its answer.

    Raises:
        NotSent: the server was not reached.
        AnswerLost: nobody knows what the server did.
    """
    http: Any = load_extra("urllib3", extra="rest")
    failures = http.exceptions
    try:
        found = _pool_of(http, settings, url).request(
            method,
            url,
            body=body,
            headers=dict(headers),
            retries=False,
            redirect=False,  # a token is for one host
            timeout=http.Timeout(
                connect=settings.connect_timeout_ms / 1000, read=settings.read_timeout_ms / 1000
            ),
        )
    except (
        failures.NewConnectionError,
        failures.ConnectTimeoutError,
        failures.ProxyError,
    ) as error:
        raise NotSent(_described(error)) from None
    except failures.SSLError as error:
        raise NotSent(f"TLS failed: {_reason(error)}", is_lasting=True) from None
    except (failures.LocationParseError, failures.URLSchemeUnknown) as error:
        raise InvalidOption(f"{_origin(url)} is not an address of a server") from error
    except failures.ReadTimeoutError:
        seconds = settings.read_timeout_ms / 1000
        raise AnswerLost(f"no answer came within {seconds:g} seconds") from None
    except failures.HTTPError as error:
        raise AnswerLost(f"the connection broke off: {_reason(error)}") from None
    return Answer(
        found.status, found.data, {name.lower(): text for name, text in found.headers.items()}
    )


def _pool_of(http: Any, settings: HttpSettings, url: str) -> Any:
    proxy = settings.proxy_url or _proxy_of_environment(url)
    key = (settings, proxy)
    with _process.lock:
        pool = _process.pools.get(key)
        if pool is None:
            shared = {"maxsize": _POOLED, "ssl_context": _tls(settings)}
            manager = http.PoolManager if proxy is None else http.ProxyManager
            pool = manager(**shared) if proxy is None else manager(proxy, **shared)
            _process.pools[key] = pool
        return pool


def _tls(settings: HttpSettings) -> ssl.SSLContext:
    context = ssl.create_default_context()
    if settings.ca_pem:
        context.load_verify_locations(cadata=settings.ca_pem.decode("ascii", "ignore"))
    return context


def _proxy_of_environment(url: str) -> str | None:
    """The proxy that HTTP_PROXY, HTTPS_PROXY and NO_PROXY ask for."""
    parts = urlsplit(url)
    proxies = getproxies()
    if proxy_bypass(parts.netloc):
        return None
    found = proxies.get(parts.scheme) or proxies.get("all")
    return found if found is None or "://" in found else f"http://{found}"


def _described(error: Exception) -> str:
    kinds = {
        "NameResolutionError": "its name is not known",
        "ConnectTimeoutError": "it does not answer",
        "ProxyError": "the proxy failed",
    }
    return kinds.get(type(error).__name__, "the connection was refused")


def _reason(error: Exception) -> str:
    """What went wrong, without addresses and objects."""
    cause: BaseException | None = error.__cause__ or error.__context__
    if isinstance(cause, ssl.SSLCertVerificationError):
        return f"{cause.verify_message}; rest.client.ca-file names a certificate to trust"
    return type(cause or error).__name__


def _origin(url: str) -> str:
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.hostname}"


def _after_fork() -> None:
    global _process  # noqa: PLW0603
    _abandoned.append(_process)
    _process = _Process()


os.register_at_fork(after_in_child=_after_fork)
