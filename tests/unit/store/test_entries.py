import pickle
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from emberlake.errors import CorruptFile
from emberlake.spec.manifest import DataFile, FileKind, FileSource, ManifestEntry, SimpleStats
from emberlake.store.entries import (
    EMPTY,
    ENTRY_SCHEMA,
    ManifestEntries,
    compact_entries,
    merge_entries,
)


def an_entry(name: str = "a", *, kind: FileKind = FileKind.ADD, **changes: Any) -> ManifestEntry:
    file = DataFile(
        file_name=name,
        file_size=100,
        row_count=10,
        min_sequence_number=1,
        max_sequence_number=10,
        schema_id=0,
    )
    entry = ManifestEntry(kind=kind, partition=b"p1", bucket=0, total_buckets=2, file=file)
    of_file = {key: value for key, value in changes.items() if hasattr(file, key)}
    of_entry = {key: value for key, value in changes.items() if key not in of_file}
    return replace(entry, **of_entry, file=replace(file, **of_file))


def a_delete(name: str = "a", **changes: Any) -> ManifestEntry:
    return an_entry(name, kind=FileKind.DELETE, **changes)


FULL = an_entry(
    "full",
    kind=FileKind.DELETE,
    partition=b"\x00\x01",
    bucket=-2,
    min_key=b"k1",
    max_key=b"k2",
    key_stats=SimpleStats(b"a", b"b", (0,)),
    value_stats=SimpleStats(b"c", b"d", (1, None, 3)),
    level=5,
    extra_files=("x.index", "y.index"),
    creation_time=1_700_000_000_000,
    delete_row_count=3,
    embedded_file_index=b"\x00idx",
    file_source=FileSource.COMPACT,
    value_stats_cols=("id", "näme"),
    external_path="s3://b/f",
    first_row_id=77,
    write_cols=("id",),
    write_cols_sequences=(4, 5),
)
BARE = an_entry(
    "bare",
    value_stats=SimpleStats(b"", b"", None),
    creation_time=None,
    delete_row_count=None,
    file_source=None,
    value_stats_cols=(),
)
MIXED = [FULL, BARE, an_entry(), FULL, replace(BARE, partition=b"p2")]


def entries_of(*entries: ManifestEntry) -> ManifestEntries:
    return ManifestEntries.from_entries(entries)


def names(entries: ManifestEntries) -> list[str]:
    return [entry.file.file_name for entry in entries.entries()]


def test_entries_survive_the_way_through_columns() -> None:
    entries = entries_of(*MIXED)

    assert entries.entries() == MIXED
    assert entries.files() == [entry.file for entry in MIXED]
    assert entries.table.schema == ENTRY_SCHEMA
    assert [type(entry.kind) for entry in entries.entries()] == [FileKind] * 5


def test_entries_survive_pickling() -> None:
    entries = entries_of(*MIXED)

    assert pickle.loads(pickle.dumps(entries)) == entries


def test_pickling_is_compact() -> None:
    entries = entries_of(*[an_entry(f"data-{number}") for number in range(10_000)])

    assert len(pickle.dumps(entries)) < 200_000


def test_parts_are_joined_in_order() -> None:
    joined = ManifestEntries.concat([entries_of(*MIXED[:2]), EMPTY, entries_of(*MIXED[2:])])

    assert joined.entries() == MIXED
    assert joined == entries_of(*MIXED)


def test_nothing_joined_is_empty() -> None:
    assert ManifestEntries.concat([]) is EMPTY
    assert ManifestEntries.concat([EMPTY, EMPTY]) is EMPTY
    assert len(EMPTY) == 0
    assert EMPTY.entries() == []
    assert EMPTY.partitions == ()
    assert merge_entries(EMPTY) is EMPTY
    assert compact_entries(EMPTY) is EMPTY


def test_columns_are_arrays() -> None:
    entries = ManifestEntries.concat([entries_of(*MIXED[:2]), entries_of(*MIXED[2:])])

    assert entries.kind.tolist() == [1, 0, 0, 1, 0]
    assert entries.bucket.tolist() == [-2, 0, 0, -2, 0]
    assert entries.level.tolist() == [5, 0, 0, 5, 0]
    assert entries.row_count.dtype == np.int64
    assert entries.file_name.to_pylist() == ["full", "bare", "a", "full", "bare"]
    assert entries.value_stats_cols.to_pylist()[:3] == [["id", "näme"], [], None]
    assert entries.value_stats_null_counts.to_pylist()[:3] == [[1, None, 3], None, []]
    assert entries.has_deletes


def test_partitions_are_numbered_by_first_appearance() -> None:
    entries = entries_of(*MIXED)

    assert entries.partitions == (b"\x00\x01", b"p1", b"p2")
    assert entries.partition_codes.tolist() == [0, 1, 1, 0, 2]


def test_entries_are_taken_by_mask_and_by_index() -> None:
    entries = entries_of(*MIXED)

    assert entries.take(np.array([True, False, False, True, False])).entries() == [FULL, FULL]
    assert entries.take(np.array([4, 0])).entries() == [MIXED[4], MIXED[0]]
    assert entries.take(np.ones(5, np.bool_)) is entries
    assert entries.take(np.zeros(5, np.bool_)) is EMPTY


def test_entries_taken_from_a_slice_of_columns_keep_their_values() -> None:
    sliced = ManifestEntries(entries_of(*MIXED).table.slice(1, 3))

    assert sliced.entries() == MIXED[1:4]


def test_without_deletes_all_entries_are_live() -> None:
    entries = entries_of(an_entry("a"), an_entry("b"))

    assert merge_entries(entries) is entries


def test_a_deleted_file_is_not_live_in_whatever_order() -> None:
    entries = entries_of(a_delete("a"), an_entry("b"), an_entry("a"), an_entry("c"), a_delete("c"))

    assert names(merge_entries(entries)) == ["b"]


@pytest.mark.parametrize(
    "change",
    [
        {"partition": b"p2"},
        {"bucket": 1},
        {"level": 5},
        {"extra_files": ("a.index",)},
        {"embedded_file_index": b"x"},
        {"external_path": "s3://b/a"},
    ],
    ids=lambda change: next(iter(change)),
)
def test_a_delete_of_another_identity_deletes_nothing(change: dict[str, Any]) -> None:
    entries = entries_of(an_entry("a"), a_delete("a", **change))

    assert merge_entries(entries).entries() == [an_entry("a")]
    assert compact_entries(entries) is entries


def test_what_is_not_identity_does_not_matter() -> None:
    dropped = a_delete("a", value_stats=SimpleStats(), value_stats_cols=(), total_buckets=9)

    assert len(merge_entries(entries_of(an_entry("a"), dropped))) == 0


def test_an_upgrade_moves_a_file_to_another_level() -> None:
    entries = entries_of(an_entry("a"), a_delete("a"), an_entry("a", level=5))

    assert merge_entries(entries).entries() == [an_entry("a", level=5)]
    assert compact_entries(entries).entries() == [an_entry("a", level=5)]


def test_compacting_keeps_deletes_whose_add_is_elsewhere() -> None:
    entries = entries_of(an_entry("a"), a_delete("old"), a_delete("a"), an_entry("b"))

    assert compact_entries(entries).entries() == [a_delete("old"), an_entry("b")]


def test_compacting_refuses_a_file_that_is_added_twice() -> None:
    with pytest.raises(CorruptFile, match=r"a is corrupt: .*twice"):
        compact_entries(entries_of(an_entry("a"), an_entry("a")))


def test_a_file_may_come_back_after_it_was_deleted() -> None:
    entries = entries_of(an_entry("a"), a_delete("a"), an_entry("a"))

    assert compact_entries(entries).entries() == [an_entry("a")]
