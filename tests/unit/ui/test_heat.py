"""Partitions as a heat map, and files by size."""

import numpy as np
import pytest

from emberlake.ui.views.heat import MAX_CELLS, STEPS, PartitionSize, heat_map_of, heat_of
from emberlake.ui.views.sizes import size_bars_of


def partition(*values: str, size: int = 10, files: int = 1) -> PartitionSize:
    return PartitionSize("/".join(f"k={v}" for v in values), values, 5, size, files)


@pytest.mark.parametrize(
    ("value", "most", "heat"),
    [(0, 100, 0), (1, 100, 1), (50, 100, 4), (100, 100, STEPS), (0, 0, 0), (7, 0, 0)],
)
def test_warmth_is_a_share_of_the_most(value: int, most: int, heat: int) -> None:
    assert heat_of(value, most) == heat


def test_two_partition_columns_make_rows_and_columns_with_gaps() -> None:
    found = heat_map_of([partition("mon", "10"), partition("mon", "9"), partition("tue", "9")])

    assert found.columns == ("9", "10")
    assert [row.label for row in found.rows] == ["mon", "tue"]
    assert [cell and cell.partition for cell in found.rows[1].cells] == ["k=tue/k=9", None]


def test_one_partition_column_makes_a_row_of_cells_and_numbers_are_in_order() -> None:
    found = heat_map_of([partition("10"), partition("9")])

    assert found.rows == ()
    assert [cell.label for cell in found.cells] == ["k=9", "k=10"]


def test_the_largest_cell_is_the_warmest_by_size_and_by_files() -> None:
    found = heat_map_of([partition("a", size=80, files=1), partition("b", size=10, files=8)])

    assert [(c.size_heat, c.files_heat) for c in found.cells] == [(8, 1), (1, 8)]


def test_very_many_partitions_share_cells_and_none_is_lost() -> None:
    found = heat_map_of([partition(f"{i:05d}") for i in range(10_000)])

    assert len(found.cells) <= MAX_CELLS
    assert sum(cell.partitions for cell in found.cells) == found.partitions == 10_000
    assert found.cells[0].label == "k=00000 to k=00008"
    assert found.cells[0].partition is None


def test_no_partitions_are_an_empty_map() -> None:
    assert heat_map_of([]).cells == ()


def test_files_are_counted_in_steps_of_1_2_and_5() -> None:
    bars = size_bars_of(np.array([1_500, 1_999, 2_000, 9_000], np.int64))

    assert [(b.low, b.high, b.files, b.bytes) for b in bars] == [
        (1_000, 2_000, 2, 3_499),
        (2_000, 5_000, 1, 2_000),
        (5_000, 10_000, 1, 9_000),
    ]
    assert [b.share for b in bars] == [1.0, 0.5, 0.5]


@pytest.mark.parametrize("size", [0, 1, 2**61])
def test_every_size_has_its_bar(size: int) -> None:
    (bar,) = size_bars_of(np.array([size], np.int64))

    assert bar.low <= size < bar.high


def test_no_files_have_no_bars() -> None:
    assert size_bars_of(np.array([], np.int64)) == ()
