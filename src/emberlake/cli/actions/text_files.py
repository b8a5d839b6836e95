"""Rows of CSV and JSON files on this disk, with the lines that they are on, as the table's types.

A value that does not fit its column does not end the read: it is reported in the ``BadCells`` of
its batch. Batches are small, so memory does not grow with the files; a JSON array is read whole.
"""

import csv
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.csv as arrow_csv

from emberlake.cli.actions.text_cells import from_json, from_text
from emberlake.cli.actions.text_opening import (
    check_quotes,
    decoding,
    encoding_of,
    is_json_array,
    open_text,
)
from emberlake.cli.choices import SourceFormat
from emberlake.cli.failures import UsageError
from emberlake.errors import CorruptFile
from emberlake.types import AtomicType, DataField, TypeRoot
from emberlake.write.bad_rows import BadCells

_BATCH_ROWS: Final = 20_000
_BLOCK_BYTES: Final = 4 << 20
_TEXT: Final = AtomicType("STRING")


@dataclass(frozen=True, eq=False)
class Torn:
    """A piece of a file that is not a row: its line, its text, and what is wrong with it."""

    line: int
    text: str
    reason: str


@dataclass(frozen=True, eq=False)
class TextBatch:
    """Some rows of a file: as text, as values, and what does not fit.

    Args:
        given: The rows as they are written.
        rows: The same rows in the types of the table; null where a value does not fit.
        known: The values that do not fit.
        lines: Finds the lines of rows, by position; this reads the file again.
        torn: Pieces between these rows that are not rows.
    """

    given: pa.Table
    rows: pa.Table
    known: list[BadCells]
    lines: Callable[[Sequence[int]], list[int]]
    torn: list[Torn] = field(default_factory=list)


def read_text_file(
    path: Path,
    source_format: SourceFormat,
    fields: Sequence[DataField],
    options: Mapping[str, str],
) -> Iterator[TextBatch]:
    """The rows of a file in batches.

    Args:
        path: The file.
        source_format: CSV or JSON.
        fields: The columns of the table; others stay text.
        options: ``encoding`` (or ``charset``); ``delimiter`` (or ``sep``) and ``header`` of CSV.

    Raises:
        UsageError: an option is not one of these.
        CorruptFile: it is not a CSV or JSON file at all.
    """
    encoding = encoding_of(options)
    others = {key: text for key, text in options.items() if key not in ("encoding", "charset")}
    with decoding(path, encoding):
        if source_format is SourceFormat.CSV:
            yield from _read_csv(path, fields, _csv_options(others, encoding))
        elif others:
            raise UsageError(
                f"--source-option {', '.join(others)}: here JSON takes no option but encoding"
            )
        elif is_json_array(path, encoding):
            yield from _read_json_array(path, fields, encoding)
        else:
            yield from _read_json(path, fields, encoding)


# --- CSV ------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _CsvOptions:
    delimiter: str
    has_header: bool
    encoding: str


def _csv_options(options: Mapping[str, str], encoding: str) -> _CsvOptions:
    unknown = set(options) - {"delimiter", "sep", "header"}
    if unknown:
        raise UsageError(
            f"--source-option {', '.join(sorted(unknown))}: with --on-bad-rows files are read "
            "without Spark, which takes delimiter, header and encoding only"
        )
    return _CsvOptions(
        options.get("delimiter", options.get("sep", ",")).replace(r"\t", "\t"),  # as typed
        options.get("header", "true").lower() == "true",
        encoding,
    )


def _read_csv(path: Path, fields: Sequence[DataField], options: _CsvOptions) -> Iterator[TextBatch]:
    names = _csv_names(path, fields, options)
    check_quotes(path, options.encoding, options.delimiter)
    invalid: list[Any] = []

    def skip(row: Any) -> str:
        invalid.append(row)
        return "skip"

    try:
        reader = arrow_csv.open_csv(
            str(path),
            read_options=arrow_csv.ReadOptions(
                use_threads=False,
                encoding=options.encoding,
                block_size=_BLOCK_BYTES,
                column_names=names,
                skip_rows_after_names=1 if options.has_header else 0,
            ),
            parse_options=arrow_csv.ParseOptions(
                delimiter=options.delimiter, invalid_row_handler=skip, newlines_in_values=True
            ),
            convert_options=arrow_csv.ConvertOptions(
                column_types=dict.fromkeys(names, pa.string()),
                strings_can_be_null=True,
                quoted_strings_can_be_null=False,
                null_values=[""],
            ),
        )
        lines = _CsvLines(path, options)
        number = 1 if options.has_header else 0  # of records so far, torn ones included
        for batch in reader:
            torn_here, invalid[:] = list(invalid), []
            numbers, number = _numbers(number, batch.num_rows, [row.number for row in torn_here])
            yield _typed_batch(
                pa.Table.from_batches([batch]),
                fields,
                _line_finder(lines, numbers),
                [_torn(row, lines) for row in torn_here],
            )
        if invalid:
            yield _typed_batch(
                reader.schema.empty_table(), fields, list, [_torn(row, lines) for row in invalid]
            )
    except pa.ArrowInvalid as error:
        if "invalid UTF8" in str(error):
            raise UnicodeError(str(error)) from error
        raise CorruptFile(str(path), f"it is not CSV: {error}") from error


def _csv_names(path: Path, fields: Sequence[DataField], options: _CsvOptions) -> list[str]:
    if not options.has_header:
        return [f.name for f in fields]
    with open_text(path, options.encoding) as text:
        first = next((row for row in csv.reader(text, delimiter=options.delimiter) if row), None)
    if first is None:
        raise CorruptFile(str(path), "it has no header")
    first[0] = first[0].removeprefix("\ufeff")
    return first


def _numbers(
    before: int, count: int, torn: Sequence[int]
) -> tuple[np.ndarray[Any, np.dtype[np.int64]], int]:
    """The numbers of the next records of a file, without those that are torn."""
    total = count + len(torn)
    is_torn = np.zeros(total, bool)
    is_torn[[number - before - 1 for number in torn if 0 < number - before <= total]] = True
    numbers = before + 1 + np.arange(total, dtype=np.int64)
    return numbers[~is_torn][:count], before + total


class _CsvLines:
    """Finds the line of a record by reading the file again, as far as needed."""

    def __init__(self, path: Path, options: _CsvOptions) -> None:
        self._rows = _iter_lines(path, options)
        self._known: list[int] = []

    def of(self, number: int) -> int:
        """The line on which a record begins; records count from 1."""
        while len(self._known) < number:
            self._known.append(next(self._rows, 0))
        return self._known[number - 1]


def _iter_lines(path: Path, options: _CsvOptions) -> Iterator[int]:
    with open_text(path, options.encoding) as text:
        reader = csv.reader(text, delimiter=options.delimiter)
        begun = 1
        for row in reader:
            if row:
                yield begun
            begun = reader.line_num + 1


def _line_finder(lines: _CsvLines, numbers: Any) -> Callable[[Sequence[int]], list[int]]:
    return lambda positions: [lines.of(int(numbers[position])) for position in positions]


def _torn(row: Any, lines: _CsvLines) -> Torn:
    reason = f"{row.expected_columns} values expected, {row.actual_columns} found"
    return Torn(lines.of(row.number), row.text, reason)


# --- JSON -----------------------------------------------------------------------------------------


def _read_json(path: Path, fields: Sequence[DataField], encoding: str) -> Iterator[TextBatch]:
    """One object per line, read by Python: Arrow stops at the first value of another type."""
    decoder = _decoder(fields)
    with open_text(path, encoding) as text:
        batch = _JsonBatch()
        for line, written in enumerate(text, start=1):
            if written.strip():
                batch.add(line, written.strip().lstrip("\ufeff"), decoder)
            if len(batch.objects) >= _BATCH_ROWS:
                yield batch.typed(fields)
                batch = _JsonBatch()
        yield batch.typed(fields)


def _read_json_array(path: Path, fields: Sequence[DataField], encoding: str) -> Iterator[TextBatch]:
    with open_text(path, encoding) as text:
        content = text.read()
    decoder, batch = _decoder(fields), _JsonBatch()
    at, line, counted = content.index("[") + 1, 1, 0
    while True:
        while at < len(content) and content[at] in " \t\r\n,":
            at += 1
        line, counted = line + content.count("\n", counted, at), at
        if at >= len(content):
            raise CorruptFile(str(path), f"the JSON array does not end (line {line})")
        if content[at] == "]":
            break
        try:
            value, end = decoder.raw_decode(content, at)
        except ValueError as error:
            raise CorruptFile(str(path), f"line {line} is not JSON: {error}") from error
        batch.take(line, content[at:end], value)
        at = end
        if len(batch.objects) >= _BATCH_ROWS:
            yield batch.typed(fields)
            batch = _JsonBatch()
    yield batch.typed(fields)


def _decoder(fields: Sequence[DataField]) -> json.JSONDecoder:
    """A decoder that keeps all digits of a number if the table has a column for them."""
    has_decimals = any(TypeRoot.DECIMAL in str(field.type) for field in fields)
    return json.JSONDecoder(parse_float=Decimal if has_decimals else None)


@dataclass
class _JsonBatch:
    objects: list[dict[str, Any]] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)
    lines: list[int] = field(default_factory=list)
    torn: list[Torn] = field(default_factory=list)

    def add(self, line: int, text: str, decoder: json.JSONDecoder) -> None:
        try:
            self.take(line, text, decoder.decode(text))
        except ValueError as error:
            self.torn.append(Torn(line, text, f"is not JSON: {error}"))

    def take(self, line: int, text: str, value: Any) -> None:
        if not isinstance(value, dict):
            self.torn.append(Torn(line, text, "is not an object"))
            return
        self.objects.append(value)
        self.texts.append(text)
        self.lines.append(line)

    def typed(self, fields: Sequence[DataField]) -> TextBatch:
        by_name = {f.name: f for f in fields}
        names = list(dict.fromkeys(name for value in self.objects for name in value))
        columns: dict[str, pa.Array] = {}
        known: list[BadCells] = []
        for name in names:
            values = [value.get(name) for value in self.objects]
            target = by_name[name].type if name in by_name else _TEXT
            columns[name], bad = from_json(values, target)
            known.append(BadCells(name, *bad))
        found = self.lines
        return TextBatch(
            given=pa.table({"json": pa.array(self.texts, pa.string())}),
            rows=pa.table(columns) if columns else pa.table({}),
            known=known,
            lines=lambda positions: [found[position] for position in positions],
            torn=self.torn,
        )


def _typed_batch(
    given: pa.Table,
    fields: Sequence[DataField],
    lines: Callable[[Sequence[int]], list[int]],
    torn: list[Torn],
) -> TextBatch:
    by_name = {f.name: f for f in fields}
    columns: dict[str, pa.Array] = {}
    known: list[BadCells] = []
    for name in given.column_names:
        texts = given.column(name).combine_chunks()
        target = by_name[name].type if name in by_name else _TEXT
        columns[name], bad = from_text(texts, target)
        known.append(BadCells(name, *bad))
    return TextBatch(given, pa.table(columns), known, lines, torn)
