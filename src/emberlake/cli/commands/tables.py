"""``emberlake table``: tables and their schemas."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from emberlake.cli.choices import SourceFormat
from emberlake.cli.commands.arguments import (
    DryRunOption,
    IfExistsOption,
    IfNotExistsOption,
    TableArgument,
    YesOption,
)
from emberlake.cli.commands.declare import command, new_group, pairs_of, words_of
from emberlake.cli.lazy import LazyModule
from emberlake.cli.report import Report
from emberlake.cli.session import Session

if TYPE_CHECKING:
    from emberlake.cli.actions import alter, creation, tables
else:
    alter = LazyModule("emberlake.cli.actions.alter")
    creation = LazyModule("emberlake.cli.actions.creation")
    tables = LazyModule("emberlake.cli.actions.tables")

group = new_group("Tables: list, create, show, alter, rename, drop.")

_Texts = list[str] | None


def register(app: typer.Typer) -> None:
    """Add the commands of this module."""
    app.add_typer(group, name="table", rich_help_panel="Databases and tables")


@command(group, "list")
def list_tables(
    session: Session,
    database: Annotated[
        str | None,
        typer.Argument(metavar="[DATABASE]", help="Of this database; of all without it."),
    ] = None,
) -> Report:
    """List tables with their kind, rows and files."""
    return tables.list_all(session, database)


@command(group, "show")
def show(session: Session, table: TableArgument) -> Report:
    """Show a table: columns, keys, options and the latest snapshot.

    With --json it prints a schema that `table create --schema` takes.
    """
    return tables.show(session, table)


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
            help="parquet | orc | csv | json, if its name does not say.",
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
            "--primary-key", metavar="COLUMNS", help="Columns, by commas.", show_default=False
        ),
    ] = None,
    partition_by: Annotated[
        _Texts,
        typer.Option(
            "--partition-by", metavar="COLUMNS", help="Columns, by commas.", show_default=False
        ),
    ] = None,
    option: Annotated[
        _Texts,
        typer.Option(
            "--option",
            metavar="KEY=VALUE",
            help="An option of the table; can be repeated.",
            show_default=False,
        ),
    ] = None,
    comment: Annotated[
        str | None, typer.Option("--comment", help="What the table is.", show_default=False)
    ] = None,
    if_not_exists: IfNotExistsOption = False,
    dry_run: DryRunOption = False,
) -> Report:
    """Create a table from columns, from a schema file, or like a data file.

    What is wrong is told at once, and nothing is created then.
    """
    declared = creation.Declaration(
        schema_file=schema,
        source=source,
        source_format=source_format,
        columns=tuple(column or ()),
        primary_keys=tuple(words_of(primary_key)),
        partition_keys=tuple(words_of(partition_by)),
        options=pairs_of(option, "--option"),
        comment=comment,
    )
    return creation.create(
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
            help="A new column; can be repeated.",
            show_default=False,
        ),
    ] = None,
    drop_column: Annotated[
        _Texts,
        typer.Option(
            "--drop-column",
            metavar="NAME",
            help="Its values are not seen any more; it asks. Can be repeated.",
            show_default=False,
        ),
    ] = None,
    rename_column: Annotated[
        _Texts,
        typer.Option(
            "--rename-column", metavar="OLD=NEW", help="Can be repeated.", show_default=False
        ),
    ] = None,
    column_type: Annotated[
        _Texts,
        typer.Option(
            "--type",
            metavar="'NAME TYPE'",
            help="A wider type for a column; can be repeated.",
            show_default=False,
        ),
    ] = None,
    column_comment: Annotated[
        _Texts,
        typer.Option(
            "--column-comment",
            metavar="NAME=TEXT",
            help="What a column is; can be repeated.",
            show_default=False,
        ),
    ] = None,
    set_option: Annotated[
        _Texts,
        typer.Option(
            "--set", metavar="KEY=VALUE", help="An option; can be repeated.", show_default=False
        ),
    ] = None,
    unset_option: Annotated[
        _Texts,
        typer.Option(
            "--unset",
            metavar="KEY",
            help="An option back to its default; can be repeated.",
            show_default=False,
        ),
    ] = None,
    comment: Annotated[
        str | None,
        typer.Option("--comment", help="What the table is.", show_default=False),
    ] = None,
    dry_run: DryRunOption = False,
    yes: YesOption = False,
) -> Report:
    """Change columns, options and comment: all of it in one step, or nothing.

    Columns inside ROW columns are named by dots: address.city.
    """
    asked = alter.Asked(
        add=tuple(add_column or ()),
        drop=tuple(drop_column or ()),
        rename=pairs_of(rename_column, "--rename-column"),
        types=tuple(column_type or ()),
        comments=pairs_of(column_comment, "--column-comment"),
        set_options=pairs_of(set_option, "--set"),
        unset_options=tuple(unset_option or ()),
        comment=comment,
    )
    return alter.alter(session, table, asked, dry_run=dry_run, yes=yes)


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
    return tables.drop(session, table, ignore_missing=if_exists, dry_run=dry_run, yes=yes)


@command(group, "rename")
def rename(
    session: Session,
    table: TableArgument,
    new_name: Annotated[str, typer.Argument(metavar="NEW_NAME", help="database.table.")],
) -> Report:
    """Give a table another name, in the same database or in another one."""
    return tables.rename(session, table, new_name)
