"""Names, quotes, comments and shadows of all kinds: a query of the lake means what it says.

The judge is Spark itself, in a session whose temporary views have the names and rows of the tables.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, reject, settings
from hypothesis import strategies as st
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from effort import examples
from emberlake import CatalogFactory, EmberlakeError
from emberlake.spark import Lake, attach

TABLES = ["t", "a.b", "x y", "select", "from", "größe", "1st", "join", "--", "values", "'q'"]
ALIASES = [*TABLES, "where", "as", "u", "id"]
NOISE = ["", "", "", " /* FROM t, `a.b` /* JOIN t */ */ ", " -- FROM `a.b`\n", "\n\t"]
TEXTS = ["'FROM t'", "'it''s `a.b`'", '"SELECT * FROM t"', r"'\' FROM t --'", "r'\\'", "'{t}'"]


class Session:
    """A lake, and Spark's own views beside it, in sessions that do not see each other."""

    def __init__(self, spark: SparkSession, folder: Path) -> None:
        self.judge = spark.newSession()
        catalog = CatalogFactory.create({"warehouse": str(folder)})
        catalog.create_database("hostile")
        for number, name in enumerate(TABLES):
            rows = pa.table({"id": pa.array([number, 99], pa.int32()), "v": [name, "all"]})
            identifier = f"hostile.`{name}`"
            catalog.create_table(identifier, rows.schema)
            catalog.get_table(identifier).append(rows)
            # Views of files are optimized like tables of the lake; rows in memory are not.
            view = self.judge.read.parquet(
                *catalog.get_table(identifier).files()["file_path"].to_pylist()
            )
            view.createOrReplaceTempView("`" + name + "`")
        self.local = catalog
        self.local.sql("USE hostile")
        self.lake: Lake = attach(spark.newSession(), {"warehouse": str(folder)}, databases=[])
        self.lake.sql("USE hostile")


@pytest.fixture(scope="module")
def session(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    if not hasattr(spark, "newSession"):
        # Text is rewritten before any session sees it, so one kind of session will do.
        pytest.skip("Spark Connect has no second session to compare with")
    session = Session(spark, tmp_path_factory.mktemp("hostile"))
    yield session
    session.lake.detach()


def quoted(name: str) -> str:
    return "`" + name + "`"


@st.composite
def name(draw: st.DrawFn, names: list[str]) -> str:
    """A name; plain words may go without quotes, in any case where none matters."""
    chosen = draw(st.sampled_from(names))
    is_plain = chosen in {"t", "u", "größe", "1st"}
    return chosen if is_plain and draw(st.booleans()) else quoted(chosen)


@st.composite
def relation(draw: st.DrawFn, depth: int) -> tuple[str, str]:
    """A part of FROM, and what its columns are called by."""
    kind = draw(st.sampled_from(["name", "name", "alias", "query", "values"]))
    noise = draw(st.sampled_from(NOISE))
    alias = draw(name(ALIASES))
    if kind == "query" and depth:
        return f"({noise}{draw(query(depth - 1))}{noise}) AS {alias}", alias
    if kind == "values":
        text = draw(st.sampled_from(TEXTS))
        return f"VALUES (7, {text}), (8, 'FROM t') AS {alias}(id, v)", alias
    table = draw(name(TABLES))
    if kind == "alias":
        return (
            f"{table}{noise} {draw(st.sampled_from(['AS ', '']))}{quoted(alias.strip('`'))}",
            alias,
        )
    return f"{noise}{table}", table


@st.composite
def query(draw: st.DrawFn, depth: int) -> str:
    """A query with the columns id and v."""
    noise = draw(st.sampled_from(NOISE))
    first, called = draw(relation(depth))
    text = draw(st.sampled_from(TEXTS))
    others = ""
    if depth and draw(st.booleans()):
        second, other = draw(relation(depth - 1))
        others = draw(
            st.sampled_from(
                [
                    f" JOIN {second} ON {called}.id = {other}.id",
                    f", {second}",
                    f" LEFT JOIN {second} ON {called}.v = {other}.v AND {other}.v <> {text}",
                ]
            )
        )
    where = draw(
        st.sampled_from(
            [
                "",
                f" WHERE {called}.v <> {text}",
                f" WHERE {called}.id IN (SELECT id{noise} FROM {draw(name(TABLES))})",
                f" WHERE EXISTS (SELECT 1 FROM {draw(name(TABLES))} AS i WHERE i.id = {called}.id)",
                f" WHERE {called}.v IS DISTINCT FROM {text}",
                f" WHERE trim('x' FROM {called}.v) <> ''",
            ]
        )
    )
    columns = f"{called}.id,{noise} concat({called}.v, {text}) AS v"
    body = f"SELECT {columns}{noise} FROM {first}{others}{where}"
    if depth and draw(st.booleans()):
        body += f" UNION ALL {draw(query(depth - 1))}"
    if depth and draw(st.booleans()):
        shadow = draw(name(TABLES))
        body = f"WITH {shadow} AS{noise} ({draw(query(depth - 1))}) {body}"
    return body if not body.startswith("WITH") else f"SELECT * FROM ({body})"


def outcome(run: Any, text: str) -> list[tuple[Any, ...]] | str:
    try:
        found = run(text)
        rows = found.collect() if isinstance(found, DataFrame) else found.fetchall()
        return sorted((tuple(row) for row in rows), key=str)
    except (PySparkException, EmberlakeError):
        return "refused"
    except Py4JJavaError as error:
        if "No CTERelationDef found" not in str(error):
            raise
        reject()  # Spark loses some CTEs that are not used, whatever their names mean


@settings(examples(20), deadline=None, suppress_health_check=list(HealthCheck))
@given(text=query(2))
def test_a_query_means_the_same_as_on_views_of_the_same_names(session: Session, text: str) -> None:
    assert outcome(session.lake.sql, text) == outcome(session.judge.sql, text), text


@pytest.mark.slow
@settings(examples(1500), deadline=None, suppress_health_check=list(HealthCheck))
@given(text=query(2))
def test_thousands_of_queries_mean_the_same(session: Session, text: str) -> None:
    assert outcome(session.lake.sql, text) == outcome(session.judge.sql, text), text


# Without Spark a query may be refused, but never mean something else.
@pytest.mark.slow
@settings(examples(1500), deadline=None, suppress_health_check=list(HealthCheck))
@given(text=query(2))
def test_thousands_of_queries_mean_the_same_without_spark(session: Session, text: str) -> None:
    found = outcome(session.local.sql, text)
    assert found in ("refused", outcome(session.judge.sql, text)), text
