"""Draws the diagrams of the documentation, `docs/pictures/*.svg`.

    python scripts/docs_pictures.py

The curves of many writers are those of the table in `benchmarks/RESULTS.md`.

A picture takes the colour of the text around it where a page holds its elements, and that of the
reader's system where it is opened alone, as on GitHub. `scripts/docs_hooks.py` puts it into pages.
"""

from __future__ import annotations

import math
from html import escape
from pathlib import Path
from typing import NamedTuple

_REPOSITORY = Path(__file__).parents[1]
FOLDER = _REPOSITORY / "docs" / "pictures"
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
    ".diagram .grid{stroke:currentColor;stroke-opacity:.15}"
    ".diagram path.curve{fill:none;stroke-width:2}"
    ".diagram .ours{stroke:#2b9a63;fill:#2b9a63}.diagram .host{stroke:#3b7dd8;fill:#3b7dd8}"
    ".diagram .served{stroke:#8a5bd1;fill:#8a5bd1}"
    ".diagram .peer{stroke:#d2741a;fill:#d2741a}"
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


class Share(NamedTuple):
    """What some writers did, as a row of the results has it."""

    place: str
    who: str
    writers: int
    rate: float
    """Commits a second."""
    fairness: float


class Panel(NamedTuple):
    """Where curves are drawn, and how a value becomes a height."""

    left: float
    top: float
    ticks: tuple[float, ...]
    log: bool = False
    width: float = 138
    height: float = 130

    def at(self, writers: int, value: float) -> str:
        """A point: writers by powers of four, of which 64 is the last."""
        x = self.left + self.width * math.log(writers, 64)
        return f"{x:.1f} {self.level(value):.1f}"

    def level(self, value: float) -> float:
        """How far down a value is."""
        low, high = self.ticks[0], self.ticks[-1]
        if self.log:
            low, high, value = math.log(low), math.log(high), math.log(max(value, low))
        return self.top + self.height * (1 - (value - low) / (high - low))

    def frame(self, *, named: bool) -> list[str]:
        """Its lines, and what they stand for."""
        across = [f"M{self.left:g} {self.level(tick):.1f}h{self.width:g}" for tick in self.ticks]
        marks = [f'<path class="grid" d="{"".join(across)}"/>']
        if named:
            for tick in self.ticks:
                text = f"{tick:,g}"
                marks.append(write(self.left - 6, self.level(tick) + 4, text, "small", "end"))
        for writers in (1, 16, 64):
            x = self.left + self.width * math.log(writers, 64)
            marks.append(write(x, self.top + self.height + 16, str(writers)))
        return marks


_KINDS = {
    "lakelog": "ours",
    "lakelog, one host": "host",
    "lakelog, through lakelog serve": "served",
    "deltalake": "peer",
}
"""Who is in the curves, and the style of it."""


def shares() -> list[Share]:
    """What processes did, from the results of `benchmarks/writers.py`."""
    text = (_REPOSITORY / "benchmarks" / "RESULTS.md").read_text(encoding="utf-8")
    rows = text.partition("<!-- writers -->")[2].partition("<!-- end of writers -->")[0]
    cells = [line.strip("| ").split(" | ") for line in rows.splitlines() if line.startswith("| ")]
    return [
        Share(
            each[0] if each[0] == "local" else f"{each[0]}, {each[1]}",
            each[3],
            int(each[2]),
            float(each[4]),
            float(each[8]),
        )
        for each in cells
        if each[3] in _KINDS
    ]


def writers() -> tuple[int, list[str]]:
    """How many commits a second many writers make, and how fairly."""
    found = shares()
    marks = [
        write(10, 20, "Commits a second, by 1 to 64 processes", "strong", "start"),
        write(10, 236, "Fairness: 1 where all made as many", "strong", "start"),
        write(10, 448, "dashed: what one writer makes there", "small", "start"),
    ]
    known = [who for who in _KINDS if any(each.who == who for each in found)]
    for at, (who, kind) in enumerate((who, _KINDS[who]) for who in known):
        x = (10, 110, 270, 510)[at]
        marks.append(f'<path class="curve {kind}" d="M{x} 424h24"/>')
        marks.append(write(x + 30, 428, who, "small", "start"))
    for at, place in enumerate(("local", "MinIO, 0 ms", "MinIO, 30 ms", "MinIO, 100 ms")):
        left = 52 + at * 166
        rates = Panel(left, 50, (1, 10, 100, 1000), log=True)
        fair = Panel(left, 250, (0, 0.5, 1))
        marks.append(write(left + rates.width / 2, 42, place, "small"))
        marks += [*rates.frame(named=at == 0), *fair.frame(named=at == 0)]
        here = [each for each in found if each.place == place]
        for who, kind in _KINDS.items():
            line = sorted(each for each in here if each.who == who)
            if not line:
                continue
            for panel, points in (
                (rates, [rates.at(each.writers, each.rate) for each in line]),
                (fair, [fair.at(each.writers, each.fairness) for each in line]),
            ):
                marks.append(f'<path class="curve {kind}" d="M{"L".join(points)}"/>')
                for point in points:
                    x, y = point.split()
                    marks.append(f'<circle class="{kind}" cx="{x}" cy="{y}" r="2.5"/>')
                if who == "lakelog" and panel is rates:
                    limit = rates.level(line[0].rate)
                    path = f"M{left} {limit:.1f}h{rates.width:g}"
                    marks.append(f'<path class="line dashed" d="{path}"/>')
    return 460, marks


DIAGRAMS = {each.__name__: each for each in (commit, conflict, transaction, layers, writers)}


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
