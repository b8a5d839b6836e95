"""Which rows can match, according to the keys of a source: other files need not be read."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sql

from emberlake.predicates import Predicate, and_all
from emberlake.predicates.builder import Target
from emberlake.rowops.merge_plan import KeyPair, plain_column
from emberlake.types import arrow_type

_MOST_SENT: Final = 2_000_000  # with more rows in the source, Spark may shuffle
_MOST_BYTES: Final = 64 * 1024**2  # of strings in the columns that decide; more are not collected
_MOST_LITERALS: Final = 1000  # more rows than this prune by the range of their keys alone


@dataclass(frozen=True)
class KeyRanges:
    """The number of rows of a source, and what rows of the table must satisfy to match one."""

    count: int
    predicate: Predicate | None  # None: nothing is known
    text_bytes: int = 0

    @property
    def is_small(self) -> bool:
        """Whether the keys are few enough to be sent to every executor."""
        return self.count <= _MOST_SENT

    @property
    def is_light(self) -> bool:
        """Whether the columns that decide fit in the memory of a driver."""
        return self.text_bytes <= _MOST_BYTES


def key_ranges(
    pairs: Sequence[KeyPair],
    rows: DataFrame,
    keys: Sequence[Column],
    texts: Sequence[Column] = (),
) -> KeyRanges:
    """Count the rows of a source, and find what rows of the table must satisfy to match them.

    Args:
        pairs: The equalities.
        rows: The source, computed once: it is read here.
        keys: The key of the source for each pair; times may be integers.
        texts: Columns of variable length, to be measured.
    """
    bounds = [f(key) for key in keys for f in (sql.min, sql.max)]
    named = [bound.alias(f"b{number}") for number, bound in enumerate(bounds)]
    sizes = [
        sql.coalesce(sql.sum(sql.octet_length(t)), sql.lit(0)).alias(f"t{n}")
        for n, t in enumerate(texts)
    ]
    found = rows.agg(sql.count(sql.lit(1)).alias("rows"), *named, *sizes).toArrow()
    text_bytes = sum(found.column(f"t{n}")[0].as_py() for n in range(len(texts)))
    count = found.column("rows")[0].as_py()
    if count <= _MOST_LITERALS and pairs:
        values = [key.alias(f"k{number}") for number, key in enumerate(keys)]
        columns, is_all = rows.select(*values).toArrow().columns, True
    else:
        columns, is_all = [_both(found, number) for number in range(len(pairs))], False
    ranges = [_range(p, c, is_all=is_all) for p, c in zip(pairs, columns, strict=True)]
    return KeyRanges(count, and_all(ranges), text_bytes)


def _both(bounds: pa.Table, number: int) -> pa.ChunkedArray:
    """The least and the greatest value of a key."""
    least, most = bounds.column(f"b{2 * number}"), bounds.column(f"b{2 * number + 1}")
    return pa.chunked_array([*least.chunks, *most.chunks])


def _range(pair: KeyPair, keys: pa.ChunkedArray, *, is_all: bool) -> Predicate | None:
    side = plain_column(pair.target.typed)
    kind = pair.source.typed.type
    if side is None or pair.matches_null or kind is None or pa.types.is_boolean(keys.type):
        return None
    target = Target(side.field, side.path, side.type)
    values = _as_type(keys.drop_null(), arrow_type(kind))
    if not len(values):
        return target.is_in([])
    if is_all:
        return target.is_in(list(values.unique()))
    return target.between(values[0], values[1])


def _as_type(keys: pa.ChunkedArray, kind: pa.DataType) -> pa.Array:
    values = keys.combine_chunks()
    if pa.types.is_integer(values.type) and pa.types.is_time(kind) and kind.bit_width == 32:
        values = values.cast(pa.int32())
    return values if values.type == kind else values.cast(kind)
