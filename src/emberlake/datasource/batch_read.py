"""Batch reads: the driver plans splits, every task reads some of them."""

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Final

import pyarrow as pa
import pyspark
from pyspark.sql.datasource import DataSourceReader, Filter, InputPartition
from pyspark.sql.types import StructType

from emberlake.datasource.columns import choose_columns
from emberlake.datasource.filters import to_predicate
from emberlake.datasource.options import FILTER, SourceOptions
from emberlake.datasource.pin import Pin
from emberlake.datasource.split_partition import pack_splits, read_partition
from emberlake.errors import EmberlakeWarning
from emberlake.expressions.filters import bind_row_filter
from emberlake.expressions.query_auth import authorized_reader
from emberlake.predicates import Predicate, and_all
from emberlake.read.table_reader import TableReader
from emberlake.spec.support import check_readable

# Spark 4.1 to 4.3 reuse what was planned with one filter for the whole DataFrame: after
# df.where("a = 1") every other use of df, even in an INSERT OVERWRITE, would get only these rows.
# That was fixed together with the push-down of limits (SPARK-58551).
KEEPS_FILTERS_APART: Final = hasattr(DataSourceReader, "pushLimit")


class BatchReader(DataSourceReader):
    """Reads the columns of a schema, and the rows that match the pushed filters."""

    def __init__(self, options: SourceOptions, pin: Pin, schema: StructType) -> None:
        self._store = pin.store
        check_readable(self._store.schema)
        self._columns = choose_columns(options, self._store.schema, schema)
        self._predicate: Predicate | None = None
        if options.filter is not None:
            store = self._store
            self._predicate = bind_row_filter(options.filter, store.schema, store.env.now_ms)
        # Filters that Spark pushes down later are on columns that it reads.
        reader = TableReader(self._store, self._columns.projection, self._predicate)
        self._store = authorized_reader(reader).store
        self._pin = replace(pin, store=self._store)
        self.pushFilters = _PushFilters(self)  # type: ignore[method-assign]

    def take_filters(self, filters: Sequence[Filter]) -> Iterator[Filter]:
        """Apply the filters that can be applied exactly; hand back the rest."""
        if not KEEPS_FILTERS_APART:
            _warn_about_filters()
            yield from filters
            return
        translate = partial(
            to_predicate, schema=self._store.schema, projection=self._columns.projection
        )
        for pushed in filters:
            predicate = translate(pushed)
            if predicate is None:
                yield pushed
            else:
                self._predicate = and_all([self._predicate, predicate])

    def partitions(self) -> Sequence[InputPartition]:
        """The splits of the snapshot to read, pruned and packed."""
        return pack_splits(self._pin.plan(self._predicate), self._store.options)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The rows of a partition, as Arrow batches."""
        planned = self._store.rules.on_stored(self._predicate)
        return read_partition(self._store, self._columns, self._predicate, partition, planned)


def _warn_about_filters() -> None:
    """Warn once per planning process, of which Spark keeps one or a few."""
    warnings.warn(
        f"Spark {pyspark.__version__} mixes up the filters that it pushes down, so emberlake "
        f"hands them back to Spark and reads all files; to skip files, set the option {FILTER}, "
        "or use read_paimon(..., filter=...)",
        EmberlakeWarning,
        stacklevel=2,
    )


class _PushFilters:
    """``pushFilters`` of a reader, for sessions with and without filter push-down.

    Spark refuses readers that override ``pushFilters`` while
    ``spark.sql.python.filterPushdown.enabled`` is false, which is its default. A read that Spark
    filters itself is just as correct, so this object poses as the inherited method.
    """

    __func__ = staticmethod(DataSourceReader.pushFilters)

    def __init__(self, reader: BatchReader) -> None:
        self._reader = reader

    def __call__(self, filters: list[Filter]) -> Iterator[Filter]:
        return self._reader.take_filters(filters)
