"""The tasks of a write: as many as requested, and all of them report before the commit."""

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pyspark.resource import ResourceProfileBuilder, TaskResourceRequests
from pyspark.sql import SparkSession

from emberlake import IncompleteJob, InvalidInput, Unsupported
from emberlake.spark import compact, compaction, write, write_paimon
from emberlake.spark.reports import Reports
from spark.reads import write as write_locally
from spark.tables import (
    data_files,
    frame,
    live_files,
    new_table,
    reopened,
    rows_of,
    some_rows,
    warehouse_of,
)

KEY = {"primary_keys": ["id"]}
DAYS = {"partition_keys": ["day"]}
KINDS: dict[str, dict[str, Any]] = {
    "append": {},
    "append, partitions": DAYS,
    "append, buckets, partitions": {**DAYS, "bucket": "2", "bucket_key": "name"},
    "fixed buckets": {**KEY, "bucket": "2"},
    "fixed buckets, partitions": {**KEY, **DAYS, "bucket": "2"},
    "dynamic buckets": {**KEY, "bucket": "-1", "dynamic_bucket__max_buckets": "2"},
    "dynamic buckets that are compacted": {
        **KEY,
        "bucket": "-1",
        "deletion_vectors__enabled": "true",
    },
    "postponed buckets": {**KEY, "bucket": "-2"},
}
ROWS = some_rows(range(60))


@pytest.mark.parametrize("kind", KINDS)
def test_concurrency_is_the_number_of_write_tasks(
    spark: SparkSession, tmp_path: Path, kind: str
) -> None:
    table = new_table(tmp_path, **KINDS[kind])
    warehouse = {"warehouse": str(tmp_path)}
    # Spark knows how many rows there are only when it has seen them.
    df = frame(spark, ROWS).repartition(5).where("price >= 0")
    assert spark.conf.get("spark.sql.adaptive.enabled") == "true"

    tasks = [write_paimon(df, "db.t", warehouse, concurrency=n).tasks for n in (1, 3, 6)]

    assert tasks == [1, 3, 6]
    if kind.startswith("append"):
        assert rows_of(table) == sorted(3 * ROWS)
    elif not kind.startswith("postponed"):
        assert rows_of(table) == ROWS


def test_a_large_partition_is_shared_by_tasks_and_small_ones_are_not(
    spark: SparkSession, tmp_path: Path
) -> None:
    table = new_table(tmp_path, **DAYS)
    df = spark.range(0, 120_000, 1, 4).selectExpr(
        "id",
        "CASE WHEN id % 1000 < 990 THEN 'large' ELSE concat('small-', id % 10) END AS day",
        "sha2(cast(id AS string), 512) AS name",
    )

    result = write_paimon(df, "db.t", {"warehouse": str(tmp_path)}, concurrency=3)

    files = Counter(path.parts[-3] for path in live_files(table))
    assert result.tasks == 3
    assert result.rows_added == 120_000
    assert files.pop("day=large") == 3
    assert len(files) == 10
    assert Counter(files.values())[1] > 5  # but those that Spark has put beside the large one


Tamper = Callable[[Reports], Reports]


def without(number: int) -> Tamper:
    """One report is lost on the way, no matter which."""
    return lambda found: replace(
        found, received=tuple(r for r in found.received if r.number != number)
    )


def of_another_job(found: Reports) -> Reports:
    first, *others = found.received
    return replace(found, received=(replace(first, job_id="another"), *others))


def contradicted(found: Reports) -> Reports:
    first, second, *_ = found.received
    other = replace(first, messages=second.messages)
    return replace(found, received=(*found.received, other))


def doubled(found: Reports) -> Reports:
    return replace(found, received=found.received * 2)


TAMPERS: dict[str, Tamper] = {
    "the first is lost": without(0),
    "the last is lost": without(2),
    "all are lost": lambda _: Reports((), None),
    "their number is lost": lambda found: replace(found, total=None),
    "another job": of_another_job,
    "contradicted": contradicted,
}


def tamper(monkeypatch: pytest.MonkeyPatch, module: Any, change: Tamper) -> None:
    """Change what comes to the driver, between the tasks and the commit."""
    gather = module.gather
    monkeypatch.setattr(module, "gather", lambda *a, **named: change(gather(*a, **named)))


@pytest.mark.parametrize("change", TAMPERS.values(), ids=TAMPERS)
def test_a_write_with_missing_reports_is_not_committed(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change: Tamper
) -> None:
    table = write_locally(new_table(tmp_path), range(9))
    files = data_files(table)
    tamper(monkeypatch, write, change)

    with pytest.raises(IncompleteJob, match="not committed"):
        write_paimon(frame(spark, ROWS), "db.t", {"warehouse": str(tmp_path)}, concurrency=3)

    assert reopened(table).latest_snapshot().id == 1
    assert rows_of(table) == some_rows(range(9))
    assert len(data_files(table)) == len(files) + 3  # nothing is swept


def test_a_report_that_comes_twice_counts_once(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = new_table(tmp_path)
    tamper(monkeypatch, write, doubled)

    write_paimon(frame(spark, ROWS), "db.t", {"warehouse": str(tmp_path)}, concurrency=3)

    assert rows_of(table) == ROWS


@pytest.mark.parametrize("change", [without(0), without(1), of_another_job])
def test_a_compaction_with_missing_reports_is_not_committed(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change: Tamper
) -> None:
    table = new_table(tmp_path, **KEY, bucket="2")
    for number in range(2):
        write_locally(table, range(20), name=f"write-{number}")
    files = data_files(table)
    tamper(monkeypatch, compaction, change)

    with pytest.raises(IncompleteJob, match="not committed"):
        compact("db.t", {"warehouse": warehouse_of(table)}, spark=spark, full=True)

    assert reopened(table).latest_snapshot().id == 2
    assert rows_of(table) == some_rows(range(20), name="write-1")
    assert len(data_files(table)) == len(files) + 2


def test_a_resource_profile_is_given_to_tasks_or_refused_before_they_start(
    spark: SparkSession, tmp_path: Path
) -> None:
    table = new_table(tmp_path)
    warehouse = {"warehouse": str(tmp_path)}
    df = frame(spark, ROWS)
    profile = ResourceProfileBuilder().require(TaskResourceRequests().cpus(1)).build
    with pytest.raises(InvalidInput, match="cpu is not one of cpus"):
        write_paimon(df, "db.t", warehouse, resource_profile={"cpu": 1})
    with pytest.raises(InvalidInput, match="not list"):
        write_paimon(df, "db.t", warehouse, resource_profile=[1])

    if spark.conf.get("spark.master").startswith("local["):
        for asked in (profile, {"cpus": 1}):
            with pytest.raises(Unsupported, match="in one process"):
                write_paimon(df, "db.t", warehouse, resource_profile=asked)
        assert data_files(table) == []
        return
    for asked in (profile, {"cpus": 1}):
        write_paimon(df, "db.t", warehouse, concurrency=2, resource_profile=asked)
    with pytest.raises(InvalidInput, match="asks for 2 cpus"):
        write_paimon(df, "db.t", warehouse, resource_profile={"cpus": 2})
    assert rows_of(table) == sorted(2 * ROWS)
