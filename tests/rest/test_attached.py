"""Tables of a REST catalog as names in Spark's catalog: without Spark, which only keeps them."""

from types import SimpleNamespace
from typing import Any

from builders import COLUMNS
from emberlake.sql.on_spark.attached import AttachedTables
from rest_server import TOKEN, RestServer


class Spark:
    """A session that records its calls."""

    def __init__(self) -> None:
        self.sources: list[Any] = []
        self.said: list[str] = []
        self.catalog = SimpleNamespace(tableExists=lambda _: False, databaseExists=lambda _: False)
        self.dataSource = SimpleNamespace(register=self.sources.append)

    def sql(self, text: str) -> None:
        self.said.append(text)


def test_a_source_of_a_table_has_the_token_and_shows_it_to_nobody(server: RestServer) -> None:
    catalog = server.open()
    catalog.create_database("db")
    catalog.create_table("db.t", COLUMNS)
    spark = Spark()

    attached = AttachedTables(spark, catalog, server.options, ["db"])  # type: ignore[arg-type]
    attached.refresh()

    assert attached.left_out == {}
    (source,) = spark.sources
    opened = source(options={})
    assert opened.schema().fieldNames() == COLUMNS.names
    assert opened.reader(opened.schema()).partitions() is not None
    shown = [*spark.said, repr(opened), repr(source), source.name(), repr(attached.names)]
    assert not any(TOKEN in text for text in shown)
