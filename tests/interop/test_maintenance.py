"""Snapshots that emberlake expired, branches that it made: others read them. And the reverse."""

import shutil
from collections.abc import Callable, Sequence
from pathlib import Path

import pyarrow as pa
import pytest

from canonical import Row, canonical_rows, sorted_rows
from emberlake import AtomicType, CatalogFactory, DataField, Schema, SchemaChange, Table
from emberlake.types import arrow_schema
from interop.judges import JavaJudge, java_judge, peer

pytestmark = pytest.mark.interop

NAME = "db.t"
COLUMNS = {"id": "BIGINT", "day": "STRING", "n": "INT"}
RETAINED = {"snapshot.num-retained.min": "2", "snapshot.num-retained.max": "2"}
READERS: dict[str, Callable[[Path], list[Row]]] = {
    "java": lambda warehouse: java_judge().rows(warehouse, NAME),
    "pypaimon": lambda warehouse: peer("pypaimon").rows(warehouse, NAME),
    "rust": lambda warehouse: peer("rust").rows(warehouse, NAME),
}
# No compaction of Java's own: its commits are to differ from ours in nothing but who expires.
LAZY = {"num-sorted-run.compaction-trigger": "99", "compaction.min.file-num": "99"}
SHAPES: dict[str, dict[str, object]] = {
    "append": {"bucket": "-1"},
    "append, partitioned": {"bucket": "-1", "partition_keys": ("day",)},
    "keys": {"bucket": "2", "primary_keys": ("id",)},
    "changelog": {"bucket": "1", "primary_keys": ("id",), "changelog-producer": "input"},
}
# What Java compacts when it writes, or cannot write by itself.
READ_SHAPES: dict[str, dict[str, object]] = {
    **SHAPES,
    "vectors": {"bucket": "2", "primary_keys": ("id",), "deletion-vectors.enabled": "true"},
    "dynamic buckets": {"bucket": "-1", "primary_keys": ("id",)},
}


def create(warehouse: Path, primary_keys=(), partition_keys=(), **options: str) -> Table:
    catalog = CatalogFactory.create({"warehouse": str(warehouse)})
    catalog.create_database("db", True)
    fields = [DataField(i, n, AtomicType(t)) for i, (n, t) in enumerate(COLUMNS.items())]
    catalog.create_table(NAME, Schema(fields, partition_keys, primary_keys, {**LAZY, **options}))
    return open_table(warehouse)


def open_table(warehouse: Path, name: str = NAME) -> Table:
    return CatalogFactory.create({"warehouse": str(warehouse)}).get_table(name)


def rows_of(table: Table, ids: Sequence[int], turn: int) -> pa.Table:
    rows = [{"id": n, "day": "mon" if n % 2 else "tue", "n": turn} for n in ids]
    return pa.Table.from_pylist(rows, arrow_schema(tuple(table.fields)))


def write(table: Table, ids: Sequence[int], turn: int, *, overwrite: bool = False) -> None:
    builder = table.new_batch_write_builder()
    builder = builder.overwrite() if overwrite else builder
    with builder.new_write() as writer, builder.new_commit() as commit:
        writer.write_arrow(rows_of(table, ids, turn))
        commit.commit(writer.prepare_commit())


def a_history(warehouse: Path, shape: str) -> Table:
    """Appends, overwrites and a compaction, with a tag in the middle."""
    table = create(warehouse, **READ_SHAPES[shape])  # type: ignore[arg-type]
    write(table, range(6), 1)
    write(table, range(3, 9), 2)
    table.create_tag("early")
    write(table, [1, 3], 3, overwrite=True)
    write(table, range(5), 4)
    table.create_tag("middle")
    table.compact(full=True)
    write(table, range(2, 4), 5, overwrite=True)
    return table


def our_rows(table: Table, **options: str) -> list[Row]:
    builder = table.copy(options).new_read_builder()
    rows = builder.new_read().to_arrow(builder.new_scan().plan().splits())
    return sorted_rows(canonical_rows(rows))


def files_of(warehouse: Path) -> set[str]:
    return {
        str(path.relative_to(warehouse))
        for path in warehouse.rglob("*")
        if path.is_file() and not path.name.endswith(".crc")
    }


@pytest.mark.parametrize("shape", READ_SHAPES)
def test_others_read_what_is_left_after_expiring(shape: str, tmp_path: Path) -> None:
    table = a_history(tmp_path, shape)
    expected = our_rows(table)
    tagged = our_rows(table, **{"scan.tag-name": "early"})
    before = our_rows(table, **{"scan.snapshot-id": str(table.latest_snapshot().id - 1)})

    expired = table.expire_snapshots(retain_max=2, retain_min=2).snapshots

    assert expired
    for reader in READERS.values():
        assert reader(tmp_path) == expected
    java = java_judge()
    assert java.rows(tmp_path, NAME, {"scan.tag-name": "early"}) == tagged
    at = {"scan.snapshot-id": str(expired[-1] + 1)}
    assert java.rows(tmp_path, NAME, at) == before
    assert table.check().ok


@pytest.mark.parametrize("shape", SHAPES)
def test_java_and_we_expire_the_same_files(java: JavaJudge, shape: str, tmp_path: Path) -> None:
    ours, theirs = tmp_path / "ours", tmp_path / "theirs"
    table = a_history(ours, shape)
    catalog = CatalogFactory.create({"warehouse": str(ours)})
    catalog.alter_table(NAME, [SchemaChange.set_option(k, v) for k, v in RETAINED.items()])
    shutil.copytree(ours, theirs)
    common = files_of(ours)
    data = rows_of(table, range(8), 6)

    write(open_table(ours), range(8), 6)
    open_table(ours).expire_snapshots()
    java.write(theirs, NAME, data)  # it expires after its commit

    # Hints are rewritten, not deleted; of the rest both have left the same.
    assert files_of(ours) & common == files_of(theirs) & common
    assert files_of(ours) & common < common
    assert our_rows(open_table(ours)) == our_rows(open_table(theirs))
    report = open_table(theirs).check()
    assert report.problems == ()
    assert our_rows(open_table(theirs), **{"scan.tag-name": "early"})


def test_java_goes_on_where_we_expired_and_we_where_java_did(
    java: JavaJudge, tmp_path: Path
) -> None:
    table = a_history(tmp_path, "keys")
    catalog = CatalogFactory.create({"warehouse": str(tmp_path)})
    catalog.alter_table(NAME, [SchemaChange.set_option(k, v) for k, v in RETAINED.items()])
    for turn in range(10, 14):
        if turn % 2:
            java.write(tmp_path, NAME, rows_of(table, range(turn), turn))
        else:
            write(open_table(tmp_path), range(turn), turn)
            open_table(tmp_path).expire_snapshots()

        assert len(open_table(tmp_path).snapshot_manager().list_ids()) == 2
        assert open_table(tmp_path).check().problems == ()
        assert java.rows(tmp_path, NAME) == our_rows(open_table(tmp_path))


def test_java_reads_and_writes_branches_that_we_made(java: JavaJudge, tmp_path: Path) -> None:
    table = a_history(tmp_path, "append")
    table.create_branch("b", "early")
    branch = open_table(tmp_path, f"{NAME}$branch_b")
    assert java.rows(tmp_path, f"{NAME}$branch_b") == our_rows(branch)

    write(branch, [100], 7)
    java.write(tmp_path, f"{NAME}$branch_b", rows_of(table, [200], 8))

    assert java.rows(tmp_path, f"{NAME}$branch_b") == our_rows(branch)
    assert len(our_rows(branch)) == 14
    table.fast_forward("b")
    assert our_rows(table) == our_rows(branch)
    for reader in READERS.values():
        assert reader(tmp_path) == our_rows(branch)


def test_java_reads_a_table_without_its_orphans(java: JavaJudge, tmp_path: Path) -> None:
    table = a_history(tmp_path, "keys")
    table.rollback_to("middle")
    expected = our_rows(table)
    now = table.store.env.now_ms()

    removed = table.remove_orphan_files(older_than=now).paths

    assert removed
    assert java.rows(tmp_path, NAME) == expected
    assert java.rows(tmp_path, NAME, {"scan.tag-name": "early"}) == our_rows(
        table, **{"scan.tag-name": "early"}
    )


def test_a_tag_for_a_time_is_one_to_others_too(java: JavaJudge, tmp_path: Path) -> None:
    table = create(tmp_path, bucket="-1")
    write(table, range(3), 1)
    table.create_tag("for good")
    table.create_tag("short", time_retained="1 ms")
    table.create_tag("long", time_retained="36 h")

    assert java.rows(tmp_path, f"{NAME}$tags") == our_rows(open_table(tmp_path, f"{NAME}$tags"))
    assert peer("pypaimon").rows(tmp_path, NAME, {"scan.tag-name": "long"}) == our_rows(table)
    java.write(tmp_path, NAME, rows_of(table, range(3), 2))

    assert table.list_tags() == ["for good", "long"]
