"""``emberlake tags|branches|rollback``: names versions of a table, and goes back to one."""

from typing import Annotated

import typer

from emberlake.cli import actions
from emberlake.cli.commands.arguments import (
    DryRunOption,
    IfExistsOption,
    IfNotExistsOption,
    TableArgument,
    YesOption,
)
from emberlake.cli.commands.declare import Section, command
from emberlake.cli.completing import BRANCHES, SNAPSHOTS, TAGS
from emberlake.cli.report import Report
from emberlake.cli.session import Session

section = Section("Tags, branches, rollback")
tag_group = section.group(
    "tags", "Tags: list them (the default), create, rename, delete.", lists=True
)
branch_group = section.group(
    "branches", "Branches: list them (the default), create, delete, fast-forward.", lists=True
)

TagArgument = Annotated[
    str, typer.Argument(metavar="TAG", autocompletion=TAGS, help="The name of the tag.")
]
BranchArgument = Annotated[
    str, typer.Argument(metavar="BRANCH", autocompletion=BRANCHES, help="The name of the branch.")
]


@command(tag_group, "list")
def list_tags(session: Session, table: TableArgument) -> Report:
    """List the tags of a table."""
    return actions.refs.list_tags(session, table)


@command(tag_group, "create")
def create_tag(
    session: Session,
    table: TableArgument,
    tag: TagArgument,
    *,
    snapshot: Annotated[
        int | None,
        typer.Option(
            "--snapshot",
            metavar="ID",
            autocompletion=SNAPSHOTS,
            help="The snapshot to keep; by default the latest.",
            show_default=False,
        ),
    ] = None,
    if_not_exists: IfNotExistsOption = False,
) -> Report:
    """Keep a snapshot under a name, so that it does not expire."""
    return actions.refs.create_tag(session, table, tag, snapshot, ignore_if_exists=if_not_exists)


@command(tag_group, "rename")
def rename_tag(
    session: Session,
    table: TableArgument,
    tag: TagArgument,
    new_name: Annotated[str, typer.Argument(metavar="NEW_NAME", help="Its new name.")],
) -> Report:
    """Give a tag another name."""
    return actions.refs.rename_tag(session, table, tag, new_name)


@command(tag_group, "delete")
def delete_tag(
    session: Session,
    table: TableArgument,
    tag: TagArgument,
    *,
    if_exists: IfExistsOption = False,
    dry_run: DryRunOption = False,
    yes: YesOption = False,
) -> Report:
    """Delete a tag; then its snapshot may expire."""
    return actions.refs.delete_tag(
        session, table, tag, ignore_missing=if_exists, dry_run=dry_run, yes=yes
    )


@command(branch_group, "list")
def list_branches(session: Session, table: TableArgument) -> Report:
    """List the branches of a table."""
    return actions.refs.list_branches(session, table)


@command(branch_group, "create")
def create_branch(
    session: Session,
    table: TableArgument,
    branch: BranchArgument,
    *,
    tag: Annotated[
        str | None,
        typer.Option(
            "--tag",
            metavar="NAME",
            autocompletion=TAGS,
            help="Start from this tag; by default the branch is empty.",
            show_default=False,
        ),
    ] = None,
    if_not_exists: IfNotExistsOption = False,
) -> Report:
    """Create a branch; it is read and written as TABLE$branch_BRANCH."""
    return actions.refs.create_branch(session, table, branch, tag, ignore_if_exists=if_not_exists)


@command(branch_group, "delete")
def delete_branch(
    session: Session,
    table: TableArgument,
    branch: BranchArgument,
    *,
    dry_run: DryRunOption = False,
    yes: YesOption = False,
) -> Report:
    """Delete a branch with everything that was written only to it."""
    return actions.refs.delete_branch(session, table, branch, dry_run=dry_run, yes=yes)


@command(branch_group, "fast-forward")
def fast_forward(
    session: Session,
    table: TableArgument,
    branch: BranchArgument,
    *,
    dry_run: DryRunOption = False,
    yes: YesOption = False,
) -> Report:
    """Give the table the state of a branch; what the table got since then is gone."""
    return actions.refs.fast_forward(session, table, branch, dry_run=dry_run, yes=yes)


@section.command("rollback")
def rollback(
    session: Session,
    table: TableArgument,
    *,
    snapshot: Annotated[
        int | None,
        typer.Option(
            "--snapshot",
            metavar="ID",
            autocompletion=SNAPSHOTS,
            help="The snapshot to go back to.",
            show_default=False,
        ),
    ] = None,
    tag: Annotated[
        str | None,
        typer.Option(
            "--tag",
            metavar="NAME",
            autocompletion=TAGS,
            help="The tag to go back to.",
            show_default=False,
        ),
    ] = None,
    dry_run: DryRunOption = False,
    yes: YesOption = False,
) -> Report:
    """Make an earlier snapshot, or a tag, the latest; later snapshots and their tags are gone."""
    return actions.refs.rollback(session, table, snapshot, tag, dry_run=dry_run, yes=yes)
