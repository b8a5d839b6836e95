"""``emberlake db``: databases."""

from typing import Annotated

import typer

from emberlake.cli import actions
from emberlake.cli.commands.arguments import (
    DryRunOption,
    IfExistsOption,
    IfNotExistsOption,
    YesOption,
    flag,
)
from emberlake.cli.commands.declare import Section, command
from emberlake.cli.completing import DATABASES
from emberlake.cli.report import Report
from emberlake.cli.session import Session

section = Section("Databases and tables")
group = section.group("db", "Databases: list, create, drop.")

NameArgument = Annotated[
    str,
    typer.Argument(metavar="DATABASE", autocompletion=DATABASES, help="The name of the database."),
]


@command(group, "list")
def list_databases(session: Session) -> Report:
    """List the databases of the warehouse."""
    return actions.databases.list_all(session)


@command(group, "create")
def create(
    session: Session, name: NameArgument, *, if_not_exists: IfNotExistsOption = False
) -> Report:
    """Create a database."""
    return actions.databases.create(session, name, ignore_if_exists=if_not_exists)


@command(group, "drop")
def drop(
    session: Session,
    name: NameArgument,
    *,
    cascade: Annotated[bool, flag("--cascade", help="Also drop all its tables.")] = False,
    if_exists: IfExistsOption = False,
    dry_run: DryRunOption = False,
    yes: YesOption = False,
) -> Report:
    """Drop a database; with --cascade also all its tables, with their data."""
    return actions.databases.drop(
        session, name, cascade=cascade, ignore_missing=if_exists, dry_run=dry_run, yes=yes
    )
