"""The rows of a statement that Spark carries out, for terminals and notebooks."""

from collections.abc import Iterator

import pyarrow as pa
from pyspark.sql import DataFrame

from emberlake.read.sql_result import SqlResult
from emberlake.spark.sessions import check_workers


class SparkResult(SqlResult):
    """A DataFrame as an Arrow stream; ``dataframe`` is the DataFrame, to continue with on Spark."""

    def __init__(self, dataframe: DataFrame) -> None:
        super().__init__(lambda: _schema(dataframe), self._stream)
        self.dataframe = dataframe

    def first(self, count: int) -> pa.RecordBatchReader:
        """At most ``count`` rows; Spark stops when it has them."""
        if not self.column_names:
            return self.to_batches()
        return self.dataframe.limit(count).toArrow().to_reader()

    def to_arrow(self) -> pa.Table:
        """The rows as an Arrow table."""
        return self.dataframe.toArrow() if self.column_names else pa.table({})

    def _stream(self) -> pa.RecordBatchReader:
        schema = self.schema
        batches = _batches(self.dataframe, schema) if schema.names else iter(())
        return pa.RecordBatchReader.from_batches(schema, batches)


def _schema(frame: DataFrame) -> pa.Schema:
    return frame.limit(0).toArrow().schema if frame.columns else pa.schema([])


def _batches(frame: DataFrame, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """The rows in their order; this process holds those of one task at a time.

    Spark hands over rows task by task only as Python objects. So tasks pack each batch into one
    binary value, which costs almost nothing.
    """
    check_workers(frame.sparkSession)
    numbered = frame.toDF(*(f"c{at}" for at in range(len(frame.columns))))  # names may repeat
    packed_rows = numbered.mapInArrow(_pack, "batch binary")
    for packed in packed_rows.toLocalIterator(prefetchPartitions=True):
        with pa.ipc.open_stream(bytes(packed.batch)) as stream:
            rows = pa.Table.from_batches(stream, stream.schema)
        renamed = rows.rename_columns(schema.names)
        yield from renamed.cast(schema).to_batches()


def _pack(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, batch.schema) as writer:
            writer.write_batch(batch)
        packed = pa.array([sink.getvalue().to_pybytes()], pa.binary())
        yield pa.RecordBatch.from_arrays([packed], ["batch"])
