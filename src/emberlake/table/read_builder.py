"""Read builder, scan and read: the reading half of the facade."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Self

import pyarrow as pa

from emberlake.base.extras import load_extra
from emberlake.base.row import Row, iter_rows
from emberlake.errors import ColumnNotFound, InvalidInput, InvalidPredicate
from emberlake.predicates import (
    And,
    Leaf,
    Or,
    Predicate,
    PredicateBuilder,
    and_all,
    columns_of,
    leaves_of,
    parse_predicate,
)
from emberlake.read.projection import Projection, project, project_all
from emberlake.read.table_reader import TableReader
from emberlake.scan.explain import Explanation, explain_scan
from emberlake.scan.plan import ScanPlan, plan_scan
from emberlake.scan.splits import DataSplit
from emberlake.spec.support import check_readable
from emberlake.store.table_store import TableStore
from emberlake.types import DataField

if TYPE_CHECKING:
    import duckdb
    import pandas as pd
    import polars as pl
    from pyspark.sql import DataFrame, SparkSession


@dataclass
class ReadBuilder:
    """Says what to read: which rows, which columns, how many; pickles."""

    store: TableStore
    _filter: Predicate | None = field(default=None, repr=False)
    _partition_filter: Predicate | None = field(default=None, repr=False)
    _projection: Projection | None = field(default=None, repr=False)
    _limit: int | None = field(default=None, repr=False)

    def with_filter(self, predicate: Predicate | str | None) -> Self:
        """Keep only matching rows: a predicate, or text such as ``"city = 'paris'"``."""
        self._filter = self._bind(predicate)
        return self

    def with_partition_filter(self, predicate: Predicate | str | None) -> Self:
        """Keep only matching partitions, besides what ``with_filter`` says."""
        bound = self._bind(predicate)
        others = columns_of(bound) - set(self.store.schema.partition_keys) if bound else ()
        if others:
            raise InvalidPredicate(
                f"no partition columns: {', '.join(sorted(others))}; use with_filter for them"
            )
        self._partition_filter = bound
        return self

    @property
    def partition_filter(self) -> Predicate | None:
        """What ``with_partition_filter`` said, in the form of a predicate."""
        return self._partition_filter

    def with_projection(self, projection: Sequence[str] | None) -> Self:
        """Hand out these columns, or fields of ROW columns (``"s.x"``, handed out as ``s_x``)."""
        fields = self.store.schema.fields
        self._projection = None if projection is None else project(fields, projection)
        return self

    def with_limit(self, limit: int | None) -> Self:
        """Hand out at most this many rows, whichever come first."""
        if limit is not None and limit < 0:
            raise InvalidInput(f"a limit is a number of rows, not {limit!r}")
        self._limit = limit
        return self

    def new_predicate_builder(self) -> PredicateBuilder:
        """Makes predicates on the columns of the table."""
        return PredicateBuilder(list(self.store.schema.fields))

    def new_scan(self) -> "TableScan":
        """The half that finds the files to read."""
        check_readable(self.store.schema)
        return TableScan(self.store, self._predicate, self._limit)

    def new_read(self) -> "TableRead":
        """The half that reads them."""
        return TableRead(self._new_reader())

    def _new_reader(self) -> TableReader:
        schema = self.store.schema
        projection = self._projection or project_all(schema.fields)
        check_readable(schema, projection.read_fields(schema.fields, self._predicate))
        return TableReader(self.store, projection, self._predicate, self._limit)

    @property
    def _predicate(self) -> Predicate | None:
        return and_all([self._partition_filter, self._filter])

    def _bind(self, predicate: Predicate | str | None) -> Predicate | None:
        """The predicate, made sure of that it speaks of this table's columns."""
        schema = self.store.schema
        if isinstance(predicate, str):
            return parse_predicate(predicate, schema.fields)
        if predicate is None:
            return None
        if not isinstance(predicate, Leaf | And | Or):
            raise InvalidPredicate(
                f"a filter is text, or made by new_predicate_builder(), not {predicate!r}"
            )
        for leaf in leaves_of(predicate):
            column = schema.field_by_name.get(leaf.column.name)
            if column is None:
                raise ColumnNotFound(
                    f"there is no column {leaf.column.name!r} to filter on; "
                    f"choose one of {', '.join(schema.field_names)}"
                )
            if column.id != leaf.column.id or column.type != leaf.column.type:
                raise InvalidPredicate(
                    f"the filter {leaf} is on {leaf.column}, but this table has {column}; "
                    "make it with this table's new_predicate_builder()"
                )
        return predicate

    def read_type(self) -> list[DataField]:
        """The columns that come out."""
        projection = self._projection or project_all(self.store.schema.fields)
        return list(projection.fields)

    def explain(self, verbose: bool = False) -> Explanation:  # noqa: FBT001, FBT002
        """Which files a read would open, which it skips, and why; ``print`` it."""
        check_readable(self.store.schema)
        names = [f.name for f in self.read_type()]
        return explain_scan(
            self.store, self._predicate, self._limit, columns=names, verbose=verbose
        )


@dataclass(frozen=True)
class TableScan:
    """Finds the files to read."""

    store: TableStore
    predicate: Predicate | None
    limit: int | None

    def plan(self) -> "Plan":
        """Prune files by partition, bucket and statistics; pack the rest into splits."""
        return Plan(plan_scan(self.store, self.predicate, self.limit))


@dataclass(frozen=True)
class Plan:
    """The splits to read, of one snapshot."""

    _plan: ScanPlan = field(repr=False)

    def splits(self) -> list[DataSplit]:
        """Units of reading; they pickle, so that workers can read one each."""
        return list(self._plan.splits)

    @property
    def snapshot_id(self) -> int | None:
        """The snapshot that is read; None for an empty table."""
        return None if self._plan.snapshot is None else self._plan.snapshot.id


@dataclass(frozen=True)
class TableRead:
    """Reads splits in the form that is asked for."""

    _reader: TableReader = field(repr=False)

    def to_arrow(
        self, splits: Sequence[DataSplit], *, with_row_kind: bool | None = None
    ) -> pa.Table:
        """All rows as an Arrow table.

        With row kinds the first column is ``_row_kind``: ``+I``, ``-U``, ``+U`` or ``-D``. Without
        them the changes of a primary-key table come without those that take a row back.
        """
        return self._with_kind(with_row_kind).read_table(splits)

    def to_arrow_batch_reader(
        self, splits: Sequence[DataSplit], *, with_row_kind: bool | None = None
    ) -> pa.RecordBatchReader:
        """A stream of batches; memory does not grow with the number of rows."""
        reader = self._with_kind(with_row_kind)
        return pa.RecordBatchReader.from_batches(reader.arrow_schema, reader.read_batches(splits))

    def to_iterator(self, splits: Sequence[DataSplit]) -> Iterator[Row]:
        """Rows one at a time."""
        for batch in self._reader.read_batches(splits):
            yield from iter_rows(batch)

    def _with_kind(self, with_row_kind: bool | None) -> TableReader:  # noqa: FBT001
        if with_row_kind is None:
            return self._reader
        return replace(self._reader, with_kind=with_row_kind)

    def to_pandas(self, splits: Sequence[DataSplit]) -> "pd.DataFrame":
        """All rows as a pandas DataFrame."""
        load_extra("pandas", extra="pandas")
        return self.to_arrow(splits).to_pandas()

    def to_polars(self, splits: Sequence[DataSplit]) -> "pl.DataFrame":
        """All rows as a Polars DataFrame."""
        return load_extra("polars", extra="polars").from_arrow(self.to_arrow(splits))

    def to_duckdb(
        self,
        splits: Sequence[DataSplit],
        table_name: str,
        connection: "duckdb.DuckDBPyConnection | None" = None,
    ) -> "duckdb.DuckDBPyConnection":
        """Register all rows as a table of a DuckDB connection, a new one by default."""
        duckdb = load_extra("duckdb", extra="duckdb")
        connection = connection or duckdb.connect(database=":memory:")
        connection.register(table_name, self.to_arrow(splits))
        return connection

    def to_spark(
        self,
        splits: Sequence[DataSplit],
        spark: "SparkSession | None" = None,
        num_partitions: int | None = None,
    ) -> "DataFrame":
        """All rows as a Spark DataFrame; nothing is read before an action of Spark.

        Plain Parquet files are read by Spark itself. What must be merged, has deleted rows, another
        format or an older schema is read by Python workers: they read the columns and rows that
        ``with_projection`` and ``with_filter`` ask for, whatever is selected of the DataFrame.

        Args:
            splits: What to read.
            spark: The session; the active one by default.
            num_partitions: The number of partitions, at least one; Python workers read all splits
                then. Splits are not cut: more partitions than splits stay empty.
        """
        load_extra("pyspark", extra="spark")
        session = load_extra("emberlake.spark.session", extra="spark").find_session(spark)
        read = load_extra("emberlake.spark.read", extra="spark").read_dataframe
        rows: DataFrame = read(self._reader, splits, session, num_partitions)
        return rows
