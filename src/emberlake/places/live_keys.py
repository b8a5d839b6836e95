"""The keys of a table's rows, and the partition and bucket that each row is in.

Only key columns are read, and only from files whose key ranges can hold one of the keys that are
looked for. Records are merged on every level, because a read that skips level 0 may still show a
row that was moved away. Spec: "Modes", key dynamic.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from emberlake.predicates import Op, Predicate, and_all
from emberlake.predicates.builder import Target
from emberlake.read.key_read import KeyReader, UnitRead
from emberlake.read.projection import OutputShape, project_all
from emberlake.scan.key_files import Visibility
from emberlake.scan.plan import plan_key_snapshot
from emberlake.scan.splits import DataSplit
from emberlake.spec.key_value import KEY_PREFIX
from emberlake.spec.manifest import BucketKey
from emberlake.spec.schema import TableSchema
from emberlake.spec.snapshot import Snapshot
from emberlake.spec.values import from_arrow_array
from emberlake.store.table_store import TableStore
from emberlake.types import AtomicType, DataField, TypeRoot

PLACE: Final = f"{KEY_PREFIX}place"  # the number of a partition and bucket; no column has this name

# Up to this many keys are looked for one by one; of more, only their range.
_MOST_LITERALS: Final = 200
# Merging this many rows at once is faster than batch by batch.
_ROWS_AT_ONCE: Final = 2_000_000

_ROOTS: Final = frozenset(
    {TypeRoot.TINYINT, TypeRoot.SMALLINT, TypeRoot.INT, TypeRoot.BIGINT, TypeRoot.DECIMAL}
    | {TypeRoot.CHAR, TypeRoot.VARCHAR, TypeRoot.DATE, TypeRoot.TIME}
    | {TypeRoot.TIMESTAMP, TypeRoot.TIMESTAMP_LTZ}
)

_in_buckets: Visibility = lambda entries: entries.bucket >= 0  # noqa: E731


@dataclass(frozen=True)
class LiveKeys:
    """Reads the keys of a snapshot, with their places.

    Args:
        store: The table.
        splits: What can hold keys that are looked for.
        predicate: What these keys have in common.
        places: The partition and bucket of every number.
    """

    store: TableStore
    splits: tuple[DataSplit, ...] = ()
    predicate: Predicate | None = None
    places: tuple[BucketKey, ...] = ()

    @classmethod
    def plan(
        cls,
        store: TableStore,
        snapshot: Snapshot | None,
        predicate: Predicate | None = None,
        is_wanted: Callable[[bytes], bool] | None = None,
    ) -> "LiveKeys":
        """Find the files that can hold keys.

        Args:
            store: The table.
            snapshot: Its state.
            predicate: From ``keys_between``; None: any key.
            is_wanted: Tells which partitions are looked at; None: all.
        """
        if snapshot is None:
            return cls(store)
        plan = plan_key_snapshot(store, snapshot, predicate, None, is_visible=_in_buckets)
        splits = tuple(s for s in plan.splits if is_wanted is None or is_wanted(s.partition))
        places = tuple(dict.fromkeys((split.partition, split.bucket) for split in splits))
        return cls(store, splits, predicate, places)

    @property
    def row_count(self) -> int:
        """How many records there are to read."""
        return sum(file.row_count for split in self.splits for file in split.files)

    def tables(self) -> Iterator[pa.Table]:
        """The primary keys, with the number of their place as ``PLACE``."""
        numbers = {place: number for number, place in enumerate(self.places)}
        for split in self.splits:
            yield from self.of_split(split, numbers[split.partition, split.bucket])

    def of_split(self, split: DataSplit, number: int) -> Iterator[pa.Table]:
        """The keys of one split, which is in the place with this number."""
        for unit in self._reader.for_plan(split.predicate).units(split):
            for rows in _tables_of(unit, split):
                yield rows.append_column(PLACE, pa.array(np.full(rows.num_rows, number, np.int32)))

    @property
    def _reader(self) -> KeyReader:
        keys = [self.store.schema.field_by_name[name] for name in self.store.schema.primary_keys]
        return KeyReader(self.store, OutputShape(project_all(keys)), self.predicate)

    def without_splits(self) -> "LiveKeys":
        """The same places; their keys come from elsewhere."""
        return replace(self, splits=())


def _tables_of(unit: UnitRead, split: DataSplit) -> Iterator[pa.Table]:
    if sum(file.row_count for file in split.files) <= _ROWS_AT_ONCE:
        yield unit.table(use_threads=True)
        return
    with closing(unit.batches()) as batches:
        for batch in batches:
            yield pa.Table.from_batches([batch])


# --- which keys are looked for --------------------------------------------------------------------


@dataclass(frozen=True)
class KeySpan:
    """The least and the greatest value of one column among keys, or the few values that it has."""

    low: pa.Scalar
    high: pa.Scalar
    has_nulls: bool
    few: pa.Array | None

    @classmethod
    def of(cls, column: pa.ChunkedArray) -> "KeySpan":
        """The span of a column that is not empty."""
        ends = pc.min_max(column)
        distinct = column.unique() if len(column) <= _MOST_LITERALS else None
        return cls(ends["min"], ends["max"], column.null_count > 0, distinct)

    def joined(self, other: "KeySpan") -> "KeySpan":
        """The span of both."""
        ends = pc.min_max(pa.array([self.low, self.high, other.low, other.high], self.low.type))
        few = None
        if self.few is not None and other.few is not None:
            few = pa.chunked_array([self.few, other.few]).unique()
            few = few if len(few) <= _MOST_LITERALS else None
        return KeySpan(ends["min"], ends["max"], self.has_nulls or other.has_nulls, few)


def spans_of(schema: TableSchema, rows: pa.Table) -> dict[str, KeySpan]:
    """The spans of the key columns of rows, where ranges mean the same to files and to keys."""
    names = [n for n in schema.primary_keys if has_span(schema.field_by_name[n])]
    return {name: KeySpan.of(rows.column(name)) for name in names} if rows.num_rows else {}


def joined_spans(known: dict[str, KeySpan] | None, more: dict[str, KeySpan]) -> dict[str, KeySpan]:
    """The spans of more keys; None: there were none before."""
    if known is None:
        return more
    return {name: span.joined(more[name]) for name, span in known.items()}


def keys_between(schema: TableSchema, spans: Mapping[str, KeySpan]) -> Predicate | None:
    """What the keys have in common that are looked for."""
    return and_all(_condition(schema.field_by_name[n], span) for n, span in spans.items())


def has_span(column: DataField) -> bool:
    """Whether a range of a key column means the same to filters.

    Not of floats: their two zeros and NaN are keys of their own, but not to a filter.
    """
    kind = column.type
    return isinstance(kind, AtomicType) and kind.root in _ROOTS


def _condition(column: DataField, span: KeySpan) -> Predicate | None:
    if span.has_nulls:
        return None
    target = Target(column, (), column.type)
    if span.few is not None:
        return target.leaf(Op.IN, *from_arrow_array(column.type, span.few))
    ends: Sequence[pa.Scalar] = (span.low, span.high)
    low, high = (from_arrow_array(column.type, pa.array([end], end.type))[0] for end in ends)
    return target.leaf(Op.BETWEEN, low, high)
