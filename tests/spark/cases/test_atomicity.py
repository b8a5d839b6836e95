"""Readers and other writers, while a DataFrame is written by many tasks."""

import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

from emberlake import CommitConflict, Table
from emberlake.session.write_session import WriteSession
from emberlake.spark import write_paimon
from spark.mischief import PATIENCE_S, Once, WaitFor, with_mischief
from spark.reads import write
from spark.tables import (
    Row,
    data_files,
    frame,
    new_table,
    reopened,
    rows_of,
    some_rows,
    warehouse_of,
)
from table_reads import left_over

KEY = {"primary_keys": ["id"]}
KINDS: dict[str, dict[str, Any]] = {
    "append": {},
    "partitioned": {"partition_keys": ["day"]},
    "key": {**KEY, "bucket": "2"},
    "deletion vectors": {**KEY, "bucket": "2", "deletion_vectors__enabled": "true"},
    "dynamic buckets": {**KEY, "bucket": "-1"},
}
OLD = some_rows(range(60))
NEW = some_rows(range(60, 300), name="new")


def by_key(*writes: Iterable[Row]) -> list[Row]:
    """The rows that are left after writes to a table with a key, one after the other."""
    return sorted({row[0]: row for rows in writes for row in rows}.values())


@pytest.mark.parametrize("overwrite", [False, True], ids=["write", "overwrite"])
@pytest.mark.parametrize("kind", KINDS)
def test_a_reader_sees_the_old_rows_or_the_new_ones_and_nothing_between(
    spark: SparkSession, tmp_path: Path, local_path: Path, kind: str, overwrite: bool
) -> None:
    table = write(new_table(tmp_path, **KINDS[kind]), range(60))
    looked, waits = local_path / "looked", local_path / "waits"
    # The first task that has written a file waits until the reader has looked at the table.
    builder = table.new_batch_write_builder()
    builder = replace(builder, store=with_mischief(table, Once(WaitFor(looked), waits)))
    old_files = data_files(table)
    seen: set[tuple[Row, ...]] = set()
    is_over = threading.Event()

    def look() -> None:
        while not is_over.is_set():
            has_begun = len(data_files(table)) > len(old_files)
            seen.add(tuple(rows_of(table)))
            if has_begun:
                looked.touch()

    with ThreadPoolExecutor(1) as pool:
        reader = pool.submit(look)
        try:
            with builder.new_write() as opened:
                opened.write_spark(frame(spark, NEW).repartition(8), overwrite=overwrite)
        finally:
            is_over.set()
        reader.result(PATIENCE_S)

    new = NEW if overwrite else sorted(OLD + NEW)
    assert waits.exists()
    assert tuple(OLD) in seen
    assert seen <= {tuple(OLD), tuple(new)}
    assert rows_of(table) == new


@contextmanager
def meeting(monkeypatch: pytest.MonkeyPatch, count: int = 2) -> Iterator[None]:
    """Commits wait for each other, so that none of the writers has seen what the others wrote."""
    barrier = threading.Barrier(count)
    original = WriteSession.commit

    def commit(self: WriteSession, *arguments: Any) -> Any:
        barrier.wait(PATIENCE_S)
        return original(self, *arguments)

    with monkeypatch.context() as patched:
        patched.setattr(WriteSession, "commit", commit)
        yield


def at_once(monkeypatch: pytest.MonkeyPatch, *writes: Callable[[], object]) -> list[Future[Any]]:
    with meeting(monkeypatch, len(writes)), ThreadPoolExecutor(len(writes)) as pool:
        return [pool.submit(one) for one in writes]


def writing(table: Table, df: DataFrame, **arguments: Any) -> Callable[[], object]:
    return lambda: write_paimon(df, "db.t", {"warehouse": warehouse_of(table)}, **arguments)


@pytest.mark.parametrize("overwrite", [False, True], ids=["write", "overwrite"])
@pytest.mark.parametrize("options", [{}, {**KEY, "bucket": "1"}, {**KEY, "bucket": "-1"}], ids=str)
def test_two_writers_of_different_partitions_both_land(
    spark: SparkSession,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    options: dict[str, Any],
    overwrite: bool,
) -> None:
    table = write(new_table(tmp_path, partition_keys=["day"], **options), range(60))
    mondays = [(i, "2026-01-01", "a", None) for i in range(200)]
    tuesdays = [(i, "2026-01-02", "b", None) for i in range(200)]

    done = at_once(
        monkeypatch,
        writing(table, frame(spark, mondays), overwrite=overwrite),
        writing(table, frame(spark, tuesdays), overwrite=overwrite),
    )

    assert sorted(future.result().snapshot_id for future in done) == [2, 3]
    kept = [row for row in OLD if row[1] == "2026-01-03"] if overwrite else OLD
    written = {row[:2]: row for row in (*kept, *mondays, *tuesdays)}.values()
    expected = written if options else [*kept, *mondays, *tuesdays]
    assert rows_of(table) == sorted(expected, key=_nulls_last)
    assert left_over(reopened(table)) == set()


def _nulls_last(row: Row) -> tuple[Any, ...]:
    return tuple((value is None, value) for value in row)


@pytest.mark.parametrize("kind", ["key", "deletion vectors", "dynamic buckets"])
def test_two_writers_of_the_same_keys_both_land_or_one_gets_a_conflict(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    table = write(new_table(tmp_path, **KINDS[kind]), range(60))
    first, second = some_rows(range(200), name="a"), some_rows(range(100, 300), name="b")
    writes = [writing(table, frame(spark, rows)) for rows in (first, second)]

    done = at_once(monkeypatch, *writes)

    failures = [future.exception() for future in done]
    refused = [number for number, failure in enumerate(failures) if failure is not None]
    assert all(isinstance(failures[number], CommitConflict) for number in refused)
    assert len(refused) < 2
    if refused:
        landed = second if refused == [0] else first
        assert rows_of(table) == by_key(OLD, landed)
        assert left_over(reopened(table)) == set()
        writes[refused[0]]()
    assert rows_of(table) in (by_key(OLD, first, second), by_key(OLD, second, first))


def test_two_writers_of_one_bucket_that_share_no_keys_both_land(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = write(new_table(tmp_path, **KEY, bucket="1"), range(60))
    first, second = some_rows(range(20), name="a"), some_rows(range(40, 100), name="b")

    done = at_once(monkeypatch, *(writing(table, frame(spark, rows)) for rows in (first, second)))

    assert [future.exception() for future in done] == [None, None]
    assert rows_of(table) == by_key(OLD, first, second)


def test_sums_of_two_writers_of_the_same_keys_add_up(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = new_table(
        tmp_path,
        **KEY,
        columns=pa.schema([pa.field("id", pa.int64(), nullable=False), ("price", pa.float64())]),
        bucket="2",
        merge_engine="aggregation",
        fields__price__aggregate_function="sum",
    )
    df = frame(spark, [(i, 1.5) for i in range(100)], "id bigint, price double")

    done = at_once(monkeypatch, *(writing(table, df) for _ in range(2)))

    assert [future.exception() for future in done] == [None, None]
    assert rows_of(table) == [(i, 3.0) for i in range(100)]


def test_an_append_meets_an_overwrite_before_it_or_after_it(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = write(new_table(tmp_path), range(60))
    appended, put_in_place = some_rows(range(100, 200)), some_rows(range(200, 300))

    done = at_once(
        monkeypatch,
        writing(table, frame(spark, appended)),
        writing(table, frame(spark, put_in_place), overwrite=True),
    )

    assert [future.exception() for future in done] == [None, None]
    assert rows_of(table) in (put_in_place, appended + put_in_place)
