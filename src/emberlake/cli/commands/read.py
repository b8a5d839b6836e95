"""``emberlake read`` and ``emberlake plan``: rows, and how they are found."""

from pathlib import Path
from typing import Annotated

import typer

from emberlake.cli import actions
from emberlake.cli.choices import ReadFormat
from emberlake.cli.commands.arguments import (
    SnapshotOption,
    TableArgument,
    TagOption,
    WhereOption,
    flag,
)
from emberlake.cli.commands.declare import Section
from emberlake.cli.completing import COLUMNS, TABLES
from emberlake.cli.report import Report
from emberlake.cli.session import Session
from emberlake.cli.typed_options import words_of

section = Section("Rows")

ColumnsOption = Annotated[
    list[str] | None,
    typer.Option(
        "--columns",
        "-c",
        metavar="NAMES",
        autocompletion=COLUMNS,
        help="Only these columns, separated by commas; address.city is a field of a ROW column.",
        show_default=False,
    ),
]


@section.command("read")
def read_rows(  # noqa: PLR0913
    session: Session,
    table: Annotated[
        str,
        typer.Argument(
            metavar="TABLE",
            autocompletion=TABLES,
            help="database.table, a branch (db.t$branch_b) or a system table (db.t$files).",
        ),
    ],
    *,
    columns: ColumnsOption = None,
    where: WhereOption = None,
    limit: Annotated[
        int | None,
        typer.Option(
            "--limit",
            "-n",
            min=0,
            metavar="ROWS",
            help="Read at most this many rows; 0 reads all. The default on a terminal is 20.",
            show_default=False,
        ),
    ] = None,
    snapshot: SnapshotOption = None,
    tag: TagOption = None,
    output_format: Annotated[
        ReadFormat | None,
        typer.Option(
            "--format",
            "-f",
            metavar="FORMAT",
            help="table | json (one object per line) | csv | parquet; by default from the name of "
            "--out.",
            show_default=False,
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", metavar="FILE", help="Write to a file.", show_default=False),
    ] = None,
    force: Annotated[bool, flag("--force", help="Replace the --out file if it exists.")] = False,
) -> Report:
    """Read rows: show a few on the screen, or write all of them to a file or a pipe."""
    request = actions.reading.ReadRequest(
        table=table,
        columns=tuple(words_of(columns)) or None,
        where=where,
        limit=limit,
        snapshot_id=snapshot,
        tag_name=tag,
    )
    return actions.reading.read(
        session, request, actions.reading.Target(output_format, out, force=force)
    )


@section.command("plan")
def explain(  # noqa: PLR0913
    session: Session,
    table: TableArgument,
    *,
    where: WhereOption = None,
    columns: ColumnsOption = None,
    limit: Annotated[
        int | None,
        typer.Option(
            "--limit",
            "-n",
            min=0,
            metavar="ROWS",
            help="Explain a read of at most this many rows.",
            show_default=False,
        ),
    ] = None,
    snapshot: SnapshotOption = None,
    tag: TagOption = None,
    all_files: Annotated[
        bool, flag("--all", help="List every file, not just the first 20.")
    ] = False,
) -> Report:
    """Explain a read: which files it opens, which it skips, and why."""
    request = actions.reading.ReadRequest(
        table=table,
        columns=tuple(words_of(columns)) or None,
        where=where,
        limit=limit or None,
        snapshot_id=snapshot,
        tag_name=tag,
    )
    return actions.plan.explain(session, request, all_files=all_files)
