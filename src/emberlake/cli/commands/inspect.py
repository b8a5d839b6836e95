"""``emberlake snapshots|files|manifests|partitions|schemas``: what a table is made of."""

from typing import Annotated

import typer

from emberlake.cli import actions
from emberlake.cli.commands.arguments import (
    DryRunOption,
    SnapshotOption,
    TableArgument,
    TagOption,
    WhereOption,
    YesOption,
)
from emberlake.cli.commands.declare import Section, command
from emberlake.cli.completing import PARTITIONS
from emberlake.cli.report import Report
from emberlake.cli.session import Session

section = Section("What a table is made of")

LimitOption = Annotated[
    int | None,
    typer.Option(
        "--limit",
        "-n",
        min=0,
        metavar="ROWS",
        help="Show at most this many; 0 shows all.",
        show_default=False,
    ),
]


@section.command("snapshots")
def snapshots(
    session: Session, table: TableArgument, *, where: WhereOption = None, limit: LimitOption = None
) -> Report:
    """List the snapshots of a table, newest first."""
    return actions.inspection.snapshots(
        session, actions.reading.ReadRequest(table=table, where=where, limit=limit or None)
    )


@section.command("files")
def files(
    session: Session,
    table: TableArgument,
    *,
    where: WhereOption = None,
    limit: LimitOption = None,
    snapshot: SnapshotOption = None,
    tag: TagOption = None,
) -> Report:
    """List the data files of a snapshot, the latest by default."""
    request = actions.reading.ReadRequest(
        table=table, where=where, limit=limit or None, snapshot_id=snapshot, tag_name=tag
    )
    return actions.inspection.files(session, request)


@section.command("manifests")
def manifests(
    session: Session,
    table: TableArgument,
    *,
    where: WhereOption = None,
    snapshot: SnapshotOption = None,
    tag: TagOption = None,
) -> Report:
    """List the manifests of a snapshot, the latest by default."""
    request = actions.reading.ReadRequest(
        table=table, where=where, snapshot_id=snapshot, tag_name=tag
    )
    return actions.inspection.manifests(session, request)


partition_group = section.group(
    "partitions", "Partitions: list them (the default), or delete their rows.", lists=True
)


@command(partition_group, "list")
def list_partitions(
    session: Session,
    table: TableArgument,
    *,
    where: WhereOption = None,
    limit: LimitOption = None,
    snapshot: SnapshotOption = None,
    tag: TagOption = None,
) -> Report:
    """List the partitions of a table with their rows and files."""
    request = actions.reading.ReadRequest(
        table=table, where=where, limit=limit or None, snapshot_id=snapshot, tag_name=tag
    )
    return actions.inspection.partitions(session, request)


@command(partition_group, "drop")
def drop_partitions(
    session: Session,
    table: TableArgument,
    partition: Annotated[
        list[str],
        typer.Argument(
            metavar="PARTITION",
            autocompletion=PARTITIONS,
            help="dt=2026-06-26, or dt=2026-06-26/hour=3; with fewer columns, all that match.",
        ),
    ],
    *,
    dry_run: DryRunOption = False,
    yes: YesOption = False,
) -> Report:
    """Delete all rows of the given partitions, in one commit."""
    return actions.inspection.drop_partitions(session, table, partition, dry_run=dry_run, yes=yes)


@section.command("schemas")
def schemas(session: Session, table: TableArgument) -> Report:
    """List the schemas that a table has had, newest first."""
    return actions.inspection.schemas(session, table)
