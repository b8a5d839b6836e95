"""Change rows of a table: delete, update, merge."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.dataset as ds

from emberlake.base.texts import count_text
from emberlake.cli.actions.sources import find_source, iter_data_files
from emberlake.cli.choices import SourceFormat
from emberlake.cli.failures import UsageError
from emberlake.cli.progress import progress
from emberlake.cli.report import Block, Done, Facts, Report
from emberlake.cli.session import Session
from emberlake.errors import CorruptFile
from emberlake.rowops.change import delete_rows, update_rows
from emberlake.rowops.merge_builder import MergeBuilder
from emberlake.rowops.result import RowChangeResult
from emberlake.table import Table
from emberlake.table.write_builder import session_of


def delete(session: Session, identifier: str, *, where: str, dry_run: bool, yes: bool) -> Report:
    """Delete the rows that match."""
    table = session.table(identifier)
    if not dry_run:
        session.confirm(f"This deletes the rows of {identifier} where {where}", yes=yes)
    with progress("looking for rows" if dry_run else "deleting rows"):
        result = delete_rows(session_of(table.new_batch_write_builder()), where, is_dry=dry_run)
    return _report(identifier, result, dry_run=dry_run)


def update(
    session: Session,
    identifier: str,
    *,
    values: Mapping[str, str],
    where: str | None,
    dry_run: bool,
    yes: bool,
) -> Report:
    """Set columns of the rows that match."""
    table = session.table(identifier)
    if where is None and not dry_run:
        session.confirm(f"This changes all rows of {identifier}", yes=yes)
    with progress("looking for rows" if dry_run else "updating rows"):
        result = update_rows(
            session_of(table.new_batch_write_builder()), values, where, is_dry=dry_run
        )
    return _report(identifier, result, dry_run=dry_run)


@dataclass(frozen=True, kw_only=True)
class MergeRequest:
    """A merge as it was typed."""

    sources: tuple[str, ...]
    on: str
    source_format: SourceFormat | None = None
    values: Mapping[str, str] = field(default_factory=dict)
    when: str | None = None
    keeps_matched: bool = False
    deletes_matched: bool = False
    inserts: bool = True
    deletes_unmatched: bool = False
    merges_schema: bool = False


def merge(
    session: Session, identifier: str, request: MergeRequest, *, dry_run: bool, yes: bool
) -> Report:
    """Merge files into a table."""
    _check(request)
    table = session.table(identifier)
    with progress("reading the source"):
        rows = _read(request)
    builder = _builder(table, rows, request)
    if not dry_run and (request.deletes_matched or request.deletes_unmatched):
        kinds = [
            text
            for is_asked, text in (
                (request.deletes_matched, "match a row of the source"),
                (request.deletes_unmatched, "match none"),
            )
            if is_asked
        ]
        what = " and those that ".join(kinds)
        session.confirm(f"This deletes the rows of {identifier} that {what}", yes=yes)
    with progress("looking for rows" if dry_run else "merging rows"):
        result = builder.dry_run() if dry_run else builder.execute()
    return _report(identifier, result, dry_run=dry_run)


def _check(request: MergeRequest) -> None:
    matched = {
        "--keep-matched": request.keeps_matched,
        "--delete-matched": request.deletes_matched,
        "--set": bool(request.values),
    }
    given = [flag for flag, is_given in matched.items() if is_given]
    if len(given) > 1:
        raise UsageError(f"{' and '.join(given)} contradict each other: give one of them")
    if request.keeps_matched and request.when:
        raise UsageError("--when is about matched rows, which --keep-matched leaves alone")
    if request.keeps_matched and not (request.inserts or request.deletes_unmatched):
        raise UsageError("nothing is left to do: --keep-matched and --no-insert")


def _read(request: MergeRequest) -> pa.Table:
    source = find_source(request.sources, request.source_format)
    if source.files is None:
        raise UsageError("a merge reads files of this machine; use emberlake ingest for others")
    names = [str(file) for root in source.roots for file in iter_data_files(root)]
    try:
        rows: pa.Table = ds.dataset(names, format=source.format.value).to_table()
    except (pa.ArrowException, OSError) as error:
        raise CorruptFile(", ".join(request.sources), f"{error}") from error
    return rows


def _builder(table: Table, rows: pa.Table, request: MergeRequest) -> MergeBuilder:
    is_condition = any(symbol in request.on for symbol in "=<>")
    columns = [name.strip() for name in request.on.split(",")]
    on = request.on if is_condition else columns
    builder = table.merge(rows, on, merge_schema=request.merges_schema)
    if request.deletes_matched:
        builder.when_matched_delete(request.when)
    elif request.values:
        builder.when_matched_update(request.values, request.when)
    elif not request.keeps_matched:
        builder.when_matched_update_all(request.when)
    if request.inserts:
        builder.when_not_matched_insert_all()
    if request.deletes_unmatched:
        builder.when_not_matched_by_source_delete()
    return builder


def _report(identifier: str, result: RowChangeResult, *, dry_run: bool) -> Report:
    counts = {
        "inserted": result.rows_inserted,
        "updated": result.rows_updated,
        "deleted": result.rows_deleted,
    }
    document = {
        "table": identifier,
        "dry_run": dry_run,
        **{f"rows_{name}": count for name, count in counts.items()},
        "rows_copied": result.rows_copied,
        "files_added": result.files_added,
        "files_removed": result.files_removed,
        "files_marked": result.files_marked,
        "strategy": result.strategy.value,
        "snapshot": result.snapshot_id,
    }
    if not any(counts.values()):
        return Report(document, [Done(f"no row of {identifier} changes")])
    done = ", ".join(f"{name} {count_text(n, 'row')}" for name, n in counts.items() if n)
    verb = "would have " if dry_run else ""
    blocks: list[Block] = [Done(f"{identifier}: {verb}{done}")]
    if not dry_run:
        facts = [("snapshot", str(result.snapshot_id)), ("strategy", result.strategy.value)]
        for name, count in (
            ("files added", result.files_added),
            ("files removed", result.files_removed),
            ("files marked", result.files_marked),
            ("rows copied", result.rows_copied),
        ):
            facts += [(name, f"{count:,}")] if count else []
        blocks.append(Facts(facts))
    return Report(document, blocks)
