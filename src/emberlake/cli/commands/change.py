"""``emberlake delete|update|merge``: change rows of a table."""

from typing import Annotated

import typer

from emberlake.cli import actions
from emberlake.cli.choices import SourceFormat
from emberlake.cli.commands.arguments import DryRunOption, TableArgument, YesOption, flag
from emberlake.cli.commands.declare import Section
from emberlake.cli.completing import COLUMN_VALUES, COLUMNS, FILTERS
from emberlake.cli.report import Report
from emberlake.cli.session import Session
from emberlake.cli.typed_options import pairs_of

section = Section("Rows")

_SetOption = Annotated[
    list[str],
    typer.Option(
        "--set",
        metavar="COLUMN=EXPRESSION",
        autocompletion=COLUMN_VALUES,
        help="A new value, such as price='price * 1.1' or city=\"'rome'\"; can be repeated.",
        show_default=False,
    ),
]
_WHERE_HELP = "Only rows for which this is true, such as \"city = 'paris' AND price * 2 > 5\"."


@section.command("delete")
def delete(
    session: Session,
    table: TableArgument,
    *,
    where: Annotated[
        str, typer.Option("--where", metavar="CONDITION", autocompletion=FILTERS, help=_WHERE_HELP)
    ],
    dry_run: DryRunOption = False,
    yes: YesOption = False,
) -> Report:
    """Delete the rows for which a condition is true. It asks first."""
    return actions.changes.delete(session, table, where=where, dry_run=dry_run, yes=yes)


@section.command("update")
def update(
    session: Session,
    table: TableArgument,
    *,
    values: _SetOption,
    where: Annotated[
        str | None,
        typer.Option(
            "--where",
            metavar="CONDITION",
            autocompletion=FILTERS,
            help=f"{_WHERE_HELP} Default: all.",
            show_default=False,
        ),
    ] = None,
    dry_run: DryRunOption = False,
    yes: YesOption = False,
) -> Report:
    """Set columns of the rows for which a condition is true. Without one it asks first."""
    return actions.changes.update(
        session, table, values=pairs_of(values, "--set"), where=where, dry_run=dry_run, yes=yes
    )


@section.command("merge")
def merge(  # noqa: PLR0913
    session: Session,
    table: TableArgument,
    *,
    source: Annotated[
        list[str],
        typer.Option(
            "--source",
            metavar="FILES",
            help="Files, folders and globs of one format: 'in/*.parquet'; can be repeated.",
        ),
    ],
    on: Annotated[
        str,
        typer.Option(
            "--on",
            metavar="COLUMNS",
            autocompletion=COLUMNS,
            help="Columns that are equal in rows that match, separated by commas, or a condition "
            "such as 't.id = s.key'.",
        ),
    ],
    source_format: Annotated[
        SourceFormat | None,
        typer.Option(
            "--source-format",
            metavar="FORMAT",
            help="parquet | orc | csv | json, if file names do not show it.",
            show_default=False,
        ),
    ] = None,
    values: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="COLUMN=EXPRESSION",
            autocompletion=COLUMN_VALUES,
            help="What matched rows get, such as qty='t.qty + s.qty', instead of all columns of "
            "the source; can be repeated.",
            show_default=False,
        ),
    ] = None,
    when: Annotated[
        str | None,
        typer.Option(
            "--when",
            metavar="CONDITION",
            autocompletion=FILTERS,
            help="Only matched rows for which this is true, such as 's.ts > t.ts', change.",
            show_default=False,
        ),
    ] = None,
    keep_matched: Annotated[
        bool, flag("--keep-matched", help="Leave rows that match as they are.")
    ] = False,
    delete_matched: Annotated[
        bool, flag("--delete-matched", help="Delete rows that match instead of updating them.")
    ] = False,
    no_insert: Annotated[
        bool, flag("--no-insert", help="Do not add the rows of the source that match nothing.")
    ] = False,
    delete_unmatched: Annotated[
        bool,
        flag("--delete-unmatched", help="Delete rows of the table that match nothing."),
    ] = False,
    merge_schema: Annotated[
        bool, flag("--merge-schema", help="Add columns that only the source has.")
    ] = False,
    dry_run: DryRunOption = False,
    yes: YesOption = False,
) -> Report:
    """Merge files into a table: rows that match are updated, the others are added.

    In expressions, t.column is the table's and s.column the source's. It asks before it deletes.
    """
    request = actions.changes.MergeRequest(
        sources=tuple(source),
        source_format=source_format,
        on=on,
        values=pairs_of(values, "--set"),
        when=when,
        keeps_matched=keep_matched,
        deletes_matched=delete_matched,
        inserts=not no_insert,
        deletes_unmatched=delete_unmatched,
        merges_schema=merge_schema,
    )
    return actions.changes.merge(session, table, request, dry_run=dry_run, yes=yes)
