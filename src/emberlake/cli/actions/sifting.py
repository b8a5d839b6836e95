"""``emberlake ingest --on-bad-rows``: loads files without Spark; bad rows are left out or kept.

Also finds the first value of a source that does not fit, for the message of a load that failed.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.dataset as ds

from emberlake.cli.actions.sources import Source, iter_data_files
from emberlake.cli.actions.text_files import TextBatch, Torn, read_text_file
from emberlake.cli.choices import SourceFormat
from emberlake.cli.failures import UsageError
from emberlake.cli.progress import Progress
from emberlake.commit.change import CommitResult
from emberlake.errors import DataMismatch, EmberlakeError
from emberlake.read.casts.kernels import cast_array
from emberlake.rowops.quarantine import BadRowRule, quarantine_of
from emberlake.rowops.sifted_write import Rejects, commit_both, new_rejects
from emberlake.rowops.text_values import read_texts
from emberlake.table import Table
from emberlake.table.write_builder import BatchWriteBuilder, session_of
from emberlake.types import AtomicType, DataField, arrow_type
from emberlake.write.bad_rows import BadRows
from emberlake.write.sifting import SiftingWriter

_TEXT_FORMATS: Final = (SourceFormat.CSV, SourceFormat.JSON)
_STRING: Final = AtomicType("STRING")
_FIRST: Final = np.zeros(1, np.int64)


@dataclass(frozen=True)
class Sifted:
    """What a load did."""

    result: CommitResult
    rows_rejected: int
    first: str | None  # the first row that did not fit, where and why
    quarantine: str | None


@dataclass(frozen=True)
class Load:
    """The files to load, and how to read them."""

    source: Source
    options: Mapping[str, str]
    constants: Mapping[str, str]  # the partition of all rows


class _Places:
    """Records where bad rows are, and describes the first; if the load fails, one is enough."""

    def __init__(self, rejects: Rejects, *, fails: bool) -> None:
        self._rejects = rejects
        self._fails = fails
        self._first_at: tuple[Path, int] | None = None
        self.first: str | None = None

    def take(self, given: pa.Table, bad: BadRows, file: Path, lines: Sequence[int] | None) -> None:
        """Rows that do not fit."""
        if not bad.count:
            return
        at = file, lines[0] if lines else 0
        # Torn pieces of a batch come before its rows, whatever their lines are.
        if self._first_at is None or (self._first_at[0] == file and at < self._first_at):
            place = f"{file}, line {lines[0]}" if lines else str(file)
            self._first_at, self.first = at, f"{place}: {bad.reasons[0]}"
        if self._fails:
            raise DataMismatch(f"{self.first}; --on-bad-rows skip or TABLE loads the others")
        numbers = None if lines is None else pa.array(lines, pa.int64())
        is_json = given.column_names == ["json"]
        texts = given.column("json") if is_json else None
        self._rejects.take(given, bad, str(file.absolute()), numbers, texts)

    def take_torn(self, torn: Sequence[Torn], file: Path) -> None:
        """Pieces of a file that are not rows."""
        for piece in torn:
            reasons = pa.array([piece.reason], pa.string())
            one = BadRows(_FIRST, pa.array([""], pa.string()), reasons)
            text = pa.table({"json": pa.array([json.dumps(piece.text)], pa.string())})
            self.take(text, one, file, [piece.line])


def load_sifted(
    table: Table,
    builder: BatchWriteBuilder,
    load: Load,
    rule: BadRowRule,
    bar: Progress,
) -> Sifted:
    """Write the rows that fit, in one commit; the others are kept or left out."""
    write = session_of(builder)
    kept = None if rule.quarantine is None else quarantine_of(table.store, rule.quarantine)
    rejects = new_rejects(write, kept)
    places = _Places(rejects, fails=rule.fails)
    place: dict[str, object] = {}

    def reject(given: pa.Table, bad: BadRows) -> None:
        batch = place["batch"]
        lines = batch.lines(bad.positions.tolist()) if isinstance(batch, TextBatch) else None
        file = place["file"]
        assert isinstance(file, Path)
        places.take(given, bad, file, lines)

    done, total = 0, load.source.bytes
    with (
        closing(rejects),
        closing(SiftingWriter(write.new_writer(), table.table_schema, reject)) as writer,
    ):
        for file in _files(load.source):
            place["file"] = file
            constants = {**_path_values(file, load.source.roots), **load.constants}
            for batch in _batches(file, load, table.fields):
                place["batch"] = batch
                if isinstance(batch, TextBatch):
                    places.take_torn(batch.torn, file)
                    rows = _with_constants(batch.rows, constants, table.fields)
                    if rows.num_rows:
                        writer.write_known(batch.given, rows, batch.known)
                else:
                    rows, unread = read_texts(batch, table.table_schema)
                    rows = _with_constants(rows, constants, table.fields)
                    writer.write_known(batch, rows, unread)
            done += file.stat().st_size
            bar.advance_bytes(done, total)
        result = commit_both(write, writer, rejects)
    return Sifted(result, rejects.count, places.first, rule.quarantine)


def first_misfit(load: Load, table: Table) -> str | None:
    """The first value that does not fit: file, line, column and reason."""
    if load.source.format not in _TEXT_FORMATS or not load.source.roots:
        return None
    try:
        for file in _files(load.source):
            for batch in _batches(file, load, table.fields):
                if isinstance(batch, TextBatch) and (misfit := _first_of(batch)) is not None:
                    line, what = misfit
                    return f"{file}, line {line}: {what}"
    except (EmberlakeError, OSError):  # Spark has already reported the problem
        return None
    return None


def _first_of(batch: TextBatch) -> tuple[int, str] | None:
    bad = BadRows.of(batch.known)
    found = [(piece.line, piece.reason) for piece in batch.torn]
    if bad.count:
        (line,) = batch.lines([int(bad.positions[0])])
        found.append((line, f"column {bad.reasons[0]}"))
    return min(found, default=None)


def _files(source: Source) -> Iterator[Path]:
    if not source.roots:
        raise UsageError(
            "--on-bad-rows takes files on this disk; load others with Spark, or copy them"
        )
    for root in source.roots:
        yield from iter_data_files(root)


def _batches(file: Path, load: Load, fields: Sequence[DataField]) -> Iterator[TextBatch | pa.Table]:
    if load.source.format in _TEXT_FORMATS:
        yield from read_text_file(file, load.source.format, fields, load.options)
        return
    for batch in ds.dataset(str(file), format=load.source.format.value).to_batches():
        yield pa.Table.from_batches([batch])


def _path_values(file: Path, roots: Sequence[Path]) -> dict[str, str]:
    """Columns that folders below a root have in their names: ``dt=2026-06-26``."""
    root = next((root for root in roots if root in file.parents), None)
    parts = file.relative_to(root).parts[:-1] if root is not None else ()
    pairs = (part.partition("=") for part in parts if "=" in part)
    return {name: value for name, _, value in pairs}


def _with_constants(
    rows: pa.Table, constants: Mapping[str, str], fields: Sequence[DataField]
) -> pa.Table:
    types = {f.name: f.type for f in fields}
    for name, text in constants.items():
        if name in rows.column_names or name not in types:
            continue
        one = cast_array(pa.array([text], pa.string()), _STRING, types[name].with_nullable(True))
        column = pa.repeat(one[0], rows.num_rows).cast(arrow_type(types[name]))
        rows = rows.append_column(name, column)
    return rows
