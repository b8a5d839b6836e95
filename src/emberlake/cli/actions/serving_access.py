"""Who may use the REST catalog server, and for what."""

from collections.abc import Sequence

from emberlake.cli.actions.serving import BY, after, moment, opened
from emberlake.cli.failures import UsageError
from emberlake.cli.report import Done, Grid, Note, Report, numbers, words
from emberlake.cli.session import Session
from emberlake.server.access.grants import (
    Columns,
    Grant,
    Resource,
    ResourceKind,
    access_from,
)

# --- principals -----------------------------------------------------------------------------------


def add_principal(session: Session, database: str | None, name: str, *, is_admin: bool) -> Report:
    """Add a principal."""
    with opened(session, database) as (services, _):
        services.principals.create(name, is_admin=is_admin, by=BY)
    return Report({"principal": name, "admin": is_admin}, [Done(f"added {name}")])


def remove_principal(session: Session, database: str | None, name: str, *, yes: bool) -> Report:
    """Remove a principal, with all tokens and grants."""
    session.confirm(f"This removes {name} with all tokens and grants", yes=yes)
    with opened(session, database) as (services, _):
        services.principals.drop(name)
    return Report({"principal": name}, [Done(f"removed {name}")])


def list_principals(session: Session, database: str | None) -> Report:
    """List the principals."""
    with opened(session, database) as (services, _):
        found = services.principals.names()
    return Report(
        {"principals": [{"name": name, "admin": is_admin} for name, is_admin in found]},
        [
            Grid(
                [words("principal"), words("")],
                [(name, "administrator" if is_admin else "") for name, is_admin in found],
                empty="nobody; add somebody with: emberlake serve add NAME",
            )
        ],
    )


def issue_token(
    session: Session, database: str | None, principal: str, days: float | None
) -> Report:
    """Issue a token; it is shown once."""
    with opened(session, database) as (services, _):
        token, identity = services.principals.issue_token(principal, by=BY, expires_at=after(days))
    return Report(
        {"principal": principal, "id": identity, "token": token},
        [Done(token), Note(f"the token of {principal}, shown once; its id is {identity}")],
    )


def list_tokens(session: Session, database: str | None, principal: str | None) -> Report:
    """List tokens, without their text."""
    with opened(session, database) as (services, _):
        found = services.principals.tokens(principal)
    rows = [
        (
            each.principal,
            each.id,
            moment(each.created_at),
            "revoked" if each.revoked_at else moment(each.expires_at),
        )
        for each in found
    ]
    columns = [words("principal"), words("id", 36), words("created"), words("ends")]
    document = [
        {
            "principal": each.principal,
            "id": each.id,
            "created_at": each.created_at,
            "expires_at": each.expires_at,
            "revoked_at": each.revoked_at,
        }
        for each in found
    ]
    return Report({"tokens": document}, [Grid(columns, rows, empty="no tokens")])


def revoke_token(session: Session, database: str | None, identity: str) -> Report:
    """Revoke a token."""
    with opened(session, database) as (services, _):
        services.principals.revoke_token(identity)
    return Report({"id": identity}, [Done(f"revoked token {identity}")])


# --- grants ---------------------------------------------------------------------------------------


def grant(
    session: Session,
    database: str | None,
    words_typed: tuple[str, str, str],
    columns: Sequence[str],
    days: float | None,
) -> Report:
    """Let a principal do something."""
    principal, access, resource = words_typed
    with opened(session, database) as (services, warehouse):
        new = Grant(
            principal,
            resource_of(resource, has_columns=bool(columns)),
            access_from(access.upper()),
            Columns(frozenset(columns)) if columns else None,
            after(days),
        )
        services.principals.grant(warehouse.name, new, by=BY)
    text = f"{principal} may {access.upper()} {resource} of {warehouse.name}"
    return Report({"principal": principal, "access": access, "resource": resource}, [Done(text)])


def revoke(
    session: Session, database: str | None, words_typed: tuple[str, str, str], *, columns: bool
) -> Report:
    """Revoke a grant."""
    principal, access, resource = words_typed
    with opened(session, database) as (services, warehouse):
        services.principals.revoke(
            warehouse.name,
            principal,
            resource_of(resource, has_columns=columns),
            access_from(access.upper()),
        )
    text = f"{principal} may no longer {access.upper()} {resource} of {warehouse.name}"
    return Report({"principal": principal, "access": access, "resource": resource}, [Done(text)])


def list_grants(session: Session, database: str | None) -> Report:
    """List who may do what."""
    with opened(session, database) as (services, warehouse):
        found = services.principals.grants(warehouse.name)
    rows = [
        (
            each.principal,
            each.access.value,
            resource_text(each.resource),
            "" if each.columns is None else _columns_text(each.columns),
            moment(each.expires_at),
        )
        for each in found
    ]
    names = ("principal", "access", "resource", "columns", "ends")
    document = [dict(zip(names, row, strict=True)) for row in rows]
    columns = [words(name) for name in names]
    return Report({"grants": document}, [Grid(columns, rows, empty="no grants")])


def _columns_text(columns: Columns) -> str:
    names = ", ".join(sorted(columns.names))
    return f"all but {names}" if columns.are_excluded else names


def audit(session: Session, database: str | None, last: int) -> Report:
    """The last entries of the audit log."""
    with opened(session, database) as (services, warehouse):
        rows = services.database.run(
            "SELECT at, principal, action, resource, outcome, request_id FROM audit_log "
            "WHERE catalog = ? OR catalog = '' ORDER BY at DESC LIMIT ?",
            warehouse.name,
            last,
        )
    names = ("at", "principal", "action", "resource", "outcome", "request_id")
    shown = [
        (moment(at), who, action, resource, str(outcome), request)
        for at, who, action, resource, outcome, request in reversed(rows)
    ]
    columns = [
        words("time"),
        words("principal"),
        words("action"),
        words("resource"),
        numbers("code"),
        words("request", 36),
    ]
    return Report(
        {"entries": [dict(zip(names, row, strict=True)) for row in reversed(rows)]},
        [Grid(columns, shown, empty="the audit log is empty")],
    )


def resource_of(text: str, *, has_columns: bool = False) -> Resource:
    """The resource of ``catalog``, ``catalog.*``, ``db``, ``db.*``, ``db.t``, ``view:db.v``."""
    kind, separator, rest = text.partition(":")
    if separator and kind in ("view", "function"):
        database, _, name = rest.partition(".")
        return Resource(ResourceKind(kind.upper()), database, name)
    database, dot, name = text.partition(".")
    match (database, dot, name):
        case ("catalog", "", ""):
            return Resource(ResourceKind.CATALOG)
        case ("catalog", ".", "*"):
            return Resource(ResourceKind.CATALOG_ALL)
        case (_, "", ""):
            return Resource(ResourceKind.DATABASE, database)
        case (_, ".", "*"):
            return Resource(ResourceKind.DATABASE_ALL, database)
        case (_, ".", _) if name:
            kind_of = ResourceKind.COLUMN if has_columns else ResourceKind.TABLE
            return Resource(kind_of, database, name)
        case _:
            raise UsageError(
                f"{text!r} is not a resource: try catalog, catalog.*, db, db.* or db.t"
            )


def resource_text(resource: Resource) -> str:
    """The words that ``resource_of`` reads."""
    match resource.kind:
        case ResourceKind.CATALOG:
            return "catalog"
        case ResourceKind.CATALOG_ALL:
            return "catalog.*"
        case ResourceKind.DATABASE:
            return resource.database
        case ResourceKind.DATABASE_ALL:
            return f"{resource.database}.*"
        case ResourceKind.TABLE | ResourceKind.COLUMN:
            return f"{resource.database}.{resource.name}"
        case _:
            return f"{resource.kind.lower()}:{resource.database}.{resource.name}"
