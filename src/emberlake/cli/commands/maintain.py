"""``emberlake compact|expire|orphans|check``: keeping tables in order."""

from typing import TYPE_CHECKING, Annotated

import typer

from emberlake.cli.commands.arguments import (
    DryRunOption,
    TableArgument,
    WhereOption,
    YesOption,
)
from emberlake.cli.commands.declare import command, pairs_of
from emberlake.cli.commands.flags import flag
from emberlake.cli.lazy import LazyModule
from emberlake.cli.report import Report
from emberlake.cli.session import Session

if TYPE_CHECKING:
    from emberlake.cli.actions import maintenance
else:
    maintenance = LazyModule("emberlake.cli.actions.maintenance")

_PANEL = "Maintenance"


def register(app: typer.Typer) -> None:
    """Add the commands of this module."""
    for name, function in (
        ("compact", compact),
        ("expire", expire),
        ("orphans", orphans),
        ("check", check),
    ):
        command(app, name, panel=_PANEL)(function)


def compact(
    session: Session,
    table: TableArgument,
    *,
    where: WhereOption = None,
    full: Annotated[
        bool, flag("--full", help="As few files as possible, whatever it costs.")
    ] = False,
    master: Annotated[
        str | None,
        typer.Option(
            "--master",
            metavar="MASTER",
            help="Let Spark do it, buckets in parallel: local[*], spark://host:7077, ...",
            show_default=False,
        ),
    ] = None,
    conf: Annotated[
        list[str] | None,
        typer.Option(
            "--conf",
            metavar="KEY=VALUE",
            help="A setting of Spark; can be repeated.",
            show_default=False,
        ),
    ] = None,
    dry_run: DryRunOption = False,
) -> Report:
    """Merge files: no row changes, but reading becomes faster.

    --where takes partition columns only.
    """
    return maintenance.compact(
        session,
        table,
        where=where,
        full=full,
        master=master,
        settings=pairs_of(conf, "--conf"),
        dry_run=dry_run,
    )


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
            help="Keep at most so many snapshots.",
            show_default=False,
        ),
    ] = None,
    retain_min: Annotated[
        int | None,
        typer.Option(
            "--retain-min",
            min=1,
            metavar="N",
            help="Keep at least so many snapshots.",
            show_default=False,
        ),
    ] = None,
    older_than: Annotated[
        str | None,
        typer.Option(
            "--older-than",
            metavar="WHEN",
            help="In between: those before 7d, 12h, 30m, or a date such as 2026-06-26T12:00.",
            show_default=False,
        ),
    ] = None,
    max_deletes: Annotated[
        int | None,
        typer.Option(
            "--max-deletes",
            min=1,
            metavar="N",
            help="Expire at most so many, the oldest first; without it all that are due.",
            show_default=False,
        ),
    ] = None,
    dry_run: DryRunOption = False,
    yes: YesOption = False,
) -> Report:
    """Delete old snapshots and the files that only they need.

    What is not given comes from the table's options (snapshot.num-retained.max, ...). Tags and
    branches keep what they need.
    """
    limits = maintenance.Limits(
        retain_max=retain_max,
        retain_min=retain_min,
        older_than=older_than,
        max_deletes=max_deletes,
    )
    return maintenance.expire(session, table, limits, dry_run=dry_run, yes=yes)


def orphans(
    session: Session,
    table: TableArgument,
    *,
    older_than: Annotated[
        str,
        typer.Option(
            "--older-than",
            metavar="WHEN",
            help="Only files from before 1d, 12h, ..., or a date; writes that run must be younger.",
        ),
    ] = "1d",
    dry_run: DryRunOption = False,
    yes: YesOption = False,
) -> Report:
    """Delete files that no snapshot, tag or branch refers to."""
    return maintenance.orphans(session, table, older_than=older_than, dry_run=dry_run, yes=yes)


def check(
    session: Session,
    table: TableArgument,
    *,
    snapshot: Annotated[
        int | None,
        typer.Option(
            "--snapshot",
            metavar="ID",
            help="This one alone; without it the latest, and the metadata of all others.",
            show_default=False,
        ),
    ] = None,
    metadata_only: Annotated[
        bool,
        flag("--metadata-only", help="See whether data files are there; do not read them."),
    ] = False,
) -> Report:
    """Read every file of a snapshot, look for those of all others, and report what is wrong.

    Missing, corrupt, overlapping and unreferenced files are listed; exit code 1 if there are any.
    """
    return maintenance.check(session, table, snapshot_id=snapshot, read_data=not metadata_only)
