"""Raises an exception where a line is about to run, once."""

from __future__ import annotations

import linecache
import sys
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from types import FrameType


@dataclass(frozen=True, slots=True)
class Line:
    """One time that a line runs, or an instruction of a function."""

    file: str
    number: int
    """Of an instruction the line at which its function begins."""
    time: int
    """How often it has run before."""
    instruction: int = -1
    """Its place in the function; -1 for a line."""

    @property
    def module(self) -> str:
        """The file as `core/commit/loop.py`."""
        return self.file.rpartition("/lakelog/")[2]

    @property
    def is_bare(self) -> bool:
        """Whether nothing is done there in which anything could be raised."""
        return linecache.getline(self.file, self.number).strip() == "try:"

    def __str__(self) -> str:
        name = f"{self.module}:{self.number}"
        return f"{name}#{self.time}" if self.instruction < 0 else f"{name}+{self.instruction}"


@dataclass
class LineInjector:
    """Watches the lines of this thread from `arm` on, and raises before one of them.

    Attributes:
        roots: folders of the code that is watched.
        at: the line; None only watches.
        error: what is raised.
        seen: the lines that ran, in order.
        hit: whether the exception was raised.
        by_instruction: watches instructions instead of lines.
    """

    roots: tuple[str, ...]
    at: Line | None = None
    error: BaseException | None = None
    seen: list[Line] = field(default_factory=list)
    hit: bool = False
    by_instruction: bool = False
    _times: Counter[tuple[str, int, int]] = field(default_factory=Counter)
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
                frame.f_trace_opcodes = self.by_instruction
            frame = frame.f_back
        sys.settrace(self._call)

    def disarm(self) -> None:
        """End; whoever traced before goes on."""
        if self._armed:
            sys.settrace(self._before)

    def _call(self, frame: FrameType, event: str, arg: Any) -> Any:
        file = frame.f_code.co_filename
        watched = file.startswith(self.roots) if self.at is None else file == self.at.file
        frame.f_trace_opcodes = watched and self.by_instruction
        return self._line if watched else None

    def _line(self, frame: FrameType, event: str, arg: Any) -> Any:
        if event != ("opcode" if self.by_instruction else "line"):
            return self._line
        code = frame.f_code
        place = (
            (code.co_filename, code.co_firstlineno, frame.f_lasti)
            if self.by_instruction
            else (code.co_filename, frame.f_lineno, -1)
        )
        file, number, instruction = place
        if self.at is None:
            self.seen.append(Line(file, number, self._times[place], instruction))
            self._times[place] += 1
        elif place == (self.at.file, self.at.number, self.at.instruction):
            if self._times[place] == self.at.time:
                self.hit = True
                sys.settrace(None)
                assert self.error is not None
                raise self.error
            self._times[place] += 1
        return self._line
