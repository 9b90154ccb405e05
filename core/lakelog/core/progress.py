"""Progress of an operation: what its callback gets, and the bar that `auto` draws."""

from __future__ import annotations

import sys
import time
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias, TypeVar, overload

from lakelog.core.errors import DeltaAnalysisError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextlib import AbstractContextManager

_P = TypeVar("_P", bound="Progress")

_PATIENCE: Final = 2.0
"""Seconds after which a bar is shown: what is done by then needs none."""


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
        MissingExtraError: `auto` where a bar would be seen, and rich is not installed.
    """
    return _callback(given)


@contextmanager
def _callback(given: Any) -> Iterator[Callable[[Any], object]]:
    check_progress(given)
    if callable(given):
        yield given
        return
    if given is None or not _is_seen():
        yield _ignore
        return
    if find_spec("rich") is None:
        from lakelog.logstores.errors import MissingExtraError

        raise MissingExtraError("cli", "progress='auto'")
    bar = _Bar()
    try:
        yield bar
    finally:
        bar.close()


def _ignore(_: Progress) -> None:
    pass


def _is_seen() -> bool:
    """Whether somebody looks at what is drawn: on a terminal, or in a notebook."""
    return sys.stderr.isatty() or "ipykernel" in sys.modules


class _Bar:
    """Draws the steps of one operation, a line each.

    What can't be drawn (a terminal that is gone, or has no such characters) is left out: it must
    neither end an operation nor hide that it has landed.
    """

    def __init__(self) -> None:
        self._began = time.monotonic()
        self._drawn: Any = None
        self._tasks: dict[str, Any] = {}

    def __call__(self, now: Progress) -> None:
        with suppress(Exception):
            self._draw(now)

    def _draw(self, now: Progress) -> None:
        if self._drawn is None:
            if time.monotonic() - self._began < _PATIENCE:
                return
            self._drawn = _drawing()
            self._drawn.start()
        task = self._tasks.get(now.text)
        if task is None:
            task = self._tasks[now.text] = self._drawn.add_task(now.text, amount="")
        amounts = (_amount(each, now.unit) for each in (now.done, now.total) if each is not None)
        self._drawn.update(task, completed=now.done, total=now.total, amount=" of ".join(amounts))

    def close(self) -> None:
        """Leave what was drawn on the screen."""
        if self._drawn is not None:
            with suppress(Exception):
                self._drawn.stop()


def _drawing() -> Any:
    from rich.console import Console
    from rich.progress import BarColumn, TextColumn, TimeElapsedColumn
    from rich.progress import Progress as Drawing

    class Quiet(Console):
        def on_broken_pipe(self) -> None:
            raise  # rich would end the process

    return Drawing(
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.fields[amount]}"),
        TimeElapsedColumn(),
        console=Quiet(stderr=True),
    )


def _amount(count: int, unit: str) -> str:
    if unit != "bytes":
        return f"{count:,} {unit}"
    size, names = float(count), iter(("B", "kB", "MB", "GB"))
    name = next(names)
    while size >= 1000 and name != "GB":
        size, name = size / 1000, next(names)
    return f"{size:,.1f} {name}" if name != "B" else f"{count} B"
