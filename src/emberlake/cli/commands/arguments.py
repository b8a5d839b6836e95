"""Arguments and options that several commands take."""

from typing import Annotated, Any

import typer

from emberlake.cli.completing import FILTERS, SNAPSHOTS, TABLES, TAGS


def flag(*names: str, help: str, rich_help_panel: str | None = None) -> Any:  # noqa: A002
    """An option without a value; help shows no type for it."""
    return typer.Option(*names, help=help, rich_help_panel=rich_help_panel, metavar="")


TableArgument = Annotated[
    str,
    typer.Argument(
        metavar="TABLE",
        autocompletion=TABLES,
        help="database.table, or database.table$branch_name.",
    ),
]
WhereOption = Annotated[
    str | None,
    typer.Option(
        "--where",
        metavar="FILTER",
        autocompletion=FILTERS,
        help="Only rows that match, such as \"city = 'paris' AND price > 5\".",
        show_default=False,
    ),
]
SnapshotOption = Annotated[
    int | None,
    typer.Option(
        "--snapshot",
        metavar="ID",
        autocompletion=SNAPSHOTS,
        help="As of this snapshot.",
        show_default=False,
    ),
]
TagOption = Annotated[
    str | None,
    typer.Option(
        "--tag", metavar="NAME", autocompletion=TAGS, help="As of this tag.", show_default=False
    ),
]
YesOption = Annotated[bool, flag("--yes", "-y", help="Do not ask for confirmation.")]
DryRunOption = Annotated[bool, flag("--dry-run", help="Show what would be done, and do nothing.")]
IfExistsOption = Annotated[bool, flag("--if-exists", help="Do not fail if it does not exist.")]
IfNotExistsOption = Annotated[
    bool, flag("--if-not-exists", help="Do not fail if it already exists.")
]
