"""Pictures of reports and of the UI alone: a treemap, and bars beside a number."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

from lakelog.core.engine.shown import LETTER, WIDTH, Canvas, html_text, svg

if TYPE_CHECKING:
    from collections.abc import Sequence


class Tile(NamedTuple):
    """One area of a treemap."""

    name: str
    size: float
    hint: str


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
        fits = int((w - 8) / LETTER)
        label = ""
        if fits >= 3 and h > 18:
            label = (
                f'<text x="{x + 4:.1f}" y="{y + 15:.1f}" class="on">'
                f"{html_text(tile.name, fits)}</text>"
            )
        marks.append(
            f'<g class="tile"><title>{html_text(f"{tile.name}: {tile.hint}", 300)}</title>'
            f'<rect class="c{at % 2 + 1}" x="{x:.1f}" y="{y:.1f}" width="{max(w - 1, 0.5):.1f}" '
            f'height="{max(h - 1, 0.5):.1f}"/>{label}</g>'
        )
    return svg(title, marks, Canvas(height=high))


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
        f'aria-label="{html_text(title, 200)}">'
        f'<path class="back" d="M0 19.5h{width}v.5h-{width}z"/>'
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
