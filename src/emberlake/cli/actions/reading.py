"""Read rows: show a few as a grid, or stream all of them to a file or to stdout."""

import itertools
import json
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, Final

import pyarrow as pa
import pyarrow.csv as pa_csv

from emberlake.base.texts import count_text, size_text
from emberlake.cli.choices import ReadFormat
from emberlake.cli.failures import UsageError
from emberlake.cli.progress import Progress, progress
from emberlake.cli.report import Column, Done, Grid, Report
from emberlake.cli.session import Session
from emberlake.formats import open_writer
from emberlake.inspect import SystemTable
from emberlake.inspect.system_table import SystemReadBuilder
from emberlake.io import LocalStorage
from emberlake.options import SCAN_SNAPSHOT_ID, SCAN_TAG_NAME, TableOptions
from emberlake.read.row_texts import cells_of, csv_batch, iter_json_rows
from emberlake.table import Table
from emberlake.table.read_builder import ReadBuilder
from emberlake.types import DataField

_SHOWN_ROWS: Final = 20
_MIN_CELL: Final = 8  # a value truncated to less than this is useless
_ROW_GROUP_BYTES: Final = 64 * 1024 * 1024
_FORMAT_OF_SUFFIX: Final = {
    ".csv": ReadFormat.CSV,
    ".json": ReadFormat.JSON,
    ".jsonl": ReadFormat.JSON,
    ".ndjson": ReadFormat.JSON,
    ".parquet": ReadFormat.PARQUET,
}


@dataclass(frozen=True, kw_only=True)
class Asked:
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


def read(session: Session, asked: Asked, target: Target) -> Report:
    """Read rows and write them to the target."""
    found = _choose_format(target)
    if session.settings.as_json and target.out is None:
        if target.format not in (None, ReadFormat.JSON):
            raise UsageError(f"--json and --format {target.format}: choose one of them")
        rows = _open_rows(session, asked, asked.limit or None)
        _write_document(asked, rows)
        return Report(None)
    if found is ReadFormat.TABLE:
        return _as_grid(session, asked)
    rows = _open_rows(session, asked, asked.limit or None)
    if target.out is not None:
        return _to_file(asked, rows, found, target.out, force=target.force)
    _to_stdout(rows, found)
    return Report(None)


def with_request(table: Table | SystemTable, asked: Asked) -> Any:
    """A read builder for what was asked.

    Raises:
        UsageError: both a snapshot and a tag were given.
    """
    if asked.snapshot_id is not None and asked.tag_name is not None:
        raise UsageError("a read takes one snapshot: give --snapshot or --tag, not both")
    if asked.snapshot_id is not None:
        table = table.copy({SCAN_SNAPSHOT_ID.key: str(asked.snapshot_id)})
    if asked.tag_name is not None:
        table = table.copy({SCAN_TAG_NAME.key: asked.tag_name})
    builder: ReadBuilder | SystemReadBuilder = table.new_read_builder()
    builder.with_filter(asked.where)
    builder.with_projection(None if asked.columns is None else list(asked.columns))
    return builder.with_limit(asked.limit)


def _open_rows(session: Session, asked: Asked, limit: int | None) -> Rows:
    builder = with_request(session.open(asked.table), asked).with_limit(limit)
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


def _as_grid(session: Session, asked: Asked) -> Report:
    # A person sees the first rows; a pipe gets all of them.
    shown_rows = _SHOWN_ROWS if sys.stdout.isatty() else None
    limit = shown_rows if asked.limit is None else asked.limit or None
    # One more row than is shown tells whether there are more.
    rows = _open_rows(session, asked, None if limit is None else limit + 1)
    columns = [
        Column(f.name, "right" if _is_number(t) else "left", _MIN_CELL if _can_be_long(t) else None)
        for f, t in zip(rows.fields, rows.stream.schema.types, strict=True)
    ]
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


def _is_number(kind: pa.DataType) -> bool:
    return bool(
        pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)
    )


def _can_be_long(kind: pa.DataType) -> bool:
    """Whether part of a value is still useful; part of a number or a time is not."""
    return bool(
        pa.types.is_nested(kind)
        or pa.types.is_string(kind)
        or pa.types.is_binary(kind)
        or pa.types.is_fixed_size_binary(kind)
    )


# --- streams --------------------------------------------------------------------------------------


def _write_document(asked: Asked, rows: Rows) -> None:
    """Write all rows as one JSON document while they are read."""
    out = sys.stdout
    columns = [{"name": f.name, "type": str(f.type)} for f in rows.fields]
    head = {"table": asked.table, "snapshot": rows.snapshot_id, "columns": columns}
    out.write(json.dumps(head, ensure_ascii=False)[:-1] + ', "rows": [')
    separator = ""
    for batch in rows.stream:
        for row in iter_json_rows(batch):
            out.write(separator + json.dumps(row, ensure_ascii=False))
            separator = ",\n"
    out.write("]}\n")


def _to_stdout(rows: Rows, output_format: ReadFormat) -> None:
    out = sys.stdout.buffer
    if output_format is not ReadFormat.PARQUET:
        # Rows on the same terminal would break up a progress bar.
        with nullcontext(Progress()) if sys.stdout.isatty() else progress("reading") as bar:
            _write(rows, output_format, out, bar)
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
    asked: Asked, rows: Rows, output_format: ReadFormat, out: Path, *, force: bool
) -> Report:
    if out.exists() and not force:
        raise UsageError(f"{out} exists; give --force to replace it")
    with whole_file(out) as file, progress("reading") as bar:
        if output_format is ReadFormat.PARQUET:
            count = _write_parquet(rows, file, bar)
        else:
            with file.open("wb") as stream:
                count = _write(rows, output_format, stream, bar)
    size = out.stat().st_size
    document = {
        "table": asked.table,
        "snapshot": rows.snapshot_id,
        "out": str(out),
        "format": output_format.value,
        "rows": count,
        "bytes": size,
    }
    text = f"wrote {count_text(count, 'row')} to {out}, {size_text(size)}"
    return Report(document, [Done(text)])


@contextmanager
def whole_file(out: Path) -> Iterator[Path]:
    """A temporary file that is renamed to ``out`` once it is complete."""
    temporary = out.with_name(f".{out.name}.{os.getpid()}.tmp")
    try:
        yield temporary
        temporary.replace(out)
    finally:
        temporary.unlink(missing_ok=True)


def _write(rows: Rows, output_format: ReadFormat, out: BinaryIO, bar: Progress) -> int:
    write_batch = _write_csv if output_format is ReadFormat.CSV else _write_json_lines
    count = 0
    if output_format is ReadFormat.CSV:
        # There is a header even if there are no rows.
        _write_csv(_empty_batch(rows.stream.schema), out, with_header=True)
    for batch in rows.stream:
        write_batch(batch, out)
        count = _advance(bar, count, batch)
    return count


def _empty_batch(schema: pa.Schema) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist([], schema=schema)


def _write_csv(batch: pa.RecordBatch, out: BinaryIO, *, with_header: bool = False) -> None:
    buffer = pa.BufferOutputStream()
    options = pa_csv.WriteOptions(include_header=with_header)
    pa_csv.write_csv(csv_batch(batch), buffer, options)
    out.write(buffer.getvalue())


def _write_json_lines(batch: pa.RecordBatch, out: BinaryIO) -> None:
    lines = (json.dumps(row, ensure_ascii=False) for row in iter_json_rows(batch))
    out.write("".join(f"{line}\n" for line in lines).encode())


def _write_parquet(rows: Rows, file: Path, bar: Progress) -> int:
    writer = open_writer(LocalStorage(), str(file), rows.fields, TableOptions(), "parquet")
    count = waiting_bytes = 0
    waiting: list[pa.RecordBatch] = []
    schema = rows.stream.schema
    try:
        for batch in rows.stream:
            waiting.append(batch)
            waiting_bytes += batch.nbytes
            count = _advance(bar, count, batch)
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


def _advance(bar: Progress, count: int, batch: pa.RecordBatch) -> int:
    count += batch.num_rows
    bar.say(f"{count:,} rows")
    return count
