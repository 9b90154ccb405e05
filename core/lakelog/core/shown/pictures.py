"""Bars and lines as SVG, drawn here rather than by a library in the browser.

They are plain forms of at most some hundred marks. So a page needs no script to show them, prints,
is read out, follows its own colours, and stays small (uPlot alone has 50 KB, Vega-Lite with its
runtime 800). Every text in them is escaped, in one function.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final, NamedTuple

from lakelog.core.shown.texts import html_text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

WIDTH: Final = 720
_LEFT: Final = 64
_BOTTOM: Final = 24
_TOP: Final = 10
LETTER: Final = 7
"""Width of a letter, about."""


class Canvas(NamedTuple):
    """The size of a picture, in the units of its letters, of which a line has 12."""

    width: int = WIDTH
    height: int = 200

    @property
    def floor(self) -> int:
        """Where the bars stand."""
        return self.height - _BOTTOM


_PAGE: Final = Canvas()


class Series(NamedTuple):
    """One line, or one part of all bars."""

    name: str
    style: str
    """A class of the style sheet: `c1`, `c2`, …"""
    values: Sequence[float | None]


def bars(
    title: str,
    labels: Sequence[str],
    parts: Sequence[Series],
    number: Callable[[float], str],
    on: Canvas = _PAGE,
) -> str:
    """Stacked bars.

    Args:
        title: what is shown, for who does not see it.
        labels: of the bars.
        parts: their parts, the lowest first.
        number: how a value is spelled.
        on: how large the picture is.
    """
    sums = [sum(part.values[at] or 0 for part in parts) for at in range(len(labels))]
    top = _round_up(max(sums, default=0), 1)
    step = (on.width - _LEFT) / max(len(labels), 1)
    marks = [_axis(top, number, on)]
    for at, label in enumerate(labels):
        y, hint = float(on.floor), [label]
        boxes = []
        for part in parts:
            value = part.values[at] or 0
            if not value:
                continue
            high = value / top * (on.floor - _TOP)
            y -= high
            hint.append(f"{part.name}: {number(value)}")
            boxes.append(
                f'<rect class="{part.style}" x="{_LEFT + at * step:.1f}" y="{y:.1f}" '
                f'width="{max(step - 1, 0.5):.1f}" height="{high:.1f}"/>'
            )
        if boxes:
            marks.append(f"<g><title>{html_text(', '.join(hint), 300)}</title>{''.join(boxes)}</g>")
    marks += _below(labels, step, on)
    return svg(title, marks, on) + (_legend(parts) if len(parts) > 1 else "")


def lines(
    title: str,
    labels: Sequence[str],
    of: Series,
    number: Callable[[float], str],
    unit: int = 1,
) -> str:
    """A line with its area; it breaks where a value is unknown.

    Args:
        title: what is shown, for who does not see it.
        labels: of the points.
        of: the values.
        number: how a value is spelled.
        unit: the next larger unit has so many; 1024 for bytes.
    """
    known = [value for value in of.values if value is not None]
    top = _round_up(max(known, default=0), unit)
    step = (WIDTH - _LEFT - 8) / max(len(labels) - 1, 1)
    floor = _PAGE.floor
    points = [
        None if value is None else (_LEFT + at * step, floor - value / top * (floor - _TOP))
        for at, value in enumerate(of.values)
    ]
    marks = [_axis(top, number, _PAGE)]
    for run in _runs(points):
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in run)
        marks.append(
            f'<polygon class="{of.style} area" points="{run[0][0]:.1f},{floor} {path} '
            f'{run[-1][0]:.1f},{floor}"/><polyline class="{of.style} line" points="{path}"/>'
        )
    for at, point in enumerate(points):
        value = of.values[at]
        if point is not None and value is not None:
            marks.append(
                f'<circle class="{of.style}" cx="{point[0]:.1f}" cy="{point[1]:.1f}" r="3">'
                f"<title>{html_text(f'{labels[at]}: {number(value)}', 300)}</title></circle>"
            )
    marks += _below(labels, 0, _PAGE)
    return svg(title, marks, _PAGE)


def _runs(
    points: Sequence[tuple[float, float] | None],
) -> Iterator[list[tuple[float, float]]]:
    run: list[tuple[float, float]] = []
    for point in (*points, None):
        if point is not None:
            run.append(point)
        elif run:
            yield run
            run = []


def _round_up(value: float, unit: int) -> float:
    """A top of the scale that is a round number, as is its half."""
    scale = 1
    while unit > 1 and value / scale >= unit:
        scale *= unit
    power = 10 ** math.floor(math.log10(max(value / scale, 1)))
    return float(scale * next(power * n for n in (2, 4, 10) if scale * power * n >= value))


def _axis(top: float, number: Callable[[float], str], on: Canvas) -> str:
    found = []
    for share in (0, 0.5, 1):
        y = on.floor - share * (on.floor - _TOP)
        found.append(
            f'<line class="grid" x1="{_LEFT}" x2="{on.width}" y1="{y:.1f}" y2="{y:.1f}"/>'
            f'<text class="axis" x="{_LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">'
            f"{html_text(number(top * share))}</text>"
        )
    return "".join(found)


def _below(labels: Sequence[str], step: float, on: Canvas) -> list[str]:
    """The labels of all bars that have room for them, else of the ends."""
    if not labels:
        return []
    ends: list[tuple[float, str, str]] = [(_LEFT, "start", labels[0])]
    if len(labels) > 1:
        ends.append((on.width, "end", labels[-1]))
    if max(map(len, labels)) * LETTER < step:
        ends = [(_LEFT + (at + 0.5) * step, "middle", label) for at, label in enumerate(labels)]
    return [
        f'<text class="axis" x="{x:.1f}" y="{on.height - 6}" text-anchor="{anchor}">'
        f"{html_text(each)}</text>"
        for x, anchor, each in ends
    ]


def _legend(parts: Sequence[Series]) -> str:
    items = "".join(
        f'<li><span class="key {part.style}"></span>{html_text(part.name)}</li>' for part in parts
    )
    return f'<ul class="legend">{items}</ul>'


def svg(title: str, marks: Sequence[str], on: Canvas) -> str:
    """A picture of some marks.

    Args:
        title: what is shown, for who does not see it.
        marks: elements of SVG, their texts escaped.
        on: how large it is.
    """
    size = f'viewBox="0 0 {on.width} {on.height}"'
    return f'<svg {size} role="img" aria-label="{html_text(title, 200)}">{"".join(marks)}</svg>'
