"""Finds out who is asking: from a token of the server, or one of an identity provider.

The answer is remembered for a moment, so that most requests need no query. A token that another
server revokes is refused here after that moment.
"""

import asyncio
from dataclasses import dataclass
from typing import Final, Protocol, TypeVar

from emberlake.base.env import Env
from emberlake.errors import NotAuthenticated
from emberlake.server.access.grants import Grant, Principal
from emberlake.server.access.principals import GRANTS_OF, grant_of, hash_token
from emberlake.server.database.database import Database

K = TypeVar("K")
V = TypeVar("V")

ANONYMOUS: Final = "anonymous"
_REMEMBERED: Final = 10_000  # tokens, and principals


@dataclass(frozen=True, slots=True)
class Identity:
    """Who is asking: a name, the groups that it is in, and when that must be proven again."""

    name: str
    groups: tuple[str, ...] = ()
    is_admin: bool = False
    expires_at: int | None = None


class IdentityProvider(Protocol):
    """Verifies tokens that others issue."""

    def verify(self, token: str) -> Identity:
        """Whose token it is.

        Raises:
            NotAuthenticated: it is not valid, or not for this server.
        """


class Authentication:
    """Turns the header of a request into a principal."""

    def __init__(
        self,
        database: Database,
        env: Env,
        *,
        provider: IdentityProvider | None = None,
        anonymous: bool = False,
        remember_ms: int = 1000,
    ) -> None:
        self._database = database
        self._env = env
        self._provider = provider
        self._anonymous = anonymous
        self._remember_ms = remember_ms
        self._identities: dict[str, tuple[int, Identity]] = {}
        self._grants: dict[tuple[str, str], tuple[int, tuple[Grant, ...]]] = {}

    def forget(self) -> None:
        """Ask the database again: something has changed."""
        self._identities.clear()
        self._grants.clear()

    async def identify(self, header: str | None) -> Identity:
        """Who sent this Authorization header.

        Raises:
            NotAuthenticated: the sender is not known.
        """
        if header is None:
            if self._anonymous:
                return Identity(ANONYMOUS, is_admin=True)
            raise NotAuthenticated("this server needs a token: Authorization: Bearer <token>")
        scheme, _, token = header.partition(" ")
        token = token.strip()
        if scheme.lower() != "bearer" or not token:
            raise NotAuthenticated("this server needs a token: Authorization: Bearer <token>")
        now, key = self._env.now_ms(), hash_token(token)
        known = self._identities.get(key)
        if known is None or known[0] < now:
            identity = await self._look_up(token, key)
            _keep(self._identities, key, (now + self._remember_ms, identity))
        else:
            identity = known[1]
        if identity.expires_at is not None and identity.expires_at <= now:
            raise NotAuthenticated("the token has expired")
        return identity

    async def principal(self, identity: Identity, catalog: str) -> Principal:
        """Somebody with the grants that they and their groups have in a warehouse."""
        if identity.is_admin:
            return Principal(identity.name, is_admin=True)
        now = self._env.now_ms()
        grants: list[Grant] = []
        for name in (identity.name, *identity.groups):
            grants.extend(await self._grants_of(catalog, name, now))
        valid = [g for g in grants if g.expires_at is None or g.expires_at > now]
        return Principal(identity.name, grants=valid)

    async def _grants_of(self, catalog: str, name: str, now: int) -> tuple[Grant, ...]:
        known = self._grants.get((catalog, name))
        if known is not None and known[0] >= now:
            return known[1]
        rows = await self._database.fetch(GRANTS_OF, catalog, name)
        found = tuple(grant_of(row) for row in rows)
        _keep(self._grants, (catalog, name), (now + self._remember_ms, found))
        return found

    async def _look_up(self, token: str, key: str) -> Identity:
        rows = await self._database.fetch(
            "SELECT p.name, p.is_admin, t.expires_at, t.revoked_at FROM tokens t "
            "JOIN principals p ON p.name = t.principal WHERE t.hash = ?",
            key,
        )
        if rows:
            name, is_admin, expires_at, revoked_at = rows[0]
            if revoked_at is not None:
                raise NotAuthenticated("the token was revoked")
            return Identity(name, is_admin=bool(is_admin), expires_at=expires_at)
        if self._provider is None:
            raise NotAuthenticated("the token is not valid")
        # The keys of a provider may have to be fetched.
        return await asyncio.to_thread(self._provider.verify, token)


def _keep(kept: dict[K, V], key: K, value: V) -> None:
    if len(kept) >= _REMEMBERED:
        kept.clear()
    kept[key] = value
