"""Tables: list, show, drop, rename."""

from typing import Any

from emberlake.base.texts import size_text, time_text
from emberlake.base.times import local_time
from emberlake.catalog import Catalog
from emberlake.catalog.rules import plain_table
from emberlake.cli.actions.footprint import footprint_of
from emberlake.cli.report import Block, Column, Done, Facts, Grid, Report, numbers, words
from emberlake.cli.session import Session
from emberlake.errors import CorruptFile, NotFound, TableNotFound, Unsupported
from emberlake.inspect import load_partition_totals
from emberlake.spec.identifier import Identifier
from emberlake.spec.schema import TableSchema
from emberlake.spec.snapshot import Snapshot
from emberlake.table import Table
from emberlake.types.json import field_to_json


def list_all(session: Session, database: str | None) -> Report:
    """The tables of one database, or of all."""
    catalog = session.catalog
    databases = [database] if database is not None else catalog.list_databases()
    names = [(db, table) for db in databases for table in catalog.list_tables(db)]
    listed = [_describe(session, Identifier(db, table)) for db, table in names]
    rows = [
        (
            entry["table"],
            f"cannot be read: {entry['problem']}" if entry["problem"] else entry["kind"],
            *(_number(entry[key]) for key in ("rows", "files")),
            None if entry["bytes"] is None else size_text(entry["bytes"]),
            _number(entry["snapshot"]),
        )
        for entry in listed
    ]
    columns = [
        Column("table", "left", 20),
        words("kind"),
        numbers("rows"),
        numbers("files"),
        numbers("size"),
        numbers("snapshot"),
    ]
    where = f"database {database}" if database else "the warehouse"
    empty = f"no tables in {where}; create one with: emberlake table create"
    return Report({"tables": listed}, [Grid(columns, rows, empty=empty)])


def _describe(session: Session, identifier: Identifier) -> dict[str, Any]:
    entry: dict[str, Any] = dict.fromkeys(
        ("table", "kind", "rows", "files", "bytes", "snapshot", "problem")
    )
    entry["table"] = str(identifier)
    try:
        table = session.table(str(identifier))
        entry["kind"] = kind_of(table.table_schema)
        snapshot = table.latest_snapshot()
        entry["snapshot"] = None if snapshot is None else snapshot.id
        totals = load_partition_totals(table.store, snapshot).files
    except (CorruptFile, NotFound, Unsupported) as problem:  # one bad table must not hide the rest
        return {**entry, "problem": str(problem)}
    return {
        **entry,
        "rows": 0 if snapshot is None else snapshot.total_record_count,
        "files": int(totals.file_count.sum()),
        "bytes": int(totals.file_size_in_bytes.sum()),
    }


def _number(value: int | None) -> str | None:
    return None if value is None else f"{value:,}"


def kind_of(schema: TableSchema) -> str:
    """The kind of a table, in a few words."""
    kind = f"key ({', '.join(schema.primary_keys)})" if schema.profile.has_keys else "append"
    by = f", by {', '.join(schema.partition_keys)}" if schema.partition_keys else ""
    return kind + by


def show(session: Session, identifier: str) -> Report:
    """Describe a table; the document is a schema that ``table create`` accepts."""
    table = session.table(identifier)
    schema, snapshot = table.table_schema, table.latest_snapshot()
    blocks: list[Block] = [
        Facts(_facts(table, schema, snapshot)),
        _column_grid(schema),
    ]
    if schema.options:
        blocks.append(
            Grid([words("option", 24), words("value", 16)], sorted(schema.options.items()))
        )
    return Report(schema_document(table, schema, snapshot), blocks)


def _column_grid(schema: TableSchema) -> Grid:
    columns = [words("column"), words("type", 14), Column("key"), words("comment", 16)]
    rows = [
        (f.name, str(f.type), _role(schema, f.name), f.description or "") for f in schema.fields
    ]
    # Empty columns are left out.
    used = [i for i in range(len(columns)) if i < 2 or any(row[i] for row in rows)]
    return Grid([columns[i] for i in used], [[row[i] for i in used] for row in rows])


def schema_document(table: Table, schema: TableSchema, snapshot: Snapshot | None) -> dict[str, Any]:
    """A schema in the form of schema files, with other facts about the table."""
    return {
        "table": str(table.identifier),
        "path": table.table_path,
        "id": schema.id,
        "fields": [field_to_json(f) for f in schema.fields],
        "partitionKeys": list(schema.partition_keys),
        "primaryKeys": list(schema.primary_keys),
        "options": dict(schema.options),
        "comment": schema.comment,
        "timeMillis": schema.time_millis,
        "snapshot": None if snapshot is None else snapshot.to_json(),
    }


def _facts(table: Table, schema: TableSchema, snapshot: Snapshot | None) -> list[tuple[str, str]]:
    facts = [("table", str(table.identifier)), ("path", table.table_path)]
    if schema.comment:
        facts.append(("comment", schema.comment))
    if schema.partition_keys:
        facts.append(("partitioned by", ", ".join(schema.partition_keys)))
    if schema.profile.has_keys:
        facts.append(("primary key", ", ".join(schema.primary_keys)))
    facts.append(("schema", f"{schema.id}"))
    if snapshot is None:
        return [*facts, ("snapshot", "none yet: the table is empty")]
    files = load_partition_totals(table.store, snapshot).files
    count, size = int(files.file_count.sum()), int(files.file_size_in_bytes.sum())
    when = time_text(local_time(snapshot.time_millis))
    return [
        *facts,
        ("snapshot", f"{snapshot.id}, {snapshot.commit_kind.value}, {when}"),
        ("rows", f"{snapshot.total_record_count:,}"),
        ("files", f"{count:,}, {size_text(size)}"),
    ]


def _role(schema: TableSchema, name: str) -> str:
    roles = {"primary": schema.primary_keys, "partition": schema.partition_keys}
    return ", ".join(role for role, names in roles.items() if name in names)


def drop(
    session: Session, identifier: str, *, ignore_missing: bool, dry_run: bool, yes: bool
) -> Report:
    """Drop a table, after announcing what is deleted with it."""
    plain_table(identifier, "dropped")
    try:
        size = footprint_of(session.catalog, identifier)
    except TableNotFound:
        is_left = not dry_run and _drop_rest(session.catalog, identifier)
        if not (is_left or ignore_missing):
            raise
        what = "dropped what was left of" if is_left else "there is no table"
        document = {"table": identifier, "dropped": is_left, "dry_run": dry_run}
        return Report(document, [Done(f"{what} {identifier}")])
    what = f"table {identifier} with all its data: {size.text}"
    document = {
        "table": identifier,
        "files": size.files,
        "bytes": size.bytes,
        "dry_run": dry_run,
        "dropped": not dry_run,
    }
    if dry_run:
        return Report(document, [Done(f"would drop {what}")])
    session.confirm(f"This drops {what}", yes=yes)
    session.catalog.drop_table(identifier)
    return Report(document, [Done(f"dropped {what}")])


def _drop_rest(catalog: Catalog, identifier: str) -> bool:
    """Drop what an interrupted drop has left of a table; False if there is nothing."""
    try:
        catalog.drop_table(identifier)
    except TableNotFound:
        return False
    return True


def rename(session: Session, identifier: str, new_name: str) -> Report:
    """Give a table another name."""
    session.catalog.rename_table(identifier, new_name)
    done = Done(f"renamed {identifier} to {new_name}")
    return Report({"table": new_name, "renamed_from": identifier}, [done])
