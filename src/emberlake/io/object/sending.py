"""Requests that the client library cannot make. The standard library makes them.

Failures are raised in the words of the client library, so that one place turns them into errors of
emberlake.
"""

import ssl
from collections.abc import Mapping
from functools import partial
from http.client import HTTPConnection, HTTPException, HTTPResponse, HTTPSConnection
from typing import Any, Final, Protocol
from urllib.error import HTTPError, URLError
from urllib.request import (
    HTTPHandler,
    HTTPRedirectHandler,
    HTTPSHandler,
    OpenerDirector,
    ProxyHandler,
    Request,
    build_opener,
)

_MOST_OF_A_FAILURE: Final = 65_536  # bytes that are read of the answer


class Reach(Protocol):
    """How a server is reached."""

    @property
    def timeout_ms(self) -> int: ...
    @property
    def connect_timeout_ms(self) -> int: ...
    @property
    def proxy_url(self) -> str | None: ...
    @property
    def ca_pem(self) -> bytes | None: ...


class Sender:
    """Sends small requests to a store or its token service, each over a connection of its own."""

    def __init__(self, reach: Reach) -> None:
        self._connect_s = reach.connect_timeout_ms / 1000
        self._opener = _opener(reach)

    def send(
        self,
        obs: Any,
        method: str,
        url: str,
        headers: Mapping[str, str],
        body: bytes | None = None,
    ) -> bytes:
        """The body of the answer.

        Raises:
            obstore.exceptions.BaseError: the store refused, or did not answer.
            FileNotFoundError: the store has no such object or bucket.
        """
        # The address was checked when the options were read: it is http or https.
        request = Request(url, body, method=method, headers=dict(headers))  # noqa: S310
        try:
            with self._opener.open(request, timeout=self._connect_s) as answer:
                answered: bytes = answer.read()
        except HTTPError as error:
            raise _refusal(obs, error) from None
        except (OSError, HTTPException) as error:
            raise obs.exceptions.GenericError(_broken_off(error)) from None
        return answered


def _refusal(obs: Any, error: HTTPError) -> Exception:
    try:
        with error:
            body = error.read(_MOST_OF_A_FAILURE).decode(errors="replace")
    except (OSError, HTTPException):
        body = ""
    text = f"status code: {error.code}: {body}"
    return FileNotFoundError(text) if error.code == 404 else obs.exceptions.GenericError(text)


def _broken_off(error: OSError | HTTPException) -> str:
    """Where a request broke off."""
    is_sent = not isinstance(error, URLError)
    reason = error.reason if isinstance(error, URLError) else error
    match reason:
        case ssl.SSLCertVerificationError():
            return "invalid peer certificate"
        case ssl.SSLError():
            return "InvalidContentType"
        case TimeoutError() if is_sent:
            return "HttpError { kind: Timeout }"
        case _:
            return f"HttpError {{ kind: {'Request' if is_sent else 'Connect'} }}"


def _opener(reach: Reach) -> OpenerDirector:
    context = ssl.create_default_context()
    if reach.ca_pem:
        context.load_verify_locations(cadata=reach.ca_pem.decode("ascii", "ignore"))
    # If no proxy is configured, the environment may name one, as it does for the library.
    proxies = {scheme: reach.proxy_url for scheme in ("http", "https") if reach.proxy_url}
    seconds = reach.timeout_ms / 1000
    return build_opener(
        ProxyHandler(proxies or None),
        _PlainHandler(seconds),
        _TlsHandler(seconds, context),
        _NoRedirects(),
    )


class _NoRedirects(HTTPRedirectHandler):
    """A signature is for one host, and no other host may see it."""

    def redirect_request(self, *_: Any) -> None: ...


class _PlainConnection(HTTPConnection):
    """Waits longer for an answer than for a connection."""

    def __init__(self, *arguments: Any, answer_s: float, **more: Any) -> None:
        super().__init__(*arguments, **more)
        self._answer_s = answer_s

    def connect(self) -> None:
        super().connect()
        self.sock.settimeout(self._answer_s)


class _TlsConnection(_PlainConnection, HTTPSConnection):
    """The same, secured."""


class _PlainHandler(HTTPHandler):
    def __init__(self, answer_s: float) -> None:
        super().__init__()
        self._answer_s = answer_s

    def http_open(self, req: Request) -> HTTPResponse:
        return self.do_open(partial(_PlainConnection, answer_s=self._answer_s), req)


class _TlsHandler(HTTPSHandler):
    def __init__(self, answer_s: float, context: ssl.SSLContext) -> None:
        super().__init__(context=context)
        self._secured = partial(_TlsConnection, answer_s=answer_s, context=context)

    def https_open(self, req: Request) -> HTTPResponse:
        return self.do_open(self._secured, req)
