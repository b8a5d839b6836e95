"""Compaction of single buckets with a primary key: what becomes of which file."""

from collections.abc import Mapping

import pytest

from builders import NUMBERED, alter, create_key_table, forget_deletes, numbered, open_table, upsert
from emberlake import AtomicType, SchemaChange, Table
from table_reads import check_whole, index_entries, live_files, read_rows
from watched_storage import Call, WatchedStorage

VECTORS = {"deletion-vectors.enabled": "true"}


def ids(table: Table) -> list[int]:
    return sorted(row["id"] for row in read_rows(table))


def test_files_with_deleted_rows_are_rewritten_each_for_itself() -> None:
    table = create_key_table(NUMBERED, **{**VECTORS, "target-file-row-num": "2"})
    upsert(table, numbered(range(6)))
    table.compact(full=True)
    for deleted in (0, 5):
        upsert(table, numbered([deleted]), row_kind="-D")
    before = {entry.file.file_name for entry in live_files(table)}

    table.compact(full=True)

    # The file between the two has keys between theirs: it stays, and they stay apart.
    after = live_files(table)
    assert sorted(entry.file.row_count for entry in after) == [1, 1, 2]
    assert len(before & {entry.file.file_name for entry in after}) == 1
    assert ids(table) == [1, 2, 3, 4]
    assert index_entries(table) == []
    check_whole(table)


@pytest.mark.parametrize("options", [{}, VECTORS])
@pytest.mark.parametrize("moment", range(8))
def test_a_column_that_is_added_at_any_moment_is_not_lost(
    options: Mapping[str, str], moment: int
) -> None:
    table = create_key_table(NUMBERED, **{**options, "write-only": "true"})
    upsert(table, numbered([1, 2]))
    inner = table.store.storage
    waiting = [moment]

    def add_a_column(call: Call) -> None:
        if call.is_done and waiting == [call.number - 1]:
            waiting.clear()
            changed = alter(open_table(inner), SchemaChange.add_column("w", AtomicType("INT")))
            upsert(changed, [{"id": 1, "v": "new", "n": 0, "w": 7}])

    watched = WatchedStorage(inner)
    slow = open_table(watched)
    watched.watch = add_a_column
    watched.calls.clear()
    slow.compact(full=True)
    open_table(inner).compact(full=True)

    assert not waiting
    assert {row["id"]: row["w"] for row in read_rows(open_table(inner))} == {1: 7, 2: None}


@pytest.mark.parametrize("before", [[], [1, 2, 3]])
@pytest.mark.parametrize("options", [{}, VECTORS])
def test_deletes_that_their_writer_has_not_counted_delete_nevertheless(
    options: Mapping[str, str], before: list[int]
) -> None:
    table = create_key_table(NUMBERED, **{**options, "write-only": "true"})
    if before:
        upsert(table, numbered(before))
        table.compact(full=True)
    upsert(table, numbered([0, 2]), row_kind="-D")
    forget_deletes(table)

    left = [n for n in before if n != 2]
    table.copy({"compaction.force-up-level-0": "true"}).compact()
    assert ids(table) == left
    table.compact(full=True)
    assert ids(table) == left
