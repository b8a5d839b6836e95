"""``emberlake ui`` and ``emberlake report``: pictures of tables, in a browser."""

from pathlib import Path
from typing import Annotated

import typer

from emberlake.cli import actions
from emberlake.cli.commands.arguments import TableArgument, flag
from emberlake.cli.commands.declare import Section
from emberlake.cli.completing import FILTERS
from emberlake.cli.report import Report
from emberlake.cli.session import Session

section = Section("Pictures")


@section.command("ui")
def serve(
    session: Session,
    *,
    host: Annotated[
        str,
        typer.Option(
            "--host",
            metavar="HOST",
            help="Where to listen. Other machines can reach anything but loopback, without "
            "encryption.",
        ),
    ] = "127.0.0.1",
    port: Annotated[
        int,
        typer.Option("--port", metavar="PORT", min=0, max=65535, help="The port; 0: a free one."),
    ] = 8711,
    allow_writes: Annotated[
        bool,
        flag("--allow-writes", help="Let pages compact tables, and create and delete tags."),
    ] = False,
    allow_host: Annotated[
        list[str] | None,
        typer.Option(
            "--allow-host",
            metavar="NAME",
            help="Another name by which browsers call this machine; can be repeated.",
            show_default=False,
        ),
    ] = None,
) -> Report:
    """Show the tables in a browser, until Ctrl-C.

    Prints the address to open. It has a key, without which nothing is shown.
    """
    return actions.pictures.serve(
        session, host=host, port=port, allow_writes=allow_writes, names=allow_host or []
    )


@section.command("report")
def report(
    session: Session,
    table: TableArgument,
    *,
    out: Annotated[
        Path, typer.Option("--out", "-o", metavar="FILE", help="The file to write: report.html.")
    ],
    where: Annotated[
        list[str] | None,
        typer.Option(
            "--where",
            metavar="FILTER",
            autocompletion=FILTERS,
            help="Also explain a read with this filter; can be repeated.",
            show_default=False,
        ),
    ] = None,
    read_data: Annotated[
        bool, flag("--read-data", help="Let the check read every data file, too.")
    ] = False,
    no_rows: Annotated[bool, flag("--no-rows", help="Leave out the first rows.")] = False,
    force: Annotated[bool, flag("--force", help="Replace a file that exists.")] = False,
) -> Report:
    """Write the pictures of a table into one HTML file, which opens anywhere."""
    return actions.pictures.write_report(
        session,
        table,
        out,
        actions.pictures.ReportRequest(
            filters=where or [], read_data=read_data, with_rows=not no_rows
        ),
        force=force,
    )
