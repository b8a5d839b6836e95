"""Read rows: show a few as a grid, or stream all of them to a file or to stdout."""

import itertools
import shutil
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pyarrow as pa

from emberlake.base.texts import count_text, size_text
from emberlake.cli.actions.row_output import (
    SHOWN_ROWS,
    advance,
    grid_columns,
    whole_file,
    write_document,
    write_rows,
)
from emberlake.cli.choices import ReadFormat
from emberlake.cli.failures import UsageError
from emberlake.cli.progress import Progress, progress
from emberlake.cli.report import Done, Grid, Report
from emberlake.cli.session import Session
from emberlake.formats import open_writer
from emberlake.inspect import SystemTable
from emberlake.inspect.system_table import SystemReadBuilder
from emberlake.io import LocalStorage
from emberlake.options import SCAN_SNAPSHOT_ID, SCAN_TAG_NAME, TableOptions
from emberlake.read.row_texts import cells_of
from emberlake.table import Table
from emberlake.table.read_builder import ReadBuilder
from emberlake.types import DataField

_ROW_GROUP_BYTES: Final = 64 * 1024 * 1024
_FORMAT_OF_SUFFIX: Final = {
    ".csv": ReadFormat.CSV,
    ".json": ReadFormat.JSON,
    ".jsonl": ReadFormat.JSON,
    ".ndjson": ReadFormat.JSON,
    ".parquet": ReadFormat.PARQUET,
}


@dataclass(frozen=True, kw_only=True)
class ReadRequest:
    """Which rows to read."""

    table: str
    columns: tuple[str, ...] | None = None
    where: str | None = None
    limit: int | None = None
    snapshot_id: int | None = None
    tag_name: str | None = None


@dataclass(frozen=True)
class Target:
    """Where rows go, and in which format; None means stdout, and the default format."""

    format: ReadFormat | None
    out: Path | None
    force: bool = False


@dataclass(frozen=True)
class Rows:
    """Rows that are about to be read."""

    fields: tuple[DataField, ...]
    snapshot_id: int | None
    stream: pa.RecordBatchReader


def read(session: Session, request: ReadRequest, target: Target) -> Report:
    """Read rows and write them to the target."""
    found = _choose_format(target)
    if session.settings.as_json and target.out is None:
        if target.format not in (None, ReadFormat.JSON):
            raise UsageError(f"--json and --format {target.format}: choose one of them")
        rows = _open_rows(session, request, request.limit or None)
        _write_document(request, rows)
        return Report(None)
    if found is ReadFormat.TABLE:
        return _as_grid(session, request)
    rows = _open_rows(session, request, request.limit or None)
    if target.out is not None:
        return _to_file(request, rows, found, target.out, force=target.force)
    _to_stdout(rows, found)
    return Report(None)


def with_request(table: Table | SystemTable, request: ReadRequest) -> Any:
    """A read builder for what was asked.

    Raises:
        UsageError: both a snapshot and a tag were given.
    """
    if request.snapshot_id is not None and request.tag_name is not None:
        raise UsageError("a read takes one snapshot: give --snapshot or --tag, not both")
    if request.snapshot_id is not None:
        table = table.copy({SCAN_SNAPSHOT_ID.key: str(request.snapshot_id)})
    if request.tag_name is not None:
        table = table.copy({SCAN_TAG_NAME.key: request.tag_name})
    builder: ReadBuilder | SystemReadBuilder = table.new_read_builder()
    builder.with_filter(request.where)
    builder.with_projection(None if request.columns is None else list(request.columns))
    return builder.with_limit(request.limit)


def _open_rows(session: Session, request: ReadRequest, limit: int | None) -> Rows:
    builder = with_request(session.open(request.table), request).with_limit(limit)
    plan = builder.new_scan().plan()
    stream = builder.new_read().to_arrow_batch_reader(plan.splits())
    return Rows(tuple(builder.read_type()), plan.snapshot_id, stream)


def _choose_format(target: Target) -> ReadFormat:
    if target.out is None:
        return target.format or ReadFormat.TABLE
    found = target.format or _FORMAT_OF_SUFFIX.get(target.out.suffix.lower())
    if found is None or found is ReadFormat.TABLE:
        raise UsageError(
            f"the name of {target.out} does not show its format; give --format csv, json or "
            "parquet, or name the file accordingly"
        )
    return found


# --- to the screen --------------------------------------------------------------------------------


def _as_grid(session: Session, request: ReadRequest) -> Report:
    # A person sees the first rows; a pipe gets all of them.
    shown_rows = SHOWN_ROWS if sys.stdout.isatty() else None
    limit = shown_rows if request.limit is None else request.limit or None
    # One more row than is shown tells whether there are more.
    rows = _open_rows(session, request, None if limit is None else limit + 1)
    columns = grid_columns(rows.stream.schema)
    cells = (row for batch in rows.stream for row in cells_of(batch))
    grid = Grid(
        columns,
        itertools.islice(cells, limit),
        empty="no rows",
        hidden_hint="choose columns with --columns",
        note=lambda: _rest_of(cells, limit),
    )
    return Report(None, [grid])


def _rest_of(cells: Iterator[Sequence[str | None]], limit: int | None) -> str | None:
    has_more = limit is not None and next(cells, None) is not None
    return f"the first {count_text(limit or 0, 'row')}; -n 0 shows all" if has_more else None


# --- streams --------------------------------------------------------------------------------------


def _write_document(request: ReadRequest, rows: Rows) -> None:
    """Write all rows as one JSON document while they are read."""
    columns = [{"name": f.name, "type": str(f.type)} for f in rows.fields]
    head = {"table": request.table, "snapshot": rows.snapshot_id, "columns": columns}
    write_document(head, rows.stream, sys.stdout)


def _to_stdout(rows: Rows, output_format: ReadFormat) -> None:
    out = sys.stdout.buffer
    if output_format is not ReadFormat.PARQUET:
        # Rows on the same terminal would break up a progress bar.
        with nullcontext(Progress()) if sys.stdout.isatty() else progress("reading") as bar:
            write_rows(rows.stream, output_format, out, bar)
        return
    if sys.stdout.isatty():
        raise UsageError("Parquet cannot be shown on a terminal; give --out FILE, or pipe it")
    with tempfile.TemporaryDirectory(prefix="emberlake-") as folder:
        file = Path(folder) / "rows.parquet"
        with progress("reading") as bar:
            _write_parquet(rows, file, bar)
        with file.open("rb") as source:
            shutil.copyfileobj(source, out)


def _to_file(
    request: ReadRequest, rows: Rows, output_format: ReadFormat, out: Path, *, force: bool
) -> Report:
    if out.exists() and not force:
        raise UsageError(f"{out} exists; give --force to replace it")
    with whole_file(out) as file, progress("reading") as bar:
        if output_format is ReadFormat.PARQUET:
            count = _write_parquet(rows, file, bar)
        else:
            with file.open("wb") as stream:
                count = write_rows(rows.stream, output_format, stream, bar)
    size = out.stat().st_size
    document = {
        "table": request.table,
        "snapshot": rows.snapshot_id,
        "out": str(out),
        "format": output_format.value,
        "rows": count,
        "bytes": size,
    }
    text = f"wrote {count_text(count, 'row')} to {out}, {size_text(size)}"
    return Report(document, [Done(text)])


def _write_parquet(rows: Rows, file: Path, bar: Progress) -> int:
    writer = open_writer(LocalStorage(), str(file), rows.fields, TableOptions(), "parquet")
    count = waiting_bytes = 0
    waiting: list[pa.RecordBatch] = []
    schema = rows.stream.schema
    try:
        for batch in rows.stream:
            waiting.append(batch)
            waiting_bytes += batch.nbytes
            count = advance(bar, count, batch)
            if waiting_bytes >= _ROW_GROUP_BYTES:
                writer.write(pa.Table.from_batches(waiting, schema))
                waiting, waiting_bytes = [], 0
        if waiting:
            writer.write(pa.Table.from_batches(waiting, schema))
        writer.close()
    except BaseException:
        writer.abort()
        raise
    return count
