"""Shows what a table is made of: all columns of system tables for programs, fewer for people."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import PurePosixPath
from typing import Any, TypeAlias

import numpy as np

from emberlake.base.texts import count_text, size_text
from emberlake.cli.actions.partitions import match_typed, parse_partition
from emberlake.cli.actions.reading import ReadRequest, with_request
from emberlake.cli.report import Cell, Column, Done, Grid, Report, numbers, words
from emberlake.cli.session import Session
from emberlake.expressions.query_auth import seeing_all
from emberlake.inspect import load_partition_totals
from emberlake.read.row_texts import iter_json_rows
from emberlake.spec.identifier import Identifier

Row: TypeAlias = Mapping[str, Any]
# A column of the grid, and the text that a row has in it.
Shown: TypeAlias = tuple[Column, Callable[[Row], Cell]]


def snapshots(session: Session, request: ReadRequest) -> Report:
    """List the snapshots of a table, newest first, with the tags that keep them."""
    tags: dict[int, list[str]] = {}
    for tag in load_system(session, ReadRequest(table=request.table), "tags"):
        tags.setdefault(tag["snapshot_id"], []).append(tag["tag_name"])
    # The limit counts from the newest, but they are stored oldest first.
    rows = load_system(session, replace(request, limit=None), "snapshots")[::-1][: request.limit]
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
    empty = "no snapshots: nothing has been written to the table yet"
    return listing(request.table, "snapshots", rows, shown, empty)


def files(session: Session, request: ReadRequest) -> Report:
    """List the data files of a snapshot."""
    rows = load_system(session, request, "files")
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
    return listing(request.table, "files", rows, shown, "no files: the table is empty")


def manifests(session: Session, request: ReadRequest) -> Report:
    """List the manifests of a snapshot."""
    rows = load_system(session, request, "manifests")
    shown: list[Shown] = [
        (words("manifest", 24), lambda row: row["file_name"]),
        (numbers("size"), lambda row: size_text(row["file_size"])),
        (numbers("added"), lambda row: count(row["num_added_files"])),
        (numbers("deleted"), lambda row: count(row["num_deleted_files"])),
        (numbers("schema"), lambda row: str(row["schema_id"])),
        (words("partitions from", 16), lambda row: row["min_partition_stats"]),
        (words("to", 16), lambda row: row["max_partition_stats"]),
    ]
    return listing(request.table, "manifests", rows, shown, "no manifests")


def partitions(session: Session, request: ReadRequest) -> Report:
    """List the partitions of a table."""
    rows = load_system(session, request, "partitions")
    shown: list[Shown] = [
        (words("partition", 32), lambda row: row["partition"] or "(not partitioned)"),
        (numbers("rows"), lambda row: count(row["record_count"])),
        (numbers("files"), lambda row: count(row["file_count"])),
        (numbers("size"), lambda row: size_text(row["file_size_in_bytes"])),
        (Column("last write"), lambda row: clock(row["last_update_time"])),
        (numbers("buckets"), lambda row: count(row["total_buckets"])),
    ]
    return listing(request.table, "partitions", rows, shown, "no partitions")


def schemas(session: Session, table: str) -> Report:
    """List the schemas of a table, newest first; JSON text of the system table is parsed."""
    rows = [
        {
            **row,
            "fields": json.loads(row["fields"]),
            "partition_keys": json.loads(row["partition_keys"]),
            "primary_keys": json.loads(row["primary_keys"]),
            "options": json.loads(row["options"]),
        }
        for row in load_system(session, ReadRequest(table=table), "schemas")[::-1]
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
    return listing(table, "schemas", rows, shown, "no schemas")


def drop_partitions(
    session: Session, identifier: str, texts: Sequence[str], *, dry_run: bool, yes: bool
) -> Report:
    """Delete the rows of partitions, after announcing which and how many."""
    specs = [parse_partition(text) for text in texts]
    table = session.table(identifier)
    is_meant = match_typed(table, identifier, specs)
    store = seeing_all(table.store, "counted by partition", table.partition_keys)
    totals = load_partition_totals(store, table.latest_snapshot())
    gone = [i for i, partition in enumerate(totals.partitions) if is_meant(partition)]
    files = totals.files.take(np.array(gone, np.int64))
    rows = int(files.record_count.sum())
    what = f"{count_text(rows, 'row')} in {count_text(len(gone), 'partition')} of {identifier}"
    document = {
        "table": identifier,
        "partitions": [
            dict(zip(table.partition_keys, totals.values[i], strict=True)) for i in gone
        ],
        "rows": rows,
        "files": int(files.file_count.sum()),
        "bytes": int(files.file_size_in_bytes.sum()),
        "dry_run": dry_run,
        "snapshot": None,
    }
    if not gone:
        return Report(document, [Done(f"no partition of {identifier} matches; nothing to delete")])
    counts = zip(files.record_count.tolist(), files.file_count.tolist(), strict=True)
    grid = Grid(
        [words("partition", 16), numbers("rows"), numbers("files")],
        [(totals.names[i], *map(count, found)) for i, found in zip(gone, counts, strict=True)],
    )
    if dry_run:
        return Report(document, [Done(f"would delete {what}"), grid])
    session.confirm(f"This deletes {what}", yes=yes)
    result = session.catalog.drop_partitions(identifier, specs)
    done = Done(f"deleted {what}: snapshot {result.snapshot_id}")
    return Report({**document, "snapshot": result.snapshot_id}, [done, grid])


def load_system(session: Session, request: ReadRequest, name: str) -> list[dict[str, Any]]:
    """The rows of a system table of a table, or of a branch."""
    table = str(replace(Identifier.parse(request.table), system_table=name))
    builder = with_request(session.open(table), request)
    rows = builder.new_read().to_arrow(builder.new_scan().plan().splits())
    return list(iter_json_rows(rows))


def listing(
    table: str, name: str, rows: Sequence[Row], shown: Sequence[Shown], empty: str
) -> Report:
    """A report of rows: complete for programs, and some columns for people."""
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
    """A time of a system table, without fractions of a second."""
    return None if time is None else time.replace("T", " ")[:19]
