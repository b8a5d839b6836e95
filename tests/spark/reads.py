"""What tests of reads on Spark share: tables written without Spark, plans, and rows to compare."""

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame

from canonical import canonical_rows, sorted_rows
from emberlake import CatalogFactory, SchemaChange, Table
from emberlake.read.table_reader import TableReader
from emberlake.scan.splits import DataSplit
from emberlake.spark.types import handed_out, to_spark_batch
from spark.tables import reopened, some_rows, warehouse_of


def write(
    table: Table, ids: Sequence[int] = range(9), *, name: str = "first", kind: str | None = None
) -> Table:
    """The table with more rows, in one file for each of its partitions and buckets."""
    names = ["id", "day", "name", "price"]
    columns = zip(*some_rows(ids, name=name), strict=True)
    return write_arrow(table, pa.table(dict(zip(names, columns, strict=True))), kind=kind)


def write_arrow(table: Table, rows: pa.Table, *, kind: str | None = None) -> Table:
    builder = table.new_batch_write_builder()
    with builder.new_write() as write:
        write.write_arrow(rows, row_kind=kind)
        builder.new_commit().commit(write.prepare_commit())
    return reopened(table)


def altered(table: Table, *changes: SchemaChange) -> Table:
    """The table after changes of its schema, one after the other."""
    catalog = CatalogFactory.create({"warehouse": warehouse_of(table)})
    for change in changes:
        catalog.alter_table("db.t", [change])
    return catalog.get_table("db.t")


def planned(
    table: Table, where: str | None = None, columns: Sequence[str] | None = None
) -> tuple[TableReader, list[DataSplit]]:
    """What a read of the table is made of."""
    builder = table.new_read_builder().with_filter(where).with_projection(columns)
    return builder.new_read()._reader, builder.new_scan().plan().splits()


def local_rows(
    table: Table, where: str | None = None, columns: Sequence[str] | None = None
) -> list[list[Any]]:
    """The rows that a read without Spark gives, as Spark is to have them."""
    reader, splits = planned(table, where, columns)
    rows = to_spark_batch(reader.read_table(splits), handed_out(reader.projection.fields))
    return sorted_rows(canonical_rows(rows))


def spark_rows(df: DataFrame) -> list[list[Any]]:
    return sorted_rows(canonical_rows(df.toArrow()))
