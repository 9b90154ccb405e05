"""Progress: a live panel on a terminal, a line per event elsewhere."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from rich.console import Group
from rich.live import Live
from rich.padding import Padding
from rich.progress_bar import ProgressBar
from rich.spinner import Spinner
from rich.table import Table
from rich.text import Text
from settings import CORRECTOR, MONTH_NAMES, PARTS, READER

if TYPE_CHECKING:
    from rich.console import Console, RenderableType
    from settings import Settings


@dataclass
class _Row:
    state: str = "starting Spark"
    done: int = 0
    total: int = 0
    refused: int = 0
    last: str = ""
    last_seen: int = -1
    finished: bool = False


@dataclass
class Display:
    """Shows what the processes say. Both kinds of output come from the same messages."""

    console: Console
    settings: Settings
    started: float = field(default_factory=time.monotonic)

    def __post_init__(self) -> None:
        self._rows = {
            name: _Row(total=len(months) * len(PARTS))
            for name, months in self.settings.shares.items()
        }
        if self.settings.correct:
            self._rows[CORRECTOR] = _Row()
        self._rows[READER] = _Row()
        self._spinner = Spinner("dots", style="cyan")
        self._live: Live | None = None

    def __enter__(self) -> Display:
        if self.console.is_terminal:
            self._live = Live(
                get_renderable=self._panel,
                console=self.console,
                refresh_per_second=8,
                transient=True,
            )
            self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._live is not None:
            self._live.stop()

    @property
    def seconds(self) -> float:
        return time.monotonic() - self.started

    def note(self, text: str) -> None:
        """A line that stays."""
        self.console.print(f"[dim]{self.seconds:6.1f} s[/]  {text}", highlight=False)

    def hear(self, name: str, message: dict[str, Any]) -> None:
        row = self._rows[name]
        text = _apply(row, message)
        if text and not self.console.is_terminal:
            self.note(f"{name:<9}  {text}")

    def _panel(self) -> RenderableType:
        table = Table.grid(padding=(0, 2))
        table.add_column(width=9)
        table.add_column(width=14)
        table.add_column(no_wrap=True)
        for name, row in self._rows.items():
            table.add_row(f"[bold]{name}[/]", _bar(row), _line(row))
        head = Table.grid(padding=(0, 1))
        head.add_row(self._spinner, Text(f"{self.seconds:.0f} s"))
        return Group(Padding(head, (1, 0, 0, 2)), Padding(table, (0, 0, 1, 2)))


def _bar(row: _Row) -> RenderableType:
    if not row.total:
        return ""
    return ProgressBar(total=row.total, completed=row.done, width=14)


def _line(row: _Row) -> Text:
    text = Text(row.state, style="green" if row.finished else "")
    if row.last:
        text.append(f"  {row.last}", style="dim")
    if row.refused:
        text.append(f"  refused {row.refused}×", style="yellow")
    return text


def _apply(row: _Row, message: dict[str, Any]) -> str:
    """Bring a row up to date; gives the line for an output that is no terminal."""
    what = message["what"]
    if what == "ready":
        row.state = "ready"
        return ""
    if what == "waiting":
        row.state = f"waits for {MONTH_NAMES[message['month']]}"
        return row.state
    if what == "writing":
        row.state = f"writes {_what(message)}"
        return ""
    if what == "committed":
        row.done += 1
        row.last = f"version {message['version']}"
        return f"[green]committed[/] version {message['version']!s:>2}: {_what(message)}"
    if what == "refused":
        row.refused += 1
        return f"[yellow]refused[/], runs again: {message['error']}"
    if what == "saw":
        news = row.last_seen != message["version"]
        row.last_seen = message["version"]
        row.state = f"sees {message['rows']:>7,} rows in {message['months']:>2} months"
        row.last = f"version {message['version']}, {message['reads']} reads"
        return f"[cyan]saw[/] version {row.last_seen:>2}: {message['rows']:,} rows" if news else ""
    if what == "analysing":
        row.state = "asks the finished table"
        return ""
    if what == "done":
        row.finished, row.state = True, "done"
    return ""


def _what(message: dict[str, Any]) -> str:
    month = MONTH_NAMES[message["month"]]
    return f"{month}, {PARTS[message['part']]}" if "part" in message else f"all of {month} anew"
