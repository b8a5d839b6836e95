"""Principals, their tokens and their grants, in the server's database.

A token is random and shown once; the database has only its hash. So nobody who reads the database
learns a token.
"""

import hashlib
import json
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from emberlake.base.env import Env
from emberlake.errors import AlreadyExists, InvalidInput, NotFound
from emberlake.server.access.grants import (
    MAX_PRINCIPAL,
    Access,
    Columns,
    Grant,
    Resource,
    ResourceKind,
    check_grant,
)
from emberlake.server.database.database import Database, Statements, TakenError
from emberlake.server.records import insert

_TOKEN_BYTES: Final = 32
_MIN_TOKEN: Final = 16
GRANTS_OF: Final = (
    "SELECT principal, resource_type, database_name, object_name, access, columns, expires_at "
    "FROM grants WHERE catalog = ? AND principal = ?"
)


@dataclass(frozen=True)
class TokenInfo:
    """A token as it is listed: never its text."""

    id: str
    principal: str
    created_at: int
    expires_at: int | None
    revoked_at: int | None


def hash_token(token: str) -> str:
    """What the database has of a token. Tokens are random, so a plain hash is enough."""
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).hexdigest()


class Principals:
    """Creates and changes principals, tokens and grants."""

    def __init__(self, database: Database, env: Env) -> None:
        self._database = database
        self._env = env

    def create(self, name: str, *, is_admin: bool, by: str) -> None:
        """Add a principal.

        Raises:
            AlreadyExists: the name is taken.
        """
        is_plain = name == name.strip() and name.isprintable()
        if not 0 < len(name) <= MAX_PRINCIPAL or not is_plain:
            raise InvalidInput(f"{name!r} cannot be the name of a principal")
        values = {
            "name": name,
            "is_admin": int(is_admin),
            "created_at": self._env.now_ms(),
            "created_by": by,
        }
        try:
            with self._database.transaction() as session:
                sql, arguments = insert("principals", values)
                session.run(sql, *arguments)
        except TakenError:
            raise AlreadyExists(f"the principal {name!r} already exists") from None

    def drop(self, name: str) -> None:
        """Remove a principal with all tokens and grants."""
        with self._database.transaction() as session:
            if not session.run("SELECT name FROM principals WHERE name = ?", name):
                raise NotFound(f"there is no principal {name!r}")
            session.run("DELETE FROM grants WHERE principal = ?", name)
            session.run("DELETE FROM tokens WHERE principal = ?", name)
            session.run("DELETE FROM principals WHERE name = ?", name)

    def names(self) -> list[tuple[str, bool]]:
        """All principals by name, and whether they are administrators."""
        rows = self._database.run("SELECT name, is_admin FROM principals ORDER BY name")
        return [(name, bool(is_admin)) for name, is_admin in rows]

    def has_any(self) -> bool:
        """Whether there is any principal."""
        return bool(self._database.run("SELECT name FROM principals LIMIT 1"))

    def has_tokens(self) -> bool:
        """Whether a token was ever issued."""
        return bool(self._database.run("SELECT id FROM tokens LIMIT 1"))

    def issue_token(
        self, principal: str, *, by: str, expires_at: int | None = None, token: str | None = None
    ) -> tuple[str, str]:
        """A new token of a principal, and the id under which it is listed.

        Args:
            principal: Whose token it is.
            by: Who issues it.
            expires_at: When it ends.
            token: Its text, if the caller has one; otherwise it is random.
        """
        if token is not None and len(token) < _MIN_TOKEN:
            raise InvalidInput(f"a token needs {_MIN_TOKEN} characters or more")
        text = token or "el_" + secrets.token_urlsafe(_TOKEN_BYTES)
        identity = self._env.new_id()
        values = {
            "hash": hash_token(text),
            "id": identity,
            "principal": principal,
            "created_at": self._env.now_ms(),
            "created_by": by,
            "expires_at": expires_at,
        }
        try:
            with self._database.transaction() as session:
                if not session.run("SELECT name FROM principals WHERE name = ?", principal):
                    raise NotFound(f"there is no principal {principal!r}")
                sql, arguments = insert("tokens", values)
                session.run(sql, *arguments)
        except TakenError:
            raise AlreadyExists("this token is already in use") from None
        return text, identity

    def knows_token(self, token: str) -> bool:
        """Whether a token was issued before."""
        return bool(self._database.run("SELECT id FROM tokens WHERE hash = ?", hash_token(token)))

    def revoke_token(self, identity: str) -> None:
        """End a token now."""
        with self._database.transaction() as session:
            if not session.run("SELECT id FROM tokens WHERE id = ?", identity):
                raise NotFound(f"there is no token {identity!r}")
            session.run(
                "UPDATE tokens SET revoked_at = ? WHERE id = ? AND revoked_at IS NULL",
                self._env.now_ms(),
                identity,
            )

    def tokens(self, principal: str | None = None) -> list[TokenInfo]:
        """All tokens, or those of a principal, the oldest first."""
        rows = self._database.run(
            "SELECT id, principal, created_at, expires_at, revoked_at FROM tokens "
            "WHERE principal = ? OR ? = '' ORDER BY created_at, id",
            principal or "",
            principal or "",
        )
        return [TokenInfo(*row) for row in rows]

    # --- grants -----------------------------------------------------------------------------------

    def grant(self, catalog: str, grant: Grant, *, by: str) -> None:
        """Add a grant, or give the same one other columns or another end."""
        check_grant(grant)
        with self._database.transaction() as session:
            add_grant(session, catalog, grant, self._env, by=by)

    def revoke(self, catalog: str, principal: str, resource: Resource, access: Access) -> None:
        """Remove a grant.

        Raises:
            NotFound: there is no such grant.
        """
        where = (
            "catalog = ? AND principal = ? AND resource_type = ? AND database_name = ? "
            "AND object_name = ? AND access = ?"
        )
        arguments = (catalog, principal, resource.kind, resource.database, resource.name, access)
        with self._database.transaction() as session:
            if not session.run(f"SELECT id FROM grants WHERE {where}", *arguments):  # noqa: S608
                raise NotFound(f"{principal} has no such grant")
            session.run(f"DELETE FROM grants WHERE {where}", *arguments)  # noqa: S608

    def grants(self, catalog: str) -> list[Grant]:
        """All grants of a warehouse, in the order of principals and resources."""
        rows = self._database.run(
            "SELECT principal, resource_type, database_name, object_name, access, columns, "
            "expires_at FROM grants WHERE catalog = ? "
            "ORDER BY principal, resource_type, database_name, object_name, access",
            catalog,
        )
        return [grant_of(row) for row in rows]


def add_grant(session: Statements, catalog: str, grant: Grant, env: Env, *, by: str) -> None:
    """Add a grant inside of a transaction."""
    columns = None if grant.columns is None else json.dumps(grant.columns.to_json())
    session.run(
        "INSERT INTO grants (id, catalog, principal, resource_type, database_name, object_name, "
        "access, columns, expires_at, created_at, created_by) "
        "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) "
        "ON CONFLICT (catalog, principal, resource_type, database_name, object_name, access) "
        "DO UPDATE SET columns = excluded.columns, expires_at = excluded.expires_at",
        env.new_id(),
        catalog,
        grant.principal,
        grant.resource.kind.value,
        grant.resource.database,
        grant.resource.name,
        grant.access.value,
        columns,
        grant.expires_at,
        env.now_ms(),
        by,
    )


def own(session: Statements, catalog: str, principal: str, resource: Resource, env: Env) -> None:
    """Give the creator of something every access to it."""
    kinds = (
        (ResourceKind.DATABASE, ResourceKind.DATABASE_ALL)
        if resource.kind is ResourceKind.DATABASE
        else (resource.kind,)
    )
    for kind in kinds:
        owned = Resource(kind, resource.database, resource.name)
        add_grant(session, catalog, Grant(principal, owned, Access.ALL), env, by=principal)


def forget_grants(session: Statements, catalog: str, resource: Resource) -> None:
    """Remove the grants on what is dropped; they must not apply to something new of that name."""
    kinds: Sequence[ResourceKind]
    if resource.kind is ResourceKind.DATABASE:
        session.run(
            "DELETE FROM grants WHERE catalog = ? AND database_name = ?", catalog, resource.database
        )
        return
    kinds = (resource.kind,)
    if resource.kind is ResourceKind.TABLE:
        kinds = (ResourceKind.TABLE, ResourceKind.COLUMN)
    for kind in kinds:
        session.run(
            "DELETE FROM grants WHERE catalog = ? AND database_name = ? AND object_name = ? "
            "AND resource_type = ?",
            catalog,
            resource.database,
            resource.name,
            kind.value,
        )


def move_grants(session: Statements, catalog: str, old: Resource, new: Resource) -> None:
    """Let grants follow what is renamed."""
    forget_grants(session, catalog, new)
    kinds: Sequence[ResourceKind] = (old.kind,)
    if old.kind is ResourceKind.TABLE:
        kinds = (ResourceKind.TABLE, ResourceKind.COLUMN)
    for kind in kinds:
        session.run(
            "UPDATE grants SET database_name = ?, object_name = ? WHERE catalog = ? "
            "AND database_name = ? AND object_name = ? AND resource_type = ?",
            new.database,
            new.name,
            catalog,
            old.database,
            old.name,
            kind.value,
        )


def grant_of(row: tuple[Any, ...]) -> Grant:
    """The grant of a row."""
    principal, kind, database, name, access, columns, expires_at = row
    return Grant(
        principal,
        Resource(ResourceKind(kind), database, name),
        Access(access),
        None if columns is None else Columns.from_json(json.loads(columns)),
        expires_at,
    )
