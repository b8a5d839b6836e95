"""Random histories of changes on Spark, against a model of plain Python rows."""

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import Phase, settings
from hypothesis.stateful import invariant, rule
from pyspark.sql import SparkSession
from pyspark.sql import functions as sql

from emberlake import CatalogFactory, SchemaChange, Table
from emberlake.rowops.merge_builder import MergeBuilder
from emberlake.rowops.result import RowChangeResult
from emberlake.spark import compact, delete, merge, update
from model.test_row_changes import COLUMNS, RowChanges
from spark.tables import new_table

VECTORS = {"deletion_vectors__enabled": "true"}
KINDS: dict[str, dict[str, Any]] = {
    "vectors": {**VECTORS, "partition_keys": ["day"]},
    "rewrite": {"partition_keys": ["day"]},
    "tracked": {**VECTORS, "row_tracking__enabled": "true"},
    "columns": {**VECTORS, "row_tracking__enabled": "true", "data_evolution__enabled": "true"},
    "keys": {"primary_keys": ["id"], "bucket": "2"},
}


class OnSpark:
    """A table whose rows are changed on Spark; every second time by a Column."""

    def __init__(self, spark: SparkSession, warehouse: str) -> None:
        self.spark = spark
        self.options = {"warehouse": warehouse}
        self.changes = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self.opened, name)

    @property
    def opened(self) -> Table:
        return CatalogFactory.create(dict(self.options)).get_table("db.t")

    def condition(self, text: str) -> Any:
        self.changes += 1
        return sql.expr(text) if self.changes % 2 else text

    def delete(self, text: str) -> RowChangeResult:
        return delete("db.t", self.options, self.condition(text), spark=self.spark)

    def update(self, values: dict[str, str], text: str) -> RowChangeResult:
        where = self.condition(text)
        return update("db.t", self.options, values, where, spark=self.spark)

    def merge(self, source: pa.Table, on: list[str]) -> MergeBuilder:
        return merge(self.spark.createDataFrame(source), "db.t", self.options, on)

    def compact(self, *, full: bool) -> None:
        compact("db.t", self.options, spark=self.spark, full=full)


class ChangesOnSpark(RowChanges):
    """The same operations and the same model."""

    spark: SparkSession

    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.TemporaryDirectory()
        named: dict[str, Any] = {"target_file_row_num": "3", **KINDS[self.kind]}
        columns = COLUMNS
        if self.has_keys:
            columns = columns.set(0, columns.field("id").with_nullable(False))
        new_table(Path(self.folder.name), columns=columns, **named)
        self.table: Any = OnSpark(self.spark, self.folder.name)

    @rule()
    def add_column(self) -> None:
        if self.added < 2:
            self.added += 1
            catalog = CatalogFactory.create(dict(self.table.options))
            catalog.alter_table("db.t", [SchemaChange.add_column(f"extra{self.added}", "INT")])

    @rule()
    def widen(self) -> None:
        """Files that are there have another type from now on."""
        catalog = CatalogFactory.create(dict(self.table.options))
        if str(catalog.get_table("db.t").store.schema.field_by_name["n"].type) == "INT":
            catalog.alter_table("db.t", [SchemaChange.update_column_type("n", "BIGINT")])

    @invariant()
    def the_table_has_the_rows_of_the_model(self) -> None:
        """Tasks write new rows in any order, so their ids are only told apart."""
        names = ["id", "n", "day"]
        found = self.table.to_arrow(names).to_pylist()
        expected = [{name: row[name] for name in names} for row in self.rows.values()]
        assert sorted(map(repr, found)) == sorted(map(repr, expected))
        if self.kind in ("tracked", "columns"):
            ids = self.table.to_arrow(["_ROW_ID"]).column(0).to_pylist()
            assert len(set(ids)) == len(ids)

    def teardown(self) -> None:
        super().teardown()
        self.folder.cleanup()


def run(spark: SparkSession, kind: str, histories: int, steps: int) -> None:
    made: Callable[..., Any] = type
    machine = made(f"OnSpark_{kind}", (ChangesOnSpark,), {"kind": kind, "spark": spark})
    case = machine.TestCase
    case.settings = settings(
        max_examples=histories,
        stateful_step_count=steps,
        deadline=None,
        phases=[Phase.explicit, Phase.reuse, Phase.generate],  # to shrink takes minutes
    )
    case().runTest()


@pytest.mark.slow
@pytest.mark.on_disk
def test_the_table_and_the_model_agree(spark: SparkSession) -> None:
    run(spark, "vectors", 1, 4)


@pytest.mark.slow
@pytest.mark.on_disk
@pytest.mark.parametrize("kind", KINDS)
def test_the_table_and_the_model_agree_after_long_histories(spark: SparkSession, kind: str) -> None:
    run(spark, kind, 6, 8)
