"""The half of a read that reads: splits in the form that is asked for."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from emberlake.base.extras import load_extra
from emberlake.base.row import Row, iter_rows
from emberlake.errors import InvalidInput
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
    """Reads splits in the form that is asked for."""

    _reader: TableReader = field(repr=False)

    @property
    def read_type(self) -> list[DataField]:
        """The columns that come out."""
        return list(self._reader.projection.fields)

    @property
    def predicate(self) -> Predicate | None:
        """What rows must match."""
        return self._reader.predicate

    @property
    def limit(self) -> int | None:
        """How many rows come out at most."""
        return self._reader.limit

    @property
    def include_row_kind(self) -> bool:
        """Whether row kinds come out, unless a call says otherwise."""
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
        them the changes of a primary-key table come without those that take a row back.

        Args:
            splits: What to read.
            parallelism: How many files are read at a time; by default what the machine has cores.
            blob_parallelism: For programs that give it: no BLOB columns are read.
            with_row_kind: Whether row kinds come out.
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
        for batch in self._reader.read_batches(splits):
            yield from iter_rows(batch)

    def _with_kind(self, with_row_kind: bool | None) -> TableReader:  # noqa: FBT001
        if with_row_kind is None:
            return self._reader
        return replace(self._reader, with_kind=with_row_kind)

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
            streaming: Whether rows are read as they are asked for: an ``IterableDataset``, whose
                splits are dealt out to the workers of the loader. Else all rows are in memory.
            prefetch_concurrency: How many threads of a worker read ahead, when it streams rows.
            batch_format: What comes out: ``"row"`` is a dict, ``"pyarrow"`` a record batch,
                ``"torch"`` a dict of tensors. Batches are streamed; give the loader
                ``batch_size=None`` for them.
            batch_size: The rows of a batch; by default as they are read.
            to_tensor_fn: Makes of a record batch what comes out, in place of a dict of tensors.
            shuffle: Whether streamed rows are mixed, in a buffer of bounded size.
            seed: Decides on the mix, with the epoch (``set_epoch``).
            buffer_size: The rows that are mixed with one another.
            max_buffer_input_splits: The splits that are read at the same time to be mixed.
            auto_detect_rank: Whether a stream is one of many, by ``torch.distributed`` or by the
                variables ``RANK`` and ``WORLD_SIZE``.
            sharding_rank: Which one of them this is, if that is known.
            sharding_world_size: How many there are.

        Raises:
            InvalidInput: arguments that do not go together.
        """
        load_extra("torch", extra="torch")
        torch_data = load_extra("emberlake.table.torch_data", extra="torch")
        dataset: Dataset[Any] = torch_data.open_dataset(
            self,
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
