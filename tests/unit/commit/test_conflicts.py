"""The pure decisions of a commit."""

from dataclasses import replace

import pytest

from emberlake.commit.conflicts import (
    check_already_committed,
    check_bucket_counts,
    check_change_itself,
    check_deleted_files,
    check_indexes,
    check_key_places,
    check_key_ranges,
    check_sequence_numbers,
    claims_on,
    reaches_claimed_numbers,
)
from emberlake.errors import AlreadyCommitted, ConflictReason
from emberlake.spec.manifest import (
    DELETION_VECTORS_INDEX,
    HASH_INDEX,
    DataFile,
    FileKind,
    IndexFile,
    IndexManifestEntry,
    ManifestEntry,
)

FILE = DataFile(
    file_name="a",
    file_size=1,
    row_count=1,
    min_sequence_number=0,
    max_sequence_number=0,
    schema_id=0,
)


def an_entry(name="a", kind=FileKind.ADD, partition=b"p", total_buckets=-1, **file):
    return ManifestEntry(
        kind=kind,
        partition=partition,
        bucket=0,
        total_buckets=total_buckets,
        file=replace(FILE, file_name=name, **file),
    )


def test_a_change_with_different_files_is_fine():
    assert check_change_itself([]) is None
    assert check_change_itself([an_entry("a"), an_entry("b")]) is None
    assert check_change_itself([an_entry("a"), an_entry("a", partition=b"q")]) is None


def test_a_file_that_changes_its_level_is_another_file():
    upgrade = [an_entry(kind=FileKind.DELETE), an_entry(level=5)]

    assert check_change_itself(upgrade) is None


@pytest.mark.parametrize("kind", FileKind)
def test_a_change_must_not_name_a_file_twice(kind):
    conflict = check_change_itself([an_entry("b"), an_entry(), an_entry(kind=kind)])

    assert conflict.reason is ConflictReason.FILE_ADDED_TWICE
    assert "a is in the messages more than once" in str(conflict)


def test_files_to_delete_must_be_live():
    live = [an_entry("a"), an_entry("b")]

    assert check_deleted_files([an_entry("a", FileKind.DELETE)], live, snapshot_id=5) is None
    conflict = check_deleted_files([an_entry("c", FileKind.DELETE)], live, snapshot_id=5)

    assert conflict.reason is ConflictReason.FILE_DELETED_ELSEWHERE
    assert "c is not in snapshot 5" in str(conflict)


@pytest.mark.parametrize(
    "other",
    [
        {"partition": b"q"},
        {"level": 1},
        {"extra_files": ("x",)},
        {"embedded_file_index": b"x"},
        {"external_path": "/x"},
    ],
)
def test_a_file_is_live_only_with_its_whole_identity(other):
    gone = check_deleted_files([an_entry(kind=FileKind.DELETE)], [an_entry(**other)], snapshot_id=5)

    assert gone is not None


def test_a_partition_keeps_its_number_of_buckets():
    ours = [an_entry(total_buckets=2)]

    same = [an_entry("x", total_buckets=2), an_entry("y", total_buckets=4, partition=b"q")]
    assert check_bucket_counts(ours, same, snapshot_id=5) is None
    deleted = [an_entry("x", FileKind.DELETE, total_buckets=4)]
    assert check_bucket_counts(ours, deleted, snapshot_id=5) is None
    changed = [*deleted, an_entry("x", total_buckets=4)]
    conflict = check_bucket_counts(ours, changed, snapshot_id=5)

    assert conflict.reason is ConflictReason.BUCKET_COUNT_CHANGED
    assert "snapshot 5 gave a partition 4 buckets" in str(conflict)


def test_tables_without_buckets_have_no_number_of_buckets_to_keep():
    assert (
        check_bucket_counts([an_entry()], [an_entry("x", total_buckets=4)], snapshot_id=5) is None
    )


@pytest.mark.parametrize("kind", FileKind)
def test_a_snapshot_that_adds_or_deletes_our_file_shows_that_it_was_committed(kind):
    conflict = check_already_committed(
        {"a", "b"}, [an_entry("x"), an_entry("b", kind)], snapshot_id=5
    )

    assert isinstance(conflict, AlreadyCommitted)
    assert "snapshot 5 knows b" in str(conflict)


def test_other_files_show_nothing():
    assert check_already_committed({"a"}, [an_entry("x")], snapshot_id=5) is None
    assert check_already_committed({"a"}, [], snapshot_id=5) is None


# --- sequence numbers -----------------------------------------------------------------------------


def numbered(name, numbers, kind=FileKind.ADD, keys=(1, 9), bucket=0, level=0, partition=b"p"):
    """An entry of a file with rows of these sequence numbers and keys, both from and to."""
    entry = an_entry(
        name,
        kind,
        partition,
        level=level,
        min_sequence_number=numbers[0],
        max_sequence_number=numbers[1],
        min_key=bytes([keys[0]]),
        max_key=bytes([keys[1]]),
    )
    return replace(entry, bucket=bucket)


def check_numbers(ours, theirs):
    return check_sequence_numbers(claims_on(ours), theirs, tuple)


@pytest.mark.parametrize("numbers", [(10, 10), (5, 10), (11, 12), (0, 99)])
@pytest.mark.parametrize("level", [0, 5])
def test_rows_of_others_that_are_not_older_are_a_conflict(numbers, level):
    theirs = [numbered("old", (0, 9)), numbered("theirs", numbers, level=level)]

    conflict = check_numbers([numbered("mine", (10, 20))], theirs)

    assert conflict.reason is ConflictReason.SEQUENCE_NUMBERS_TAKEN
    assert f"theirs in bucket 0 goes up to {numbers[1]}, mine begins with 10" in str(conflict)


@pytest.mark.parametrize(
    "theirs",
    [
        numbered("x", (0, 9)),
        numbered("x", (10, 20), bucket=1),
        numbered("x", (10, 20), partition=b"q"),
        numbered("x", (10, 20), keys=(10, 12)),
        numbered("x", (10, 20), keys=(0, 0)),
        numbered("x", (10, 20), kind=FileKind.DELETE),
    ],
)
def test_older_rows_and_those_of_other_places_and_keys_are_none(theirs):
    assert check_numbers([numbered("mine", (10, 20))], [theirs]) is None


@pytest.mark.parametrize("keys", [(0, 1), (9, 12), (3, 4), (0, 12)])
def test_files_share_keys_when_their_ranges_touch(keys):
    assert check_numbers([numbered("mine", (10, 20))], [numbered("x", (10, 10), keys=keys)])


def test_each_new_file_counts_by_itself():
    ours = [numbered("a", (10, 12), keys=(1, 3)), numbered("b", (13, 20), keys=(4, 9))]

    assert check_numbers(ours, [numbered("x", (5, 12), keys=(4, 9))]) is None
    assert check_numbers(ours, [numbered("x", (5, 12), keys=(3, 9))]) is not None


def test_what_is_deleted_again_is_no_conflict_but_what_stands_in_its_place_may_be():
    added = numbered("x", (10, 12))
    deleted = numbered("x", (10, 12), kind=FileKind.DELETE)
    mine = [numbered("mine", (10, 20))]

    assert check_numbers(mine, [added, deleted]) is None
    assert check_numbers(mine, [added, deleted, numbered("y", (0, 12), level=5)]) is not None


def test_only_new_rows_in_buckets_must_be_newer():
    others = [numbered("x", (10, 20), level=level, bucket=b) for level in (0, 5) for b in (-2, 0)]

    assert check_numbers([numbered("mine", (10, 20), bucket=-2)], others) is None
    assert check_numbers([numbered("mine", (10, 20), level=1)], others) is None
    assert not reaches_claimed_numbers({}, others[0])


# --- key ranges -----------------------------------------------------------------------------------


def a_run_file(name, first, last, level=1, **place):
    return an_entry(name, level=level, min_key=bytes([first]), max_key=bytes([last]), **place)


def test_files_of_one_level_must_not_overlap():
    conflict = check_key_ranges([a_run_file("b", 5, 9)], [a_run_file("a", 1, 5)], tuple)

    assert conflict.reason is ConflictReason.KEY_RANGES_OVERLAP
    assert "a and b on level 1 of bucket 0" in str(conflict)


def test_files_that_come_in_together_must_not_overlap_either():
    added = [a_run_file("a", 1, 5), a_run_file("b", 2, 3)]

    assert check_key_ranges(added, [], tuple) is not None


@pytest.mark.parametrize(
    "other",
    [
        a_run_file("b", 6, 9),
        a_run_file("b", 1, 9, level=2),
        a_run_file("b", 1, 9, level=0),
        a_run_file("b", 1, 9, partition=b"q"),
    ],
)
def test_files_of_other_ranges_levels_and_partitions_do_not_overlap(other):
    assert check_key_ranges([a_run_file("a", 1, 5)], [other], tuple) is None


def test_new_files_of_level_zero_may_overlap():
    added = [a_run_file("a", 1, 5, level=0), a_run_file("b", 1, 5, level=0)]

    assert check_key_ranges(added, added, tuple) is None


def test_what_was_wrong_in_other_places_is_not_the_fault_of_a_commit():
    kept = [a_run_file("a", 1, 5, level=2), a_run_file("b", 1, 5, level=2)]

    assert check_key_ranges([a_run_file("c", 1, 5)], kept, tuple) is None


# --- indexes --------------------------------------------------------------------------------------


def an_index(name, kind=HASH_INDEX, bucket=0):
    file = IndexFile(index_type=kind, file_name=name, file_size=1, row_count=1)
    return IndexManifestEntry(kind=FileKind.ADD, partition=b"p", bucket=bucket, index_file=file)


def test_an_index_is_replaced_by_who_has_seen_it():
    assert check_indexes([an_index("new")], [an_index("old")], [an_index("old")]) is None
    assert check_indexes([an_index("new")], [], []) is None
    assert check_indexes([an_index("new")], [], [an_index("other", bucket=1)]) is None
    assert check_indexes([an_index("new")], [], [an_index("v", DELETION_VECTORS_INDEX)]) is None


def test_an_index_that_another_writer_replaced_is_a_conflict():
    conflict = check_indexes([an_index("new")], [an_index("old")], [an_index("theirs")])

    assert conflict.reason is ConflictReason.KEY_INDEX_CHANGED
    assert "old" in str(conflict)


def test_an_index_that_nobody_expected_is_a_conflict():
    conflict = check_indexes([an_index("new")], [], [an_index("theirs")])

    assert conflict.reason is ConflictReason.KEY_INDEX_CHANGED


def test_deletion_vectors_that_are_gone_are_a_conflict():
    old = an_index("old", DELETION_VECTORS_INDEX)

    assert check_indexes([], [old], [old]) is None
    assert check_indexes([], [old], []).reason is ConflictReason.DELETION_VECTOR_CHANGED


def test_a_key_may_not_be_written_by_others_in_any_partition():
    ours = [
        an_entry("low", partition=b"p", min_key=b"a", max_key=b"b"),
        an_entry("ours", partition=b"p", min_key=b"c", max_key=b"f"),
        an_entry("inner", partition=b"q", min_key=b"d", max_key=b"d"),
    ]

    def found(*theirs, share=True):
        columns_of = (lambda _: ()) if share else (lambda partition: partition)
        return check_key_places(ours, theirs, lambda key: (key,), columns_of)

    elsewhere = {"partition": b"q", "min_key": b"f", "max_key": b"z"}
    assert found(an_entry("x", **{**elsewhere, "min_key": b"g"})) is None
    assert found(an_entry("x", **elsewhere), share=False) is None
    conflict = found(an_entry("x", **elsewhere))
    assert conflict.reason is ConflictReason.KEY_INDEX_CHANGED
    assert "wrote x" in str(conflict)
    assert "those of ours" in str(conflict)
    assert found(an_entry("x", partition=b"q", min_key=b"bb", max_key=b"bz")) is None
    assert found(an_entry("x", partition=b"r", min_key=b"c", max_key=b"f"), share=False) is None
    gone = found(an_entry("x", kind=FileKind.DELETE, min_key=b"a", max_key=b"c"))
    assert "removed x" in str(gone)
