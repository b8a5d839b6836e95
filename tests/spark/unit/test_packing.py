"""Splits go to partitions in order and by weight."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from emberlake.options import TableOptions
from emberlake.spark.packing import pack_partitions, spread_partitions, weight_of
from spark.reads import planned, write
from spark.tables import new_table

MIB = 1 << 20
WEIGHTS = st.lists(st.integers(0, 1 << 40), min_size=1, max_size=40)


def test_small_splits_share_a_partition_up_to_the_target() -> None:
    options = TableOptions(
        {"source.split.target-size": "100 b", "source.split.open-file-cost": "1"}
    )

    assert pack_partitions([60, 40, 1, 200, 50, 50] * 10, options)[:6] == [0, 0, 1, 2, 3, 3]


def test_a_small_read_keeps_its_splits_apart() -> None:
    assert pack_partitions([8 * MIB] * 4, TableOptions({})) == [0, 1, 2, 3]


def test_a_read_of_many_small_splits_has_few_partitions() -> None:
    places = pack_partitions([4 * MIB] * 1000, TableOptions({}))

    assert places[-1] + 1 == 33
    assert places == sorted(places)


def test_what_is_spread_is_as_even_as_can_be() -> None:
    assert spread_partitions([1, 1, 1, 9, 1, 1], 3) == [0, 0, 0, 1, 2, 2]
    assert spread_partitions([5, 5, 5, 5], 2) == [0, 0, 1, 1]
    assert spread_partitions([5, 5], 9) == [0, 1]
    assert spread_partitions([], 9) == []


@given(WEIGHTS, st.integers(1, 50))
def test_every_split_has_a_partition_and_their_order_stays(weights: list[int], count: int) -> None:
    for places in (spread_partitions(weights, count), pack_partitions(weights, TableOptions({}))):
        assert len(places) == len(weights)
        assert places == sorted(places)
        assert set(places) == set(range(places[-1] + 1))  # none is skipped
    assert spread_partitions(weights, count)[-1] < count


@given(WEIGHTS, st.integers(1, 50))
def test_no_other_spread_is_lighter(weights: list[int], count: int) -> None:
    places = spread_partitions(weights, count)
    loads = [sum(w for w, p in zip(weights, places, strict=True) if p == q) for q in set(places)]

    lighter = max(loads) - 1
    needed, filled = 1, 0
    for weight in weights:
        if filled + weight > lighter:
            needed, filled = needed + 1, 0
        filled += weight
    assert max(weights) > lighter or needed > count


@pytest.mark.parametrize("between", [None, "1,2"])
def test_a_split_weighs_what_its_files_do(tmp_path: Path, between: str | None) -> None:
    table = new_table(tmp_path, primary_keys=["id"], bucket="1", write_only="true")
    table = write(write(table), range(3))
    options = {"incremental-between": between, "incremental-between-scan-mode": "diff"}
    (split,) = planned(table.copy(options) if between else table)[1]

    heavy = TableOptions({"source.split.open-file-cost": "1 kb"})

    files = len(split.files) + (0 if split.before is None else len(split.before.files))
    assert files == (3 if between else 2)
    assert weight_of(split, TableOptions({})) == files * 4 * MIB
    assert weight_of(split, heavy) > files * 1024
