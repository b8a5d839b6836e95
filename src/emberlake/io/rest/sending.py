"""Requests with retries: what is sent again after a failure, and what is not.

refused connections, 429        always: nothing has happened
503                             always, as servers ask for it; it may have happened
lost answers, 502, 504          only if sending it twice is the same as once
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from email.utils import parsedate_to_datetime
from enum import Enum, auto
from typing import Final
from urllib.parse import urlencode, urlsplit

from emberlake.base.env import SYSTEM_ENV, Env
from emberlake.errors import EmberlakeError, ServerError
from emberlake.io.rest.auth import Auth, Outgoing
from emberlake.io.rest.connections import Answer, AnswerLost, HttpSettings, NotSent, send_once
from emberlake.rest.errors import Code, ErrorAnswer
from emberlake.rest.paths import Endpoint

_SUCCESS: Final = (200, 201, 202, 204)
_GATEWAY: Final = (502, 504)
_FIRST_WAIT_MS: Final = 100
_LONGEST_WAIT_MS: Final = 10_000
_LONGEST_ASKED_MS: Final = 60_000  # the most that a server may ask for in Retry-After
_JITTER: Final = 0.25


class Repeat(Enum):
    """When a request is sent again."""

    SAFELY = auto()  # reads and deletions: sending it twice is the same as once
    IF_REFUSED = auto()  # changes
    NEVER = auto()  # the sender decides


@dataclass(frozen=True, kw_only=True)
class Session:
    """A server, and how to talk to it. It travels to workers; its repr shows no secret."""

    uri: str
    auth: Auth = field(repr=False)
    prefix: str = ""
    headers: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    http: HttpSettings = field(default_factory=HttpSettings)

    @property
    def host(self) -> str:
        return urlsplit(self.uri).netloc

    def with_prefix(self, prefix: str, headers: Mapping[str, str]) -> "Session":
        """The session that the config of the server asks for."""
        merged = {**dict(self.headers), **headers}
        return replace(self, prefix=prefix, headers=tuple(sorted(merged.items())))


@dataclass(frozen=True)
class Sent:
    """The answer to a request, and the error that it may hold."""

    answer: Answer
    error: ErrorAnswer | None
    doing: str
    is_repeated: bool  # an earlier attempt of the same request may have taken effect

    def body(self) -> bytes:
        """The body of the answer.

        Raises:
            EmberlakeError: the server refused.
        """
        if self.error is not None:
            raise self.failure()
        return self.answer.body

    def failure(self) -> EmberlakeError:
        """The error that the answer stands for."""
        assert self.error is not None
        return self.error.to_error(self.doing)


def send(
    session: Session,
    endpoint: Endpoint | None,
    path: str,
    *,
    query: Mapping[str, str] | None = None,
    body: bytes | None = None,
    repeat: Repeat | None = None,
    env: Env = SYSTEM_ENV,
) -> Sent:
    """Send a request, retry it after failures that allow it, and return the last answer.

    Raises:
        ServerError: the server cannot be reached, or its answer was lost.
    """
    method = "GET" if endpoint is None else endpoint.method
    if repeat is None:
        repeat = Repeat.IF_REFUSED if method == "POST" else Repeat.SAFELY
    request = Outgoing(
        method=method,
        path=urlsplit(session.uri).path.rstrip("/") + path,
        query=query or {},
        body=body,
        host=session.host,
        endpoint=endpoint,
    )
    doing = f"{method} {session.uri}{path}"
    is_repeated = False
    attempt = 0
    while True:
        is_last = repeat is Repeat.NEVER or attempt >= session.http.max_retries
        try:
            answer = _send_signed(session, request, env)
        except NotSent as error:
            if is_last or error.is_lasting:
                raise ServerError(
                    f"{session.uri} cannot be reached: {error}", had_no_effect=not is_repeated
                ) from None
            wait_ms = wait_before(attempt, None, env)
        except AnswerLost as error:
            if is_last or repeat is not Repeat.SAFELY:
                raise ServerError(f"{doing} failed: {error}") from None
            is_repeated = True
            wait_ms = wait_before(attempt, None, env)
        else:
            sent = _sent(answer, doing, is_repeated=is_repeated)
            if is_last or not _is_passing(answer.status, repeat):
                return sent
            is_repeated = is_repeated or answer.status != Code.TOO_MANY_REQUESTS
            wait_ms = wait_before(attempt, answer, env)
        attempt += 1
        env.sleep_ms(wait_ms)


def _send_signed(session: Session, request: Outgoing, env: Env) -> Answer:
    target = session.uri.removesuffix(urlsplit(session.uri).path) + request.path
    if request.query:
        target += "?" + urlencode(request.query)
    headers = {"Accept": "application/json", **dict(session.headers)}
    if request.body is not None:
        headers["Content-Type"] = "application/json"
    headers |= session.auth.headers(request, env)
    return send_once(session.http, request.method, target, headers, request.body)


def _sent(answer: Answer, doing: str, *, is_repeated: bool) -> Sent:
    if answer.status in _SUCCESS:
        return Sent(answer, None, doing, is_repeated)
    error = ErrorAnswer.from_body(answer.status, answer.body, answer.request_id)
    return Sent(answer, error, doing, is_repeated)


def _is_passing(status: int, repeat: Repeat) -> bool:
    """Whether the same request may succeed in a moment, and may be sent again."""
    if status in (Code.TOO_MANY_REQUESTS, Code.UNAVAILABLE):
        return True
    return repeat is Repeat.SAFELY and status in _GATEWAY


def wait_before(attempt: int, answer: Answer | None, env: Env) -> float:
    """Milliseconds to wait before a retry: as long as the server asks, or longer each time."""
    asked = None if answer is None else _asked_ms(answer, env)
    if asked is not None:
        return asked
    wait = min(_FIRST_WAIT_MS * 2.0**attempt, _LONGEST_WAIT_MS)
    return wait * (1 + _JITTER * env.chance())


def _asked_ms(answer: Answer, env: Env) -> float | None:
    """How long the server asks to wait: in seconds, or until a date."""
    text = answer.headers.get("retry-after", "").strip()
    if not text:
        return None
    try:
        wait = float(text) * 1000
    except ValueError:
        try:
            wait = parsedate_to_datetime(text).timestamp() * 1000 - env.now_ms()
        except ValueError:
            return None
    return None if math.isnan(wait) else min(max(wait, 0), _LONGEST_ASKED_MS)
