"""Stream reads: the state of a table, then what every snapshot has changed, exactly once.

Spark records both ends of every batch before it runs. They alone determine what lies between them
(``positions``), so a batch that is repeated after a crash has the same rows.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.types import StructType

from emberlake.datasource.admission import (
    TriggerAvailableNow,
    check_limits,
    is_read_all,
    to_read_limit,
)
from emberlake.datasource.columns import choose_columns
from emberlake.datasource.options import ReadLimits, SourceOptions
from emberlake.datasource.positions import Position, StreamUnits
from emberlake.datasource.split_partition import SplitPartition, pack_splits, read_partition
from emberlake.expressions.query_auth import authorized_reader
from emberlake.read.table_reader import TableReader
from emberlake.scan.splits import DataSplit
from emberlake.spec.support import check_readable


class StreamReader(DataSourceStreamReader, TriggerAvailableNow):
    """Follows a table."""

    def __init__(self, options: SourceOptions, schema: StructType) -> None:
        check_limits(options.limits)
        self._store = options.open_stream()
        check_readable(self._store.schema)
        self._columns = choose_columns(options, self._store.schema, schema)
        self._limits = options.limits
        self._units = StreamUnits(self._store, options.consumer_id)
        self._last: int | None = None  # the snapshot to stop at; None: follow the table forever

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802
        """Where a query without a checkpoint begins."""
        return self._units.start().to_json()

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        """Stop at the snapshot that is the latest now."""
        self._last = self._units.latest()

    def getDefaultReadLimit(self) -> Any:  # noqa: N802
        """How much the options allow a batch to read."""
        return to_read_limit(self._limits)

    def latestOffset(  # noqa: N802
        self, start: dict[str, Any] | None = None, limit: Any = None
    ) -> dict[str, Any]:
        """Where the next batch ends; Spark 4.1 does not say where it starts."""
        latest = self._units.latest() if self._last is None else self._last
        if start is None:
            end = Position(latest + 1, full=False) if latest else self._units.start()
            return end.to_json()
        limits = ReadLimits() if is_read_all(limit) else self._limits
        return self._units.end_after(Position.from_json(start), limits, latest).to_json()

    def reportLatestOffset(self) -> dict[str, Any]:  # noqa: N802
        """Where a batch that reads everything would end."""
        return Position(self._units.latest() + 1, full=False).to_json()

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        """The units of a batch, packed.

        Changes of one bucket stay together, in the order of their commits.
        """
        units = list(self._units.between(Position.from_json(start), Position.from_json(end)))
        is_keyed = self._store.schema.profile.has_keys
        if is_keyed and any(unit.is_changes for unit in units):
            packed = [SplitPartition.of(group) for group in _by_bucket(units)]
        else:
            packed = pack_splits(units, self._store.options)
        reader = authorized_reader(TableReader(self._store, self._columns.projection))
        return [replace(each, rules=reader.store.allowed) for each in packed]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The rows of a partition, as Arrow batches."""
        return read_partition(self._store, self._columns, None, partition, None)

    def commit(self, end: dict[str, Any]) -> None:
        """All rows up to here are processed: the consumer, if there is one, moves on."""
        self._units.remember(Position.from_json(end))


def _by_bucket(units: Sequence[DataSplit]) -> list[list[DataSplit]]:
    buckets: dict[tuple[bytes, int], list[DataSplit]] = {}
    for unit in units:
        buckets.setdefault((unit.partition, unit.bucket), []).append(unit)
    return list(buckets.values())
