"""Progress of an operation: what its callback gets, and what `auto` draws.

On a terminal that is a bar of rich's. rich and tqdm draw in notebooks by ipywidgets, which needs a
part in the notebook's server, too; here it is a plain HTML table that is replaced, so that a kernel
needs nothing more. Notebooks that show each replacement beneath the last get a line of text.
"""

from __future__ import annotations

import os
import sys
import time
import uuid
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal, Protocol, TypeAlias, TypeVar, overload

from lakelog.core.errors import DeltaAnalysisError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextlib import AbstractContextManager

_P = TypeVar("_P", bound="Progress")

_PATIENCE: Final = 2.0
"""Seconds after which a bar is shown: what is done by then needs none."""
_BETWEEN: Final = 0.2
"""Seconds from one picture in a notebook to the next."""
_TEXT_NOTEBOOKS: Final = ("DATABRICKS_RUNTIME_VERSION", "VSCODE_PID")
"""Variables of notebooks that get text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """How far an operation is. Steps of one operation may count different things."""

    text: str
    """What is being done: `listing`, `deleting`, `writing`."""
    done: int
    total: int | None = None
    """`None` where it is not known yet, as for a stream."""
    unit: str
    """What is counted, in the plural: `files`, `rows`, `bytes`, `actions`."""


ProgressCallback: TypeAlias = "Callable[[Progress], object]"
"""Called now and then by an operation. An exception from it ends the operation, as Ctrl-C would."""

GivenProgress: TypeAlias = "ProgressCallback | Literal['auto'] | None"
"""`auto` shows a bar on terminals and in notebooks once an operation has taken two seconds."""


def check_progress(given: object) -> None:
    """Check a `progress` argument before the operation that will use it begins.

    Raises:
        DeltaAnalysisError: it is not a function, `auto` or `None`.
    """
    if not callable(given) and given not in (None, "auto"):
        raise DeltaAnalysisError(
            f"progress must be a function of a Progress, 'auto' or None, but it is {given!r}",
            field="progress",
        )


@overload
def progress_callback(given: GivenProgress) -> AbstractContextManager[ProgressCallback]: ...
@overload
def progress_callback(
    given: Callable[[_P], object] | Literal["auto"] | None,
) -> AbstractContextManager[Callable[[_P], object]]: ...
def progress_callback(given: Any) -> AbstractContextManager[Callable[[Any], object]]:
    """The function that an operation calls to report its progress while it runs.

    Args:
        given: the caller's `progress`: a function, `auto`, or `None` for no reports.

    Raises:
        DeltaAnalysisError: it is something else.
        MissingExtraError: `auto` on a terminal, and rich is not installed.
    """
    return _callback(given)


@contextmanager
def _callback(given: Any) -> Iterator[Callable[[Any], object]]:
    check_progress(given)
    if callable(given):
        yield given
        return
    drawing = None if given is None else _drawing()
    if drawing is None:
        yield _ignore
        return
    bar = _Bar(drawing)
    try:
        yield bar
    finally:
        bar.close()


def _ignore(_: Progress) -> None:
    pass


def _drawing() -> Callable[[], _Drawing] | None:
    """What draws where somebody looks: in a notebook, or on a terminal.

    Raises:
        MissingExtraError: on a terminal, without rich.
    """
    if _in_notebook():
        return _Lines if any(map(os.environ.get, _TEXT_NOTEBOOKS)) else _Cell
    if not sys.stderr.isatty():
        return None
    from importlib.util import find_spec

    if find_spec("rich") is None:
        from lakelog.logstores.errors import MissingExtraError

        raise MissingExtraError("cli", "progress='auto'")
    return _Terminal


def _in_notebook() -> bool:
    """Whether this is the kernel of a notebook, whose shell then has one; IPython alone has not."""
    shell = sys.modules.get("IPython")
    return shell is not None and hasattr(shell.get_ipython(), "kernel")


class _Bar:
    """Draws the steps of one operation, a line each.

    What can't be drawn (a terminal that is gone, or has no such characters) is left out: it must
    neither end an operation nor hide that it has landed.
    """

    def __init__(self, drawing: Callable[[], _Drawing]) -> None:
        self._began = time.monotonic()
        self._make = drawing
        self._drawing: _Drawing | None = None

    def __call__(self, now: Progress) -> None:
        with suppress(Exception):
            if self._drawing is None:
                if time.monotonic() - self._began < _PATIENCE:
                    return
                self._drawing = self._make()
            self._drawing.draw(now)

    def close(self) -> None:
        """Leave what was drawn on the screen."""
        if self._drawing is not None:
            with suppress(Exception):
                self._drawing.close()


class _Drawing(Protocol):
    def draw(self, now: Progress) -> None: ...

    def close(self) -> None: ...


class _Terminal:
    """By rich, on a terminal."""

    def __init__(self) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, TextColumn, TimeElapsedColumn
        from rich.progress import Progress as Drawing

        class Quiet(Console):
            def on_broken_pipe(self) -> None:
                raise  # rich would end the process

        self._tasks: dict[str, Any] = {}
        self._drawn = Drawing(
            TextColumn("{task.description}"),
            BarColumn(),
            TextColumn("{task.fields[amount]}"),
            TimeElapsedColumn(),
            console=Quiet(stderr=True),
        )
        self._drawn.start()

    def draw(self, now: Progress) -> None:
        task = self._tasks.get(now.text)
        if task is None:
            task = self._tasks[now.text] = self._drawn.add_task(now.text, amount="")
        self._drawn.update(task, completed=now.done, total=now.total, amount=_amount(now))

    def close(self) -> None:
        self._drawn.stop()


class _Cell:
    """By HTML beneath a cell, which each picture replaces."""

    def __init__(self) -> None:
        self._id = f"lakelog-{uuid.uuid4().hex}"
        self._steps: dict[str, Progress] = {}
        self._shown: float | None = None

    def draw(self, now: Progress) -> None:
        self._steps[now.text] = now
        if self._shown is None or time.monotonic() - self._shown >= _BETWEEN:
            self._show()

    def close(self) -> None:
        self._show()

    def _show(self) -> None:
        from IPython.display import display  # pyright: ignore[reportMissingImports]

        from lakelog.core.shown.notebook import progress_page

        steps = [(each, _amount(each)) for each in self._steps.values()]
        text = "\n".join(f"{each.text}: {amount}" for each, amount in steps)
        html = progress_page([(each.text, each.done, each.total, amount) for each, amount in steps])
        data = {"text/plain": text, "text/html": html}
        display(data, raw=True, display_id=self._id, update=self._shown is not None)
        self._shown = time.monotonic()


class _Lines:
    """By text beneath a cell: a line for each step, written over while it runs."""

    def __init__(self) -> None:
        self._step: str | None = None
        self._width = 0
        self._shown = -_BETWEEN
        self._last = ""

    def draw(self, now: Progress) -> None:
        if self._step is not None and now.text != self._step:
            self.close()
        self._step = now.text
        self._last = f"{now.text}: {_amount(now)}"
        if time.monotonic() - self._shown >= _BETWEEN:
            self._show()

    def close(self) -> None:
        self._show("\n")
        self._width = 0

    def _show(self, end: str = "") -> None:
        sys.stderr.write(f"\r{self._last.ljust(self._width)}{end}")
        sys.stderr.flush()
        self._width, self._shown = len(self._last), time.monotonic()


def _amount(now: Progress) -> str:
    """`7 of 9 files`, `1.4 MiB of 2.8 GiB`, `4,000 files`."""
    counts = [each for each in (now.done, now.total) if each is not None]
    if now.unit == "bytes":
        from lakelog.core.shown.texts import bytes_text

        return " of ".join(map(bytes_text, counts))
    return f"{' of '.join(f'{each:,}' for each in counts)} {now.unit}"
