"""Where the keys of Data Lake Formation come from: options, a file, or the machine's cloud.

Keys that expire are loaded again when less than an hour is left, once for all threads of a process.
"""

import json
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from emberlake.base.env import Env
from emberlake.errors import NotAuthenticated
from emberlake.io.rest.connections import AnswerLost, HttpSettings, NotSent, send_once
from emberlake.rest.signing_dlf import DlfCredentials

_SAFE_MS: Final = 3_600_000
_FILE_TRIES: Final = 5
ECS_METADATA: Final = "http://100.100.100.200/latest/meta-data/Ram/security-credentials/"


@dataclass(frozen=True)
class DlfFile:
    """A JSON file that another program replaces before its keys expire."""

    path: str


@dataclass(frozen=True)
class DlfInstance:
    """The role of an ECS instance, from the metadata service of the cloud."""

    url: str = ECS_METADATA
    role: str | None = None


@dataclass(frozen=True)
class DlfKeys:
    """Keys that the user gave, or where to load them from."""

    source: DlfCredentials | DlfFile | DlfInstance = field()

    def current(self, env: Env) -> DlfCredentials:
        """The keys to sign with now."""
        if isinstance(self.source, DlfCredentials):
            return self.source
        with _lock:
            known = _loaded.get(self.source)
            if known is None or _is_ending(known, env.now_ms()):
                known = _loaded[self.source] = _load(self.source, env)
            return known


_lock = threading.Lock()
_loaded: dict[DlfFile | DlfInstance, DlfCredentials] = {}


def _is_ending(known: DlfCredentials, now_ms: int) -> bool:
    return known.expires_at_ms is not None and known.expires_at_ms - now_ms < _SAFE_MS


def _load(source: DlfFile | DlfInstance, env: Env) -> DlfCredentials:
    match source:
        case DlfFile(path):
            return _patiently(lambda: _parse(Path(path).expanduser().read_bytes()), path, env)
        case DlfInstance(url, role):
            base = url.rstrip("/") + "/"

            def ask() -> DlfCredentials:
                name = role or _fetch(base).decode().strip()
                return _parse(_fetch(base + name))

            return _patiently(ask, base, env)


def _patiently(load: Callable[[], DlfCredentials], where: str, env: Env) -> DlfCredentials:
    """Load the keys, with retries: the file may be being written at this moment."""
    for attempt in range(1, _FILE_TRIES + 1):
        try:
            return load()
        except (NotSent, AnswerLost, OSError, ValueError, KeyError, TypeError):
            if attempt < _FILE_TRIES:
                env.sleep_ms(1000 * attempt)
    # The unreadable text may hold keys, so the error does not show the cause.
    raise NotAuthenticated(
        f"the keys of Data Lake Formation cannot be loaded from {where}", had_no_effect=True
    )


def _fetch(url: str) -> bytes:
    answer = send_once(HttpSettings(), "GET", url, {}, None)
    if answer.status != 200:
        raise OSError(f"status {answer.status}")
    return answer.body


def _parse(data: bytes) -> DlfCredentials:
    value: dict[str, Any] = json.loads(data)
    expires = value.get("Expiration")
    return DlfCredentials(
        str(value["AccessKeyId"]),
        str(value["AccessKeySecret"]),
        None if value.get("SecurityToken") is None else str(value["SecurityToken"]),
        None if expires is None else _millis(str(expires)),
    )


def _millis(text: str) -> int:
    moment = datetime.strptime(text, "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=UTC)
    return int(moment.timestamp() * 1000)
