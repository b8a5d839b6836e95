"""Tags, branches and rollback."""

from emberlake.base.names import did_you_mean, listed
from emberlake.base.texts import count_text
from emberlake.cli.actions.inspection import Shown, clock, count, listing, load_system
from emberlake.cli.actions.reading import ReadRequest
from emberlake.cli.failures import UsageError
from emberlake.cli.report import Block, Column, Done, Report, numbers, words
from emberlake.cli.session import Session
from emberlake.errors import BranchNotFound, SnapshotNotFound, TagNotFound
from emberlake.table import Table

# --- tags -----------------------------------------------------------------------------------------


def list_tags(session: Session, table: str) -> Report:
    """List the tags of a table and the snapshots that they keep."""
    rows = load_system(session, ReadRequest(table=table), "tags")
    shown: list[Shown] = [
        (words("tag"), lambda row: row["tag_name"]),
        (numbers("snapshot"), lambda row: str(row["snapshot_id"])),
        (numbers("rows"), lambda row: count(row["record_count"])),
        (Column("committed"), lambda row: clock(row["commit_time"])),
        (numbers("schema"), lambda row: str(row["schema_id"])),
    ]
    empty = f"no tags; create one with: emberlake tags create {table} NAME"
    return listing(table, "tags", rows, shown, empty)


def create_tag(
    session: Session, identifier: str, tag: str, snapshot_id: int | None, *, ignore_if_exists: bool
) -> Report:
    """Keep a snapshot under a name."""
    table = session.table(identifier)
    is_new = tag not in table.list_tags()
    table.create_tag(tag, snapshot_id, ignore_if_exists)
    kept = table.store.tags.load(tag).id
    verb = "created tag" if is_new else "already exists: tag"
    done = Done(f"{verb} {tag} of {identifier}: snapshot {kept}")
    return Report({"table": identifier, "tag": tag, "snapshot": kept, "created": is_new}, [done])


def rename_tag(session: Session, identifier: str, tag: str, new_name: str) -> Report:
    """Give a tag another name."""
    session.table(identifier).rename_tag(tag, new_name)
    done = Done(f"renamed tag {tag} of {identifier} to {new_name}")
    return Report({"table": identifier, "tag": new_name, "renamed_from": tag}, [done])


def delete_tag(
    session: Session, identifier: str, tag: str, *, ignore_missing: bool, dry_run: bool, yes: bool
) -> Report:
    """Delete a tag."""
    table = session.table(identifier)
    document = {"table": identifier, "tag": tag, "deleted": not dry_run, "dry_run": dry_run}
    try:
        kept = table.store.tags.load(tag).id
    except TagNotFound:
        if not ignore_missing:
            raise
        return Report({**document, "deleted": False}, [Done(f"there is no tag {tag}")])
    what = f"tag {tag} of {identifier}, which keeps snapshot {kept}"
    if dry_run:
        return Report(document, [Done(f"would delete {what}")])
    session.confirm(f"This deletes {what}", yes=yes)
    table.delete_tag(tag)
    return Report(document, [Done(f"deleted {what}")])


# --- branches -------------------------------------------------------------------------------------


def list_branches(session: Session, table: str) -> Report:
    """List the branches of a table."""
    rows = load_system(session, ReadRequest(table=table), "branches")
    shown: list[Shown] = [
        (words("branch"), lambda row: row["branch_name"]),
        (Column("created"), lambda row: clock(row["create_time"])),
        (words("open it as", 20), lambda row: f"{table}$branch_{row['branch_name']}"),
    ]
    empty = f"no branches but main; create one with: emberlake branches create {table} NAME"
    return listing(table, "branches", rows, shown, empty)


def create_branch(
    session: Session, identifier: str, branch: str, tag: str | None, *, ignore_if_exists: bool
) -> Report:
    """Create a branch, empty or from a tag."""
    table = session.table(identifier)
    is_new = branch not in table.list_branches()
    table.create_branch(branch, tag, ignore_if_exists)
    document = {"table": identifier, "branch": branch, "tag": tag, "created": is_new}
    if not is_new:
        return Report(document, [Done(f"already exists: branch {branch} of {identifier}")])
    start = f"from tag {tag}" if tag else "empty"
    text = (
        f"created branch {branch} of {identifier}, {start}: open it as {identifier}$branch_{branch}"
    )
    return Report(document, [Done(text)])


def delete_branch(
    session: Session, identifier: str, branch: str, *, dry_run: bool, yes: bool
) -> Report:
    """Delete a branch."""
    table = session.table(identifier)
    snapshots = _branch(session, table, identifier, branch).snapshot_manager().list_ids()
    what = f"branch {branch} of {identifier} with {count_text(len(snapshots), 'snapshot')}"
    document = {
        "table": identifier,
        "branch": branch,
        "snapshots": list(snapshots),
        "deleted": not dry_run,
        "dry_run": dry_run,
    }
    if dry_run:
        return Report(document, [Done(f"would delete {what}")])
    session.confirm(f"This deletes {what}", yes=yes)
    table.delete_branch(branch)
    return Report(document, [Done(f"deleted {what}")])


def fast_forward(
    session: Session, identifier: str, branch: str, *, dry_run: bool, yes: bool
) -> Report:
    """Give a table the state of a branch, after announcing what is lost."""
    table = session.table(identifier)
    theirs = _branch(session, table, identifier, branch).snapshot_manager().list_ids()
    if not theirs:
        raise SnapshotNotFound(
            f"branch {branch} of {identifier} is empty: there is no snapshot to fast-forward to"
        )
    lost = [i for i in table.snapshot_manager().list_ids() if i >= theirs[0]]
    what = (
        f"{identifier} to branch {branch} at snapshot {theirs[-1]}; "
        f"the table's own {count_text(len(lost), 'snapshot')} from {theirs[0]} on "
        f"{'is' if len(lost) == 1 else 'are'} replaced"
    )
    document = {
        "table": identifier,
        "branch": branch,
        "snapshot": theirs[-1],
        "replaced_snapshots": lost,
        "dry_run": dry_run,
    }
    if dry_run:
        return Report(document, [Done(f"would fast-forward {what}")])
    session.confirm(f"This fast-forwards {what}", yes=yes)
    table.fast_forward(branch)
    return Report(document, [Done(f"fast-forwarded {what}")])


def _branch(session: Session, table: Table, identifier: str, branch: str) -> Table:
    branches = table.list_branches()
    if branch not in branches:
        near = did_you_mean([branch], branches, before="; ")
        raise BranchNotFound(f"{identifier} has no branch {branch!r}{near}", branch=branch)
    return session.table(
        f"`{table.identifier.database}`.`{table.identifier.table}$branch_{branch}`"
    )


# --- rollback -------------------------------------------------------------------------------------


def rollback(
    session: Session,
    identifier: str,
    snapshot_id: int | None,
    tag: str | None,
    *,
    dry_run: bool,
    yes: bool,
) -> Report:
    """Go back to a snapshot or a tag, after announcing what is lost."""
    if (snapshot_id is None) == (tag is None):
        raise UsageError("give --snapshot ID or --tag NAME to roll back to")
    table = session.table(identifier)
    store = table.store
    target = store.tags.load(tag) if tag is not None else store.snapshots.load(snapshot_id or 0)
    latest = table.latest_snapshot()
    snapshots = [i for i in store.snapshots.list_ids() if i > target.id]
    tags = [name for name, kept in store.tags.list().items() if kept.id > target.id]
    rows = target.total_record_count - (0 if latest is None else latest.total_record_count)
    what = f"{identifier} to {f'tag {tag}, ' if tag else ''}snapshot {target.id}"
    lost = f"{count_text(len(snapshots), 'snapshot')} and {count_text(len(tags), 'tag')}"
    document = {
        "table": identifier,
        "snapshot": target.id,
        "tag": tag,
        "deleted_snapshots": snapshots,
        "deleted_tags": tags,
        "rows": target.total_record_count,
        "rows_changed": rows,
        "dry_run": dry_run,
    }
    facts: list[Block] = [
        Done(f"  rows     {target.total_record_count:,} ({rows:+,})"),
        Done(f"  deleted  {_listed('snapshots', snapshots)}; {_listed('tags', tags)}"),
    ]
    if dry_run:
        return Report(document, [Done(f"would roll back {what}"), *facts])
    session.confirm(f"This rolls back {what} and deletes {lost}", yes=yes)
    table.rollback_to(tag if tag is not None else target.id)
    return Report(document, [Done(f"rolled back {what}"), *facts])


def _listed(noun: str, names: list[int] | list[str]) -> str:
    return f"{noun} {listed(names)}" if names else f"no {noun}"
