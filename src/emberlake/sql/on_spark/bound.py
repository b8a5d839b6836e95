"""Data sources that belong to one table each, so that Spark's own catalog can name them.

Spark does not pass the options of a table in its catalog to the source of the table, so a source
must know its table by itself. A class is made for each table, and is named after it. Spark keeps
the class, pickled; its catalog has only the name.
"""

from collections.abc import Mapping

from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceWriter
from pyspark.sql.types import StructType

from emberlake.datasource.batch_read import BatchReader
from emberlake.datasource.batch_write import BatchWriter
from emberlake.datasource.columns import offered_schema
from emberlake.datasource.options import SourceOptions
from emberlake.datasource.pin import Pin


def bound_source(
    format_name: str, identifier: str, catalog_options: Mapping[str, object]
) -> type[DataSource]:
    """A data source for one table. Each query that uses it reads the table as it is then."""
    bound = SourceOptions(identifier=identifier, catalog=dict(catalog_options), table={})

    class BoundSource(DataSource):
        @classmethod
        def name(cls) -> str:
            return format_name

        def schema(self) -> StructType:
            return offered_schema(bound, bound.open_schema())

        def reader(self, schema: StructType) -> DataSourceReader:
            return BatchReader(bound, Pin.now(bound), schema)

        def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:  # noqa: FBT001
            return BatchWriter(bound, schema, overwrite=overwrite)

    return BoundSource
