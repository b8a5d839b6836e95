"""What a table is made of, from its system tables: all of it for programs, less for people."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import PurePosixPath
from typing import Any, TypeAlias

from emberlake.cli.actions.json_rows import iter_json_rows
from emberlake.cli.actions.reading import Asked, with_request
from emberlake.cli.failures import UsageError
from emberlake.cli.report import Cell, Column, Done, Grid, Report, numbers, words
from emberlake.cli.session import Session
from emberlake.cli.texts import count_text, size_text
from emberlake.spec.identifier import Identifier

Row: TypeAlias = Mapping[str, Any]
# A column of the grid, and the text that a row has in it.
Shown: TypeAlias = tuple[Column, Callable[[Row], Cell]]


def snapshots(session: Session, asked: Asked) -> Report:
    """The snapshots of a table, newest first, with the tags that keep them."""
    tags: dict[int, list[str]] = {}
    for tag in load_system(session, Asked(table=asked.table), "tags"):
        tags.setdefault(tag["snapshot_id"], []).append(tag["tag_name"])
    # The limit is of the newest ones, and they are stored the other way round.
    rows = load_system(session, replace(asked, limit=None), "snapshots")[::-1][: asked.limit]
    rows = [{**row, "tags": tags.get(row["snapshot_id"], [])} for row in rows]
    shown: list[Shown] = [
        (numbers("id"), lambda row: str(row["snapshot_id"])),
        (Column("kind"), lambda row: row["commit_kind"]),
        (Column("time"), lambda row: clock(row["commit_time"])),
        (numbers("rows"), lambda row: count(row["total_record_count"])),
        (numbers("change"), lambda row: change(row["delta_record_count"])),
        (words("tags", 8), lambda row: ", ".join(row["tags"])),
        (numbers("schema"), lambda row: str(row["schema_id"])),
        (words("user"), lambda row: row["commit_user"]),
    ]
    empty = "no snapshots: nothing was written to the table yet"
    return _report(asked.table, "snapshots", rows, shown, empty)


def files(session: Session, asked: Asked) -> Report:
    """The data files of a snapshot."""
    rows = load_system(session, asked, "files")
    shown: list[Shown] = [
        (words("partition", 32), lambda row: row["partition"] or ""),
        (numbers("bucket"), lambda row: str(row["bucket"])),
        (numbers("level"), lambda row: str(row["level"])),
        (numbers("rows"), lambda row: count(row["record_count"])),
        (numbers("size"), lambda row: size_text(row["file_size_in_bytes"])),
        (words("file", 24), lambda row: PurePosixPath(row["file_path"]).name),
        (Column("created"), lambda row: clock(row["creation_time"])),
        (numbers("schema"), lambda row: str(row["schema_id"])),
        (words("from", 6), lambda row: row["file_source"]),
    ]
    # Tables without partitions, buckets or levels have nothing to show there.
    empty = {key for key in ("partition", "bucket", "level") if not any(row[key] for row in rows)}
    shown = [(column, text) for column, text in shown if column.name not in empty]
    return _report(asked.table, "files", rows, shown, "no files: the table is empty")


def manifests(session: Session, asked: Asked) -> Report:
    """The manifests of a snapshot."""
    rows = load_system(session, asked, "manifests")
    shown: list[Shown] = [
        (words("manifest", 24), lambda row: row["file_name"]),
        (numbers("size"), lambda row: size_text(row["file_size"])),
        (numbers("added"), lambda row: count(row["num_added_files"])),
        (numbers("deleted"), lambda row: count(row["num_deleted_files"])),
        (numbers("schema"), lambda row: str(row["schema_id"])),
        (words("partitions from", 16), lambda row: row["min_partition_stats"]),
        (words("to", 16), lambda row: row["max_partition_stats"]),
    ]
    return _report(asked.table, "manifests", rows, shown, "no manifests")


def partitions(session: Session, asked: Asked) -> Report:
    """The partitions of a table."""
    rows = load_system(session, asked, "partitions")
    shown: list[Shown] = [
        (words("partition", 32), lambda row: row["partition"] or "(not partitioned)"),
        (numbers("rows"), lambda row: count(row["record_count"])),
        (numbers("files"), lambda row: count(row["file_count"])),
        (numbers("size"), lambda row: size_text(row["file_size_in_bytes"])),
        (Column("last write"), lambda row: clock(row["last_update_time"])),
        (numbers("buckets"), lambda row: count(row["total_buckets"])),
    ]
    return _report(asked.table, "partitions", rows, shown, "no partitions")


def schemas(session: Session, table: str) -> Report:
    """The schemas of a table, newest first; what is JSON text in the system table is parsed."""
    rows = [
        {
            **row,
            "fields": json.loads(row["fields"]),
            "partition_keys": json.loads(row["partition_keys"]),
            "primary_keys": json.loads(row["primary_keys"]),
            "options": json.loads(row["options"]),
        }
        for row in load_system(session, Asked(table=table), "schemas")[::-1]
    ]
    shown: list[Shown] = [
        (numbers("id"), lambda row: str(row["schema_id"])),
        (Column("time"), lambda row: clock(row["update_time"])),
        (numbers("columns"), lambda row: count(len(row["fields"]))),
        (words("names", 20), lambda row: ", ".join(field["name"] for field in row["fields"])),
        (
            words("options", 20),
            lambda row: ", ".join(f"{key}={value}" for key, value in row["options"].items()),
        ),
    ]
    return _report(table, "schemas", rows, shown, "no schemas")


def drop_partitions(
    session: Session, table: str, texts: Sequence[str], *, dry_run: bool, yes: bool
) -> Report:
    """Delete the rows of partitions, after having said which and how many."""
    specs = [parse_partition(text) for text in texts]
    listed = session.catalog.list_partitions_paged(table).elements
    keys = session.table(table).partition_keys
    for spec in specs:
        unknown = [key for key in spec if key not in keys]
        if unknown:
            raise UsageError(
                f"{table} is not partitioned by {', '.join(unknown)}; "
                + (f"it is by {', '.join(keys)}" if keys else "it has no partitions")
            )
    gone = [p for p in listed if any(spec.items() <= dict(p.spec).items() for spec in specs)]
    rows = sum(p.record_count for p in gone)
    what = f"{count_text(rows, 'row')} in {count_text(len(gone), 'partition')} of {table}"
    document = {
        "table": table,
        "partitions": [dict(p.spec) for p in gone],
        "rows": rows,
        "files": sum(p.file_count for p in gone),
        "bytes": sum(p.file_size_in_bytes for p in gone),
        "dry_run": dry_run,
        "snapshot": None,
    }
    if not gone:
        return Report(document, [Done(f"no partition of {table} matches; nothing to delete")])
    grid = Grid(
        [words("partition", 16), numbers("rows"), numbers("files")],
        [
            (
                "/".join(f"{key}={value}" for key, value in p.spec.items()),
                count(p.record_count),
                count(p.file_count),
            )
            for p in gone
        ],
    )
    if dry_run:
        return Report(document, [Done(f"would delete {what}"), grid])
    session.confirm(f"This deletes {what}", yes=yes)
    result = session.catalog.drop_partitions(table, specs)
    done = Done(f"deleted {what}: snapshot {result.snapshot_id}")
    return Report({**document, "snapshot": result.snapshot_id}, [done, grid])


def parse_partition(text: str) -> dict[str, str]:
    """``dt=2026-06-26/hour=3`` as values by column."""
    spec: dict[str, str] = {}
    for part in text.split("/"):
        key, separator, value = part.partition("=")
        if not separator or not key:
            raise UsageError(f"{text!r} is not a partition: expected column=value/column=value")
        spec[key] = value
    return spec


def load_system(session: Session, asked: Asked, name: str) -> list[dict[str, Any]]:
    """The rows of a system table of a table, or of a branch."""
    table = str(replace(Identifier.parse(asked.table), system_table=name))
    builder = with_request(session.open(table), asked)
    rows = builder.new_read().to_arrow(builder.new_scan().plan().splits())
    return list(iter_json_rows(rows))


def _report(
    table: str, name: str, rows: Sequence[Row], shown: Sequence[Shown], empty: str
) -> Report:
    columns = [column for column, _ in shown]
    texts = [[text(row) for _, text in shown] for row in rows]
    return Report({"table": table, name: rows}, [Grid(columns, texts, empty=empty)])


def count(value: int | None) -> str | None:
    """A number with separators."""
    return None if value is None else f"{value:,}"


def change(value: int | None) -> str | None:
    """A number with its sign."""
    return None if value is None else f"{value:+,}"


def clock(time: str | None) -> str | None:
    """A time of a system table without what is below seconds."""
    return None if time is None else time.replace("T", " ")[:19]
