"""Which files share keys, and which of them can be read by themselves."""

import itertools

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from emberlake.scan.runs import KeyRange, find_sections, is_raw_bucket, key_ranges
from emberlake.spec.binary_row import encode_row
from emberlake.types import AtomicType

INT = AtomicType("INT")


def ranges_of(*ends: tuple[int, int]) -> list[KeyRange]:
    return [((least,), (greatest,)) for least, greatest in ends]


def test_files_that_share_no_keys_are_sections_of_their_own() -> None:
    assert find_sections(ranges_of((5, 9), (1, 2), (3, 4))) == [((1,),), ((2,),), ((0,),)]


def test_files_that_share_a_key_are_one_section_with_several_runs() -> None:
    assert find_sections(ranges_of((1, 5), (5, 9))) == [((0,), (1,))]


def test_a_file_can_hold_a_section_together() -> None:
    assert find_sections(ranges_of((1, 9), (2, 3), (4, 5), (10, 11))) == [((0,), (1, 2)), ((3,),)]


def test_files_of_one_key_are_one_run_each() -> None:
    assert find_sections(ranges_of((4, 4), (4, 4), (4, 4))) == [((0,), (1,), (2,))]


def test_no_files_have_no_sections() -> None:
    assert find_sections([]) == []


def test_keys_compare_column_by_column_as_the_format_does() -> None:
    types = [AtomicType("DOUBLE"), AtomicType("STRING")]
    keys = [(-0.0, "z"), (0.0, "a"), (float("nan"), ""), (1.0, "é"), (1.0, "f")]
    rows = pa.array([encode_row(types, key) for key in keys], pa.large_binary())
    ranges = key_ranges(types, rows, rows)

    order = sorted(range(len(keys)), key=lambda place: ranges[place])
    assert order == [0, 1, 4, 3, 2]


def test_nulls_are_the_least_keys() -> None:
    rows = pa.array([encode_row([INT], [value]) for value in (-5, None)], pa.large_binary())
    ranges = key_ranges([INT], rows, rows)

    assert ranges[1] < ranges[0]


@given(st.lists(st.tuples(st.integers(0, 30), st.integers(0, 8)), max_size=12))
def test_sections_and_runs_are_right_and_few(drawn: list[tuple[int, int]]) -> None:
    ends = [(least, least + width) for least, width in drawn]
    sections = find_sections(ranges_of(*ends))

    files = [file for section in sections for run in section for file in run]
    assert sorted(files) == list(range(len(ends)))
    for section in sections:
        for run in section:
            assert all(ends[a][1] < ends[b][0] for a, b in itertools.pairwise(run))
        members = [ends[file] for run in section for file in run]
        depth = max(sum(a <= key <= b for a, b in members) for key, _ in members)
        assert len(section) == depth
    for left, right in itertools.pairwise(sections):
        last = max(ends[file][1] for run in left for file in run)
        assert last < min(ends[file][0] for run in right for file in run)


def test_a_bucket_on_one_level_above_the_first_needs_no_merge() -> None:
    assert is_raw_bucket([5, 5], [0, None], levels_are_disjoint=False)
    assert not is_raw_bucket([4, 5], [0, 0], levels_are_disjoint=False)
    assert is_raw_bucket([4, 5], [0, 0], levels_are_disjoint=True)


def test_level_0_and_deletes_need_a_merge() -> None:
    assert not is_raw_bucket([0], [0], levels_are_disjoint=True)
    assert not is_raw_bucket([5, 5], [0, 3], levels_are_disjoint=True)
