"""Grids fit their terminal: texts are cut first, then columns are left out from the right."""

import pytest

from emberlake.cli.layout import GAP, Layout, plain_text, plan_layout
from emberlake.cli.report import Column, Grid, numbers, words

GRID = Grid([words("name", 6), numbers("rows"), words("path", 8)], [])
WIDTHS = [10, 9, 40]


def width_of(layout: Layout) -> int:
    return sum(layout.widths) + GAP * (len(layout.widths) - 1)


def test_without_a_limit_everything_is_as_wide_as_it_needs() -> None:
    assert plan_layout(GRID, WIDTHS, None) == Layout((0, 1, 2), (10, 9, 40), ())


def test_the_longest_text_gives_way_first() -> None:
    layout = plan_layout(GRID, WIDTHS, 50)

    assert layout.widths == (10, 9, 27)
    assert width_of(layout) == 50


def test_columns_that_cannot_be_shown_well_are_left_out_from_the_right() -> None:
    layout = plan_layout(GRID, WIDTHS, 22)

    assert layout.hidden == ("path",)
    assert layout.widths == (10, 9)


def test_numbers_are_never_cut() -> None:
    assert plan_layout(GRID, WIDTHS, 17).widths == (6, 9)


def test_the_first_column_stays_even_where_it_does_not_fit() -> None:
    layout = plan_layout(Grid([Column("id"), Column("x")], []), [30, 5], 10)

    assert layout == Layout((0,), (10,), ("x",))


@pytest.mark.parametrize("room", range(1, 80))
def test_no_grid_is_wider_than_its_terminal(room: int) -> None:
    assert width_of(plan_layout(GRID, WIDTHS, room)) <= room


def test_values_cannot_move_the_cursor() -> None:
    assert plain_text("a\nb\x1b[31m") == "a\u240ab\u241b[31m"
    assert plain_text(None) == "null"
    assert plain_text("caf\u00e9 \u6771\u4eac") == "caf\u00e9 \u6771\u4eac"
