"""Draws shapes as SVG. Pure: values in, markup out; all text is escaped.

Colours come from the style sheet, by class. Text stands next to the drawings, in HTML, so that it
stays readable however narrow a page is; what stretches has no text and no circles in it.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from markupsafe import Markup, escape

from emberlake.ui.views.history import Piece, Rail
from emberlake.ui.views.lsm import Run

WIDTH: Final = 1000  # of everything that stretches
_LANE: Final = 16  # pixels between lanes
_HEIGHT: Final = 100
_LANE_COLOURS: Final = 6
_ABOVE: Final = -1  # a pixel into the row above: no gap shows if rows are not whole pixels


@dataclass(frozen=True)
class Mark:
    """A point of a curve, and what it says when the pointer is on it."""

    x: int
    y: int
    text: str


@dataclass(frozen=True)
class Share:
    """A part of a bar."""

    share: float
    style: str
    text: str


def element(name: str, *content: Markup | str, **attributes: object) -> Markup:
    """An element; names of attributes have ``_`` for ``-``, and ``kind`` is its class."""
    named = {
        "class" if key == "kind" else key.replace("_", "-"): v for key, v in attributes.items()
    }
    text = "".join(f' {key}="{escape(_number(value))}"' for key, value in named.items())
    return Markup(f"<{name}{text}>{''.join(map(escape, content))}</{name}>")  # noqa: S704


def curve(marks: Sequence[Mark]) -> Markup:
    """A curve in steps over the area below it: a value holds until the next one comes."""
    if not marks:
        return Markup("")
    xs = _spread([mark.x for mark in marks])
    most = max(mark.y for mark in marks) or 1
    ys = [_HEIGHT - 2 - (_HEIGHT - 6) * mark.y / most for mark in marks]
    steps = [f"M{_number(xs[0])} {_number(ys[0])}"]
    steps += [f"H{_number(x)}V{_number(y)}" for x, y in zip(xs[1:], ys[1:], strict=True)]
    line = "".join(steps) + f"H{WIDTH}"
    area = f"{line}V{_HEIGHT}H{_number(xs[0])}Z"
    ends = [*xs[1:], WIDTH]
    spots = [
        element(
            "rect",
            element("title", mark.text),
            kind="spot",
            x=x,
            y=0,
            width=max(end - x, 1),
            height=_HEIGHT,
        )
        for mark, x, end in zip(marks, xs, ends, strict=True)
    ]
    return _stretched(
        "curve",
        _HEIGHT,
        element("path", kind="area", d=area),
        element("path", kind="line", d=line, vector_effect="non-scaling-stroke"),
        *spots,
    )


def bar(shares: Iterable[Share], kind: str = "bar") -> Markup:
    """Parts side by side."""
    parts, start = [], 0.0
    for part in shares:
        title = [element("title", part.text)] if part.text else []
        parts.append(
            element(
                "rect",
                *title,
                kind=part.style,
                x=start * WIDTH,
                y=0,
                width=max(part.share * WIDTH, 1),
                height=10,
            )
        )
        start += part.share
    return _stretched(kind, 10, *parts)


def run(drawn: Run, texts: Sequence[str]) -> Markup:
    """The files of a sorted run on the axis of keys; deleted rows have their own colour."""
    parts: list[Markup] = []
    for block, text in zip(drawn.blocks, texts, strict=True):
        x, width = block.start * WIDTH, max((block.end - block.start) * WIDTH, 2)
        place = {"x": x, "width": max(width - 1, 1.5)}
        level = f"file l{min(drawn.level, 6)}"
        parts.append(element("rect", element("title", text), kind=level, y=0, height=20, **place))
        if block.gone:
            tall = max(2.0, 20 * block.gone)
            gone = element(
                "rect", element("title", text), kind="gone", y=20 - tall, height=tall, **place
            )
            parts.append(gone)
    return _stretched("run", 20, *parts)


def rail(pieces: Sequence[Rail], lanes: int, *, is_expired: bool = False) -> Markup:
    """The lines and the node next to a version; heights are shares, so rows may differ."""
    drawn = [_piece(each, is_expired=is_expired) for each in pieces]
    width = lanes * _LANE + 8
    return element("svg", *drawn, kind="rail", width=width, height="100%", aria_hidden="true")


def _piece(each: Rail, *, is_expired: bool) -> Markup:
    x = 12 + each.lane * _LANE
    style = f"lane{each.lane % _LANE_COLOURS}{' broken' if each.is_broken else ''}"
    match each.piece:
        case Piece.NODE:
            kind = f"node {style}{' expired' if is_expired else ''}"
            return element("circle", kind=kind, cx=x, cy="50%", r=5)
        case Piece.UP:
            return element("line", kind=style, x1=x, y1=_ABOVE, x2=x, y2="50%")
        case Piece.DOWN:
            return element("line", kind=style, x1=x, y1="50%", x2=x, y2="100%")
        case Piece.PAST:
            return element("line", kind=style, x1=x, y1=_ABOVE, x2=x, y2="100%")
        case Piece.FORK:
            return element("line", kind=style, x1=x, y1=_ABOVE, x2=12 + each.to * _LANE, y2="50%")


def _spread(values: Sequence[int]) -> list[float]:
    """Values as places on the width, to scale; in equal steps if all are the same."""
    least, span = values[0], values[-1] - values[0]
    if span <= 0:
        return [WIDTH * i / len(values) for i in range(len(values))]
    # The last value gets some room, too: its step has no end.
    return [WIDTH * 0.97 * (value - least) / span for value in values]


def _stretched(kind: str, height: int, *content: Markup) -> Markup:
    return element(
        "svg",
        *content,
        kind=kind,
        viewBox=f"0 0 {WIDTH} {height}",
        preserveAspectRatio="none",
        role="img",
    )


def _number(value: object) -> str:
    return f"{value:.2f}".rstrip("0").rstrip(".") if isinstance(value, float) else str(value)
