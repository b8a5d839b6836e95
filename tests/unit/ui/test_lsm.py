"""A bucket as a tree of sorted runs."""

from emberlake.merge.order import key_bound
from emberlake.ui.views.lsm import MAX_FILES, MAX_RUNS, KeyFile, lsm_of


def file(level: int, low: object, high: object, *, sequence: int = 0, **other: int) -> KeyFile:
    values = {"rows": 10, "size": 100, "deletes": 0, "vector": 0, **other}
    bounds = key_bound([low]), key_bound([high])
    return KeyFile(
        name=f"data-{level}-{low}",
        level=level,
        sequence=sequence,
        low=str(low),
        high=str(high),
        range=bounds,
        **values,
    )


def test_every_file_of_level_0_is_a_run_the_newest_on_top() -> None:
    tree = lsm_of([file(0, 1, 5, sequence=3), file(0, 2, 9, sequence=8), file(5, 0, 9)])

    assert [(run.label, run.blocks[0].text.split()[0]) for run in tree.runs] == [
        ("L0", "data-0-2"),
        ("L0", "data-0-1"),
        ("L5", "data-5-0"),
    ]
    assert (tree.run_count, tree.levels, tree.overlap) == (3, 2, 3)


def test_the_files_of_a_higher_level_are_one_run_in_the_order_of_keys() -> None:
    tree = lsm_of([file(2, 50, 99), file(2, 0, 49)])

    (run,) = tree.runs
    assert [(block.start, block.end) for block in run.blocks] == [(0.0, 0.5), (0.5, 1.0)]
    assert tree.is_linear
    assert tree.overlap == 1


def test_keys_that_are_no_integers_are_drawn_in_order() -> None:
    tree = lsm_of([file(1, "a", "b"), file(1, "y", "z")])

    assert not tree.is_linear
    assert [(block.start, block.end) for block in tree.runs[0].blocks] == [(0.0, 0.5), (0.5, 1.0)]
    assert (tree.low, tree.high) == ("a", "z")


def test_deletes_and_deletion_vectors_are_a_share_of_the_rows() -> None:
    tree = lsm_of([file(0, 1, 2, deletes=3, vector=2)])

    assert tree.runs[0].deletes == 5
    assert tree.runs[0].blocks[0].gone == 0.5


def test_deletes_that_nobody_counted_are_none() -> None:
    assert lsm_of([file(0, 1, 2, deletes=None)]).runs[0].deletes == 0  # type: ignore[arg-type]


def test_a_long_run_is_drawn_in_fewer_blocks_that_hold_all_its_files() -> None:
    tree = lsm_of([file(3, i * 2, i * 2 + 1) for i in range(50_000)])

    (run,) = tree.runs
    assert len(run.blocks) <= MAX_FILES
    assert sum(block.files for block in run.blocks) == run.files == 50_000


def test_too_many_runs_are_counted_but_not_drawn() -> None:
    tree = lsm_of([*(file(0, 1, 9, sequence=i) for i in range(500)), file(5, 0, 9)])

    assert len(tree.runs) == MAX_RUNS
    assert tree.left_out == 501 - MAX_RUNS
    assert tree.runs[-1].label == "L5"


def test_an_empty_bucket_is_an_empty_tree() -> None:
    assert lsm_of([]).runs == ()
