"""Find the partition and bucket of every row, one column at a time.

Partition columns are dictionary-encoded and combined with the bucket into one small integer per
row. This gives the rows of every group in their order of arrival.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from emberlake.options import BUCKET, BUCKET_FUNCTION
from emberlake.spec.binary_row import encode_row
from emberlake.spec.bucket import assign_buckets
from emberlake.spec.manifest import EMPTY_ROW, BucketKey
from emberlake.spec.schema import TableSchema
from emberlake.spec.values import from_arrow_array
from emberlake.types import DataField

Codes = npt.NDArray[Any]


@dataclass(frozen=True, slots=True)
class Group:
    """Rows of one bucket of one partition; ``rows`` is None if all rows belong to it."""

    partition: bytes
    bucket: int
    rows: npt.NDArray[np.int64] | None

    def take(self, table: pa.Table) -> pa.Table:
        """The rows of the group; the table itself if that is all of them."""
        return table if self.rows is None else table.take(pa.array(self.rows))


def route(table: pa.Table, schema: TableSchema) -> Iterator[Group]:
    """The rows by partition and bucket; without fixed buckets, all are in bucket 0."""
    if table.num_rows == 0:
        return
    buckets = _buckets(table, schema)
    partitions, codes = partition_codes(table, schema.partition_fields)
    if buckets is None:
        for partition, rows in zip(partitions, _rows_by_code(codes, len(partitions)), strict=True):
            yield Group(partition, 0, rows)
        return
    bucket_count = int(buckets.max()) + 1
    codes = buckets if len(partitions) == 1 else codes.astype(np.int64) * bucket_count + buckets
    distinct, numbers = _dense_codes(codes, len(partitions) * bucket_count)
    for code, rows in zip(distinct.tolist(), _rows_by_code(numbers, len(distinct)), strict=True):
        yield Group(partitions[code // bucket_count], code % bucket_count, rows)


def split_rows(group: Group, buckets: npt.NDArray[np.int32]) -> Iterator[Group]:
    """Split a group by the given bucket of every row."""
    distinct, numbers = _dense_codes(buckets, int(buckets.max(initial=0)) + 1)
    for bucket, rows in zip(distinct.tolist(), _rows_by_code(numbers, len(distinct)), strict=True):
        if rows is None:
            yield Group(group.partition, bucket, group.rows)
        else:
            yield Group(group.partition, bucket, rows if group.rows is None else group.rows[rows])


def group_rows(places: Sequence[BucketKey], codes: Codes) -> Iterator[Group]:
    """The rows of each place, given the number of every row's place."""
    if not len(codes):
        return
    distinct, numbers = _dense_codes(codes, len(places))
    for code, rows in zip(distinct.tolist(), _rows_by_code(numbers, len(distinct)), strict=True):
        partition, bucket = places[code]
        yield Group(partition, bucket, rows)


def _buckets(table: pa.Table, schema: TableSchema) -> npt.NDArray[np.int32] | None:
    count = schema.options.value(BUCKET)
    if count <= 0:
        return None
    keys = [schema.field_by_name[name] for name in schema.bucket_keys]
    return assign_buckets(
        schema.options.value(BUCKET_FUNCTION),
        [f.type for f in keys],
        [table.column(f.name) for f in keys],
        count,
    )


def partition_codes(table: pa.Table, fields: Sequence[DataField]) -> tuple[list[bytes], Codes]:
    """The distinct partitions of the rows, serialized, and the number of each row's partition."""
    if not fields:
        return [EMPTY_ROW], np.zeros(table.num_rows, np.int32)
    codes: Codes = np.zeros(0, np.int32)
    dictionaries: list[pa.Array] = []
    places: list[Codes] = []  # of the value of every partition, for each dictionary
    for field in fields:
        encoded = _combined(table.column(field.name)).dictionary_encode(null_encoding="encode")
        indices, size = encoded.indices.to_numpy(), len(encoded.dictionary)
        if not dictionaries:
            codes, places = indices, [np.arange(size)]
        else:
            # Made dense after every column, or many columns would make the codes overflow.
            combined = codes.astype(np.int64) * size + indices
            distinct, codes = _dense_codes(combined, len(places[0]) * size)
            places = [*(found[distinct // size] for found in places), distinct % size]
        dictionaries.append(encoded.dictionary)
    values = [
        from_arrow_array(f.type, dictionary.take(pa.array(found)))
        for f, dictionary, found in zip(fields, dictionaries, places, strict=True)
    ]
    types = [f.type for f in fields]
    return [encode_row(types, row) for row in zip(*values, strict=True)], codes


def _combined(column: pa.ChunkedArray) -> pa.Array:
    array = column.combine_chunks()
    return array if isinstance(array, pa.Array) else pa.concat_arrays(array.chunks)


# Up to this many possible codes, a lookup table is cheaper than sorting the rows.
_TABLE_LIMIT: Final = 1 << 22
# Up to this many codes, comparing all rows with each is cheaper than sorting them: NumPy's sort is
# slowest where few values repeat. 1,000,000 rows with 5 codes take 2.4 ms instead of 19.
_COMPARE_LIMIT: Final = 8


def _dense_codes(codes: Codes, limit: int) -> tuple[Codes, Codes]:
    """The codes that occur, in order, and for every row the index of its code."""
    if limit > _TABLE_LIMIT:
        distinct, numbers = np.unique(codes, return_inverse=True)
        return distinct, numbers.reshape(-1)
    occurs = np.zeros(limit, bool)
    occurs[codes] = True
    distinct = np.flatnonzero(occurs)
    if len(distinct) == limit:
        return distinct, codes
    numbers = np.zeros(limit, np.int32)
    numbers[distinct] = np.arange(len(distinct), dtype=np.int32)
    return distinct, numbers[codes]


def _rows_by_code(codes: Codes, count: int) -> Sequence[npt.NDArray[np.int64] | None]:
    """The rows of each code, in order; None if all rows have the same. Every code occurs."""
    if count <= 1:
        return [None] * count
    if count <= _COMPARE_LIMIT:
        small = codes.astype(np.uint8)
        return [np.flatnonzero(small == code) for code in range(count)]
    # NumPy sorts 16-bit integers by radix, in linear time; stable, so rows keep their order.
    small = codes.astype(np.uint16 if count <= 1 << 16 else np.int64)
    order = np.argsort(small, kind="stable")
    ends = np.cumsum(np.bincount(small, minlength=count))
    return np.split(order, ends[:-1])
