"""``emberlake snapshots|files|manifests|partitions|schemas``: what a table is made of."""

from typing import TYPE_CHECKING, Annotated

import typer

from emberlake.cli.commands.arguments import (
    DryRunOption,
    SnapshotOption,
    TableArgument,
    TagOption,
    WhereOption,
    YesOption,
)
from emberlake.cli.commands.declare import command, new_group
from emberlake.cli.lazy import LazyModule
from emberlake.cli.report import Report
from emberlake.cli.session import Session

if TYPE_CHECKING:
    from emberlake.cli.actions import inspection, reading
else:
    inspection = LazyModule("emberlake.cli.actions.inspection")
    reading = LazyModule("emberlake.cli.actions.reading")

_PANEL = "What a table is made of"

LimitOption = Annotated[
    int | None,
    typer.Option(
        "--limit",
        "-n",
        min=0,
        metavar="ROWS",
        help="At most so many; 0 is all.",
        show_default=False,
    ),
]

partition_group = new_group(
    "Partitions: list them (the default), or delete their rows.", lists=True
)


def register(app: typer.Typer) -> None:
    """Add the commands of this module."""
    for name, function in (
        ("snapshots", snapshots),
        ("files", files),
        ("manifests", manifests),
        ("schemas", schemas),
    ):
        command(app, name, panel=_PANEL)(function)
    app.add_typer(partition_group, name="partitions", rich_help_panel=_PANEL)


def snapshots(
    session: Session, table: TableArgument, *, where: WhereOption = None, limit: LimitOption = None
) -> Report:
    """List the snapshots of a table, newest first."""
    return inspection.snapshots(
        session, reading.Asked(table=table, where=where, limit=limit or None)
    )


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
    asked = reading.Asked(
        table=table, where=where, limit=limit or None, snapshot_id=snapshot, tag_name=tag
    )
    return inspection.files(session, asked)


def manifests(
    session: Session,
    table: TableArgument,
    *,
    where: WhereOption = None,
    snapshot: SnapshotOption = None,
    tag: TagOption = None,
) -> Report:
    """List the manifests of a snapshot, the latest by default."""
    asked = reading.Asked(table=table, where=where, snapshot_id=snapshot, tag_name=tag)
    return inspection.manifests(session, asked)


def schemas(session: Session, table: TableArgument) -> Report:
    """List the schemas that a table has had, newest first."""
    return inspection.schemas(session, table)


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
    asked = reading.Asked(
        table=table, where=where, limit=limit or None, snapshot_id=snapshot, tag_name=tag
    )
    return inspection.partitions(session, asked)


@command(partition_group, "drop")
def drop_partitions(
    session: Session,
    table: TableArgument,
    partition: Annotated[
        list[str],
        typer.Argument(
            metavar="PARTITION",
            help="dt=2026-06-26, or dt=2026-06-26/hour=3; fewer columns stand for all that match.",
        ),
    ],
    *,
    dry_run: DryRunOption = False,
    yes: YesOption = False,
) -> Report:
    """Delete all rows of partitions, in one commit."""
    return inspection.drop_partitions(session, table, partition, dry_run=dry_run, yes=yes)
