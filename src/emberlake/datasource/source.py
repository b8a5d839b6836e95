"""The data source that Spark finds under the name ``emberlake``."""

from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    DataSourceStreamWriter,
    DataSourceWriter,
)
from pyspark.sql.types import StructType

from emberlake.datasource.batch_read import BatchReader
from emberlake.datasource.batch_write import BatchWriter
from emberlake.datasource.columns import offered_schema
from emberlake.datasource.options import Use, parse_options
from emberlake.datasource.stream_read import StreamReader
from emberlake.datasource.stream_write import StreamWriter


class EmberlakeDataSource(DataSource):
    """Tables of Apache Paimon, by ``format("emberlake")``; nothing happens before it is asked."""

    @classmethod
    def name(cls) -> str:
        """The name of the format."""
        return "emberlake"

    def schema(self) -> StructType:
        """The columns of a read without a schema of the user's."""
        options = parse_options(self.options, Use.BATCH_READ, Use.STREAM_READ)
        return offered_schema(options, options.open_schema())

    def reader(self, schema: StructType) -> DataSourceReader:
        """Reads a snapshot."""
        return BatchReader(parse_options(self.options, Use.BATCH_READ), schema)

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:  # noqa: FBT001
        """Writes one commit."""
        options = parse_options(self.options, Use.BATCH_WRITE)
        return BatchWriter(options, schema, overwrite=overwrite)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802
        """Follows the table."""
        return StreamReader(parse_options(self.options, Use.STREAM_READ), schema)

    def streamWriter(  # noqa: N802
        self,
        schema: StructType,
        overwrite: bool,  # noqa: FBT001
    ) -> DataSourceStreamWriter:
        """Writes one commit for every micro-batch."""
        options = parse_options(self.options, Use.STREAM_WRITE)
        return StreamWriter(options, schema, overwrite=overwrite)
