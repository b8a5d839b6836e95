"""``emberlake read`` and ``emberlake plan``: rows, and how they are found."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from emberlake.cli.choices import ReadFormat
from emberlake.cli.commands.arguments import (
    SnapshotOption,
    TableArgument,
    TagOption,
    WhereOption,
)
from emberlake.cli.commands.declare import command, words_of
from emberlake.cli.commands.flags import flag
from emberlake.cli.lazy import LazyModule
from emberlake.cli.report import Report
from emberlake.cli.session import Session

if TYPE_CHECKING:
    from emberlake.cli.actions import plan, reading
else:
    plan = LazyModule("emberlake.cli.actions.plan")
    reading = LazyModule("emberlake.cli.actions.reading")

_PANEL = "Rows"
ColumnsOption = Annotated[
    list[str] | None,
    typer.Option(
        "--columns",
        "-c",
        metavar="NAMES",
        help="Only these columns, by commas; fields of ROW columns by dots.",
        show_default=False,
    ),
]


def register(app: typer.Typer) -> None:
    """Add the commands of this module."""
    command(app, "read", panel=_PANEL)(read_rows)
    command(app, "plan", panel=_PANEL)(explain)


def read_rows(  # noqa: PLR0913
    session: Session,
    table: Annotated[
        str,
        typer.Argument(
            metavar="TABLE",
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
            help="At most so many rows; 0 is all. A table on the screen has 20 without it.",
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
            help="table | json (an object a line) | csv | parquet; by the name of --out.",
            show_default=False,
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", metavar="FILE", help="Write to a file.", show_default=False),
    ] = None,
    force: Annotated[bool, flag("--force", help="Replace the file of --out if it exists.")] = False,
) -> Report:
    """Read rows: a few to the screen, all of them to a file or a pipe."""
    asked = reading.Asked(
        table=table,
        columns=tuple(words_of(columns)) or None,
        where=where,
        limit=limit,
        snapshot_id=snapshot,
        tag_name=tag,
    )
    return reading.read(session, asked, reading.Target(output_format, out, force=force))


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
            help="Of a read of so many rows.",
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
    asked = reading.Asked(
        table=table,
        columns=tuple(words_of(columns)) or None,
        where=where,
        limit=limit or None,
        snapshot_id=snapshot,
        tag_name=tag,
    )
    return plan.explain(session, asked, all_files=all_files)
