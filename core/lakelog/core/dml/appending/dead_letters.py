"""Rows that don't fit their table: put aside, counted, and a few of them shown."""

from __future__ import annotations

import json
import os
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

_SAMPLE: Final = 10


@dataclass(frozen=True, slots=True)
class UnfitRow:
    """A row that the table refused, and why."""

    seq: int
    """Of the append that it came with."""
    row: Mapping[str, Any]
    reason: str


DeadLetter: TypeAlias = "str | os.PathLike[str] | Callable[[Sequence[UnfitRow]], object]"


class DeadLetters:
    """Where rows that don't fit are put."""

    def __init__(self, target: DeadLetter) -> None:
        """Put nothing there yet.

        Args:
            target: a local file, which gets a line of JSON for each row, or what is called with
                the rows.
        """
        self._put = target if callable(target) else _JsonLines(target).put
        self._lock = threading.Lock()
        self.count: int = 0
        self.sample: list[UnfitRow] = []

    def put(self, rows: Sequence[UnfitRow]) -> None:
        """Put rows aside; they are there when this returns.

        Raises:
            OSError: the file can't be written.
            Exception: what the callable raises.
        """
        if not rows:
            return
        with self._lock:
            self._put(rows)
            self.count += len(rows)
            self.sample += rows[: _SAMPLE - len(self.sample)]


class _JsonLines:
    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._path = Path(path)

    def put(self, rows: Sequence[UnfitRow]) -> None:
        lines = (
            json.dumps({"seq": each.seq, "reason": each.reason, "row": each.row}, default=str)
            for each in rows
        )
        with self._path.open("a+b") as file:
            if file.seekable() and file.tell():
                file.seek(-1, os.SEEK_END)
                if file.read(1) != b"\n":  # a crash, or a full disk, has cut a line
                    file.write(b"\n")
            file.write("".join(f"{line}\n" for line in lines).encode())
            file.flush()
            # The commit that leaves the rows out comes after this.
            os.fsync(file.fileno())
