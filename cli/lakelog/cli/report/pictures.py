"""Pictures as SVG: bars, lines and a treemap, drawn here rather than by a library in the browser.

They are four plain forms of at most some hundred marks. So the page needs no script to show them,
prints, is read out, follows the colours of the page, and stays small (uPlot alone has 50 KB,
Vega-Lite with its runtime 800). Every text in them is escaped, in one function.
"""

from __future__ import annotations

import math
from html import escape
from typing import TYPE_CHECKING, Final, NamedTuple

from lakelog.cli.output import printable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

WIDTH: Final = 720
_HEIGHT: Final = 200
_LEFT: Final = 64
_BOTTOM: Final = 24
_TOP: Final = 10
_LONGEST: Final = 60
_LETTER: Final = 7
"""Width of a letter, about."""


class Series(NamedTuple):
    """One line, or one part of all bars."""

    name: str
    style: str
    """A class of the style sheet: `c1`, `c2`, …"""
    values: Sequence[float | None]


class Tile(NamedTuple):
    """One area of a treemap."""

    name: str
    size: float
    hint: str


def text_of(value: object, longest: int = _LONGEST) -> str:
    """A text for an attribute or an element; the only way in for what a table says."""
    text = str(value)
    return escape(printable(text if len(text) <= longest else f"{text[:longest]}…"))


def bars(
    title: str, labels: Sequence[str], parts: Sequence[Series], number: Callable[[float], str]
) -> str:
    """Stacked bars.

    Args:
        title: what is shown, for who does not see it.
        labels: of the bars.
        parts: their parts, the lowest first.
        number: how a value is spelled.
    """
    sums = [sum(part.values[at] or 0 for part in parts) for at in range(len(labels))]
    top = _round_up(max(sums, default=0), 1)
    step = (WIDTH - _LEFT) / max(len(labels), 1)
    marks = [_axis(top, number)]
    for at, label in enumerate(labels):
        y, hint = float(_HEIGHT - _BOTTOM), [label]
        boxes = []
        for part in parts:
            value = part.values[at] or 0
            if not value:
                continue
            high = value / top * (_HEIGHT - _BOTTOM - _TOP)
            y -= high
            hint.append(f"{part.name}: {number(value)}")
            boxes.append(
                f'<rect class="{part.style}" x="{_LEFT + at * step:.1f}" y="{y:.1f}" '
                f'width="{max(step - 1, 0.5):.1f}" height="{high:.1f}"/>'
            )
        if boxes:
            marks.append(f"<g><title>{text_of(', '.join(hint), 300)}</title>{''.join(boxes)}</g>")
    marks += _below(labels, step)
    return _svg(title, marks, _HEIGHT) + (_legend(parts) if len(parts) > 1 else "")


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
    floor = _HEIGHT - _BOTTOM
    points = [
        None if value is None else (_LEFT + at * step, floor - value / top * (floor - _TOP))
        for at, value in enumerate(of.values)
    ]
    marks = [_axis(top, number)]
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
                f"<title>{text_of(f'{labels[at]}: {number(value)}', 300)}</title></circle>"
            )
    marks += _below(labels, 0)
    return _svg(title, marks, _HEIGHT)


def treemap(title: str, tiles: Sequence[Tile]) -> str:
    """Areas in proportion to sizes, the largest first, each as square as it can be.

    Args:
        title: what is shown, for who does not see it.
        tiles: descending by size.
    """
    whole = sum(tile.size for tile in tiles)
    if not whole:
        return ""
    high = 280
    marks = []
    scale = WIDTH * high / whole
    for at, (tile, (x, y, w, h)) in enumerate(
        zip(tiles, _squarified([tile.size * scale for tile in tiles], WIDTH, high), strict=True)
    ):
        fits = int((w - 8) / _LETTER)
        label = ""
        if fits >= 3 and h > 18:
            label = (
                f'<text x="{x + 4:.1f}" y="{y + 15:.1f}" class="on">'
                f"{text_of(tile.name, fits)}</text>"
            )
        marks.append(
            f'<g class="tile"><title>{text_of(f"{tile.name}: {tile.hint}", 300)}</title>'
            f'<rect class="c{at % 2 + 1}" x="{x:.1f}" y="{y:.1f}" width="{max(w - 1, 0.5):.1f}" '
            f'height="{max(h - 1, 0.5):.1f}"/>{label}</g>'
        )
    return _svg(title, marks, high)


def share_bar(share: float) -> str:
    """A small bar for a share from 0 to 1, beside its number."""
    width = max(min(share, 1.0), 0.0) * 60
    return (
        '<svg class="share" viewBox="0 0 60 8" aria-hidden="true">'
        '<rect class="back" width="60" height="8"/>'
        f'<rect class="c1" width="{width:.1f}" height="8"/></svg>'
    )


def sparkline(title: str, values: Sequence[float]) -> str:
    """Small bars without an axis, beside their sum; one path, as a page may have a thousand.

    Args:
        title: what is shown, for who does not see it.
        values: from left to right; none is negative.
    """
    top = max(values, default=0) or 1
    bars_of = "".join(
        f"M{at * 4} 20v-{max(value / top * 19, 1):.1f}h3v{max(value / top * 19, 1):.1f}z"
        for at, value in enumerate(values)
        if value
    )
    width = max(len(values) * 4 - 1, 1)
    return (
        f'<svg class="spark" viewBox="0 0 {width} 20" role="img" '
        f'aria-label="{text_of(title, 200)}"><path class="back" d="M0 19.5h{width}v.5h-{width}z"/>'
        f'<path class="c1" d="{bars_of}"/></svg>'
    )


def _squarified(
    areas: Sequence[float], width: float, height: float
) -> list[tuple[float, float, float, float]]:
    """Rows along the shorter side, as long as that makes their tiles squarer (Bruls, 2000)."""
    found: list[tuple[float, float, float, float]] = []
    x = y = 0.0
    at = 0
    while at < len(areas):
        short = max(min(width, height), 1e-9)
        end = at + 1
        while end < len(areas) and _worst(areas[at : end + 1], short) <= _worst(
            areas[at:end], short
        ):
            end += 1
        row = areas[at:end]
        thick = sum(row) / short
        place = 0.0
        for area in row:
            long = area / thick if thick else 0.0
            if width >= height:
                found.append((x, y + place, thick, long))
            else:
                found.append((x + place, y, long, thick))
            place += long
        if width >= height:
            x, width = x + thick, width - thick
        else:
            y, height = y + thick, height - thick
        at = end
    return found


def _worst(row: Sequence[float], short: float) -> float:
    whole, least = sum(row), min(row)
    if not least:
        return math.inf
    return max(short**2 * max(row) / whole**2, whole**2 / (short**2 * least))


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


def _axis(top: float, number: Callable[[float], str]) -> str:
    found = []
    for share in (0, 0.5, 1):
        y = _HEIGHT - _BOTTOM - share * (_HEIGHT - _BOTTOM - _TOP)
        found.append(
            f'<line class="grid" x1="{_LEFT}" x2="{WIDTH}" y1="{y:.1f}" y2="{y:.1f}"/>'
            f'<text class="axis" x="{_LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">'
            f"{text_of(number(top * share))}</text>"
        )
    return "".join(found)


def _below(labels: Sequence[str], step: float) -> list[str]:
    """The labels of all bars that have room for them, else of the ends."""
    if not labels:
        return []
    ends: list[tuple[float, str, str]] = [(_LEFT, "start", labels[0])]
    if len(labels) > 1:
        ends.append((WIDTH, "end", labels[-1]))
    if max(map(len, labels)) * _LETTER < step:
        ends = [(_LEFT + (at + 0.5) * step, "middle", label) for at, label in enumerate(labels)]
    return [
        f'<text class="axis" x="{x:.1f}" y="{_HEIGHT - 6}" text-anchor="{anchor}">'
        f"{text_of(each)}</text>"
        for x, anchor, each in ends
    ]


def _legend(parts: Sequence[Series]) -> str:
    items = "".join(
        f'<li><span class="key {part.style}"></span>{text_of(part.name)}</li>' for part in parts
    )
    return f'<ul class="legend">{items}</ul>'


def _svg(title: str, marks: Sequence[str], height: int) -> str:
    return (
        f'<svg viewBox="0 0 {WIDTH} {height}" role="img" aria-label="{text_of(title, 200)}">'
        f"{''.join(marks)}</svg>"
    )
