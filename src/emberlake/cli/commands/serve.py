"""``emberlake serve``: a REST catalog server, and the commands that manage it."""

from typing import Annotated

import typer

from emberlake.cli import actions
from emberlake.cli.commands.arguments import YesOption, flag
from emberlake.cli.commands.declare import CatalogOption, DebugOption, Section, command
from emberlake.cli.config import Settings
from emberlake.cli.report import Report
from emberlake.cli.session import Session
from emberlake.cli.typed_options import pairs_of, words_of

section = Section("REST catalog server")
group = section.group(
    "serve",
    "A REST catalog server on warehouses: start it, or manage what it knows.",
    acts=True,
)

DatabaseOption = Annotated[
    str | None,
    typer.Option(
        "--database",
        metavar="FILE|URL",
        help="The server's own database: a SQLite file, or postgresql://... for several servers. "
        "By default .emberlake/server.db in the first local warehouse.",
        show_default=False,
    ),
]
PrincipalArgument = Annotated[
    str, typer.Argument(metavar="PRINCIPAL", help="A person or a program.")
]
AccessArgument = Annotated[
    str,
    typer.Argument(metavar="ACCESS", help="SELECT, UPDATE, ALTER, DROP, GRANT, LIST, ALL ..."),
]
ResourceArgument = Annotated[
    str,
    typer.Argument(
        metavar="RESOURCE",
        help="catalog, catalog.* (all in it), DB, DB.*, DB.TABLE, view:DB.V or function:DB.F",
    ),
]
DaysOption = Annotated[
    float | None,
    typer.Option("--days", metavar="N", help="It expires after N days.", show_default=False),
]
ColumnsOption = Annotated[
    list[str] | None,
    typer.Option(
        "--columns",
        metavar="A,B",
        help="Only these columns, of a table with query-auth.enabled.",
        show_default=False,
    ),
]
KeepOption = Annotated[
    float,
    typer.Option("--keep-dropped", metavar="DAYS", help="How long dropped tables are kept."),
]


@group.callback()
def serve(  # noqa: PLR0913 - the options of a server
    ctx: typer.Context,
    *,
    warehouse: Annotated[
        list[str] | None,
        typer.Option(
            "--warehouse",
            "-w",
            metavar="[NAME=]PATH",
            help="A warehouse, and the name that clients ask for; by default its last folder's. "
            "Can be repeated.",
            show_default=False,
        ),
    ] = None,
    database: DatabaseOption = None,
    host: Annotated[str, typer.Option("--host", metavar="ADDRESS", help="To listen on.")] = (
        "127.0.0.1"
    ),
    port: Annotated[int, typer.Option("--port", metavar="N", help="To listen on.")] = 8080,
    anonymous: Annotated[
        bool, flag("--anonymous", help="Require no token. Only for trying it, on this machine.")
    ] = False,
    external: Annotated[
        list[str] | None,
        typer.Option(
            "--external",
            metavar="PATH",
            help="A folder in which everybody may have external tables; can be repeated.",
            show_default=False,
        ),
    ] = None,
    keep_dropped: KeepOption = 7,
    threads: Annotated[
        int, typer.Option("--threads", metavar="N", help="Requests that are worked on at once.")
    ] = 16,
    oidc: Annotated[
        list[str] | None,
        typer.Option(
            "--oidc",
            metavar="KEY=VALUE",
            help="Accept tokens of an identity provider: issuer, audience and keys (the URL of its "
            "key set) are needed; can be repeated.",
            show_default=False,
        ),
    ] = None,
    vend: Annotated[
        list[str] | None,
        typer.Option(
            "--vend",
            metavar="KEY=VALUE",
            help="Hand out credentials of a role on S3 that reach one table: role (its ARN) is "
            "needed; endpoint, external-id, hours, said-longer-minutes; can be repeated.",
            show_default=False,
        ),
    ] = None,
    catalog_option: CatalogOption = None,
    debug: DebugOption = False,
) -> None:
    """A REST catalog server on warehouses: start it, or manage what it knows."""
    session: Session = ctx.obj
    typed = Settings(
        warehouse=warehouse[0] if warehouse else None,
        catalog_options=pairs_of(catalog_option, "--catalog-option"),
        debug=debug,
    )
    session.settings = typed.over(session.settings)
    if ctx.invoked_subcommand is not None:
        return
    actions.serving.serve(
        session,
        actions.serving.ServeOptions(
            warehouses=warehouse or (),
            database=database,
            host=host,
            port=port,
            anonymous=anonymous,
            external=external or (),
            keep_dropped_days=keep_dropped,
            threads=threads,
            oidc=pairs_of(oidc, "--oidc"),
            vend=pairs_of(vend, "--vend"),
        ),
    )


@command(group, "register")
def register(session: Session, *, database: DatabaseOption = None) -> Report:
    """Take over the tables of a filesystem warehouse; no file is moved."""
    return actions.serving.register(session, database)


@command(group, "release")
def release(
    session: Session,
    *,
    database: DatabaseOption = None,
    move: Annotated[bool, flag("--move", help="Move the folders of renamed tables.")] = False,
    yes: YesOption = False,
) -> Report:
    """Give a warehouse back to filesystem catalogs; the server must not be running."""
    return actions.serving.release(session, database, move=move, yes=yes)


@command(group, "dropped")
def dropped(
    session: Session, *, database: DatabaseOption = None, keep_dropped: KeepOption = 7
) -> Report:
    """List dropped tables that can be restored."""
    return actions.serving.dropped(session, database, keep_dropped)


@command(group, "restore")
def restore(
    session: Session,
    table_id: Annotated[str, typer.Argument(metavar="ID", help="As `dropped` lists it.")],
    *,
    name: Annotated[
        str | None,
        typer.Option("--as", metavar="NAME", help="Another name.", show_default=False),
    ] = None,
    database: DatabaseOption = None,
) -> Report:
    """Bring a dropped table back."""
    return actions.serving.restore(session, database, table_id, name)


@command(group, "principals")
def principals(session: Session, *, database: DatabaseOption = None) -> Report:
    """List the principals."""
    return actions.serving_access.list_principals(session, database)


@command(group, "add")
def add(
    session: Session,
    principal: PrincipalArgument,
    *,
    admin: Annotated[bool, flag("--admin", help="They may do everything.")] = False,
    database: DatabaseOption = None,
) -> Report:
    """Add a principal: a person or a program that may use the server."""
    return actions.serving_access.add_principal(session, database, principal, is_admin=admin)


@command(group, "remove")
def remove(
    session: Session,
    principal: PrincipalArgument,
    *,
    database: DatabaseOption = None,
    yes: YesOption = False,
) -> Report:
    """Remove a principal, with all tokens and grants."""
    return actions.serving_access.remove_principal(session, database, principal, yes=yes)


@command(group, "token")
def token(
    session: Session,
    principal: PrincipalArgument,
    *,
    days: DaysOption = None,
    database: DatabaseOption = None,
) -> Report:
    """Issue a token of a principal; it is shown once."""
    return actions.serving_access.issue_token(session, database, principal, days)


@command(group, "tokens")
def tokens(
    session: Session,
    principal: Annotated[
        str | None, typer.Argument(metavar="PRINCIPAL", help="Only theirs.", show_default=False)
    ] = None,
    *,
    database: DatabaseOption = None,
) -> Report:
    """List tokens, without their text."""
    return actions.serving_access.list_tokens(session, database, principal)


@command(group, "revoke-token")
def revoke_token(
    session: Session,
    token_id: Annotated[str, typer.Argument(metavar="ID", help="As `tokens` lists it.")],
    *,
    database: DatabaseOption = None,
) -> Report:
    """Revoke a token now."""
    return actions.serving_access.revoke_token(session, database, token_id)


@command(group, "grant")
def grant(
    session: Session,
    principal: PrincipalArgument,
    access: AccessArgument,
    resource: ResourceArgument,
    *,
    columns: ColumnsOption = None,
    days: DaysOption = None,
    database: DatabaseOption = None,
) -> Report:
    """Let a principal do something with a resource of the warehouse."""
    typed = (principal, access, resource)
    return actions.serving_access.grant(session, database, typed, words_of(columns), days)


@command(group, "revoke")
def revoke(
    session: Session,
    principal: PrincipalArgument,
    access: AccessArgument,
    resource: ResourceArgument,
    *,
    of_columns: Annotated[bool, flag("--columns", help="The grant of some columns.")] = False,
    database: DatabaseOption = None,
) -> Report:
    """Revoke a grant."""
    typed = (principal, access, resource)
    return actions.serving_access.revoke(session, database, typed, columns=of_columns)


@command(group, "grants")
def grants(session: Session, *, database: DatabaseOption = None) -> Report:
    """List who may do what in the warehouse."""
    return actions.serving_access.list_grants(session, database)


@command(group, "audit")
def audit(
    session: Session,
    *,
    last: Annotated[int, typer.Option("--last", metavar="N", help="How many entries.")] = 50,
    database: DatabaseOption = None,
) -> Report:
    """Show the last entries of the audit log."""
    return actions.serving_access.audit(session, database, last)
