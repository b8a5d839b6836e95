"""Change a table's schema: make all requested changes in one step."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from emberlake.cli.actions.creation import parse_column
from emberlake.cli.actions.tables import schema_document
from emberlake.cli.failures import UsageError
from emberlake.cli.report import Done, Report
from emberlake.cli.session import Session
from emberlake.scan.levels import check_one_level, reads_levels_alike
from emberlake.spec.schema_change import SchemaChange
from emberlake.spec.schema_evolution import apply_changes


@dataclass(frozen=True, kw_only=True)
class AlterRequest:
    """The requested changes, as they were typed."""

    add: tuple[str, ...] = ()
    drop: tuple[str, ...] = ()
    rename: Mapping[str, str]
    types: tuple[str, ...] = ()
    comments: Mapping[str, str]
    set_options: Mapping[str, str]
    unset_options: tuple[str, ...] = ()
    comment: str | None = None


def alter(
    session: Session, identifier: str, request: AlterRequest, *, dry_run: bool, yes: bool
) -> Report:
    """Apply all changes, or none; a dry run refuses what a real run would refuse."""
    changes = list(iter_changes(request))
    if not changes:
        raise UsageError(
            "nothing to change: give --add-column, --drop-column, --rename-column, --type, "
            "--column-comment, --set, --unset or --comment"
        )
    table = session.table(identifier)
    before = table.table_schema
    snapshot = table.latest_snapshot()
    # Check before asking: changes that are refused anyway need no answer.
    after = apply_changes(
        before,
        [change for change, _ in changes],
        has_snapshots=snapshot is not None,
        time_millis=before.time_millis,
    )
    if not reads_levels_alike(before, after):
        check_one_level(table.store, snapshot)
    if not dry_run:
        if request.drop:
            session.confirm(f"This drops {_columns_text(request.drop)} of {identifier}", yes=yes)
        session.catalog.alter_table(identifier, [change for change, _ in changes])
        table = session.table(identifier)
        after = table.table_schema
    is_changed = after.id != before.id
    texts = [text for _, text in changes] if is_changed else []
    document = {**schema_document(table, after, snapshot), "changes": texts, "dry_run": dry_run}
    if not is_changed:
        return Report(document, [Done(f"{identifier} is already like that: schema {after.id}")])
    verb = "would change" if dry_run else "changed"
    done = Done(f"{verb} {identifier}: schema {before.id} -> {after.id}")
    return Report(document, [done, *(Done(f"  {text}") for text in texts)])


def _columns_text(names: Sequence[str]) -> str:
    noun, them = ("column", "its") if len(names) == 1 else ("columns", "their")
    return f"{noun} {', '.join(names)} with {them} values"


def iter_changes(request: AlterRequest) -> Iterator[tuple[SchemaChange, str]]:
    """Every change with its description, in an order in which they do not depend on each other."""
    for old, new in request.rename.items():
        yield SchemaChange.rename_column(_path(old), new), f"rename column {old} to {new}"
    for name in request.drop:
        yield SchemaChange.drop_column(_path(name)), f"drop column {name}"
    for text in request.add:
        column = parse_column(text)
        change = SchemaChange.add_column(_path(column.name), column.type)
        yield change, f"add column {column.name} {column.type}"
    for text in request.types:
        column = parse_column(text)
        # A type without NOT NULL says nothing about nulls.
        keep = column.type.nullable
        change_type = SchemaChange.update_column_type(_path(column.name), column.type, keep)
        yield change_type, f"change column {column.name} to {column.type}"
    for name, comment in request.comments.items():
        described = SchemaChange.update_column_comment(_path(name), comment or None)
        yield described, f"describe column {name}: {comment}"
    for key, value in request.set_options.items():
        yield SchemaChange.set_option(key, value), f"set {key} = {value}"
    for key in request.unset_options:
        yield SchemaChange.remove_option(key), f"unset {key}"
    if request.comment is not None:
        change_comment = SchemaChange.update_comment(request.comment or None)
        yield change_comment, f"describe the table: {request.comment}"


def _path(name: str) -> list[str]:
    return name.split(".")
