"""Rows as the command line writes them: as a grid, as CSV, as JSON."""

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, Final, TextIO

import pyarrow as pa
import pyarrow.csv as pa_csv

from emberlake.cli.choices import ReadFormat
from emberlake.cli.progress import Progress
from emberlake.cli.report import Column
from emberlake.errors import FileNotFound
from emberlake.read.row_texts import csv_batch, iter_json_rows

SHOWN_ROWS: Final = 20  # on a terminal
_MIN_CELL: Final = 8  # a value truncated to less than this is useless


def grid_columns(schema: pa.Schema) -> list[Column]:
    """The columns of a grid for rows: numbers on the right, and what may be truncated."""
    return [
        Column(f.name, "right" if _is_number(f.type) else "left", _least_width(f.type))
        for f in schema
    ]


def _is_number(kind: pa.DataType) -> bool:
    return bool(
        pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)
    )


def _least_width(kind: pa.DataType) -> int | None:
    return _MIN_CELL if _can_be_long(kind) else None


def _can_be_long(kind: pa.DataType) -> bool:
    """Whether part of a value is still useful; part of a number or a time is not."""
    return bool(
        pa.types.is_nested(kind)
        or pa.types.is_string(kind)
        or pa.types.is_binary(kind)
        or pa.types.is_fixed_size_binary(kind)
    )


@contextmanager
def whole_file(out: Path) -> Iterator[Path]:
    """A temporary file that is renamed to ``out`` once it is complete."""
    if not out.parent.is_dir():
        raise FileNotFound(str(out.parent), "create the folder first")
    temporary = out.with_name(f".{out.name}.{os.getpid()}.tmp")
    try:
        yield temporary
        temporary.replace(out)
    finally:
        temporary.unlink(missing_ok=True)


def write_document(head: Mapping[str, Any], stream: pa.RecordBatchReader, out: TextIO) -> None:
    """Write all rows as one JSON document, with other keys before them, while they are read."""
    out.write(json.dumps(head, ensure_ascii=False)[:-1] + ', "rows": [')
    separator = ""
    for batch in stream:
        for row in iter_json_rows(batch):
            out.write(separator + json.dumps(row, ensure_ascii=False))
            separator = ",\n"
    out.write("]}\n")


def write_rows(
    stream: pa.RecordBatchReader, output_format: ReadFormat, out: BinaryIO, bar: Progress
) -> int:
    """Write rows as CSV or as lines of JSON while they are read; returns their number."""
    write_batch = _write_csv if output_format is ReadFormat.CSV else _write_json_lines
    count = 0
    if output_format is ReadFormat.CSV:
        # There is a header even if there are no rows.
        _write_csv(_empty_batch(stream.schema), out, with_header=True)
    for batch in stream:
        write_batch(batch, out)
        count = advance(bar, count, batch)
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


def advance(bar: Progress, count: int, batch: pa.RecordBatch) -> int:
    """Count a batch, and show the count."""
    count += batch.num_rows
    bar.say(f"{count:,} rows")
    return count
