"""Whether Spark reads an object store by itself: its JVM is asked once, with a time limit."""

import time
import uuid
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest
from py4j.protocol import Py4JError
from pyspark.sql import SparkSession

from emberlake import CatalogFactory, Table
from emberlake.spark.division import divide
from emberlake.spark.native_scan import spark_path
from emberlake.spark.read import explain_dataframe
from emberlake.spark.session_files import SessionFiles
from servers import Server
from spark.reads import planned


class Jvm:
    """What is asked of the JVM; it has a client for S3 that finds files of some size."""

    def __init__(self, size: int | None = None, *, has_client: bool = True, waits_s: float = 0):
        self.size, self.has_client, self.waits_s = size, has_client, waits_s
        self.asked: list[str] = []
        hadoop = SimpleNamespace(FileSystem=self, Path=self._at)
        self.org = SimpleNamespace(
            apache=SimpleNamespace(hadoop=SimpleNamespace(fs=hadoop)),
        )

    def getFileSystemClass(self, scheme: str, settings: object) -> str:  # noqa: N802
        assert (scheme, settings) == ("s3a", "settings")
        if not self.has_client:
            raise Py4JError("ClassNotFoundException: S3AFileSystem")
        return "S3AFileSystem"

    def _at(self, path: str) -> Any:
        def status(file: Any) -> Any:
            self.asked.append(path)
            time.sleep(self.waits_s)
            if self.size is None:
                raise Py4JError("403 with the secret of somebody")
            return SimpleNamespace(getLen=lambda: self.size)

        store = SimpleNamespace(getFileStatus=status)
        return SimpleNamespace(getFileSystem=lambda settings: store)


def session_on(jvm: Jvm) -> SparkSession:
    session = object.__new__(SparkSession)
    session._jvm = jvm
    state = SimpleNamespace(newHadoopConf=lambda: "settings")
    session._jsparkSession = SimpleNamespace(sessionState=lambda: state)
    return session


@pytest.fixture
def table(s3: Server) -> Table:
    warehouse = f"{s3.root}/{uuid.uuid4()}"
    catalog = CatalogFactory.create({"warehouse": warehouse, **s3.options})
    catalog.create_database("db")
    table = catalog.create_table("db.t", pa.schema([("n", pa.int64())]))
    for number in range(3):
        table.append(pa.table({"n": [number]}))
    return table


def size_of_first(table: Table) -> int:
    (split, *_) = table.new_read_builder().new_scan().plan().splits()
    return split.files[0].file_size


def test_files_are_sparks_where_its_client_finds_one_of_them(table: Table) -> None:
    jvm = Jvm(size_of_first(table))
    session = session_on(jvm)
    reader, splits = planned(table)

    for _ in range(2):
        division = divide(reader, splits, SessionFiles(session, table.store.storage).opens)

        root = table.table_path.replace("s3://", "s3a://")
        assert len(division.paths) == 3
        assert all(path.startswith(f"{root}/bucket-0/data-") for path in division.paths)
        assert division.rest == ()
    assert len(jvm.asked) == 1  # for all files, and both reads
    explained = explain_dataframe(reader, splits, session)
    assert explained == "3 files by Spark's own reader, 0 by Python workers"


@pytest.mark.parametrize(
    ("jvm", "reason"),
    [
        (Jvm(1, has_client=False), "the session has no file system for s3a:// (hadoop-aws)"),
        (Jvm(None), "the session's s3a:// does not find the table's files: Py4JError"),
        (Jvm(1), "the session's s3a:// finds another file of the same name"),
    ],
)
def test_files_are_ours_where_its_client_does_not(table: Table, jvm: Jvm, reason: str) -> None:
    session = session_on(jvm)
    reader, splits = planned(table)

    for _ in range(2):
        assert explain_dataframe(reader, splits, session) == (
            f"0 files by Spark's own reader, 3 by Python workers; s3://lake: {reason}"
        )
    assert len(jvm.asked) <= 1
    lines = str(table.new_read_builder().explain(spark=session)).splitlines()
    shown = f"  spark      0 files by Spark's own reader, 3 by Python workers; s3://lake: {reason}"
    assert shown in lines


def test_a_client_that_does_not_answer_is_not_waited_for(table: Table) -> None:
    files = SessionFiles(session_on(Jvm(1, waits_s=5)), table.store.storage, limit_s=0.05)
    begin = time.monotonic()

    assert not files.opens("s3://lake/f", "s3a://lake/f", 1)

    assert time.monotonic() - begin < 2
    assert files.refused == {"s3://lake": "the session's s3a:// gave no answer in 0.05 s"}


def test_the_same_bucket_at_another_address_is_another_place(table: Table, s3: Server) -> None:
    jvm = Jvm(7)
    session = session_on(jvm)
    other = CatalogFactory.create(
        {"warehouse": s3.root, **s3.options, "s3.endpoint": "http://127.0.0.1:1"}
    )

    for storage in (table.store.storage, other.storage):
        assert SessionFiles(session, storage).opens("s3://lake/f", "s3a://lake/f", 7)

    assert len(jvm.asked) == 2


def test_a_session_of_spark_connect_is_not_asked(table: Table) -> None:
    connect = type("SparkSession", (), {})()  # its class is another one

    assert not SessionFiles(connect, table.store.storage).opens("s3://b/f", "s3a://b/f", 1)


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("s3://b/a b/day=%3A/é/data-1.parquet", "s3a://b/a b/day=%3A/é/data-1.parquet"),
        ("s3n://b/data-1.parquet", "s3a://b/data-1.parquet"),
        ("S3A://b/data-1.parquet", "s3a://b/data-1.parquet"),
        ("s3://b/[x]/data-1.parquet", None),
        ("s3://b/_data-1.parquet", None),
        ("gs://b/data-1.parquet", None),
    ],
)
def test_spark_knows_objects_by_another_scheme(path: str, expected: str | None) -> None:
    assert spark_path(path) == expected
