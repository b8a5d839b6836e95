"""Temporary credentials for the folder of a table, which its server hands out.

The driver asks for a token and ships it with the table. Whichever process holds the table asks for
the next one before the token expires: one renewal at a time, and one token per table and process.
"""

import os
import threading
from dataclasses import dataclass, field
from typing import Any, Final

from emberlake.base.env import SYSTEM_ENV, Env
from emberlake.errors import CredentialsExpired, EmberlakeError
from emberlake.io.rest.api import RestApi
from emberlake.io.rest.sending import Session
from emberlake.rest.commits import DataToken
from emberlake.spec.identifier import Identifier

_LONGEST_RESERVE_MS: Final = 3_600_000
_RESERVE: Final = 0.25  # of a token's life
_JITTER: Final = 0.2  # of the reserve: not all workers ask at once
_SKEW_NOISE_MS: Final = 2_000  # the clock in an answer counts whole seconds


@dataclass
class _Kept:
    """The token of one table in this process."""

    lock: Any = field(default_factory=threading.Lock)
    token: DataToken | None = None
    since_ms: int = 0
    reserve: float = _RESERVE
    skew_ms: int = 0  # how far the server's clock is ahead of ours

    def keep(self, token: DataToken, env: Env) -> None:
        self.token = token
        self.since_ms = env.now_ms()
        self.reserve = _RESERVE * (1 + _JITTER * env.chance())

    def left_ms(self, token: DataToken, env: Env) -> float:
        """How long a token is good for, by the clock of the server that gave it."""
        return token.expires_at_ms - (env.now_ms() + self.skew_ms)

    def is_ending(self, env: Env) -> bool:
        token = self.token  # another thread may forget it at any time
        if token is None:
            return True
        life = token.expires_at_ms - (self.since_ms + self.skew_ms)
        return self.left_ms(token, env) < min(_LONGEST_RESERVE_MS, max(life, 0) * self.reserve)


@dataclass
class _Process:
    """The tokens of this process. They are reset after a fork: a lock may be held forever."""

    lock: Any = field(default_factory=threading.Lock)
    kept: dict[tuple[Session, Identifier], _Kept] = field(default_factory=dict)


_process = _Process()


@dataclass(frozen=True)
class TokenSource:
    """The tokens of one table. It travels with its current token; its repr shows none."""

    session: Session
    table: Identifier
    first: DataToken | None = field(default=None, repr=False, compare=False)
    env: Env = field(default=SYSTEM_ENV, repr=False, compare=False)

    def current(self) -> DataToken:
        """A token that is good for a while.

        Raises:
            CredentialsExpired: the token has expired, and the server gives no other.
            ServerError: the server gives no token at all.
        """
        kept = self._kept()
        token = kept.token
        if token is not None and not kept.is_ending(self.env):
            return token
        with kept.lock:  # one thread asks, and the others wait for its token
            if not kept.is_ending(self.env):
                assert kept.token is not None
                return kept.token
            return self._renewed(kept)

    def expires_at_ms(self, token: DataToken) -> int:
        """When a token expires, by the clock of this process."""
        return token.expires_at_ms - self._kept().skew_ms

    def forget(self) -> None:
        """The store no longer accepts the token, whatever its expiry time."""
        kept = self._kept()
        with kept.lock:
            kept.token = None

    def _renewed(self, kept: _Kept) -> DataToken:
        try:
            token, server_ms = RestApi(self.session, self.env).table_token(self.table)
        except EmberlakeError as error:
            if kept.token is not None and kept.left_ms(kept.token, self.env) > 0:
                return kept.token  # it is still good; the next call asks again
            if kept.token is None:
                raise
            raise CredentialsExpired(
                f"the storage credentials of {self.table} have expired, and the catalog gives no "
                f"new ones: {error}",
                had_no_effect=True,
            ) from error
        if server_ms is not None:
            skew = server_ms - self.env.now_ms()
            kept.skew_ms = skew if abs(skew) > _SKEW_NOISE_MS else 0
        kept.keep(token, self.env)
        return token

    def _kept(self) -> _Kept:
        with _process.lock:
            kept = _process.kept.setdefault((self.session, self.table), _Kept())
            is_new = kept.token is None and not kept.since_ms
            if self.first is not None and is_new:  # it came with the table
                kept.keep(self.first, self.env)
            return kept

    def __reduce__(self) -> tuple[object, ...]:
        try:
            first: DataToken | None = self.current()
        except EmberlakeError:  # a caller that needs it meets the failure again
            first = self.first
        return TokenSource, (self.session, self.table, first)


def _after_fork() -> None:
    global _process  # noqa: PLW0603
    known = _process.kept
    _process = _Process()
    for key, kept in known.items():  # tokens may be used by both
        _process.kept[key] = _Kept(
            token=kept.token, since_ms=kept.since_ms, reserve=kept.reserve, skew_ms=kept.skew_ms
        )


os.register_at_fork(after_in_child=_after_fork)
