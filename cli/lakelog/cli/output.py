"""The output of commands: tables and lines for people, JSON for programs.

Results go to standard output, progress and errors to standard error. Colours and boxes appear on
a terminal only, and not where NO_COLOR is set; a pipe gets plain columns that are never cut.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
from typing import TYPE_CHECKING, Any, TextIO

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Sequence

    from rich.console import Console
    from rich.table import Table

__all__ = ["error_line", "facts", "heading", "line", "print_json", "progress", "table"]

_PLAIN_WIDTH = 100_000
_READABLE = 24
"""Characters below which a text that folds is hard to read."""
_BETWEEN = 2
"""Characters between two columns."""


def _console(stream: TextIO) -> Console:
    from rich.console import Console

    class Piped(Console):
        def on_broken_pipe(self) -> None:
            # rich would exit with 1, which is a finding; the group of commands knows better.
            raise BrokenPipeError

    width = None if stream.isatty() else _PLAIN_WIDTH
    return Piped(file=stream, width=width, markup=False, highlight=False, emoji=False)


def line(text: str = "", style: str = "") -> None:
    """Print a line, with its own line breaks only.

    Args:
        text: anything; square brackets mean nothing.
        style: a style of rich, such as `bold` or `red`, for terminals.
    """
    _console(sys.stdout).print(text, style=style or None, soft_wrap=True)


def heading(text: str) -> None:
    """Print the heading of a section."""
    line()
    line(text, "bold")


def error_line(text: str) -> None:
    """Print an error to standard error."""
    _console(sys.stderr).print(f"lakelog: {text}", style="red", soft_wrap=True)


def table(
    columns: Sequence[str],
    rows: Sequence[Sequence[Any]],
    *,
    whole: Collection[str] = (),
    spare: Sequence[str] = (),
) -> None:
    """Print rows under column names.

    Args:
        columns: the names.
        rows: cells; one may be text, or a pair of text and style.
        whole: names of columns that keep their line on a narrow terminal, where others fold.
        spare: names of columns that a narrow terminal leaves out, the last first, so that
            the others need not fold; a line names them.
    """
    from rich.box import SIMPLE_HEAD
    from rich.table import Table
    from rich.text import Text

    terminal = sys.stdout.isatty()
    left_out = _left_out(columns, rows, whole, spare) if terminal else []
    kept = [number for number, name in enumerate(columns) if name not in left_out]
    columns, rows = [columns[n] for n in kept], [[row[n] for n in kept] for row in rows]
    boxed = terminal and not os.environ.get("NO_COLOR")
    grid = Table(box=SIMPLE_HEAD if boxed else None, pad_edge=False, header_style="bold")
    for name in columns:
        grid.add_column(name, overflow="fold", no_wrap=not terminal or name in whole)
    for row in rows:
        grid.add_row(*(Text(*cell) if isinstance(cell, tuple) else Text(str(cell)) for cell in row))
    _print_grid(grid)
    if left_out:
        line(f"Too narrow for {', '.join(left_out)}: widen the terminal, or use --json.", "dim")


def _left_out(
    columns: Sequence[str],
    rows: Sequence[Sequence[Any]],
    whole: Collection[str],
    spare: Sequence[str],
) -> list[str]:
    """The spare columns without which the others are wide enough to be read."""

    def needed(name: str) -> int:
        number = columns.index(name)
        cells = [row[number] for row in rows]
        texts = [str(cell[0] if isinstance(cell, tuple) else cell) for cell in cells]
        width = max(map(len, (name, *texts)), default=0)
        return width if name in whole else max(len(name), min(width, _READABLE))

    room = _console(sys.stdout).width
    left = list(columns)
    for name in reversed(spare):
        if sum(map(needed, left)) + _BETWEEN * len(left) <= room:
            break
        left.remove(name)
    return [name for name in columns if name not in left]


def facts(pairs: Sequence[tuple[str, Any]]) -> None:
    """Print names and values in two columns."""
    from rich.table import Table
    from rich.text import Text

    grid = Table.grid(padding=(0, 2))
    grid.add_column(no_wrap=True)
    grid.add_column(overflow="fold", no_wrap=not sys.stdout.isatty())
    for name, value in pairs:
        grid.add_row(Text(f"  {name}"), Text(str(value)))
    _print_grid(grid)


def _print_grid(grid: Table) -> None:
    console = _console(sys.stdout)
    if console.is_terminal:
        console.print(grid)
        return
    with console.capture() as capture:
        console.print(grid)
    for row in capture.get().splitlines():
        sys.stdout.write(row.rstrip() + "\n")


def print_json(data: Any) -> None:
    """Print one JSON document, indented, keys in the order in which they were given."""
    sys.stdout.write(json.dumps(data, indent=2, ensure_ascii=False) + "\n")


@contextlib.contextmanager
def progress() -> Iterator[Callable[[str], None]]:
    """Yield a function that shows what is being done; silent unless on a terminal."""
    console = _console(sys.stderr)
    if not console.is_terminal:
        yield lambda _: None
        return
    with console.status("") as status:
        yield lambda text: status.update(text)
