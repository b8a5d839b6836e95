"""Shapes as SVG: to scale, escaped, without styles of their own."""

import re
from xml.etree import ElementTree as ET

import pytest
from markupsafe import Markup

from emberlake.ui import charts
from emberlake.ui.charts import WIDTH, Mark, Share
from emberlake.ui.views.history import Piece, Rail
from emberlake.ui.views.lsm import Block, Run

EVIL = '"><script>alert(1)</script>&'


def parsed(drawn: Markup) -> ET.Element:
    return ET.fromstring(str(drawn))


def test_an_element_escapes_its_text_and_its_attributes() -> None:
    drawn = charts.element("a", EVIL, title=EVIL)

    found = parsed(drawn)
    assert (found.text, found.get("title")) == (EVIL, EVIL)
    assert "<script" not in drawn


def test_a_curve_is_to_scale_in_time_and_ends_at_the_edge() -> None:
    found = parsed(charts.curve([Mark(0, 0, "a"), Mark(50, 5, "b"), Mark(100, 10, EVIL)]))

    line = next(e for e in found if e.get("class") == "line")
    xs = [float(x) for x in re.findall(r"H([\d.]+)", line.get("d") or "")]
    assert xs == [WIDTH * 0.97 / 2, WIDTH * 0.97, WIDTH]
    assert [e[0].text for e in found if e.get("class") == "spot"] == ["a", "b", EVIL]


@pytest.mark.parametrize("marks", [[Mark(7, 0, "")], [Mark(7, 1, ""), Mark(7, 2, "")]])
def test_snapshots_of_one_moment_are_drawn_side_by_side(marks: list[Mark]) -> None:
    spots = [e for e in parsed(charts.curve(marks)) if e.get("class") == "spot"]

    assert [float(e.get("x") or 0) for e in spots] == [
        WIDTH * i / len(marks) for i in range(len(marks))
    ]


def test_no_points_draw_nothing() -> None:
    assert charts.curve([]) == ""


def test_the_parts_of_a_bar_lie_side_by_side() -> None:
    found = parsed(charts.bar([Share(0.25, "read", ""), Share(0.75, "skipped", "x")]))

    assert [(e.get("x"), e.get("width")) for e in found] == [("0", "250"), ("250", "750")]


def test_what_is_deleted_covers_its_share_of_a_file() -> None:
    block = Block(0.5, 1.0, 1, 10, 100, 0.25, "text")
    run = Run(0, "L0", 1, 10, 100, 0, (block,))

    file, gone = parsed(charts.run(run, ["said"]))

    assert file.get("class") == "file l0"
    assert (file.get("x"), file.get("height")) == ("500", "20")
    assert (gone.get("y"), gone.get("height")) == ("15", "5")


@pytest.mark.parametrize("piece", Piece)
def test_every_piece_of_a_rail_is_drawn(piece: Piece) -> None:
    (drawn,) = parsed(charts.rail([Rail(piece, 1, 0, is_broken=True)], 2))

    assert "lane1" in (drawn.get("class") or "")


def test_drawings_have_no_style_of_their_own_which_the_policy_would_forbid() -> None:
    drawings = [
        charts.curve([Mark(0, 1, "")]),
        charts.bar([Share(1, "read", "")]),
        charts.rail([Rail(Piece.NODE, 0)], 1),
    ]

    assert not any("style=" in drawn for drawn in drawings)
