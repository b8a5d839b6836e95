"""``emberlake sql``: statements carried out in order; rows as a table, JSON, CSV or Arrow."""

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pyarrow as pa

from emberlake.base.env import SYSTEM_ENV
from emberlake.base.extras import load_extra
from emberlake.base.interrupts import stopped_by_interrupt
from emberlake.base.texts import count_text, seconds_text, size_text
from emberlake.cli.actions.row_output import (
    SHOWN_ROWS,
    grid_columns,
    whole_file,
    write_document,
    write_rows,
)
from emberlake.cli.choices import ReadFormat, SqlFormat
from emberlake.cli.failures import UsageError
from emberlake.cli.progress import Progress
from emberlake.cli.report import Block, Done, Facts, Grid, Note, Report
from emberlake.cli.screen import show, show_note
from emberlake.cli.session import Session
from emberlake.errors import EmberlakeError
from emberlake.read.row_texts import cells_of
from emberlake.read.sql_result import SqlResult
from emberlake.sql.names import quoted
from emberlake.sql.parse import parse_statement
from emberlake.sql.runner import Runner
from emberlake.sql.script import Part, line_note, split_script
from emberlake.sql.statements import Query
from emberlake.types import from_arrow_type

_COUNTED_ROWS: Final = 10_000  # rows that are not shown are counted up to here
_CELLS_AT_ONCE: Final = 1000


@dataclass(frozen=True, kw_only=True)
class Output:
    """How rows are written."""

    format: SqlFormat = SqlFormat.TABLE
    limit: int | None = None  # None: all, or the first ones on a terminal; 0: all
    is_expanded: bool = False  # every column on a line of its own
    is_timed: bool = False
    is_prompt: bool = False  # hints name what can be typed there
    out: Path | None = None
    force: bool = False

    @property
    def shown_rows(self) -> int | None:
        """How many rows to write; None: all."""
        if self.limit is not None:
            return self.limit or None
        is_grid = self.format is SqlFormat.TABLE and sys.stdout.isatty()
        return SHOWN_ROWS if is_grid else None


@dataclass(frozen=True, kw_only=True)
class Place:
    """Where statements run."""

    database: str | None = None  # of names with one part
    master: str | None = None  # of Spark; None: in this process


def run(session: Session, text: str, place: Place, output: Output) -> Report:
    """Carry out the statements of a text in their order, up to the first that fails."""
    parts = split_script(text)
    if not parts:
        raise UsageError("there is no statement in this text")
    if output.out is not None:
        _check_one_result(parts, output.out, force=output.force)
    return run_parts(opened(session, place), parts, output)


def run_parts(runner: Runner, parts: tuple[Part, ...], output: Output) -> Report:
    """Carry out statements, and write their rows.

    Returns:
        What to say at the end; the rows are already written.
    """
    report = Report(None)
    for number, part in enumerate(parts):
        order = _Order(is_first=number == 0, is_last=number == len(parts) - 1)
        try:
            report = _run_part(runner, part.text, output, order)
        except Exception as error:
            if len(parts) > 1 or part.line > 1:
                error.add_note(line_note(part.line))
            raise
    return report


@dataclass(frozen=True)
class _Order:
    """Where a statement stands among the others."""

    is_first: bool
    is_last: bool


def _run_part(runner: Runner, statement: str, output: Output, order: _Order) -> Report:
    started = SYSTEM_ENV.now_ms()
    with stopped_by_interrupt(runner.interrupt):
        result = runner.run(statement)
        report = _written(result, output, order)
    if output.is_timed:
        sys.stdout.flush()
        show_note(f"time: {seconds_text((SYSTEM_ENV.now_ms() - started) / 1000)}")
    return report


def _check_one_result(parts: tuple[Part, ...], out: Path, *, force: bool) -> None:
    if out.exists() and not force:
        raise UsageError(f"{out} exists; give --force to replace it")
    for part in parts[:-1]:
        if isinstance(parse_statement(part.text), Query):
            raise UsageError(
                f"--arrow writes the rows of the last statement; line {part.line} has a query "
                "before it"
            )


# --- where statements run -------------------------------------------------------------------------


def opened(session: Session, place: Place) -> Runner:
    """What carries out the statements."""
    load_extra("sqlglot", extra="sql")
    runner = _in_this_process(session) if place.master is None else _on_spark(session, place.master)
    if place.database is not None:
        runner.run(f"USE {quoted(place.database)}")
    return runner


def _in_this_process(session: Session) -> Runner:
    load_extra("duckdb", extra="sql")
    runner: Runner = load_extra("emberlake.sql.local", extra="sql").LocalSession(session.catalog)
    return runner


def _on_spark(session: Session, master: str) -> Runner:
    load_extra("pyspark", extra="spark")
    spark = load_extra("emberlake.spark", extra="spark")
    # No names are needed in Spark's own catalog: all statements go to the lake.
    lake = spark.attach(spark.session(master), session.catalog_options, databases=[])
    runners = load_extra("emberlake.sql.on_spark.runner", extra="spark")
    runners.log_no_errors()
    runner: Runner = runners.SparkRunner(lake)
    return runner


# --- rows -----------------------------------------------------------------------------------------


def _written(result: SqlResult, output: Output, order: _Order) -> Report:
    """Write the rows of one statement."""
    match output.format:
        case SqlFormat.TABLE:
            if result.column_names and not order.is_first:
                sys.stdout.write("\n")
            show(Report(None, _blocks(result, output)), as_json=False)
        case SqlFormat.JSON:
            write_document(
                {"columns": _described(result.schema)}, _rows(result, output), sys.stdout
            )
        case SqlFormat.CSV if result.column_names:
            write_rows(_rows(result, output), ReadFormat.CSV, sys.stdout.buffer, Progress())
        case SqlFormat.ARROW if order.is_last:
            return _to_file(result, output)
        case _:
            for _ in result.to_batches():  # it has no rows, or only later ones are written
                pass
    sys.stdout.flush()
    return Report(None)


def _rows(result: SqlResult, output: Output) -> pa.RecordBatchReader:
    count = output.shown_rows
    return result.to_batches() if count is None else result.first(count)


def _described(schema: pa.Schema) -> list[dict[str, str]]:
    return [{"name": f.name, "type": _type_text(f.type)} for f in schema]


def _type_text(kind: pa.DataType) -> str:
    try:
        return str(from_arrow_type(kind))
    except EmberlakeError:  # no column has such a type, but a query may: intervals
        return str(kind).upper()


def _to_file(result: SqlResult, output: Output) -> Report:
    assert output.out is not None
    count = 0
    rows = _rows(result, output)
    with whole_file(output.out) as file, pa.ipc.new_file(str(file), rows.schema) as writer:
        for batch in rows:
            writer.write_batch(batch)
            count += batch.num_rows
    size = output.out.stat().st_size
    document = {"out": str(output.out), "format": "arrow", "rows": count, "bytes": size}
    text = f"wrote {count_text(count, 'row')} to {output.out}, {size_text(size)}"
    return Report(document, [Done(text)])


def _blocks(result: SqlResult, output: Output) -> list[Block]:
    if not result.column_names:
        for _ in result.to_batches():
            pass
        return [Done("done")]
    hint = "\\rows 0 shows all" if output.is_prompt else "-n 0 shows all"
    counted = _Counted(result, output.shown_rows, hint)
    if output.is_expanded:
        return [*_expanded(counted, result.column_names)]
    grid = Grid(
        grid_columns(result.schema),
        counted.cells(),
        empty="no rows",
        hidden_hint="\\x shows them" if output.is_prompt else "-x shows them",
        note=counted.note,
    )
    return [grid]


def _expanded(counted: "_Counted", names: list[str]) -> Iterator[Block]:
    for number, row in enumerate(counted.cells(), start=1):
        cells = ("null" if cell is None else cell for cell in row)
        yield Facts([("\u2500", f"row {number}"), *zip(names, cells, strict=True)])
    note = counted.note() or ("no rows" if not counted.total else None)
    if note is not None:
        yield Note(note)


class _Counted:
    """The first rows of a result; the others are counted, up to a bound."""

    def __init__(self, result: SqlResult, shown: int | None, hint: str) -> None:
        self._result = result
        self._shown = shown
        self._hint = hint
        self.total = 0

    def cells(self) -> Iterator[tuple[str | None, ...]]:
        shown = self._shown
        stream = (
            self._result.to_batches()
            if shown is None
            else self._result.first(max(shown, _COUNTED_ROWS) + 1)
        )
        for batch in stream:
            left = batch.num_rows if shown is None else max(shown - self.total, 0)
            self.total += batch.num_rows
            for start in range(0, min(left, batch.num_rows), _CELLS_AT_ONCE):
                yield from cells_of(batch.slice(start, min(_CELLS_AT_ONCE, left - start)))

    def note(self) -> str | None:
        """How many rows there are, if some are not shown."""
        if self._shown is None or self.total <= self._shown:
            return None
        most = max(self._shown, _COUNTED_ROWS)
        there = f"more than {most:,}" if self.total > most else f"{self.total:,}"
        return f"{self._shown:,} of {there} rows; {self._hint}"
