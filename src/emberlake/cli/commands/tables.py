"""``emberlake table``: tables and their schemas."""

from pathlib import Path
from typing import Annotated

import typer

from emberlake.cli import actions
from emberlake.cli.choices import SourceFormat
from emberlake.cli.commands.arguments import (
    DryRunOption,
    IfExistsOption,
    IfNotExistsOption,
    TableArgument,
    YesOption,
)
from emberlake.cli.commands.declare import Section, command
from emberlake.cli.completing import COLUMN_VALUES, COLUMNS, DATABASES, TABLE_OPTIONS
from emberlake.cli.report import Report
from emberlake.cli.session import Session
from emberlake.cli.typed_options import pairs_of, words_of

section = Section("Databases and tables")
group = section.group("table", "Tables: list, create, show, alter, rename, drop.")

_Texts = list[str] | None


@command(group, "list")
def list_tables(
    session: Session,
    database: Annotated[
        str | None,
        typer.Argument(
            metavar="[DATABASE]",
            autocompletion=DATABASES,
            help="Only this database; by default all.",
        ),
    ] = None,
) -> Report:
    """List tables with their kind, rows and files."""
    return actions.tables.list_all(session, database)


@command(group, "show")
def show(session: Session, table: TableArgument) -> Report:
    """Show a table: columns, keys, options and the latest snapshot.

    With --json it prints a schema that `table create --schema` accepts.
    """
    return actions.tables.show(session, table)


@command(group, "create")
def create(  # noqa: PLR0913
    session: Session,
    table: TableArgument,
    *,
    schema: Annotated[
        Path | None,
        typer.Option(
            "--schema",
            metavar="FILE",
            help="A schema as JSON, as `table show --json` prints it; - is stdin.",
            show_default=False,
        ),
    ] = None,
    source: Annotated[
        Path | None,
        typer.Option(
            "--from",
            metavar="FILE",
            help="Take the columns from a Parquet, ORC, CSV or JSON file.",
            show_default=False,
        ),
    ] = None,
    source_format: Annotated[
        SourceFormat | None,
        typer.Option(
            "--source-format",
            metavar="FORMAT",
            help="parquet | orc | csv | json, if its name does not show it.",
            show_default=False,
        ),
    ] = None,
    column: Annotated[
        _Texts,
        typer.Option(
            "--column",
            metavar="'NAME TYPE'",
            help="A column, such as 'id BIGINT NOT NULL'; can be repeated.",
            show_default=False,
        ),
    ] = None,
    primary_key: Annotated[
        _Texts,
        typer.Option(
            "--primary-key",
            metavar="COLUMNS",
            help="Columns, separated by commas.",
            show_default=False,
        ),
    ] = None,
    partition_by: Annotated[
        _Texts,
        typer.Option(
            "--partition-by",
            metavar="COLUMNS",
            help="Columns, separated by commas.",
            show_default=False,
        ),
    ] = None,
    option: Annotated[
        _Texts,
        typer.Option(
            "--option",
            metavar="KEY=VALUE",
            autocompletion=TABLE_OPTIONS,
            help="A table option; can be repeated.",
            show_default=False,
        ),
    ] = None,
    comment: Annotated[
        str | None, typer.Option("--comment", help="Describe the table.", show_default=False)
    ] = None,
    if_not_exists: IfNotExistsOption = False,
    dry_run: DryRunOption = False,
) -> Report:
    """Create a table from columns, a schema file, or the columns of a data file.

    All mistakes are reported at once; then nothing is created.
    """
    declared = actions.creation.Declaration(
        schema_file=schema,
        source=source,
        source_format=source_format,
        columns=tuple(column or ()),
        primary_keys=tuple(words_of(primary_key)),
        partition_keys=tuple(words_of(partition_by)),
        options=pairs_of(option, "--option"),
        comment=comment,
    )
    return actions.creation.create(
        session, table, declared, ignore_if_exists=if_not_exists, dry_run=dry_run
    )


@command(group, "alter")
def alter_table(  # noqa: PLR0913
    session: Session,
    table: TableArgument,
    *,
    add_column: Annotated[
        _Texts,
        typer.Option(
            "--add-column",
            metavar="'NAME TYPE'",
            help="Add a column; can be repeated.",
            show_default=False,
        ),
    ] = None,
    drop_column: Annotated[
        _Texts,
        typer.Option(
            "--drop-column",
            metavar="NAME",
            autocompletion=COLUMNS,
            help="Drop a column, which hides its values; asks first. Can be repeated.",
            show_default=False,
        ),
    ] = None,
    rename_column: Annotated[
        _Texts,
        typer.Option(
            "--rename-column",
            metavar="OLD=NEW",
            autocompletion=COLUMN_VALUES,
            help="Rename a column; can be repeated.",
            show_default=False,
        ),
    ] = None,
    column_type: Annotated[
        _Texts,
        typer.Option(
            "--type",
            metavar="'NAME TYPE'",
            help="Give a column a wider type; can be repeated.",
            show_default=False,
        ),
    ] = None,
    column_comment: Annotated[
        _Texts,
        typer.Option(
            "--column-comment",
            metavar="NAME=TEXT",
            autocompletion=COLUMN_VALUES,
            help="Describe a column; can be repeated.",
            show_default=False,
        ),
    ] = None,
    set_option: Annotated[
        _Texts,
        typer.Option(
            "--set",
            metavar="KEY=VALUE",
            autocompletion=TABLE_OPTIONS,
            help="Set an option; can be repeated.",
            show_default=False,
        ),
    ] = None,
    unset_option: Annotated[
        _Texts,
        typer.Option(
            "--unset",
            metavar="KEY",
            help="Reset an option to its default; can be repeated.",
            show_default=False,
        ),
    ] = None,
    comment: Annotated[
        str | None,
        typer.Option("--comment", help="Describe the table.", show_default=False),
    ] = None,
    dry_run: DryRunOption = False,
    yes: YesOption = False,
) -> Report:
    """Change columns, options and comment: make all changes in one step, or none.

    Fields of ROW columns are named with dots: address.city.
    """
    request = actions.alter.AlterRequest(
        add=tuple(add_column or ()),
        drop=tuple(drop_column or ()),
        rename=pairs_of(rename_column, "--rename-column"),
        types=tuple(column_type or ()),
        comments=pairs_of(column_comment, "--column-comment"),
        set_options=pairs_of(set_option, "--set"),
        unset_options=tuple(unset_option or ()),
        comment=comment,
    )
    return actions.alter.alter(session, table, request, dry_run=dry_run, yes=yes)


@command(group, "drop")
def drop(
    session: Session,
    table: TableArgument,
    *,
    if_exists: IfExistsOption = False,
    dry_run: DryRunOption = False,
    yes: YesOption = False,
) -> Report:
    """Delete a table with all its data, snapshots, tags and branches."""
    return actions.tables.drop(session, table, ignore_missing=if_exists, dry_run=dry_run, yes=yes)


@command(group, "rename")
def rename(
    session: Session,
    table: TableArgument,
    new_name: Annotated[str, typer.Argument(metavar="NEW_NAME", help="database.table.")],
) -> Report:
    """Give a table another name, in the same database or in another one."""
    return actions.tables.rename(session, table, new_name)
