"""The output of commands: tables and lines for people, JSON for programs.

Results go to standard output, progress and errors to standard error. Colours and boxes appear on
a terminal only, and not where NO_COLOR is set; a pipe gets plain columns that are never cut.
"""

from __future__ import annotations

import contextlib
import csv
import json
import os
import sys
from typing import TYPE_CHECKING, Any, TextIO

from lakelog.core.engine.shown import is_unseen, printable

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Sequence

    from rich.console import Console
    from rich.table import Table

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

    return Piped(
        file=stream,
        width=None if stream.isatty() else _PLAIN_WIDTH,
        # rich before 14 also obeys an empty one.
        no_color=bool(os.environ.get("NO_COLOR")),
        markup=False,
        highlight=False,
        emoji=False,
    )


def line(text: str = "", style: str = "") -> None:
    """Print a line, with its own line breaks only.

    Args:
        text: anything; square brackets mean nothing.
        style: a style of rich, such as `bold` or `red`, for terminals.
    """
    text = printable(text, line_breaks=True)
    _console(sys.stdout).print(text, style=style or None, soft_wrap=True)


def heading(text: str) -> None:
    """Print the heading of a section."""
    line()
    line(text, "bold")


def error_line(text: str) -> None:
    """Print an error to standard error."""
    text = printable(f"lakelog: {text}", line_breaks=True)
    _console(sys.stderr).print(text, style="red", soft_wrap=True)


def ask(question: str) -> None:
    """Print a question to standard error, and stay on its line."""
    sys.stderr.write(f"{printable(question, line_breaks=True)} ")
    sys.stderr.flush()


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

    # Escaped before it is measured.
    whole, spare = [printable(n) for n in whole], [printable(n) for n in spare]
    columns, rows = [printable(n) for n in columns], [[_cell(c) for c in row] for row in rows]
    terminal = sys.stdout.isatty()
    left_out = _left_out(columns, rows, whole, spare) if terminal else []
    kept = [number for number, name in enumerate(columns) if name not in left_out]
    columns, rows = [columns[n] for n in kept], [[row[n] for n in kept] for row in rows]
    boxed = terminal and not os.environ.get("NO_COLOR")
    grid = Table(box=SIMPLE_HEAD if boxed else None, pad_edge=False, header_style="bold")
    for name in columns:
        grid.add_column(name, overflow="fold", no_wrap=not terminal or name in whole)
    for row in rows:
        grid.add_row(*(Text(*cell) for cell in row))
    _print_grid(grid)
    if left_out:
        line(f"Too narrow for {', '.join(left_out)}: widen the terminal, or use --json.", "dim")


def _cell(cell: Any) -> tuple[str, str]:
    text, style = cell if isinstance(cell, tuple) else (cell, "")
    return printable(str(text)), style


def _left_out(
    columns: Sequence[str],
    rows: Sequence[Sequence[tuple[str, str]]],
    whole: Collection[str],
    spare: Sequence[str],
) -> list[str]:
    """The spare columns without which the others are wide enough to be read."""

    def needed(name: str) -> int:
        number = columns.index(name)
        width = max(map(len, (name, *(row[number][0] for row in rows))), default=0)
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
        grid.add_row(Text(f"  {printable(name)}"), Text(printable(str(value))))
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
    sys.stdout.write(_json_text(data, indent=2) + "\n")


def json_line(data: Any) -> None:
    """Print one JSON document in a line."""
    sys.stdout.write(_json_text(data) + "\n")


def print_csv(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Print rows as CSV: to a pipe or file as they are, to a terminal as it may have them."""
    if sys.stdout.isatty():
        columns = [printable(name, line_breaks=True) for name in columns]
        rows = ([printable(text, line_breaks=True) for text in row] for row in rows)
    writer = csv.writer(sys.stdout, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(rows)


def _json_text(data: Any, indent: int | None = None) -> str:
    text = json.dumps(data, indent=indent, ensure_ascii=False)
    # Only strings hold such characters, and there an escape means the same.
    return "".join(
        each if each == "\n" or not is_unseen(each) else _json_escape(each) for each in text
    )


def _json_escape(character: str) -> str:
    return "\\u007f" if character == "\x7f" else json.dumps(character)[1:-1]


@contextlib.contextmanager
def progress() -> Iterator[Callable[[str], None]]:
    """Yield a function that shows what is being done; silent unless on a terminal."""
    console = _console(sys.stderr)
    if not console.is_terminal:
        yield lambda _: None
        return
    from rich.text import Text

    with console.status("") as status:
        yield lambda text: status.update(Text(printable(text)))
