"""Tables and rows that the tests on Spark share."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from emberlake import CatalogFactory, Schema, Table
from spark.store_path import StorePath

COLUMNS = pa.schema(
    [
        pa.field("id", pa.int64(), nullable=False),
        pa.field("day", pa.string()),
        pa.field("name", pa.string()),
        pa.field("price", pa.float64()),
    ]
)
SPARK_COLUMNS = "id bigint, day string, name string, price double"
Row = tuple[Any, ...]


def new_table(
    warehouse: object,
    *,
    partition_keys: Sequence[str] = (),
    primary_keys: Sequence[str] = (),
    columns: pa.Schema = COLUMNS,
    partition_in_key: bool = True,
    **options: str,
) -> Table:
    """The empty table `db.t`; options are written with `_` for `-` and `__` for `.`."""
    catalog = CatalogFactory.create({"warehouse": str(warehouse)})
    catalog.create_database("db", ignore_if_exists=True)
    named = {key.replace("__", ".").replace("_", "-"): value for key, value in options.items()}
    if partition_keys and primary_keys and partition_in_key:
        primary_keys = (*partition_keys, *primary_keys)
    required = {*partition_keys, *primary_keys} if primary_keys else set()
    fields = [
        field.with_nullable(field.nullable and field.name not in required) for field in columns
    ]
    schema = Schema.from_pyarrow_schema(
        pa.schema(fields), list(partition_keys), list(primary_keys), named
    )
    catalog.create_table("db.t", schema)
    return catalog.get_table("db.t")


def reopened(table: Table) -> Table:
    """The table as it is by now."""
    return CatalogFactory.create({"warehouse": warehouse_of(table)}).get_table("db.t")


def warehouse_of(table: Table) -> str:
    return table.table_path.rsplit("/", 2)[0]


def rows_of(table: Table) -> list[Row]:
    """All rows, sorted."""
    builder = reopened(table).new_read_builder()
    read = builder.new_read().to_arrow(builder.new_scan().plan().splits())
    return sorted(tuple(row.values()) for row in read.to_pylist())


def some_rows(ids: Iterable[int], *, name: str = "first", days: int = 3) -> list[Row]:
    return [(i, f"2026-01-{i % days + 1:02}", f"{name}-{i}", i / 2) for i in ids]


def frame(spark: SparkSession, rows: Sequence[Row], columns: str = SPARK_COLUMNS) -> DataFrame:
    return spark.createDataFrame(list(rows), columns)


def path_of(text: str) -> Path:
    """A path of the disk, or one of a store that is used like it."""
    found: Any = StorePath(text) if "://" in text else Path(text)
    return found


def data_files(table: Table) -> list[Path]:
    """Every data file below the table's folder, in the table or not."""
    return sorted(path_of(table.table_path).rglob("bucket-*/*"))


def live_files(table: Table) -> list[Path]:
    """The data files of the latest snapshot."""
    plan = reopened(table).new_read_builder().new_scan().plan()
    store = table.store
    return sorted(
        path_of(store.data_file_path(split.partition, split.bucket, file))
        for split in plan.splits()
        for file in split.files
    )
