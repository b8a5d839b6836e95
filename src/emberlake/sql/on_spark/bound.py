"""Data sources that belong to one table each, so that Spark's own catalog can name them.

Spark does not pass the options of a table in its catalog to the source of the table, so a source
must know its table by itself. A class is made for each table, and is named after it. Spark keeps
the class, pickled; its catalog has only the name.

The options of one use reach the source. But if a query mentions a table several times, Spark gives
the options of the first mention to all, so batch reads refuse options.
"""

from collections.abc import Mapping

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
from emberlake.datasource.options import SourceOptions, Use, parse_bound_options
from emberlake.datasource.pin import Pin
from emberlake.datasource.source import alone
from emberlake.datasource.stream_read import StreamReader
from emberlake.datasource.stream_write import StreamWriter
from emberlake.errors import ColumnNotFound, Unsupported


def bound_source(
    format_name: str, identifier: str, catalog_options: Mapping[str, object]
) -> type[DataSource]:
    """A data source for one table. Each query that uses it reads the table as it is then."""
    catalog = dict(catalog_options)
    bound = SourceOptions(identifier=identifier, catalog=catalog, table={})

    class BoundSource(DataSource):
        @classmethod
        def name(cls) -> str:
            return format_name

        def _options(self, use: Use) -> SourceOptions:
            return parse_bound_options(self.options, identifier, catalog, use)

        def schema(self) -> StructType:  # Spark asks once, when the name is made
            return offered_schema(bound, bound.open_schema())

        @alone
        def reader(self, schema: StructType) -> DataSourceReader:
            if self.options:
                raise Unsupported(
                    f"{', '.join(self.options)}: Spark would confuse the options of a name that a "
                    f'query has twice: use lake.sql, read_paimon, or format("emberlake") with '
                    f'load("{identifier}")'
                )
            try:
                return BatchReader(bound, Pin.now(bound), schema)
            except ColumnNotFound as error:
                raise ColumnNotFound(
                    f"{error}: the name in Spark has other columns than the table, as after ALTER "
                    "TABLE in spark.sql; lake.refresh() makes it again, and lake.sql alters tables"
                ) from error

        @alone
        def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:  # noqa: FBT001
            return BatchWriter(self._options(Use.BATCH_WRITE), schema, overwrite=overwrite)

        @alone
        def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802
            return StreamReader(self._options(Use.STREAM_READ), schema)

        @alone
        def streamWriter(  # noqa: N802
            self,
            schema: StructType,
            overwrite: bool,  # noqa: FBT001
        ) -> DataSourceStreamWriter:
            return StreamWriter(self._options(Use.STREAM_WRITE), schema, overwrite=overwrite)

    return BoundSource
