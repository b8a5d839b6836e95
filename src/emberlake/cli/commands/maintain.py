"""``emberlake compact|expire|orphans|check``: table maintenance."""

from typing import Annotated

import typer

from emberlake.cli import actions
from emberlake.cli.commands.arguments import (
    DryRunOption,
    TableArgument,
    WhereOption,
    YesOption,
    flag,
)
from emberlake.cli.commands.declare import Section
from emberlake.cli.completing import SNAPSHOTS
from emberlake.cli.report import Report
from emberlake.cli.session import Session
from emberlake.cli.typed_options import pairs_of

section = Section("Maintenance")


@section.command("compact")
def compact(
    session: Session,
    table: TableArgument,
    *,
    where: WhereOption = None,
    full: Annotated[
        bool, flag("--full", help="Leave as few files as possible, whatever it costs.")
    ] = False,
    master: Annotated[
        str | None,
        typer.Option(
            "--master",
            metavar="MASTER",
            help="Compact buckets in parallel on Spark: local[*], spark://host:7077, ...",
            show_default=False,
        ),
    ] = None,
    conf: Annotated[
        list[str] | None,
        typer.Option(
            "--conf",
            metavar="KEY=VALUE",
            help="A Spark setting; can be repeated.",
            show_default=False,
        ),
    ] = None,
    dry_run: DryRunOption = False,
) -> Report:
    """Merge files: rows stay the same, but reading becomes faster.

    --where takes only partition columns.
    """
    return actions.maintenance.compact(
        session,
        table,
        where=where,
        full=full,
        master=master,
        settings=pairs_of(conf, "--conf"),
        dry_run=dry_run,
    )


@section.command("expire")
def expire(  # noqa: PLR0913
    session: Session,
    table: TableArgument,
    *,
    retain_max: Annotated[
        int | None,
        typer.Option(
            "--retain-max",
            min=1,
            metavar="N",
            help="Keep at most this many snapshots.",
            show_default=False,
        ),
    ] = None,
    retain_min: Annotated[
        int | None,
        typer.Option(
            "--retain-min",
            min=1,
            metavar="N",
            help="Keep at least this many snapshots.",
            show_default=False,
        ),
    ] = None,
    older_than: Annotated[
        str | None,
        typer.Option(
            "--older-than",
            metavar="WHEN",
            help="Between the two limits, expire snapshots older than 7d, 12h, 30m, or a date such "
            "as 2026-06-26T12:00.",
            show_default=False,
        ),
    ] = None,
    max_deletes: Annotated[
        int | None,
        typer.Option(
            "--max-deletes",
            min=1,
            metavar="N",
            help="Expire at most this many, the oldest first; by default all that are due.",
            show_default=False,
        ),
    ] = None,
    dry_run: DryRunOption = False,
    yes: YesOption = False,
) -> Report:
    """Delete old snapshots and the files that only they need.

    Limits that are not given come from the table's options (snapshot.num-retained.max, ...). Tags
    and branches keep what they need.
    """
    limits = actions.maintenance.Limits(
        retain_max=retain_max,
        retain_min=retain_min,
        older_than=older_than,
        max_deletes=max_deletes,
    )
    return actions.maintenance.expire(session, table, limits, dry_run=dry_run, yes=yes)


@section.command("orphans")
def orphans(
    session: Session,
    table: TableArgument,
    *,
    older_than: Annotated[
        str,
        typer.Option(
            "--older-than",
            metavar="WHEN",
            help="Only files and uploads older than 1d, 12h, ..., or a date before the start of "
            "every write that is still running.",
        ),
    ] = "1d",
    dry_run: DryRunOption = False,
    yes: YesOption = False,
) -> Report:
    """Delete files that no snapshot, tag or branch refers to, and end unfinished uploads."""
    return actions.maintenance.orphans(
        session, table, older_than=older_than, dry_run=dry_run, yes=yes
    )


@section.command("check")
def check(
    session: Session,
    table: TableArgument,
    *,
    snapshot: Annotated[
        int | None,
        typer.Option(
            "--snapshot",
            metavar="ID",
            autocompletion=SNAPSHOTS,
            help="Check only this one; by default the latest, and the metadata of all others.",
            show_default=False,
        ),
    ] = None,
    metadata_only: Annotated[
        bool,
        flag("--metadata-only", help="Check that data files exist, but do not read them."),
    ] = False,
) -> Report:
    """Read every file of a snapshot, check that those of all others exist, and report problems.

    Lists missing, corrupt, overlapping and unreferenced files; the exit code is 1 if there are any.
    """
    return actions.maintenance.check(
        session, table, snapshot_id=snapshot, read_data=not metadata_only
    )
