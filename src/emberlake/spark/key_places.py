"""Where the keys of a write are now, in tables whose rows may move to other partitions.

The keys of the table are read by many tasks, once, and go through the same shuffle as the rows that
are written. So the task that gets all rows of a key, whatever their partitions, also learns where
the key is. If the table is large, the keys of the write are looked at first: files that cannot hold
them are not read, and few keys are sent to the tasks that read, which return only those.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import reduce
from typing import Final

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sql
from pyspark.sql.types import IntegerType, StructField, StructType

from emberlake.base.parallel import limit_threads
from emberlake.errors import DataMismatch, Unsupported
from emberlake.places.live_keys import PLACE, KeySpan, LiveKeys, has_span, keys_between
from emberlake.places.writer import kept_partitions
from emberlake.predicates import Predicate
from emberlake.session.write_session import WriteSession
from emberlake.spark.bucketing import key_column
from emberlake.spark.clustering import LIVE_PLACE, Numbered
from emberlake.spark.dealt_splits import DealtSplits
from emberlake.spark.failures import reported_errors
from emberlake.spark.kept import kept
from emberlake.spark.numbering import check_exact, numbered
from emberlake.spark.planned import planned_files
from emberlake.spark.split_frames import bytes_of, frame_of_splits
from emberlake.spark.types import handed_out, nullable_fields, spark_schema, to_spark_batch
from emberlake.spec.schema import TableSchema
from emberlake.spec.snapshot import Snapshot
from emberlake.store.table_store import TableStore
from emberlake.types import DataField, arrow_type
from emberlake.wire import CommitMessage
from emberlake.write.align import align
from emberlake.write.route import partition_codes

_MOST_READ: Final = 4_000_000  # with more records in the table, the keys of the write decide
_MOST_SENT: Final = 2_000_000  # keys that are sent to the tasks that read
_BYTES_OF_KEY: Final = 0.3  # of a file: a guess, from which Spark only learns that it is large


@dataclass(frozen=True)
class KeyPlaces:
    """What the tasks of a write have to know about the keys of the table.

    Args:
        snapshot: The state that was looked at.
        live: The places; None: each task reads the keys that it needs by itself.
        keys: The keys and their places: ``k0``, ``k1`` and so on, and ``LIVE_PLACE``.
        replaced: The partitions that a dynamic overwrite replaces.
    """

    snapshot: Snapshot | None
    live: LiveKeys | None
    keys: DataFrame | None = None
    replaced: frozenset[bytes] | None = None

    def check_replaced(self, store: TableStore, messages: list[CommitMessage]) -> None:
        """Refuse a dynamic overwrite if it does not replace what it was expected to.

        Raises:
            DataMismatch: a key came with several partitions, and one of them got no row.
        """
        left = (self.replaced or frozenset()) - {message.partition for message in messages}
        if left:
            where = dict(store.partition_spec(min(left)))
            raise DataMismatch(
                f"the data names partition {where}, but has no row for it: all of its keys also "
                "have rows of other partitions, which come first. Give one row for each key"
            )


@contextmanager
def find_places(
    session: WriteSession, rows: Numbered, as_of: Snapshot | None
) -> Iterator[tuple[Numbered, KeyPlaces]]:
    """Find where the keys of a table are that rows may have.

    Args:
        session: The write.
        rows: What is to be written.
        as_of: The snapshot that the rows were read from, if they come from the table itself.

    Returns:
        The rows, computed at most once from here on, and the places.
    """
    store, replaces = session.store, session.replaces
    snapshot = as_of or store.snapshots.latest()
    live = LiveKeys.plan(store, snapshot, None, kept_partitions(replaces))
    if not live.splits:
        yield rows, KeyPlaces(snapshot, LiveKeys(store))
        return
    fields = [store.schema.field_by_name[name] for name in store.schema.primary_keys]
    is_dynamic = replaces is not None and replaces.only_touched
    if not _is_exact(fields):
        if is_dynamic:
            check_exact(fields)  # says which columns
        yield rows, KeyPlaces(snapshot, None)
        return
    if not is_dynamic and live.row_count <= _MOST_READ:
        yield rows, KeyPlaces(snapshot, live.without_splits(), _read(rows, live))
        return
    with kept(rows.frame) as found:
        rows = rows.of(found)
        replaced = _partitions(store, rows) if is_dynamic else frozenset()
        count, wanted = _ranges(store.schema, rows)
        match = kept_partitions(replaces)
        live = LiveKeys.plan(
            store,
            snapshot,
            wanted,
            lambda p: p not in replaced and (match is None or match(p)),
        )
        keys = _read(rows, live) if live.splits else None
        if keys is not None and count <= min(_MOST_SENT, live.row_count):
            keys = _among(keys, rows, fields)
        yield (
            rows,
            KeyPlaces(snapshot, live.without_splits(), keys, replaced if is_dynamic else None),
        )


def _is_exact(fields: list[DataField]) -> bool:
    try:
        check_exact(fields)
    except Unsupported:
        return False
    return True


# --- the keys of the write ------------------------------------------------------------------------


def _partitions(store: TableStore, rows: Numbered) -> frozenset[bytes]:
    """The partitions that rows name."""
    names = store.schema.partition_keys
    columns = [rows.column_of(name).alias(f"p{n}") for n, name in enumerate(names)]
    found = rows.frame.select(*columns).distinct().toArrow().rename_columns(list(names))
    fields = store.schema.partition_fields
    return frozenset(partition_codes(align(found, fields), fields)[0])


def _ranges(schema: TableSchema, rows: Numbered) -> tuple[int, Predicate | None]:
    """The number of rows, and what their keys have in common."""
    fields = [schema.field_by_name[name] for name in schema.primary_keys]
    spanned = [f for f in fields if has_span(f)]
    bounds = [
        bound(key_column(f, rows.column_of(f.name))).alias(f"b{n}-{end}")
        for n, f in enumerate(spanned)
        for end, bound in enumerate((sql.min, sql.max))
    ]
    nulls = [
        sql.count_if(rows.column_of(f.name).isNull()).alias(f"n{n}") for n, f in enumerate(spanned)
    ]
    found = rows.frame.agg(sql.count(sql.lit(1)).alias("rows"), *bounds, *nulls).toArrow()
    spans = {}
    for n, f in enumerate(spanned):
        kind = arrow_type(f.type)  # a task refuses values that do not fit
        low, high = (found.column(f"b{n}-{end}").cast(kind, safe=False)[0] for end in range(2))
        if low.is_valid:
            spans[f.name] = KeySpan(low, high, found.column(f"n{n}")[0].as_py() > 0, None)
    return found.column("rows")[0].as_py(), keys_between(schema, spans)


def _among(keys: DataFrame, rows: Numbered, fields: list[DataField]) -> DataFrame:
    """Those keys that rows have; the keys of the rows are sent to all tasks."""
    own = [key_column(f, rows.column_of(f.name)).alias(f"o{n}") for n, f in enumerate(fields)]
    few = sql.broadcast(rows.frame.select(*own).distinct())
    pairs = [sql.col(f"k{n}").eqNullSafe(sql.col(f"o{n}")) for n in range(len(fields))]
    condition: Column = reduce(lambda one, other: one & other, pairs)
    return keys.join(few, condition, "left_semi")


# --- the keys of the table ------------------------------------------------------------------------


def _read(rows: Numbered, live: LiveKeys) -> DataFrame:
    spark, store = rows.frame.sparkSession, live.store
    size = int(bytes_of(live.splits) * _BYTES_OF_KEY)
    frame, dealt = frame_of_splits(spark, live.splits, store.options, output_bytes=size)
    fields = numbered(tuple(store.schema.field_by_name[n] for n in store.schema.primary_keys), "k")
    shape = nullable_fields(spark_schema(fields))
    place = StructField(LIVE_PLACE, IntegerType())
    task = LiveKeysTask(live.without_splits(), dealt, handed_out(fields))
    return frame.mapInArrow(task, StructType([*shape.fields, place]))


@dataclass(frozen=True, slots=True)
class LiveKeysTask:
    """Reads the keys of the splits of one task."""

    live: LiveKeys
    dealt: DealtSplits
    schema: pa.Schema

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The keys, and the number of their place."""
        limit_threads()
        store = self.live.store
        numbers = {place: number for number, place in enumerate(self.live.places)}
        with reported_errors(), store.decoding_rows():
            for split in self.dealt.splits(batches):
                with planned_files(store, split.snapshot_id):
                    for rows in self.live.of_split(split, numbers[split.partition, split.bucket]):
                        places = rows.column(PLACE)
                        keys = rows.drop_columns([PLACE]).rename_columns(self.schema.names)
                        sent = to_spark_batch(keys, self.schema)
                        yield from sent.append_column(LIVE_PLACE, places).to_batches()
