"""Compare the rows of a data file with what its manifest says about them, batch by batch.

Each check remembers a few numbers, however many rows it has seen.
"""

from collections.abc import Iterator, Sequence
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from emberlake.merge.order import KeyBound, key_at, key_bound, order_rows
from emberlake.merge.rows import retracts_of
from emberlake.options import BUCKET_FUNCTION
from emberlake.spec import row_tracking
from emberlake.spec.binary_row import decode_row
from emberlake.spec.bucket import assign_buckets
from emberlake.spec.key_value import SEQUENCE, key_fields, key_value_fields
from emberlake.spec.manifest import EMPTY_ROW, DataFile, ManifestEntry, SimpleStats
from emberlake.spec.schema import TableSchema
from emberlake.spec.stats import FULL, StatsCollector
from emberlake.spec.values import Value, to_arrow_scalar
from emberlake.types import DataField


class RowCheck(Protocol):
    """Checks all rows of a file, a batch at a time."""

    def update(self, rows: pa.Table) -> None:
        """Take the next rows, in the order of the file."""

    def problems(self) -> Iterator[str]:
        """The problems of all rows so far."""


def stored_fields(schema: TableSchema, file: DataFile) -> tuple[DataField, ...]:
    """The columns of a data file that was written with a schema."""
    if schema.profile.has_keys:
        return key_value_fields(schema)
    return row_tracking.stored_fields(schema, file.write_cols) or schema.fields


def row_checks(
    schema: TableSchema, entry: ManifestEntry, partition: Sequence[Value]
) -> Iterator[RowCheck]:
    """The checks for a file that was written with a schema.

    Raises:
        CorruptRow: the manifest has keys or statistics that cannot be decoded.
    """
    file = entry.file
    yield _CountCheck(file)
    fields = _stats_fields(stored_fields(schema, file), schema, file)
    if fields:
        yield _StatsCheck(fields, file.value_stats)
    values = dict(zip(schema.partition_keys, partition, strict=True))
    stored = {f.name for f in stored_fields(schema, file)}
    for name in schema.partition_keys:
        if name in stored:
            yield _PartitionCheck(schema.field_by_name[name], values[name])
    if entry.total_buckets > 0 and entry.bucket >= 0 and schema.bucket_keys:
        yield _BucketCheck(schema, entry)
    if schema.profile.has_keys:
        yield _SequenceCheck(file)
        # Rows that wait for their bucket are in the order in which they came.
        if entry.bucket >= 0:
            yield _KeyCheck(key_fields(schema), file)
            if file.key_stats.min_values != EMPTY_ROW:
                yield _StatsCheck(key_fields(schema), file.key_stats)


def _stats_fields(
    stored: Sequence[DataField], schema: TableSchema, file: DataFile
) -> tuple[DataField, ...]:
    """The columns that have statistics."""
    hidden = () if schema.profile.has_keys else row_tracking.HIDDEN_NAMES
    own = {f.name: f for f in stored if f.name in (*schema.field_names, *hidden)}
    if file.value_stats.min_values == EMPTY_ROW:
        return ()
    names = own if file.value_stats_cols is None else file.value_stats_cols
    return tuple(own[name] for name in names if name in own)


class _CountCheck:
    def __init__(self, file: DataFile) -> None:
        self._stated = file.row_count
        self._found = 0

    def update(self, rows: pa.Table) -> None:
        self._found += rows.num_rows

    def problems(self) -> Iterator[str]:
        if self._found != self._stated:
            yield f"it has {self._found} rows, its manifest says {self._stated}"


class _StatsCheck:
    """Statistics may be wider than the values, but never narrower."""

    def __init__(self, fields: Sequence[DataField], stats: SimpleStats) -> None:
        self._fields = fields
        self._types = [f.type for f in fields]
        self._low = decode_row(self._types, stats.min_values)
        self._high = decode_row(self._types, stats.max_values)
        self._nulls = stats.null_counts or ()
        self._found = StatsCollector(fields, [FULL] * len(fields))

    def update(self, rows: pa.Table) -> None:
        self._found.update(rows)

    def problems(self) -> Iterator[str]:
        found, _ = self._found.finish(dense=False)
        lows = decode_row(self._types, found.min_values)
        highs = decode_row(self._types, found.max_values)
        for place, field in enumerate(self._fields):
            name = field.name
            # NaN is neither below nor above anything, so it proves nothing.
            if _is_less(lows[place], self._low[place]):
                yield f"{name} goes down to {lows[place]!r}, its statistics to {self._low[place]!r}"
            if _is_less(self._high[place], highs[place]):
                yield f"{name} goes up to {highs[place]!r}, its statistics to {self._high[place]!r}"
            stated = self._nulls[place] if place < len(self._nulls) else None
            counted = found.null_counts[place] if found.null_counts else None
            if stated is not None and stated != counted:
                yield f"{name} has {counted} nulls, its statistics say {stated}"


def _is_less(value: Any, other: Any) -> bool:
    return value is not None and other is not None and bool(value < other)


class _PartitionCheck:
    def __init__(self, field: DataField, value: Value) -> None:
        self._name = field.name
        self._value = to_arrow_scalar(field.type, value)
        self._strays = 0

    def update(self, rows: pa.Table) -> None:
        column = rows.column(self._name)
        if self._value.is_valid:
            same = pc.sum(pc.equal(column, self._value), min_count=0).as_py()
        else:
            same = column.null_count
        self._strays += rows.num_rows - same

    def problems(self) -> Iterator[str]:
        if self._strays:
            yield f"{self._strays} rows belong to other partitions by their {self._name}"


class _BucketCheck:
    def __init__(self, schema: TableSchema, entry: ManifestEntry) -> None:
        self._function = schema.options.value(BUCKET_FUNCTION)
        self._keys = [schema.field_by_name[name] for name in schema.bucket_keys]
        self._entry = entry
        self._strays = 0

    def update(self, rows: pa.Table) -> None:
        types = [f.type for f in self._keys]
        columns = [rows.column(f.name) for f in self._keys]
        buckets = assign_buckets(self._function, types, columns, self._entry.total_buckets)
        self._strays += int(np.count_nonzero(buckets != self._entry.bucket))

    def problems(self) -> Iterator[str]:
        if self._strays:
            yield (
                f"{self._strays} rows belong to other buckets than {self._entry.bucket} of "
                f"{self._entry.total_buckets}"
            )


class _SequenceCheck:
    """Sequence numbers, and the number of deletes."""

    def __init__(self, file: DataFile) -> None:
        self._file = file
        self._low: int | None = None
        self._high: int | None = None
        self._retracts = 0

    def update(self, rows: pa.Table) -> None:
        numbers = rows.column(SEQUENCE).to_numpy()
        low, high = int(numbers.min()), int(numbers.max())
        self._low = low if self._low is None else min(self._low, low)
        self._high = high if self._high is None else max(self._high, high)
        self._retracts += int(np.count_nonzero(retracts_of(rows)))

    def problems(self) -> Iterator[str]:
        file = self._file
        if self._low is not None and self._high is not None:
            stated = (file.min_sequence_number, file.max_sequence_number)
            if self._low < stated[0] or self._high > stated[1]:
                yield (
                    f"its sequence numbers are {self._low} to {self._high}, its manifest says "
                    f"{stated[0]} to {stated[1]}"
                )
        if file.delete_row_count is not None and file.delete_row_count != self._retracts:
            yield (
                f"{self._retracts} of its rows are deletes, its manifest says "
                f"{file.delete_row_count}"
            )


class _KeyCheck:
    """Keys are sorted and unique, and within the smallest and the largest key of the manifest."""

    def __init__(self, keys: tuple[DataField, ...], file: DataFile) -> None:
        types = [f.type for f in keys]
        self._keys = keys
        self._stated = tuple(
            key_bound(decode_row(types, key)) for key in (file.min_key, file.max_key)
        )
        self._first: KeyBound | None = None
        self._last: KeyBound | None = None
        self._disorder: int | None = None
        self._seen = 0

    def update(self, rows: pa.Table) -> None:
        first, last = (key_bound(key_at(rows, self._keys, row)) for row in (0, rows.num_rows - 1))
        if self._disorder is None:
            order = order_rows(rows, self._keys, ())
            moved = np.flatnonzero(order.rows != np.arange(rows.num_rows))
            if self._last is not None and first <= self._last:
                self._disorder = self._seen
            elif len(moved):
                self._disorder = self._seen + int(moved[0])
            elif len(order.starts) < rows.num_rows:
                is_repeated = np.diff(order.starts, append=rows.num_rows) > 1
                self._disorder = self._seen + int(order.starts[np.argmax(is_repeated)]) + 1
        # If rows are out of order these are any two keys; the disorder is reported anyway.
        self._first = first if self._first is None else min(self._first, first)
        self._last = last if self._last is None else max(self._last, last)
        self._seen += rows.num_rows

    def problems(self) -> Iterator[str]:
        if self._disorder is not None:
            yield f"its keys are not in order, or not unique, at row {self._disorder}"
        if self._first is None or self._last is None:
            return
        least, greatest = self._stated
        if self._first < least or self._last > greatest:
            yield "it has keys outside the smallest and the largest key of its manifest"
