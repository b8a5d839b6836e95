"""Which files of an append table are merged."""

from hypothesis import given
from hypothesis import strategies as st

from emberlake.compaction.append_picking import AppendRules, pick_ordered, pick_unordered
from emberlake.options import TableOptions
from emberlake.spec.manifest import DataFile

RULES = AppendRules.of(TableOptions({"source.split.open-file-cost": "0 b"}), 100)


def a_file(size: int, place: int = 0, rows: int = 10) -> DataFile:
    return DataFile(
        file_name=f"f{place}",
        file_size=size,
        row_count=rows,
        min_sequence_number=place * rows,
        max_sequence_number=place * rows + rows - 1,
        schema_id=0,
    )


def files_of(*sizes: int) -> list[DataFile]:
    return [a_file(size, place) for place, size in enumerate(sizes)]


def sizes(pick, files, deleted=None, *, full=False):
    bins = pick(files, RULES, lambda file: (deleted or {}).get(file.file_name, 0), full=full)
    return [[file.file_size for file in found] for found in bins]


def test_five_small_files_are_enough():
    assert sizes(pick_unordered, files_of(1, 1, 1, 1)) == []
    assert sizes(pick_unordered, files_of(1, 2, 3, 4, 5)) == [[1, 2, 3, 4, 5]]
    assert sizes(pick_unordered, files_of(1, 2), full=True) == [[1, 2]]
    assert sizes(pick_unordered, files_of(1), full=True) == []


def test_files_near_the_target_are_left_alone():
    assert sizes(pick_unordered, files_of(70, 71, 200, 70, 90), full=True) == []


def test_few_files_are_enough_when_they_make_two_large_ones():
    assert sizes(pick_unordered, files_of(69, 68, 67, 5)) == [[5, 67, 68, 69]]


def test_files_with_many_deleted_rows_are_rewritten_even_alone():
    assert sizes(pick_unordered, files_of(500, 400), {"f0": 3}) == [[500]]
    assert sizes(pick_unordered, files_of(500, 400), {"f0": 2}) == []
    assert sizes(pick_unordered, files_of(500, 400), {"f0": 2}, full=True) == [[500]]
    assert sizes(pick_unordered, files_of(5, 400), {"f0": 1}) == [[5]]


def test_only_neighbours_are_merged_in_a_bucket():
    assert sizes(pick_ordered, files_of(1, 2, 3, 500, 4, 5)) == []
    assert sizes(pick_ordered, files_of(1, 2, 3, 500, 4, 5), full=True) == [[1, 2, 3], [4, 5]]
    assert sizes(pick_ordered, files_of(5, 4, 3, 2, 1, 500)) == [[5, 4, 3, 2, 1]]


@given(
    sizes_=st.lists(st.integers(1, 300), max_size=30),
    deleted=st.dictionaries(st.integers(0, 29).map(lambda n: f"f{n}"), st.integers(1, 10)),
    full=st.booleans(),
    pick=st.sampled_from([pick_ordered, pick_unordered]),
)
def test_no_file_is_merged_twice_and_none_alone_without_reason(sizes_, deleted, full, pick):
    files = files_of(*sizes_)

    bins = pick(files, RULES, lambda file: deleted.get(file.file_name, 0), full=full)

    names = [file.file_name for found in bins for file in found]
    assert len(names) == len(set(names))
    assert all(len(found) > 1 or found[0].file_name in deleted for found in bins)
    if pick is pick_ordered:
        places = [[int(file.file_name[1:]) for file in found] for found in bins]
        assert all(run == list(range(run[0], run[-1] + 1)) for run in places)
