"""Arguments that several commands take."""

from typing import Annotated

import typer

from emberlake.cli.commands.flags import flag

TableArgument = Annotated[
    str,
    typer.Argument(metavar="TABLE", help="database.table, or database.table$branch_name."),
]
WhereOption = Annotated[
    str | None,
    typer.Option(
        "--where",
        metavar="FILTER",
        help="Only what matches, such as \"city = 'paris' AND price > 5\".",
        show_default=False,
    ),
]
SnapshotOption = Annotated[
    int | None,
    typer.Option("--snapshot", metavar="ID", help="As of this snapshot.", show_default=False),
]
TagOption = Annotated[
    str | None,
    typer.Option("--tag", metavar="NAME", help="As of this tag.", show_default=False),
]
YesOption = Annotated[bool, flag("--yes", "-y", help="Do it without asking.")]
DryRunOption = Annotated[bool, flag("--dry-run", help="Say what would be done, and do nothing.")]
IfExistsOption = Annotated[bool, flag("--if-exists", help="It is no error when it does not exist.")]
IfNotExistsOption = Annotated[
    bool, flag("--if-not-exists", help="It is no error when it exists already.")
]
