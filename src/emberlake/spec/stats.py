"""Statistics of columns: minimum, maximum and null count. Spec: "Statistics".

Statistics may be coarse but never wrong: no value is below the minimum or above the maximum, and
null means unknown. Text is cut to a number of characters; a cut maximum is rounded up. NaN is not
a bound: engines do not agree on where it sorts, so a column with a NaN has no bounds.
"""

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from emberlake.base.arrow_arrays import used_values
from emberlake.errors import InvalidOption
from emberlake.options import STATS_KEEP_FIRST_N, STATS_MODE, TableOptions
from emberlake.spec.binary_row import decode_row, encode_row
from emberlake.spec.manifest import SimpleStats
from emberlake.spec.row_columns import decode_column
from emberlake.spec.system_columns import is_system_column
from emberlake.spec.values import Value
from emberlake.types import AtomicType, DataField, DataType


class StatsKind(Enum):
    """How much is known about a column."""

    NONE = "none"
    COUNTS = "counts"
    TRUNCATE = "truncate"
    FULL = "full"


@dataclass(frozen=True, slots=True)
class StatsMode:
    """How much is kept about a column; ``length`` is the number of characters of TRUNCATE."""

    kind: StatsKind
    length: int = 0


NONE: Final = StatsMode(StatsKind.NONE)
COUNTS: Final = StatsMode(StatsKind.COUNTS)
FULL: Final = StatsMode(StatsKind.FULL)
# Keys decide which files overlap, so more characters are kept of them than of values.
KEY_STATS_MODE: Final = StatsMode(StatsKind.TRUNCATE, 128)

_MODES: Final = {"none": NONE, "counts": COUNTS, "full": FULL}
_TRUNCATE: Final = re.compile(r"truncate\(([1-9]\d*)\)")
_MAX_CODE_POINT: Final = 0x10FFFF
_SURROGATES: Final = range(0xD800, 0xE000)


def truncate(length: int) -> StatsMode:
    """Bounds of at most ``length`` characters or bytes."""
    return StatsMode(StatsKind.TRUNCATE, length)


def parse_stats_mode(text: str) -> StatsMode:
    """``none``, ``counts``, ``full`` or ``truncate(16)``, in any case."""
    words = text.strip().lower()
    if words in _MODES:
        return _MODES[words]
    if match := _TRUNCATE.fullmatch(words):
        return truncate(int(match.group(1)))
    raise InvalidOption(f"{text!r} is not a statistics mode: use none, counts, truncate(n) or full")


def column_stats_modes(fields: Sequence[DataField], options: TableOptions) -> tuple[StatsMode, ...]:
    """The mode of each column, as the options ask for it."""
    general = parse_stats_mode(options.value(STATS_MODE))
    keep_first = options.value(STATS_KEEP_FIRST_N)
    modes: list[StatsMode] = []
    counted = 0
    for field in fields:
        own = options.get(f"fields.{field.name}.stats-mode")
        if own is None and is_system_column(field.name):
            modes.append(KEY_STATS_MODE)
            continue
        beyond = 0 <= keep_first <= counted
        modes.append(parse_stats_mode(own) if own is not None else NONE if beyond else general)
        counted += 1
    return tuple(modes)


@dataclass(frozen=True, slots=True)
class ColumnStats:
    """What is known about some values of a column; None is unknown."""

    low: Value
    high: Value
    null_count: int
    has_values: bool  # that are not null


class StatsCollector:
    """Collects the statistics of one data file, batch by batch."""

    def __init__(self, fields: Sequence[DataField], modes: Sequence[StatsMode]) -> None:
        self._columns = [_Column(f, m) for f, m in zip(fields, modes, strict=True)]

    def update(self, batch: pa.Table | pa.RecordBatch) -> None:
        """Add the columns of a batch, found by name."""
        for column in self._columns:
            if column.mode.kind is not StatsKind.NONE:
                column.update(batch.column(column.field.name))

    def update_column(self, name: str, values: pa.ChunkedArray) -> None:
        """Add values of one column. Threads may update different columns at the same time."""
        for column in self._columns:
            if column.field.name == name and column.mode.kind is not StatsKind.NONE:
                column.update(values)

    def adopt(self, name: str, known: "ColumnStats") -> None:
        """Add values of one column that are known only by their statistics."""
        for column in self._columns:
            if column.field.name == name:
                column.adopt(known)

    def finish(self, *, dense: bool) -> tuple[SimpleStats, tuple[str, ...] | None]:
        """The statistics, and the columns that they cover; None for all columns."""
        columns = [c for c in self._columns if c.mode.kind is not StatsKind.NONE or not dense]
        bounds = [c.bounds() for c in columns]
        stats = encode_stats(
            [c.field.type for c in columns],
            [low for low, _ in bounds],
            [high for _, high in bounds],
            [None if c.mode.kind is StatsKind.NONE else c.null_count for c in columns],
        )
        is_partial = len(columns) < len(self._columns)
        return stats, tuple(c.field.name for c in columns) if is_partial else None


def encode_stats(
    types: Sequence[DataType],
    mins: Sequence[Value],
    maxs: Sequence[Value],
    null_counts: Sequence[int | None],
) -> SimpleStats:
    """Statistics as manifests store them; an unknown value or count is None."""
    return SimpleStats(encode_row(types, mins), encode_row(types, maxs), tuple(null_counts))


def decode_stats(
    fields: Sequence[DataField], stats: SimpleStats
) -> dict[str, tuple[Value, Value, int | None]]:
    """Minimum, maximum and null count by column; of statistics that cover exactly these columns."""
    types = [f.type for f in fields]
    lows, highs = (decode_row(types, raw) for raw in (stats.min_values, stats.max_values))
    counts = stats.null_counts or (None,) * len(types)
    found = zip((f.name for f in fields), lows, highs, counts, strict=True)
    return {name: (low, high, count) for name, low, high, count in found}


def partition_stats(types: Sequence[DataType], partitions: Sequence[bytes]) -> SimpleStats:
    """Statistics of partition values over the entries of a manifest, never cut."""
    columns = [_Column(DataField(0, "", data_type), FULL) for data_type in types]
    if len(set(partitions)) == 1:  # as in most commits
        for column, value in zip(columns, decode_row(types, partitions[0]), strict=True):
            column.repeat(value, len(partitions))
    else:
        rows = pa.array(partitions, pa.large_binary())
        for index, column in enumerate(columns):
            column.update(decode_column(types, rows, index))
    bounds = [column.bounds() for column in columns]
    return encode_stats(
        types,
        [low for low, _ in bounds],
        [high for _, high in bounds],
        [column.null_count for column in columns],
    )


def truncate_min(value: Value, length: int) -> Value:
    """A value that is not greater, of at most ``length`` characters or bytes."""
    return value[:length] if isinstance(value, str | bytes) else value


def truncate_max(value: Value, length: int) -> Value:
    """A value that is not less, of at most ``length`` characters or bytes; None if impossible."""
    if not isinstance(value, str | bytes) or len(value) <= length:
        return value
    return _next_text(value[:length]) if isinstance(value, str) else _next_bytes(value[:length])


def _next_text(text: str) -> str | None:
    """The smallest text of at most that length that is above every text that starts with it."""
    for at in range(len(text) - 1, -1, -1):
        code_point = ord(text[at]) + 1
        if code_point in _SURROGATES:  # not characters: UTF-8 cannot hold them
            code_point = _SURROGATES.stop
        if code_point <= _MAX_CODE_POINT:
            return text[:at] + chr(code_point)
    return None


def _next_bytes(raw: bytes) -> bytes | None:
    kept = raw.rstrip(b"\xff")
    return kept[:-1] + bytes([kept[-1] + 1]) if kept else None


class _Column:
    """The statistics of one column so far."""

    def __init__(self, field: DataField, mode: StatsMode) -> None:
        self.field = field
        self.mode = mode
        self.null_count = 0
        self._low: Any = None
        self._high: Any = None
        self._is_unbounded = not _has_bounds(field.type) or mode.kind in (
            StatsKind.NONE,
            StatsKind.COUNTS,
        )

    def update(self, values: pa.Array | pa.ChunkedArray) -> None:
        self.null_count += values.null_count
        if self._is_unbounded:
            return
        chunks = values.chunks if isinstance(values, pa.ChunkedArray) else (values,)
        for chunk in chunks:
            if chunk.null_count < len(chunk):
                self._widen(*_bounds_of(chunk))

    def adopt(self, known: ColumnStats) -> None:
        """Add values that are known only by these statistics."""
        self.null_count += known.null_count
        if not known.has_values or self._is_unbounded:
            return
        if known.low is None or known.high is None:
            self._is_unbounded = True
        else:
            self._widen(known.low, known.high)

    def repeat(self, value: Value, count: int) -> None:
        """Add the same value ``count`` times."""
        if value is None:
            self.null_count += count
        elif not self._is_unbounded:
            self._widen(value, value)

    def bounds(self) -> tuple[Value, Value]:
        """The minimum and the maximum as they are stored; both None if unknown."""
        if self._is_unbounded or self._low is None:
            return None, None
        if self.mode.kind is not StatsKind.TRUNCATE:
            return self._low, self._high
        high = truncate_max(self._high, self.mode.length)
        return (None, None) if high is None else (truncate_min(self._low, self.mode.length), high)

    def _widen(self, low: Any, high: Any) -> None:
        if isinstance(low, float):
            if math.isnan(low) or math.isnan(high):
                self._is_unbounded = True
                return
            # Engines differ in whether -0.0 is less than 0.0; these bounds hold either way.
            low, high = low or -0.0, high or 0.0
        self._low = low if self._low is None else min(self._low, low)
        self._high = high if self._high is None else max(self._high, high)


def _has_bounds(data_type: DataType) -> bool:
    return isinstance(data_type, AtomicType) and not data_type.root.is_opaque


def _bounds_of(chunk: pa.Array) -> tuple[Value, Value]:
    """The minimum and the maximum of a chunk that has a value; NaN if it has a NaN."""
    if pa.types.is_dictionary(chunk.type):
        chunk = used_values(chunk)
    if pa.types.is_floating(chunk.type):
        return _float_bounds(chunk)
    found = pc.min_max(chunk)
    return _value(found["min"]), _value(found["max"])


def _float_bounds(chunk: pa.Array) -> tuple[float, float]:
    if chunk.null_count == 0:  # several times as fast, and NaN shows in the result
        values = chunk.to_numpy()
        return float(values.min()), float(values.max())
    if pc.any(pc.is_nan(chunk)).as_py():
        return math.nan, math.nan
    found = pc.min_max(chunk)
    return found["min"].as_py(), found["max"].as_py()


_NANOS_PER_UNIT: Final = {"s": 1_000_000_000, "ms": 1_000_000, "us": 1000, "ns": 1}


def _value(scalar: pa.Scalar) -> Any:
    # One scalar at a time: in small files, arrays of two would cost more than finding the bounds.
    if pa.types.is_timestamp(scalar.type):
        return scalar.value * _NANOS_PER_UNIT[scalar.type.unit]
    if pa.types.is_date(scalar.type) or pa.types.is_time(scalar.type):
        return scalar.value
    return scalar.as_py()
