"""The pictures that the documentation shows of a table: those that lakelog makes of the demo's.

    python scripts/docs_gallery.py      # draws docs/pictures/report-*.png, by the tests' browser

`gallery_table.tar.xz` holds the log of the table that `make demo` made, and the commit events of
its processes. Its data files are left out, since a report and a history need none.
"""

from __future__ import annotations

import re
import sys
import tarfile
import tempfile
from functools import cache
from pathlib import Path

_PACKED = Path(__file__).with_name("gallery_table.tar.xz")
_TABLE = "/lake/flights"
_MADE = "when these pages were built"


@cache
def report() -> str:
    """The page that `lakelog report` writes."""
    from lakelog.cli.report.facts import facts
    from lakelog.cli.report.page import page

    with tempfile.TemporaryDirectory() as folder:
        table = _unpacked(folder)
        from lakelog.core import DeltaLog

        found = facts(DeltaLog.for_table(table), [f"{folder}/events"], lambda _: None)
        return page(found, _MADE).replace(table, _TABLE)


@cache
def history() -> str:
    """What a notebook shows of the table's history."""
    from lakelog.core import DeltaLog

    with tempfile.TemporaryDirectory() as folder:
        shown = DeltaLog.for_table(_unpacked(folder)).history(12)
        return str(shown._repr_html_())  # type: ignore[attr-defined]


def picture(title: str) -> str:
    """A picture of the report, with its legend.

    Raises:
        ValueError: the report has no such picture.
    """
    pattern = rf'<svg [^>]*aria-label="{re.escape(title)}[^>]*>.*?</svg>(?:<ul.*?</ul>)?'
    found = re.search(pattern, report(), re.DOTALL)
    if found is None:
        raise ValueError(f"the report has no picture {title!r}")
    return found[0]


def photograph() -> None:
    """Take how the table grew, in both lights, for pages that show no HTML."""
    repository = Path(__file__).parents[1]
    sys.path.insert(0, str(repository / "tests"))
    from support.browser import look

    views = {
        light: {
            "width": 1000,
            "height": 610,
            "dark": light == "dark",
            "screenshot": str(repository / "docs" / "pictures" / f"report-{light}.png"),
        }
        for light in ("light", "dark")
    }
    with tempfile.TemporaryDirectory() as folder:
        opened = Path(folder, "report.html")
        opened.write_text(report(), "utf-8")
        look(f"{opened.as_uri()}#history", {"views": views})


def _unpacked(folder: str) -> str:
    """The table's path; the times of its commits are those of their files."""
    with tarfile.open(_PACKED) as packed:
        packed.extractall(folder, filter="data")
    table = f"{folder}/flights"
    for events in Path(folder, "events").iterdir():
        events.write_text(events.read_text("utf-8").replace(_TABLE, table), "utf-8")
    return table


if __name__ == "__main__":
    photograph()
