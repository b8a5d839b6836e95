"""Which files are compacted: examples of the rules, and what holds for every pick."""

from hypothesis import given
from hypothesis import strategies as st

from emberlake.compaction.picking import (
    PickingRules,
    Rewrite,
    Upgrade,
    pick_full,
    pick_universal,
    plan_steps,
    sorted_runs,
    top_level,
)
from emberlake.spec.manifest import DataFile
from merge_tables import schema_of


def a_file(level: int, size: int, newest: int = 0, *, name: str = "", deletes: int = 0) -> DataFile:
    return DataFile(
        file_name=name or f"{level}-{newest}-{size}",
        file_size=size,
        row_count=size,
        min_sequence_number=newest,
        max_sequence_number=newest,
        schema_id=0,
        level=level,
        delete_row_count=deletes,
    )


def bucket(*runs: tuple[int, int]) -> list[DataFile]:
    """Files by level and size; the first are the newest."""
    return [a_file(level, size, 100 - place) for place, (level, size) in enumerate(runs)]


def rules(**options: str) -> PickingRules:
    named = {key.replace("_", "-"): text for key, text in options.items()}
    return PickingRules.of(schema_of({"k": "INT"}, ["k"], named))


DEFAULT = rules()
LOOKUP = rules(merge_engine="first-row")


def picked(files, asked=DEFAULT):
    pick = pick_universal(files, asked)
    return None if pick is None else (len(pick.files), pick.output_level)


def test_files_of_level_0_are_runs_of_their_own_and_come_before_levels():
    files = [a_file(3, 1), a_file(0, 2, 5), a_file(1, 3), a_file(0, 4, 9), a_file(3, 5)]

    runs = sorted_runs(files)

    assert [(run.level, len(run.files)) for run in runs] == [(0, 1), (0, 1), (1, 1), (3, 2)]
    assert [run.size for run in runs] == [4, 2, 3, 6]


def test_there_is_nothing_to_do_for_few_runs():
    assert picked(bucket((0, 1), (0, 1), (0, 1), (5, 1))) is None
    assert picked([]) is None


def test_all_runs_go_to_the_top_when_the_newer_ones_outgrow_the_oldest():
    assert picked(bucket((0, 100), (0, 100), (0, 100), (0, 100), (5, 100))) == (5, 5)


def test_runs_of_similar_size_are_merged_below_the_one_that_is_larger():
    assert picked(bucket((0, 1), (0, 1), (0, 1), (0, 2), (5, 100))) == (4, 4)


def test_nothing_is_taken_when_the_second_run_is_much_larger_and_runs_are_few():
    assert picked(bucket((0, 1), (0, 10), (0, 20), (4, 40), (5, 100))) is None


def test_too_many_runs_are_merged_whatever_their_sizes():
    # Runs up to level 1 are taken as soon as something is.
    assert picked(bucket((0, 1), (0, 10), (0, 20), (3, 400), (4, 4_000), (5, 40_000))) == (3, 2)


def test_a_pick_below_level_1_takes_that_level_in():
    # With level 1 next in line there is no level between it and level 0.
    asked = rules(**{"num-sorted-run.compaction-trigger": "3", "compaction.size-ratio": "0"})
    files = bucket((0, 10), (0, 10), (0, 10), (1, 1_000), (5, 100_000))

    assert picked(files, asked) == (4, 4)


def test_lookup_tables_take_all_of_level_0():
    assert picked(bucket((0, 1)), LOOKUP) == (1, 5)
    assert picked(bucket((0, 1), (5, 1_000)), LOOKUP) == (1, 4)
    assert picked(bucket((0, 1), (1, 1_000), (2, 5)), LOOKUP) == (3, 5)
    assert picked(bucket((5, 1_000)), LOOKUP) is None


def test_a_full_compaction_takes_everything_to_the_top():
    files = bucket((0, 1), (3, 1), (5, 1_000))

    pick = pick_full(files, DEFAULT)

    assert pick is not None
    assert (set(pick.files), pick.output_level, pick.rewrites_all) == (set(files), 5, False)


def test_a_full_compaction_of_the_top_rewrites_only_files_with_deleted_rows():
    files = [a_file(5, 1, name="whole"), a_file(5, 1, name="stale")]

    pick = pick_full(files, DEFAULT, has_deletions={"stale"})

    assert pick is not None
    assert ([f.file_name for f in pick.files], pick.rewrites_all) == (["stale"], True)
    assert pick_full(files, DEFAULT) is None
    assert pick_full([], DEFAULT) is None


def test_levels_that_exist_count_even_when_the_options_have_fewer():
    asked = rules(**{"num-levels": "3"})

    assert top_level([a_file(7, 1)], asked) == 7
    assert top_level([a_file(0, 1)], asked) == 2


FILES = st.lists(st.tuples(st.integers(0, 7), st.integers(1, 10_000)), max_size=12).map(
    lambda runs: [a_file(level, size, place) for place, (level, size) in enumerate(runs)]
)


@given(files=FILES, asked=st.sampled_from([DEFAULT, LOOKUP, rules(**{"num-levels": "3"})]))
def test_what_is_picked_is_the_newest_and_goes_right_below_the_rest(files, asked):
    pick = pick_universal(files, asked)

    if pick is None:
        assert not (asked.takes_level_0 and any(file.level == 0 for file in files))
        return
    taken = [file.file_name for file in pick.files]
    runs = sorted_runs(files)
    count = next(
        n for n in range(len(runs) + 1) if sum(len(r.files) for r in runs[:n]) == len(taken)
    )
    assert taken == [file.file_name for run in runs[:count] for file in run.files]
    left = [run.level for run in runs[count:]]
    assert 0 < pick.output_level <= top_level(files, asked)
    assert all(file.level <= pick.output_level for file in pick.files)
    assert all(level > pick.output_level for level in left)


# --- what is done with the files ------------------------------------------------------------------


def steps(sections, output=5, rewrite=()):
    return plan_steps(
        sections, output, small_bytes=10, must_rewrite=lambda file: file.file_name in rewrite
    )


def test_a_large_file_that_shares_no_keys_is_taken_up_as_it_is():
    large = a_file(0, 100)

    assert steps([[[large]]]) == [Upgrade(large)]
    assert steps([[[a_file(5, 100)]]]) == []


def test_a_small_file_by_itself_is_taken_up_too():
    small = a_file(0, 1)

    assert steps([[[small]]]) == [Upgrade(small)]


def test_files_that_must_not_stay_as_they_are_are_rewritten():
    large = a_file(0, 100, name="deletes")

    assert steps([[[large]]], rewrite={"deletes"}) == [Rewrite((((large,),),))]


def test_small_neighbours_and_what_shares_keys_are_rewritten_together():
    a, b, c, d = (a_file(0, size, n) for n, size in enumerate((1, 2, 50, 60)))

    assert steps([[[a]], [[c], [d]], [[b]]]) == [Rewrite((((a,),), ((c,), (d,)), ((b,),)))]


def test_a_large_file_ends_what_is_rewritten_together():
    a, b, large = a_file(0, 1, 1), a_file(0, 2, 2), a_file(0, 100, 3)

    assert steps([[[a]], [[b]], [[large]], [[b]]]) == [
        Rewrite((((a,),), ((b,),))),
        Upgrade(large),
        Upgrade(b),
    ]
