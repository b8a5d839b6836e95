"""Random histories of changes on Spark, against a model of plain Python rows.

In a race, a commit without Spark gets between the files and the commit of an operation on Spark.
If that is a conflict, the operation starts again: it must then have done what the model does to the
new rows. Otherwise it must have done what the model does to the rows that it read.
"""

import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pyarrow as pa
import pytest
from hypothesis import Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import invariant, rule
from pyspark.sql import SparkSession
from pyspark.sql import functions as sql

from emberlake import CatalogFactory, SchemaChange, Table
from emberlake.commit.change import CommitResult
from emberlake.errors import CommitConflict
from emberlake.rowops.merge_builder import MergeBuilder
from emberlake.rowops.result import RowChangeResult
from emberlake.session.write_session import WriteSession
from emberlake.spark import compact, delete, merge, update
from model.test_row_changes import (
    CHANGES,
    COLUMNS,
    OPERATIONS,
    Alter,
    Append,
    Compact,
    Delete,
    Merge,
    Operation,
    RowChanges,
    Update,
    perform,
)
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


@dataclass
class Between:
    """What came of an operation whose first commit was preceded by another."""

    has_run: bool = False
    conflicts: int = 0


@contextmanager
def meanwhile(act: Callable[[], None]) -> Iterator[Between]:
    """Before the first commit inside, when its files are written, another one happens."""
    commit = WriteSession.commit_or_abort
    between = Between()

    def late(session: WriteSession, *arguments: Any) -> CommitResult:
        if not between.has_run:
            between.has_run = True
            with patch.object(WriteSession, "commit_or_abort", commit):
                act()
        try:
            return commit(session, *arguments)
        except CommitConflict:
            between.conflicts += 1
            raise

    with patch.object(WriteSession, "commit_or_abort", late):
        yield between


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
        self.next_id = 0
        self.seen: dict[int, int] = {}  # ids of rows

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

    # --- an operation on Spark beside one without it ----------------------------------------------

    @rule(first=OPERATIONS, second=CHANGES, swaps=st.booleans())
    def race(self, first: Operation, second: Any, *, swaps: bool) -> None:
        if swaps:
            self.race_against_spark(first, second)
        else:
            self.race_on_spark(first, second)

    def race_on_spark(self, first: Operation, second: Any) -> None:
        """The operation on Spark is the second to commit."""
        effects = [self.effect(first), self.effect(second)]
        with meanwhile(lambda: self.locally(first)) as between:
            result = perform(self.table, second)
        if not between.has_run:  # there was nothing to commit
            effects[1].check(result)
            return
        if between.conflicts:
            assert not self.must_succeed([first, second]), "others only added rows or columns"
            effects[1] = self.effect(second)
        else:
            assert not self.must_fail(*effects), "an update was lost, or a deleted row came back"
        effects[1].check(result)
        self.apply(effects[1])

    def race_against_spark(self, first: Operation, second: Any) -> None:
        """The operation on Spark is the first to commit."""
        effects = [self.effect(first), self.effect(second)]
        commit = self.prepare(first)
        effects[1].check(perform(self.table, second))
        self.apply(effects[1])
        try:
            commit()
        except CommitConflict:
            assert not self.must_succeed([first, second]), "others only added rows or columns"
            return
        assert not self.must_fail(*effects), "an update was lost, or a deleted row came back"
        self.apply(effects[0])

    def locally(self, operation: Operation) -> None:
        """Do it without Spark."""
        effect = self.effect(operation)
        table = self.table.opened
        match operation:
            case Append(rows):
                table.append(self.data(rows))
            case Compact(full):
                table.compact(full=full)
            case Alter():
                self.add_column()
            case _:
                effect.check(perform(table, operation))
        self.apply(effect)

    # --- the rows ---------------------------------------------------------------------------------

    @invariant()
    def the_table_has_the_rows_of_the_model(self) -> None:
        """Tasks write new rows in any order: which new row has which id is seen here."""
        names = ["id", "n", "day"]
        if self.kind not in ("tracked", "columns"):
            found = self.table.to_arrow(names).to_pylist()
            assert Counter(map(as_text, found)) == Counter(map(as_text, self.rows.values()))
            return
        by_id = self.table.to_arrow(["_ROW_ID", *names]).to_pylist()
        texts = {row.pop("_ROW_ID"): as_text(row) for row in by_id}
        assert len(texts) == len(by_id)
        known = {self.seen[n]: as_text(row) for n, row in self.rows.items() if n in self.seen}
        assert known == {i: texts[i] for i in known}
        new = [(text, i) for i, text in texts.items() if i not in known]
        added = [(as_text(row), n) for n, row in self.rows.items() if n not in self.seen]
        assert [text for text, _ in sorted(new)] == [text for text, _ in sorted(added)]
        assert all(i >= self.next_id for _, i in new)
        self.seen |= {n: i for (_, n), (_, i) in zip(sorted(added), sorted(new), strict=True)}
        self.next_id = max([self.next_id, *(i + 1 for i in texts)])

    def teardown(self) -> None:
        super().teardown()
        self.folder.cleanup()


def as_text(row: dict[str, Any]) -> str:
    return repr([row[name] for name in ("id", "n", "day")])


class RacesOnSpark(ChangesOnSpark):
    """Rows are appended and compacted; all changes are races."""

    do = move = widen = None


def machine_of(spark: SparkSession, kind: str, base: type = ChangesOnSpark) -> Any:
    return type(f"{base.__name__}_{kind}", (base,), {"kind": kind, "spark": spark})


def run(machine: Any, histories: int, steps: int) -> None:
    case = machine.TestCase
    case.settings = settings(
        max_examples=histories,
        stateful_step_count=steps,
        deadline=None,
        phases=[Phase.explicit, Phase.reuse, Phase.generate],  # to shrink takes minutes
    )
    case().runTest()


ODD = ("n > 0 AND id IN (1, 3)", lambda row: (row["n"] or 0) > 0 and row["id"] in (1, 3))
SECOND = ("id = 2", lambda row: row["id"] == 2)
SOURCE = [{"id": 3, "n": 1, "day": "tue"}, {"id": 7, "n": 7, "day": "mon"}]
RACES: tuple[tuple[Operation, Operation], ...] = (
    (Append([{"id": 9, "n": 9, "day": "mon"}]), Update(SECOND, 1)),
    (Update(SECOND, 1), Update(SECOND, 2)),
    (Delete(SECOND), Merge(SOURCE, deletes=False, inserts=True, orphans=False)),
    (Compact(full=True), Delete(ODD)),
)


@pytest.mark.on_disk
@pytest.mark.parametrize("kind", ["vectors", "columns", "keys"])
def test_a_commit_gets_between_an_operation_and_its_commit(spark: SparkSession, kind: str) -> None:
    history = machine_of(spark, kind)()
    days = ["mon", "tue"]
    history.append([{"id": i, "n": i, "day": days[i % 2]} for i in range(1, 7)])

    for first, second in RACES:
        history.race_on_spark(first, second)
        history.the_table_has_the_rows_of_the_model()

    history.teardown()


@pytest.mark.slow
@pytest.mark.on_disk
def test_the_table_and_the_model_agree(spark: SparkSession) -> None:
    run(machine_of(spark, "vectors"), 1, 4)


@pytest.mark.slow
@pytest.mark.on_disk
@pytest.mark.parametrize("kind", KINDS)
def test_the_table_and_the_model_agree_after_long_histories(spark: SparkSession, kind: str) -> None:
    run(machine_of(spark, kind), 6, 8)


@pytest.mark.slow
@pytest.mark.on_disk
@pytest.mark.parametrize("kind", KINDS)
def test_the_table_and_the_model_agree_after_races(spark: SparkSession, kind: str) -> None:
    run(machine_of(spark, kind, RacesOnSpark), 6, 8)
