"""Tables are compacted by tasks, bucket by bucket, in one commit."""

import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from changelogs import check_replay
from emberlake import CommitConflict, InvalidPredicate, Table, TableNotFound
from emberlake.commit.committer import Committer
from emberlake.scan.files import live_entries
from emberlake.spark import compact, write_paimon
from emberlake.spec.snapshot import CommitKind
from spark.mischief import PATIENCE_S
from spark.reads import write
from spark.tables import Row, frame, new_table, reopened, rows_of, some_rows, warehouse_of
from table_reads import left_over

KEY = {"primary_keys": ["id"]}
DAYS = {"partition_keys": ["day"]}
KINDS: dict[str, dict[str, Any]] = {
    "append": {},
    "append, buckets": {"bucket": "3", "bucket_key": "name"},
    "append, partitions": DAYS,
    "key": {**KEY, "bucket": "3"},
    "key, partitions": {**KEY, **DAYS, "bucket": "2"},
    "deletion vectors": {
        **KEY,
        "bucket": "2",
        "deletion_vectors__enabled": "true",
        "write_only": "true",  # or every write would compact
    },
    "changes": {
        **KEY,
        "bucket": "2",
        "changelog_producer": "lookup",
        "write_only": "true",
    },
    "dynamic buckets": {**KEY, "bucket": "-1"},
    "postponed": {**KEY, "bucket": "-2"},
    "postponed, partitions": {**KEY, **DAYS, "bucket": "-2"},
}
WRITES = 6


def written(table: Table) -> list[Row]:
    """Write as often as makes a compaction due; the rows that the table has then."""
    rows: list[Row] = []
    for number in range(WRITES):
        ids, name = range(10 * number, 10 * number + 60), f"write-{number}"
        write(table, ids, name=name)
        rows += some_rows(ids, name=name)
    return sorted({row[0]: row for row in rows}.values()) if table.primary_keys else sorted(rows)


def files_of(table: Table) -> Counter[tuple[bytes, int]]:
    """How many files the buckets have."""
    table = reopened(table)
    entries = live_entries(table.store, table.latest_snapshot()).entries()
    return Counter((entry.partition, entry.bucket) for entry in entries)


@pytest.mark.parametrize("full", [False, True], ids=["due", "full"])
@pytest.mark.parametrize("kind", KINDS)
def test_a_compaction_changes_no_rows_and_leaves_fewer_files(
    spark: SparkSession, tmp_path: Path, kind: str, full: bool
) -> None:
    table = new_table(tmp_path, **KINDS[kind])
    rows = written(table)
    before = files_of(table)

    result = compact("db.t", {"warehouse": warehouse_of(table)}, spark=spark, full=full)

    assert rows_of(table) == rows
    after = files_of(table)
    assert after.total() < before.total()
    if full:
        assert set(after.values()) == {1}
    snapshot = reopened(table).latest_snapshot()
    assert result.snapshot_id == snapshot.id == WRITES + 1
    assert snapshot.commit_kind is CommitKind.COMPACT
    if kind == "changes":
        assert snapshot.changelog_record_count == len(rows)
        check_replay(reopened(table))
    assert left_over(reopened(table)) == set()


@pytest.mark.parametrize(
    "options",
    [
        {"bucket": "2", "changelog_producer": "lookup"},
        {"bucket": "-1", "changelog_producer": "lookup", "deletion_vectors__enabled": "true"},
        {
            "bucket": "-1",
            "changelog_producer": "full-compaction",
            "full_compaction__delta_commits": "1",
        },
    ],
    ids=["lookup", "lookup, vectors", "full-compaction"],
)
def test_the_tasks_of_a_write_record_what_they_change(
    spark: SparkSession, tmp_path: Path, options: dict[str, str]
) -> None:
    table = new_table(tmp_path, **KEY, **DAYS, **options)
    where = {"warehouse": warehouse_of(table)}

    for number in range(3):
        rows = some_rows(range(20 * number, 20 * number + 60), name=f"write-{number}")
        write_paimon(frame(spark, rows), "db.t", where)
        found = reopened(table).latest_snapshot()
        assert (found.id, found.commit_kind) == (2 * number + 2, CommitKind.COMPACT)
        assert found.changelog_record_count == (60 if number == 0 else 20 + 2 * 40)

    check_replay(reopened(table))
    assert len(rows_of(table)) == 100
    assert left_over(reopened(table)) == set()


@pytest.mark.parametrize("kind", [kind for kind in KINDS if "partitions" in kind])
def test_only_the_partitions_that_match_are_compacted(
    spark: SparkSession, tmp_path: Path, kind: str
) -> None:
    table = new_table(tmp_path, **KINDS[kind])
    rows = written(table)
    day = "2026-01-02"

    compact(
        "db.t",
        {"warehouse": warehouse_of(table)},
        spark=spark,
        full=True,
        where=f"day = '{day}'",
    )

    seen = rows_of(table)
    assert [row for row in seen if row[1] == day] == [row for row in rows if row[1] == day]
    if not kind.startswith("postponed"):
        assert seen == rows
    counts: dict[bool, set[int]] = {True: set(), False: set()}
    for (partition, _), count in files_of(table).items():
        counts[table.store.partition_values(partition) == (day,)].add(count)
    assert counts[True] == {1}
    assert min(counts[False]) > 1


def test_the_active_session_compacts_and_there_may_be_nothing_to_do(
    spark: SparkSession, tmp_path: Path
) -> None:
    table = new_table(tmp_path, **KEY, bucket="2")
    warehouse = {"warehouse": warehouse_of(table)}

    assert compact("db.t", warehouse).snapshot_id is None
    write(table)
    write(table)
    assert compact("db.t", warehouse, full=True).snapshot_id == 3
    assert compact("db.t", warehouse, full=True).snapshot_id is None
    assert reopened(table).latest_snapshot().id == 3


def test_a_table_or_a_filter_that_cannot_be_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    table = write(new_table(tmp_path, **DAYS))
    warehouse = {"warehouse": warehouse_of(table)}

    with pytest.raises(TableNotFound):
        compact("db.missing", warehouse)
    with pytest.raises(InvalidPredicate, match="name"):
        compact("db.t", warehouse, where="name = 'x'")


@pytest.mark.parametrize("kind", ["append", "key", "deletion vectors", "postponed"])
def test_a_write_that_lands_during_a_compaction_stays(
    spark: SparkSession, tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = new_table(tmp_path, **KINDS[kind])
    rows = written(table)
    original = Committer.commit
    is_written = threading.Event()

    def commit(self: Committer, *arguments: Any, **named: Any) -> Any:
        if not is_written.is_set():
            is_written.set()
            write(table, range(500, 520), name="meanwhile")
        return original(self, *arguments, **named)

    with monkeypatch.context() as patched:
        patched.setattr(Committer, "commit", commit)
        compact("db.t", {"warehouse": warehouse_of(table)}, spark=spark, full=True)

    hidden = kind in ("deletion vectors", "postponed")
    meanwhile = some_rows(range(500, 520), name="meanwhile")
    assert rows_of(table) == (rows if hidden else rows + meanwhile)
    compact("db.t", {"warehouse": warehouse_of(table)}, spark=spark, full=True)
    assert rows_of(table) == rows + meanwhile


def test_one_of_two_compactions_at_once_gets_a_conflict(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = new_table(tmp_path, **KEY, bucket="2")
    rows = written(table)
    original = Committer.commit
    barrier = threading.Barrier(2)

    def commit(self: Committer, *arguments: Any, **named: Any) -> Any:
        barrier.wait(PATIENCE_S)
        return original(self, *arguments, **named)

    monkeypatch.setattr(Committer, "commit", commit)
    warehouse = {"warehouse": warehouse_of(table)}
    with ThreadPoolExecutor(2) as pool:
        done = [pool.submit(compact, "db.t", warehouse, spark=spark, full=True) for _ in range(2)]

    failures = [failure for future in done if (failure := future.exception()) is not None]
    assert [type(failure) for failure in failures] == [CommitConflict]
    assert rows_of(table) == rows
    assert reopened(table).latest_snapshot().id == WRITES + 1
    assert left_over(reopened(table)) == set()
