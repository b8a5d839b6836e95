"""``emberlake ingest``: loads files into a table with Spark."""

from typing import Annotated

import typer

from emberlake.cli import actions
from emberlake.cli.choices import IngestMode, SourceFormat
from emberlake.cli.commands.arguments import DryRunOption, YesOption, flag
from emberlake.cli.commands.declare import Section
from emberlake.cli.completing import PARTITION_VALUES, TABLE_OPTIONS, TABLES
from emberlake.cli.report import Report
from emberlake.cli.session import Session
from emberlake.cli.typed_options import pairs_of, words_of

section = Section("Rows")

_Texts = list[str] | None
_CREATE = "Creating the table"
_SPARK = "Spark"


@section.command("ingest")
def ingest(  # noqa: PLR0913
    session: Session,
    source: Annotated[
        list[str],
        typer.Argument(
            metavar="SOURCE", help="Files, folders and globs of one format: 'in/*.parquet'."
        ),
    ],
    *,
    into: Annotated[
        str,
        typer.Option(
            "--into", "-t", metavar="TABLE", autocompletion=TABLES, help="database.table."
        ),
    ],
    mode: Annotated[
        IngestMode | None,
        typer.Option(
            "--mode",
            metavar="MODE",
            help="append | upsert (by primary key) | overwrite (the partitions that the source "
            "has rows for, or that of --partition). The default depends on the kind of table.",
            show_default=False,
        ),
    ] = None,
    partition: Annotated[
        _Texts,
        typer.Option(
            "--partition",
            metavar="COLUMN=VALUE",
            autocompletion=PARTITION_VALUES,
            help="The partition of all rows; overwrite replaces it. Can be repeated.",
            show_default=False,
        ),
    ] = None,
    source_format: Annotated[
        SourceFormat | None,
        typer.Option(
            "--source-format",
            metavar="FORMAT",
            help="parquet | orc | csv | json, if file names do not show it.",
            show_default=False,
        ),
    ] = None,
    source_option: Annotated[
        _Texts,
        typer.Option(
            "--source-option",
            metavar="KEY=VALUE",
            help="An option of Spark's reader, such as delimiter=';'. Can be repeated.",
            show_default=False,
        ),
    ] = None,
    create: Annotated[
        bool,
        flag(
            "--create",
            help="Create the table if it does not exist, with the columns of the source.",
            rich_help_panel=_CREATE,
        ),
    ] = False,
    primary_key: Annotated[
        _Texts,
        typer.Option(
            "--primary-key",
            metavar="COLUMNS",
            help="Columns, separated by commas.",
            rich_help_panel=_CREATE,
            show_default=False,
        ),
    ] = None,
    partition_by: Annotated[
        _Texts,
        typer.Option(
            "--partition-by",
            metavar="COLUMNS",
            help="Columns, separated by commas.",
            rich_help_panel=_CREATE,
            show_default=False,
        ),
    ] = None,
    option: Annotated[
        _Texts,
        typer.Option(
            "--option",
            metavar="KEY=VALUE",
            autocompletion=TABLE_OPTIONS,
            help="An option of the new table; can be repeated.",
            rich_help_panel=_CREATE,
            show_default=False,
        ),
    ] = None,
    master: Annotated[
        str,
        typer.Option(
            "--master", metavar="MASTER", help="Where Spark runs.", rich_help_panel=_SPARK
        ),
    ] = "local[*]",
    conf: Annotated[
        _Texts,
        typer.Option(
            "--conf",
            metavar="KEY=VALUE",
            help="A Spark setting, such as spark.driver.memory=4g; can be repeated.",
            rich_help_panel=_SPARK,
            show_default=False,
        ),
    ] = None,
    concurrency: Annotated[
        int | None,
        typer.Option(
            "--concurrency",
            min=1,
            metavar="TASKS",
            help="The number of parallel write tasks; by default Spark decides.",
            rich_help_panel=_SPARK,
            show_default=False,
        ),
    ] = None,
    merge_schema: Annotated[
        bool,
        flag("--merge-schema", help="Add the columns that only the source has to the table."),
    ] = False,
    on_bad_rows: Annotated[
        str,
        typer.Option(
            "--on-bad-rows",
            metavar="fail|skip|TABLE",
            autocompletion=TABLES,
            help="What happens to rows that do not fit: the load fails, they are left out, or a "
            "table keeps them with the reason, the file and the line. Without fail, files on "
            "this disk are loaded without Spark.",
        ),
    ] = "fail",
    dry_run: DryRunOption = False,
    yes: YesOption = False,
) -> Report:
    """Load files into a table with Spark: read, align, write in parallel, commit once.

    Readers see all of it or nothing. Overwriting asks first.
    """
    request = actions.ingestion.IngestRequest(
        sources=tuple(source),
        into=into,
        mode=mode,
        partition=pairs_of(partition, "--partition"),
        source_format=source_format,
        source_options=pairs_of(source_option, "--source-option"),
        create=create,
        primary_keys=tuple(words_of(primary_key)),
        partition_keys=tuple(words_of(partition_by)),
        options=pairs_of(option, "--option"),
        concurrency=concurrency,
        merge_schema=merge_schema,
        on_bad_rows=on_bad_rows,
    )
    where = actions.ingestion.Where(master, pairs_of(conf, "--conf"))
    return actions.ingestion.ingest(session, request, where, dry_run=dry_run, yes=yes)
