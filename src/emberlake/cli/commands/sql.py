"""``emberlake sql``: statements, or a prompt for them."""

from pathlib import Path
from typing import Annotated, Final

import typer

from emberlake.cli import actions
from emberlake.cli.choices import SqlFormat
from emberlake.cli.commands.arguments import flag
from emberlake.cli.commands.declare import Section
from emberlake.cli.completing import DATABASES
from emberlake.cli.failures import UsageError
from emberlake.cli.report import Report
from emberlake.cli.session import Session

section = Section("Rows")
_THIS_MACHINE: Final = "local[*]"


@section.command("sql")
def sql(  # noqa: PLR0913
    session: Session,
    query: Annotated[
        str | None,
        typer.Argument(
            metavar="QUERY",
            help="One or more statements. Without it: --file, standard input, or a prompt.",
            show_default=False,
        ),
    ] = None,
    *,
    file: Annotated[
        Path | None,
        typer.Option(
            "--file", "-f", metavar="FILE", help="Statements of a file.", show_default=False
        ),
    ] = None,
    database: Annotated[
        str | None,
        typer.Option(
            "--database",
            "-d",
            metavar="NAME",
            autocompletion=DATABASES,
            help="The database of names without one.",
            show_default=False,
        ),
    ] = None,
    limit: Annotated[
        int | None,
        typer.Option(
            "--limit",
            "-n",
            min=0,
            metavar="ROWS",
            help="Write at most this many rows; 0 writes all. The default on a terminal is 20.",
            show_default=False,
        ),
    ] = None,
    expanded: Annotated[
        bool, flag("--expanded", "-x", help="Every column on a line of its own.")
    ] = False,
    as_csv: Annotated[bool, flag("--csv", help="Write rows as CSV.")] = False,
    arrow: Annotated[
        Path | None,
        typer.Option(
            "--arrow",
            metavar="FILE",
            help="Write the rows of the last statement to an Arrow file.",
            show_default=False,
        ),
    ] = None,
    force: Annotated[bool, flag("--force", help="Replace the --arrow file if it exists.")] = False,
    spark: Annotated[
        bool, flag("--spark", help="Run the statements on Spark; needs PySpark and Java.")
    ] = False,
    master: Annotated[
        str,
        typer.Option(
            "--master", metavar="URL", help="With --spark: where it runs, such as sc://host."
        ),
    ] = _THIS_MACHINE,
    timing: Annotated[bool, flag("--timing", help="Say how long each statement took.")] = False,
) -> Report:
    """Carry out SQL statements: a query, a file, standard input, or what you type at a prompt."""
    output = actions.statements.Output(
        format=_format(session, as_csv=as_csv, arrow=arrow),
        limit=limit,
        is_expanded=expanded,
        is_timed=timing,
        out=arrow,
        force=force,
    )
    if master != _THIS_MACHINE and not spark:
        raise UsageError("--master says where --spark runs: give both")
    place = actions.statements.Place(database=database, master=master if spark else None)
    text = actions.script_text.find_text(query, file)
    if text is None:
        return actions.prompting.prompt(session, place, output)
    return actions.statements.run(session, text, place, output)


def _format(session: Session, *, as_csv: bool, arrow: Path | None) -> SqlFormat:
    asked = {
        SqlFormat.CSV: as_csv,
        SqlFormat.ARROW: arrow is not None,
        SqlFormat.JSON: session.settings.as_json and arrow is None,
    }
    chosen = [name for name, is_asked in asked.items() if is_asked]
    if len(chosen) > 1:
        raise UsageError(f"{' and '.join(f'--{name}' for name in chosen)}: choose one of them")
    return chosen[0] if chosen else SqlFormat.TABLE
