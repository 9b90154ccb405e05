"""Draws the diagrams of the documentation, `docs/pictures/*.svg`.

    python scripts/docs_pictures.py

A picture takes the colour of the text around it where a page holds its elements, and that of the
reader's system where it is opened alone, as on GitHub. `scripts/docs_hooks.py` puts it into pages.
"""

from __future__ import annotations

from html import escape
from pathlib import Path
from typing import NamedTuple

FOLDER = Path(__file__).parents[1] / "docs" / "pictures"
_WIDTH = 720
_LINE = 17
_STYLE = (
    ".alone{color:#1c2430}@media(prefers-color-scheme:dark){.alone{color:#e6eaf0}}"
    ".diagram text{font:13px system-ui,sans-serif;fill:currentColor}"
    ".diagram .strong{font-weight:600}.diagram .small{font-size:11.5px}"
    ".diagram .box{fill:currentColor;fill-opacity:.06;stroke:currentColor;stroke-opacity:.5}"
    ".diagram .win{fill:#2b9a63;fill-opacity:.18;stroke:#2b9a63}"
    ".diagram .lose{fill:#d2741a;fill-opacity:.18;stroke:#d2741a}"
    ".diagram .line{fill:none;stroke:currentColor;stroke-opacity:.7;stroke-width:1.4}"
    ".diagram .dashed{stroke-dasharray:5 4}"
    ".diagram .head{fill:currentColor;fill-opacity:.7}"
)


class Box(NamedTuple):
    """A box with lines of text, the first of them strong."""

    x: float
    y: float
    width: float
    height: float
    text: str
    style: str = "box"

    def svg(self) -> str:
        """The elements."""
        lines = self.text.split("\n")
        first = self.y + self.height / 2 - (len(lines) - 1) * _LINE / 2 + 4.5
        texts = [
            write(self.x + self.width / 2, first + at * _LINE, line, "small" if at else "strong")
            for at, line in enumerate(lines)
        ]
        place = f'x="{self.x:g}" y="{self.y:g}" width="{self.width:g}" height="{self.height:g}"'
        return f'<rect class="{self.style}" {place} rx="6"/>{"".join(texts)}'


def write(x: float, y: float, text: str, style: str = "small", anchor: str = "middle") -> str:
    """A line of text."""
    place = f'x="{x:g}" y="{y:g}" text-anchor="{anchor}"'
    return f'<text class="{style}" {place}>{escape(text, quote=False)}</text>'


def arrow(*points: tuple[float, float], dashed: bool = False) -> str:
    """A line through points, with a head at the last; parts are upright or level."""
    (x0, y0), (x, y) = points[-2:]
    along = (x > x0) - (x < x0), (y > y0) - (y < y0)
    back = x - 8 * along[0], y - 8 * along[1]
    side = 4 * along[1], 4 * along[0]
    path = "M" + "L".join(f"{px:g} {py:g}" for px, py in (*points[:-1], back))
    head = f"{x:g},{y:g} {back[0] + side[0]:g},{back[1] + side[1]:g} "
    head += f"{back[0] - side[0]:g},{back[1] - side[1]:g}"
    style = "line dashed" if dashed else "line"
    return f'<path class="{style}" d="{path}"/><polygon class="head" points="{head}"/>'


def commit() -> tuple[int, list[str]]:
    """How a version comes about."""
    boxes = [
        Box(10, 44, 150, 62, "1 Read\nversion 7, and what\nthe job read of it"),
        Box(196, 44, 150, 62, "2 Write\ndata files with new\nnames, in no version"),
        Box(382, 44, 150, 62, "3 Create 8.json\nonly if it is not there\nin one request"),
        Box(568, 44, 142, 62, "Version 8\nreaders see all\nof it, or nothing", "win"),
        Box(196, 170, 150, 52, "Table's folder\npart-….parquet"),
        Box(382, 170, 150, 52, "_delta_log\n0.json … 7.json, 8.json"),
    ]
    return 250, [
        write(10, 24, "One commit", "strong", "start"),
        *(each.svg() for each in boxes),
        arrow((160, 75), (196, 75)),
        arrow((346, 75), (382, 75)),
        arrow((532, 75), (568, 75)),
        arrow((271, 106), (271, 170), dashed=True),
        arrow((457, 106), (457, 170), dashed=True),
        write(10, 192, "The storage:", "strong", "start"),
        write(10, 210, "any LogStore", "small", "start"),
        write(568, 192, "A crash before step 3", "small", "start"),
        write(568, 208, "leaves files that no", "small", "start"),
        write(568, 224, "version names: VACUUM", "small", "start"),
    ]


def conflict() -> tuple[int, list[str]]:
    """Two writers that want the same version."""
    boxes = [
        Box(90, 40, 110, 40, "Read 7"),
        Box(250, 40, 120, 40, "Create 8.json"),
        Box(420, 40, 110, 40, "Version 8", "win"),
        Box(90, 130, 110, 40, "Read 7"),
        Box(250, 130, 120, 40, "Create 8.json", "lose"),
        Box(420, 124, 110, 62, "Read 8.json\ndid it touch what\nI read or remove?"),
        Box(590, 108, 120, 40, "Version 9\nrebased", "win"),
        Box(590, 172, 120, 52, "Exception\nnames the winner\nand what to do", "lose"),
    ]
    return 250, [
        write(10, 65, "Writer A", "strong", "start"),
        write(10, 155, "Writer B", "strong", "start"),
        *(each.svg() for each in boxes),
        arrow((200, 60), (250, 60)),
        arrow((370, 60), (420, 60)),
        arrow((200, 150), (250, 150)),
        arrow((370, 150), (420, 150)),
        write(310, 190, "it is there: A was", "small"),
        write(310, 206, "faster, no harm done", "small"),
        arrow((475, 80), (475, 124), dashed=True),
        arrow((530, 142), (560, 142), (560, 128), (590, 128)),
        arrow((530, 166), (560, 166), (560, 198), (590, 198)),
        write(562, 118, "no", "small"),
        write(562, 216, "yes", "small"),
        write(10, 240, "Time runs from left to right.", "small", "start"),
    ]


def transaction() -> tuple[int, list[str]]:
    """What a transaction is from its start to its outcome."""
    boxes = [
        Box(10, 84, 116, 56, "Started\nholds one snapshot"),
        Box(150, 84, 116, 56, "Reading\nrecords what\nit looks at"),
        Box(290, 84, 116, 56, "Writing\nfiles that no\nversion names"),
        Box(430, 84, 116, 56, "Committing\nattempt 1, 2, …"),
        Box(590, 8, 120, 44, "Committed\none version", "win"),
        Box(590, 176, 120, 62, "Failed\nan exception names\nthe winner", "lose"),
        Box(290, 182, 150, 56, "No answer\nlooks for its own id\nin the version"),
    ]
    return 260, [
        *(each.svg() for each in boxes),
        arrow((126, 112), (150, 112)),
        arrow((266, 112), (290, 112)),
        arrow((406, 112), (430, 112)),
        arrow((488, 84), (488, 30), (590, 30)),
        write(482, 60, "the version is new", "small", "end"),
        arrow((546, 100), (580, 100), (580, 124), (546, 124)),
        write(588, 100, "a winner that", "small", "start"),
        write(588, 116, "changes nothing", "small", "start"),
        write(588, 132, "it read: again", "small", "start"),
        arrow((520, 140), (520, 207), (590, 207)),
        write(526, 162, "a winner that does", "small", "start"),
        arrow((460, 140), (460, 210), (440, 210)),
        write(454, 162, "the storage is silent", "small", "end"),
        write(282, 196, "it is there: committed", "small", "end"),
        write(282, 212, "another's is: a winner", "small", "end"),
        write(282, 228, "neither: CommitOutcomeUnknownError", "small", "end"),
        write(10, 30, "Leaving it before it commits changes nothing.", "small", "start"),
    ]


def layers() -> tuple[int, list[str]]:
    """What stands on what."""
    boxes = [
        Box(10, 10, 340, 40, "Your job, notebook or script"),
        Box(400, 10, 310, 40, "The command lakelog"),
        Box(10, 84, 340, 50, "lakelog.spark\nplans and data files, by PySpark's public API only"),
        Box(400, 84, 310, 50, "lakelog.cli\na module for each command"),
        Box(
            10,
            168,
            700,
            50,
            "lakelog.core\nread → write → validate → commit: DeltaLog, Snapshot, "
            "OptimisticTransaction",
            "win",
        ),
        Box(
            10,
            252,
            700,
            50,
            "lakelog.logstores\nthe contract, and what a storage declares: one class for each, "
            "chosen by spark.delta.logStore.…",
        ),
        Box(
            10,
            336,
            700,
            40,
            "S3, GCS, Azure, HDFS, local files, memory; by lakelog.contrib OSS, OCI, fsspec",
        ),
    ]
    return 390, [
        *(each.svg() for each in boxes),
        arrow((180, 50), (180, 84)),
        arrow((555, 50), (555, 84)),
        arrow((180, 134), (180, 168)),
        arrow((555, 134), (555, 168)),
        arrow((350, 30), (375, 30), (375, 168), dashed=True),
        arrow((360, 218), (360, 252)),
        arrow((360, 302), (360, 336)),
    ]


DIAGRAMS = {each.__name__: each for each in (commit, conflict, transaction, layers)}


def drawn(name: str) -> str:
    """A diagram as an SVG file."""
    height, marks = DIAGRAMS[name]()
    size = f'viewBox="0 0 {_WIDTH} {height}"'
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="diagram alone" {size}>'
        f"<style>{_STYLE}</style>\n" + "\n".join(marks) + "\n</svg>\n"
    )


if __name__ == "__main__":
    for each in DIAGRAMS:
        (FOLDER / f"{each}.svg").write_text(drawn(each), encoding="utf-8")
