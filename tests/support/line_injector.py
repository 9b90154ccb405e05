"""Raises an exception where a line is about to run, once."""

from __future__ import annotations

import sys
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from types import FrameType

__all__ = ["Line", "LineInjector"]


@dataclass(frozen=True, slots=True)
class Line:
    """One time that a line runs."""

    file: str
    number: int
    time: int
    """How often it has run before."""

    def __str__(self) -> str:
        return f"{Path(self.file).name}:{self.number}#{self.time}"


@dataclass
class LineInjector:
    """Watches the lines of this thread from `arm` on, and raises before one of them.

    Attributes:
        roots: folders of the code that is watched.
        at: the line; None only watches.
        error: what is raised.
        seen: the lines that ran, in order.
        hit: whether the exception was raised.
    """

    roots: tuple[str, ...]
    at: Line | None = None
    error: BaseException | None = None
    seen: list[Line] = field(default_factory=list)
    hit: bool = False
    _times: Counter[tuple[str, int]] = field(default_factory=Counter)
    _armed: bool = False
    _before: Any = None

    def arm(self) -> None:
        """Begin, in every frame that is under way too."""
        if self._armed:
            return
        self._armed = True
        self._before = sys.gettrace()
        frame: FrameType | None = sys._getframe(1)
        while frame is not None:
            if frame.f_code.co_filename.startswith(self.roots):
                frame.f_trace = self._line
            frame = frame.f_back
        sys.settrace(self._call)

    def disarm(self) -> None:
        """End; whoever traced before goes on."""
        if self._armed:
            sys.settrace(self._before)

    def _call(self, frame: FrameType, event: str, arg: Any) -> Any:
        file = frame.f_code.co_filename
        watched = file.startswith(self.roots) if self.at is None else file == self.at.file
        return self._line if watched else None

    def _line(self, frame: FrameType, event: str, arg: Any) -> Any:
        if event != "line":
            return self._line
        place = frame.f_code.co_filename, frame.f_lineno
        if self.at is None:
            self.seen.append(Line(*place, self._times[place]))
            self._times[place] += 1
        elif place == (self.at.file, self.at.number):
            if self._times[place] == self.at.time:
                self.hit = True
                sys.settrace(None)
                assert self.error is not None
                raise self.error
            self._times[place] += 1
        return self._line
