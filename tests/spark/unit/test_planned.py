"""A read whose files are gone says whether its snapshot is gone too, and what to do then."""

from collections.abc import Iterator

import pytest

from builders import append, create_table, overwrite, rows_of
from emberlake import FileNotFound, SnapshotNotFound, Table
from emberlake.read.projection import project_all
from emberlake.read.table_reader import TableReader
from emberlake.scan.plan import plan_scan
from emberlake.spark.planned import planned_files, read_planned
from table_reads import data_files


def reading(table: Table) -> Iterator[object]:
    """A read of the latest snapshot, which is planned now."""
    splits = plan_scan(table.store, None, None).splits
    return read_planned(TableReader(table.store, project_all(table.table_schema.fields)), splits)


def replaced(table: Table) -> Table:
    """The table with other rows, and without the snapshots before."""
    overwrite(table, rows_of([2]))
    table.expire_snapshots(retain_max=1, retain_min=1)
    return table


def test_files_that_are_gone_with_their_snapshot_fail_with_cause_and_remedy() -> None:
    table = create_table()
    append(table, rows_of([1]))
    rows = reading(table)
    replaced(table)

    with pytest.raises(SnapshotNotFound) as gone:
        next(rows)

    for part in ("snapshot 1 of /warehouse/db.db/t has expired", "read_paimon(...)", ".parquet"):
        assert part in str(gone.value)


def test_a_plan_of_a_snapshot_that_is_gone_fails_with_the_same_error() -> None:
    table = create_table()
    append(table, rows_of([1]))
    manifests = table.latest_snapshot().base_manifest_list
    replaced(table)

    with pytest.raises(SnapshotNotFound, match="snapshot 1 of"), planned_files(table.store, 1):
        table.store.storage.read(f"{table.table_path}/manifest/{manifests}")


@pytest.mark.parametrize("is_tagged", [False, True])
def test_a_file_that_is_lost_while_its_snapshot_is_kept_is_just_that(*, is_tagged: bool) -> None:
    table = create_table()
    append(table, rows_of([1]))
    rows = reading(table)
    (lost,) = data_files(table)
    if is_tagged:
        table.create_tag("kept", 1)
        replaced(table)
    table.store.storage.delete(lost)

    with pytest.raises(FileNotFound, match="does not exist"):
        next(rows)
