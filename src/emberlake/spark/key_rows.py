"""Change rows of tables with a primary key on Spark: records go through the ordinary write.

The rows are read as the merge engine shows them. Workers compute the new records, which are kept
until they are written, so that they can be counted and checked first.
"""

from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import dataclass, field

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sql
from pyspark.sql.types import StringType, StructField, StructType

from emberlake.base.parallel import limit_threads
from emberlake.predicates import Predicate
from emberlake.read.projection import project_all
from emberlake.read.table_reader import TableReader
from emberlake.rowops.clauses import Editor
from emberlake.rowops.edits import Prepared
from emberlake.rowops.key_changes import Choose, KeyWriting, repeated_keys
from emberlake.rowops.merge import ambiguous_keys
from emberlake.rowops.result import Tally
from emberlake.scan.plan import plan_target
from emberlake.session.write_session import WriteSession
from emberlake.spark.failures import reported_errors, typed_errors
from emberlake.spark.kept import kept
from emberlake.spark.numbering import check_exact, numbered
from emberlake.spark.read import read_dataframe
from emberlake.spark.sessions import fast_arrow
from emberlake.spark.types import handed_out, nullable_fields, spark_schema, to_spark_batch
from emberlake.spark.write import WriteJob
from emberlake.spark.write_task import gathered
from emberlake.spec.key_value import RowKind
from emberlake.spec.schema import TableSchema
from emberlake.spec.snapshot import Snapshot
from emberlake.store.table_store import TableStore
from emberlake.types import (
    DataField,
)
from emberlake.write.align import align
from emberlake.write.row_kinds import ROW_KIND_COLUMN

_SHOWN = 100


def read_rows(
    store: TableStore, snapshot: Snapshot | None, predicate: Predicate | None, spark: SparkSession
) -> DataFrame:
    """The rows of a snapshot, with all columns, numbered ``t0``, ``t1`` and so on.

    Raises:
        Unsupported: values would not survive.
    """
    fields = store.schema.fields
    check_exact(fields)
    splits = plan_target(store, snapshot, predicate, None).splits
    reader = TableReader(store, project_all(fields), predicate)
    return read_dataframe(reader, splits, spark).toDF(*(f.name for f in numbered(fields, "t")))


def changed_rows(rows: DataFrame, task: "KeyChangeTask", schema: TableSchema) -> DataFrame:
    """The records that a task makes from rows: ``kind``, and the columns of the table."""
    return rows.mapInArrow(task, records_schema(schema))


def records_schema(schema: TableSchema) -> StructType:
    """The columns of records: what a record does, and the columns of the table, numbered."""
    columns = nullable_fields(spark_schema(numbered(schema.fields, "t")))
    return StructType([StructField("kind", StringType()), *columns.fields])


@dataclass
class Records:
    """Keeps the records that are written to it."""

    tables: list[pa.Table] = field(default_factory=list)

    def write(self, data: pa.Table, row_kind: str | None = None) -> None:
        """Keep records of one kind."""
        kinds = pa.repeat(pa.scalar(row_kind, pa.string()), data.num_rows)
        self.tables.append(data.add_column(0, "kind", kinds))

    def take(self, fields: tuple[DataField, ...]) -> Iterator[pa.RecordBatch]:
        """Hand out what was kept, in the form that Spark expects."""
        schema = handed_out(numbered(fields, "t")).insert(0, pa.field("kind", pa.string()))
        for rows in self.tables:
            yield from to_spark_batch(rows.rename_columns(schema.names), schema).to_batches()
        self.tables.clear()


@dataclass(frozen=True, slots=True)
class KeyChangeTask:
    """Turns rows that were read into records."""

    store: TableStore
    editor: Editor
    choose: Choose

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The records that change the rows."""
        limit_threads()
        fields = self.store.schema.fields
        records = Records()
        writing = KeyWriting(self.store, self.editor, records)
        with reported_errors():
            for table in gathered(batches):
                rows = align(table.rename_columns([f.name for f in fields]), fields)
                places, chosen, matches = self.choose(rows)
                if len(places):
                    writing.change(rows.take(pa.array(places)), chosen, matches)
                yield from records.take(fields)


def write_key_rows(
    session: WriteSession,
    snapshot: Snapshot | None,
    records: DataFrame,
    *,
    is_dry: bool = False,
    is_unique: bool = True,
    is_stable: bool = False,
    tally: Tally | None = None,
) -> Prepared:
    """Write records (``records_schema``), each with a key of its own, and count them.

    Args:
        session: The write.
        snapshot: The state that was read.
        records: What is to be written.
        is_dry: Whether they are only counted.
        is_unique: Whether it is known that each has a key of its own.
        is_stable: Whether they are the same each time they are computed, at little cost.
        tally: Their counts, if known; then each must have a key of its own.

    Raises:
        DataMismatch: several records would change or make the same row; deleting it twice is
            harmless.
    """
    schema = session.store.schema
    # The records that are counted must be those that are written.
    with nullcontext(records) if is_stable else kept(records) as found:
        if tally is None:
            with typed_errors(), fast_arrow(records.sparkSession):
                tally = _counted(found) if is_unique else _counted_once(found, schema)
        if is_dry or tally.changes_nothing:
            return Prepared((), tally)
        named = found.toDF(ROW_KIND_COLUMN, *schema.field_names)
        messages, _ = WriteJob(session=session, as_of=snapshot).write(named)
        return Prepared(tuple(messages), tally)


def _counted(records: DataFrame) -> Tally:
    rows = records.groupBy("kind").agg(sql.count(sql.lit(1)).alias("rows")).collect()
    return _tally({row["kind"]: row["rows"] for row in rows})


def _counted_once(records: DataFrame, schema: TableSchema) -> Tally:
    """Count the keys of the records, by kind; refuse keys that several records would change."""
    numbers = {
        f.name: n.name for f, n in zip(schema.fields, numbered(schema.fields, "t"), strict=True)
    }
    keys = [numbers[name] for name in schema.primary_keys]
    by_key = records.groupBy(*keys).agg(
        sql.count(sql.lit(1)).alias("rows"), sql.max("kind").alias("kind"),
        sql.min("kind").alias("least"),
    )  # fmt: skip
    is_harmed = (sql.col("rows") > 1) & (
        (sql.col("kind") != RowKind.DELETE.symbol) | (sql.col("least") != RowKind.DELETE.symbol)
    )
    counts = by_key.groupBy("kind").agg(
        sql.count(sql.lit(1)).alias("rows"), sql.count_if(is_harmed).alias("harmed")
    )
    found = counts.collect()
    if any(row["harmed"] for row in found):
        are_new = all(row["kind"] == RowKind.INSERT.symbol for row in found if row["harmed"])
        harmed = by_key.filter(is_harmed).select(*keys).limit(_SHOWN).toArrow()
        if are_new:
            raise repeated_keys(harmed)
        raise ambiguous_keys([*row.values()] for row in harmed.to_pylist())
    return _tally({row["kind"]: row["rows"] for row in found})


def _tally(counts: dict[str, int]) -> Tally:
    return Tally(
        inserted=counts.get(RowKind.INSERT.symbol, 0),
        updated=counts.get(RowKind.UPDATE_AFTER.symbol, 0),
        deleted=counts.get(RowKind.DELETE.symbol, 0),
    )
