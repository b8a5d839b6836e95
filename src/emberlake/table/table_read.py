"""The half of a read that reads: splits as Arrow, pandas, Polars, DuckDB, Spark or PyTorch."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from emberlake.base.extras import load_extra
from emberlake.base.row import Row, iter_rows
from emberlake.errors import InvalidInput
from emberlake.expressions.query_auth import authorized_reader
from emberlake.predicates import Predicate
from emberlake.read.table_reader import TableReader
from emberlake.scan.splits import DataSplit
from emberlake.types import DataField

if TYPE_CHECKING:
    import duckdb
    import pandas as pd
    import polars as pl
    from pyspark.sql import DataFrame, SparkSession
    from torch.utils.data import Dataset


@dataclass(frozen=True)
class TableRead:
    """Reads splits, in any of several forms."""

    _reader: TableReader = field(repr=False)

    @property
    def read_type(self) -> list[DataField]:
        """The columns of the result."""
        return list(self._reader.projection.fields)

    @property
    def predicate(self) -> Predicate | None:
        """The predicate that rows must match."""
        return self._reader.predicate

    @property
    def limit(self) -> int | None:
        """The maximum number of rows."""
        return self._reader.limit

    @property
    def include_row_kind(self) -> bool:
        """Whether results have row kinds, unless a call says otherwise."""
        return self._reader.with_kind

    def to_arrow(
        self,
        splits: Sequence[DataSplit],
        parallelism: int | None = None,
        blob_parallelism: int | None = None,
        *,
        with_row_kind: bool | None = None,
    ) -> pa.Table:
        """All rows as an Arrow table.

        With row kinds the first column is ``_row_kind``: ``+I``, ``-U``, ``+U`` or ``-D``. Without
        them, changes of a primary-key table that remove a row are left out.

        Args:
            splits: What to read.
            parallelism: How many files are read at a time; by default the number of cores.
            blob_parallelism: Accepted but unused: no BLOB columns are read.
            with_row_kind: Whether the result has row kinds.
        """
        workers = _checked_parallelism(parallelism, blob_parallelism)
        return self._with_kind(with_row_kind).read_table(splits, workers=workers)

    def to_arrow_batch_reader(
        self,
        splits: Sequence[DataSplit],
        blob_parallelism: int | None = None,
        parallelism: int | None = None,
        *,
        with_row_kind: bool | None = None,
    ) -> pa.RecordBatchReader:
        """A stream of batches; memory does not grow with the number of rows.

        Files are read one after the other, whatever ``parallelism`` allows.
        """
        _checked_parallelism(parallelism, blob_parallelism)
        reader = self._with_kind(with_row_kind)
        return pa.RecordBatchReader.from_batches(reader.arrow_schema, reader.read_batches(splits))

    def to_iterator(self, splits: Sequence[DataSplit]) -> Iterator[Row]:
        """Rows one at a time."""
        for batch in self._authorized().read_batches(splits):
            yield from iter_rows(batch)

    def _with_kind(self, with_row_kind: bool | None) -> TableReader:  # noqa: FBT001
        reader = self._authorized()
        return reader if with_row_kind is None else replace(reader, with_kind=with_row_kind)

    def _authorized(self) -> TableReader:
        """The reader for one read, under the rules that a server has for it by now."""
        return authorized_reader(self._reader)

    def to_pandas(
        self,
        splits: Sequence[DataSplit],
        parallelism: int | None = None,
        blob_parallelism: int | None = None,
    ) -> "pd.DataFrame":
        """All rows as a pandas DataFrame."""
        load_extra("pandas", extra="pandas")
        return self.to_arrow(splits, parallelism, blob_parallelism).to_pandas()

    def to_polars(self, splits: Sequence[DataSplit]) -> "pl.DataFrame":
        """All rows as a Polars DataFrame."""
        return load_extra("polars", extra="polars").from_arrow(self.to_arrow(splits))

    def to_duckdb(
        self,
        splits: Sequence[DataSplit],
        table_name: str,
        connection: "duckdb.DuckDBPyConnection | None" = None,
        parallelism: int | None = None,
    ) -> "duckdb.DuckDBPyConnection":
        """Register all rows as a table of a DuckDB connection, a new one by default."""
        duckdb = load_extra("duckdb", extra="duckdb")
        connection = connection or duckdb.connect(database=":memory:")
        connection.register(table_name, self.to_arrow(splits, parallelism))
        return connection

    def to_spark(
        self,
        splits: Sequence[DataSplit],
        spark: "SparkSession | None" = None,
        num_partitions: int | None = None,
    ) -> "DataFrame":
        """All rows as a Spark DataFrame; nothing is read before an action of Spark.

        Plain Parquet files are read by Spark itself. Files that must be merged, or have deleted
        rows, another format or an older schema, are read by Python workers. Those read the columns
        and rows that ``with_projection`` and ``with_filter`` ask for, whatever the query selects.

        Args:
            splits: What to read.
            spark: The session; the active one by default.
            num_partitions: The number of partitions, at least one. Python workers then read all
                splits. Splits are not divided: with more partitions than splits, some are empty.
        """
        load_extra("pyspark", extra="spark")
        session = load_extra("emberlake.spark.sessions", extra="spark").find_session(spark)
        read = load_extra("emberlake.spark.read", extra="spark").read_dataframe
        rows: DataFrame = read(self._authorized(), splits, session, num_partitions)
        return rows

    def to_torch(  # noqa: PLR0913
        self,
        splits: Sequence[DataSplit],
        streaming: bool = False,  # noqa: FBT001, FBT002
        prefetch_concurrency: int = 1,
        *,
        batch_format: str = "row",
        batch_size: int | None = None,
        to_tensor_fn: Callable[[pa.RecordBatch], object] | None = None,
        shuffle: bool = False,
        seed: int = 0,
        buffer_size: int = 1000,
        max_buffer_input_splits: int = 10,
        auto_detect_rank: bool = False,
        sharding_rank: int | None = None,
        sharding_world_size: int | None = None,
    ) -> "Dataset[Any]":
        """All rows as a dataset of PyTorch, for its ``DataLoader``.

        Args:
            splits: What to read.
            streaming: Whether rows are read on demand: an ``IterableDataset`` whose splits are
                shared by the workers of the loader. Otherwise all rows are held in memory.
            prefetch_concurrency: How many threads of a worker read ahead when it streams rows.
            batch_format: The items: ``"row"`` is a dict, ``"pyarrow"`` a record batch, ``"torch"``
                a dict of tensors. Batches need streaming, and ``batch_size=None`` of the loader.
            batch_size: The rows of a batch; by default batches are as they are read.
            to_tensor_fn: Turns a record batch into an item, instead of a dict of tensors.
            shuffle: Whether to shuffle streamed rows, in a buffer of bounded size.
            seed: Determines the order, together with the epoch (``set_epoch``).
            buffer_size: The number of rows in the shuffle buffer.
            max_buffer_input_splits: The number of splits that are read into the buffer in parallel.
            auto_detect_rank: Whether to find out from ``torch.distributed``, or from the variables
                ``RANK`` and ``WORLD_SIZE``, which part of the rows this process reads.
            sharding_rank: The rank of this process, if it is known.
            sharding_world_size: The number of processes.

        Raises:
            InvalidInput: the arguments contradict each other.
        """
        load_extra("torch", extra="torch")
        torch_data = load_extra("emberlake.table.torch_data", extra="torch")
        dataset: Dataset[Any] = torch_data.open_dataset(
            self._authorized(),
            splits,
            torch_data.Streaming(
                prefetch_concurrency=prefetch_concurrency,
                batch_format=batch_format,
                batch_size=batch_size,
                to_tensor_fn=to_tensor_fn,
                shuffle=shuffle,
                seed=seed,
                buffer_size=buffer_size,
                max_buffer_input_splits=max_buffer_input_splits,
                auto_detect_rank=auto_detect_rank,
                sharding_rank=sharding_rank,
                sharding_world_size=sharding_world_size,
            ),
            streaming=streaming,
        )
        return dataset


def _checked_parallelism(parallelism: int | None, blob_parallelism: int | None) -> int | None:
    for name, value in (("parallelism", parallelism), ("blob_parallelism", blob_parallelism)):
        if value is not None and value < 1:
            raise InvalidInput(f"{name} is a number of threads, at least 1, not {value!r}")
    return parallelism
