"""``emberlake db``: databases."""

from typing import TYPE_CHECKING, Annotated

import typer

from emberlake.cli.commands.arguments import (
    DryRunOption,
    IfExistsOption,
    IfNotExistsOption,
    YesOption,
)
from emberlake.cli.commands.declare import command, new_group
from emberlake.cli.commands.flags import flag
from emberlake.cli.lazy import LazyModule
from emberlake.cli.report import Report
from emberlake.cli.session import Session

if TYPE_CHECKING:
    from emberlake.cli.actions import databases
else:
    databases = LazyModule("emberlake.cli.actions.databases")

group = new_group("Databases: list, create, drop.")

NameArgument = Annotated[str, typer.Argument(metavar="DATABASE", help="The name of the database.")]


def register(app: typer.Typer) -> None:
    """Add the commands of this module."""
    app.add_typer(group, name="db", rich_help_panel="Databases and tables")


@command(group, "list")
def list_databases(session: Session) -> Report:
    """List the databases of the warehouse."""
    return databases.list_all(session)


@command(group, "create")
def create(
    session: Session, name: NameArgument, *, if_not_exists: IfNotExistsOption = False
) -> Report:
    """Create a database."""
    return databases.create(session, name, ignore_if_exists=if_not_exists)


@command(group, "drop")
def drop(
    session: Session,
    name: NameArgument,
    *,
    cascade: Annotated[bool, flag("--cascade", help="Drop all its tables with it.")] = False,
    if_exists: IfExistsOption = False,
    dry_run: DryRunOption = False,
    yes: YesOption = False,
) -> Report:
    """Drop a database; with --cascade also all tables in it, with their data."""
    return databases.drop(
        session, name, cascade=cascade, ignore_missing=if_exists, dry_run=dry_run, yes=yes
    )
