"""CALL sys.…: the names, arguments and answers of Java's connector."""

import json
from pathlib import Path

import pyarrow as pa
import pytest

from emberlake.errors import InvalidInput, SnapshotNotFound, TagNotFound, Unsupported
from unit.sql.commands.sessions import Lake


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    lake = Lake(tmp_path)
    lake.sql("CREATE TABLE t (id INT, v INT, g STRING) PARTITIONED BY (g)")
    for start in (0, 4):
        table = lake.catalog.get_table("db.t")
        ids = pa.array([start + 3, start + 1, start + 2, start], pa.int32())
        table.append(pa.table({"id": ids, "v": ids, "g": ["p", "p", "q", "p"]}))
    return lake


def test_arguments_are_named_or_in_their_order_and_have_no_letter_case(lake: Lake) -> None:
    assert lake.sql("CALL sys.create_tag('db.t', 'one', 1)") == [(True,)]
    assert lake.sql("CALL PAIMON.SYS.Create_Tag(TAG => 'two', Table => 'paimon.db.t')") == [(True,)]

    assert lake.sql("SHOW TAGS t") == [("one",), ("two",)]


@pytest.mark.parametrize(
    ("call", "problem"),
    [
        ("sys.compact()", "table must be given"),
        ("sys.compact(table => 'db.t', nope => 1)", "has no argument nope"),
        ("sys.expire_snapshots(table => 'db.t', retain_max => 'many')", "a whole number"),
        ("sys.compact(table => 'db.t', order_by => 'id')", "order_strategy"),
        ("sys.compact(table => 'db.t', order_strategy => 'nope', order_by => 'id')", "no order"),
        ("sys.rollback(table => 'db.t')", "one of version, snapshot and tag"),
        ("sys.create_tag('db.t', 'x', 1, '1 d', 5)", "too many"),
        ("sys.remove_orphan_files(table => 'db.t', mode => 'nope')", "distributed or local"),
    ],
)
def test_wrong_arguments_are_refused(lake: Lake, call: str, problem: str) -> None:
    with pytest.raises(InvalidInput, match=problem):
        lake.sql(f"CALL {call}")


@pytest.mark.parametrize(
    ("call", "hint"),
    [
        ("sys.nope('db.t')", "there are, in sys: .*create_tag"),
        ("sys.create_tags('db.t')", "create_tag"),
        ("other.compact('db.t')", "there is no procedure"),
        ("sys.migrate_table('hive', 'db.t')", "AS SELECT"),
    ],
)
def test_unknown_procedures_are_refused_with_what_there_is(
    lake: Lake, call: str, hint: str
) -> None:
    with pytest.raises(Unsupported, match=hint):
        lake.sql(f"CALL {call}")


@pytest.mark.parametrize("order", ["order", "zorder", "hilbert"])
def test_rows_are_sorted_and_others_partitions_stay_as_they_are(lake: Lake, order: str) -> None:
    before = lake.catalog.get_table("db.t").to_arrow()

    call = f"table => 'db.t', where => 'g = \"p\"', order_strategy => '{order}', order_by => 'id,v'"
    assert lake.sql(f"CALL sys.compact({call})") == [(True,)]

    table = lake.catalog.get_table("db.t")
    assert table.to_arrow(["id"], filter="g = 'p'")["id"].to_pylist() == [0, 1, 3, 4, 5, 7]
    assert table.to_arrow().sort_by("id") == before.sort_by("id")
    latest = table.latest_snapshot()
    assert latest is not None
    assert latest.commit_kind == "OVERWRITE"
    files = [(f["partition"], f["record_count"]) for f in table.files().to_pylist()]
    assert len(files) == 3


def test_partitions_are_compacted_by_their_names(lake: Lake) -> None:
    lake.sql(
        "CALL sys.compact('db.t', 'g=p', 'minor', 'none', '', '', 'compaction.min.file-num=9')"
    )
    assert lake.catalog.get_table("db.t").files().num_rows == 4
    lake.sql("CALL sys.compact(table => 'db.t', partition_idle_time => '1 h')")
    assert lake.catalog.get_table("db.t").files().num_rows == 4
    lake.sql("CALL sys.compact(table => 'db.t', partitions => 'g=p')")
    assert lake.catalog.get_table("db.t").files().num_rows == 3
    lake.sql("CALL sys.compact(table => 'db.t', where => 'G > \"p\"')")
    assert lake.catalog.get_table("db.t").files().num_rows == 2


def test_partitions_that_nobody_writes_to_are_compacted(lake: Lake) -> None:
    lake.sql("CALL sys.compact(table => 'db.t', partition_idle_time => '0 s')")

    assert lake.catalog.get_table("db.t").files().num_rows == 2
    with pytest.raises(InvalidInput, match="leave one out"):
        lake.sql(
            "CALL sys.compact(table => 'db.t', order_strategy => 'order', order_by => 'id', "
            "partition_idle_time => '0 s')"
        )


def test_manifests_are_only_looked_at_in_a_dry_run(lake: Lake) -> None:
    before = lake.catalog.get_table("db.t").latest_snapshot()

    assert lake.sql("CALL sys.compact_manifest(table => 'db.t', dry_run => true)") == [(True,)]

    assert lake.catalog.get_table("db.t").latest_snapshot() == before


def test_snapshots_are_expired_and_rolled_back(lake: Lake) -> None:
    lake.sql("CALL sys.create_tag('db.t', 'first', 1)")
    assert lake.sql("CALL sys.rollback(table => 'db.t', version => 'first')") == [(2, 1)]
    with pytest.raises(TagNotFound):
        lake.sql("CALL sys.rollback(table => 'db.t', tag => 'nope')")
    lake.catalog.get_table("db.t").append(pa.table({"id": pa.array([9], pa.int32()), "g": ["p"]}))

    expired = lake.sql(
        "CALL sys.expire_snapshots(table => 'db.t', retain_max => 1, retain_min => 1)"
    )

    assert expired == [(1,)]
    assert lake.sql("CALL sys.remove_orphan_files(table => 'db.*', dry_run => true)") == [(0, 0)]


def test_partitions_expire_by_the_moment_in_their_values(lake: Lake) -> None:
    lake.sql("CREATE TABLE days (id INT, day STRING, hour INT) PARTITIONED BY (day, hour)")
    numbers = pa.array([1, 2, 3, 4], pa.int32())
    data = {"id": numbers, "day": ["20200102", "20200101", "99900101", "x"], "hour": numbers}
    lake.catalog.get_table("db.days").append(pa.table(data))
    call = (
        "CALL sys.expire_partitions(table => 'db.days', expiration_time => '1 d', "
        "timestamp_formatter => 'yyyyMMdd H', timestamp_pattern => '$day $hour', max_expires => 1)"
    )

    with pytest.raises(InvalidInput, match="supported are"):
        lake.sql(call)
    call = call.replace("yyyyMMdd H", "yyyyMMdd HH")

    assert lake.sql(call) == [("day=20200101, hour=2",)]
    assert lake.sql(call) == [("day=20200102, hour=1",)]
    assert lake.sql(call) == [("No expired partitions.",)]
    assert lake.catalog.get_table("db.days").count() == 2


def test_consumers_are_reset_and_cleared_by_name(lake: Lake) -> None:
    for name in ("a1", "a2", "b"):
        lake.sql(
            f"CALL sys.reset_consumer(table => 'db.t', consumerId => '{name}', nextSnapshotId => 1)"
        )
    consumers = lake.catalog.get_table("db.t").consumer_manager()

    lake.sql("CALL sys.reset_consumer('db.t', 'b')")
    lake.sql(
        "CALL sys.clear_consumers(table => 'db.t', includingConsumers => 'a.', "
        "excludingConsumers => 'a2')"
    )

    assert (consumers.list(), consumers.next_snapshot("a2")) == (["a2"], 1)


def test_a_partition_that_is_done_has_a_mark(lake: Lake) -> None:
    lake.sql("CALL sys.mark_partition_done(table => 'db.t', partitions => 'g=p;g=q')")

    folder = Path(lake.catalog.get_table("db.t").table_path)
    marks = [json.loads((folder / f"g={g}" / "_SUCCESS").read_text()) for g in "pq"]
    assert all(mark["creationTime"] <= mark["modificationTime"] for mark in marks)


def test_branches_are_created_forwarded_renamed_and_deleted(lake: Lake) -> None:
    lake.sql("CALL sys.create_tag('db.t', 'first', 1)")
    lake.sql("CALL sys.create_branch('db.t', 'dev', 'first')")
    lake.sql("CALL sys.fast_forward('db.t', 'dev')")
    lake.sql("CALL sys.rename_branch('db.t', 'dev', 'done')")

    table = lake.catalog.get_table("db.t")
    assert (table.list_branches(), table.count()) == (["done"], 4)
    lake.sql("CALL sys.delete_branch('db.t', 'done')")
    assert table.list_branches() == []


def test_a_purged_table_is_empty_and_has_one_snapshot(lake: Lake) -> None:
    assert lake.sql("CALL sys.purge_files('db.t')") == [("Success",)]

    table = lake.catalog.get_table("db.t")
    assert (table.count(), len(table.snapshot_manager().list_ids())) == (0, 1)


def test_a_database_is_compacted_table_by_table(lake: Lake) -> None:
    lake.sql("CREATE TABLE other (id INT)")

    answer = lake.sql("CALL sys.compact_database(including_tables => 'db\\\\.t')")

    assert answer == [("Compact database finished. Success: 1, Failed: 0",)]


def test_a_version_of_digits_is_a_snapshot_even_if_a_tag_has_this_name(lake: Lake) -> None:
    lake.sql("CALL sys.create_tag('db.t', '1', 2)")

    assert lake.sql("CALL sys.rollback(table => 'db.t', version => '1')") == [(2, 1)]


def test_a_consumer_is_reset_to_a_snapshot_that_is_there(lake: Lake) -> None:
    with pytest.raises(SnapshotNotFound, match="no snapshot 99"):
        lake.sql("CALL sys.reset_consumer('db.t', 'me', 99)")

    assert lake.catalog.get_table("db.t").consumer_manager().list() == []


def test_partitions_expire_by_the_time_of_their_files(lake: Lake) -> None:
    call = "CALL sys.expire_partitions(table => 'db.t', expire_strategy => 'update-time', "

    kept = lake.sql(f"{call} expiration_time => '1 d')")
    expired = lake.sql(f"{call} expiration_time => '0 ms')")

    assert kept == [("No expired partitions.",)]
    assert sorted(expired) == [("g=p",), ("g=q",)]


def test_a_table_can_say_how_many_partitions_expire_at_once(lake: Lake) -> None:
    call = "CALL sys.expire_partitions(table => 'db.t', expire_strategy => 'update-time', "
    lake.sql("ALTER TABLE t SET TBLPROPERTIES ('partition.expiration-max-num' = '1')")

    assert len(lake.sql(f"{call} expiration_time => '0 ms')")) == 1
    assert len(lake.sql(f"{call} expiration_time => '0 ms')")) == 1
