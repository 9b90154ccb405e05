"""Lines of JSON as the appends of an appender: the number of each, and what is wrong with it."""

from __future__ import annotations

import sys
from collections import deque
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

from lakelog.cli.json_values import parse, reader
from lakelog.core.errors import AppenderStoppedError, DeltaAnalysisError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from lakelog.core import Appender, Ticket
    from lakelog.core.schema import StructType

_CHUNK: Final = 1 << 20


class JsonLines:
    """What was read so far, and what became of it."""

    def __init__(
        self, appender: Appender, schema: StructType, seq_field: str | None, *, puts_aside: bool
    ) -> None:
        """Append nothing yet.

        Args:
            appender: takes the rows.
            schema: of its table.
            seq_field: the column that has the number of a line; `None`: its place has it.
            puts_aside: whether lines that don't fit are dead letters.
        """
        self._appender, self._read = appender, reader(schema)
        self._seq_field, self._puts_aside = seq_field, puts_aside
        self._first = appender.last_seq
        self._number = self._sent = -1
        self._waiting: deque[tuple[Ticket, Sequence[int]]] = deque()
        """Appends that are not in the table, and which lines their rows are."""
        self.count: int = 0
        """Lines that are not empty."""
        self.there_already: int = 0

    def append(self, lines: Sequence[tuple[int, bytes]]) -> None:
        """Append some lines as one append.

        Args:
            lines: each with its place in the input, from 1, and with its end; only the last line of
                the input may lack that.

        Raises:
            DeltaAnalysisError: a line is no whole line; or it is wrong, and not put aside. Names
                it; what is before it was taken.
            AppenderStoppedError: see `Appender.append`.
        """
        rows: list[dict[str, Any]] = []
        places: list[int] = []
        try:
            for place, text in lines:
                if text.strip() and (row := self._row(place, text)) is not None:
                    rows.append(row)
                    places.append(place)
        finally:
            if self._number > max(self._sent, self._first):
                self._send(rows, places)

    @contextmanager
    def named(self) -> Iterator[None]:
        """Name the line that the table refuses, if that is what ends the block."""
        try:
            yield
        except AppenderStoppedError as exc:
            fields: Any = exc
            for ticket, places in self._waiting:
                if ticket.seq == fields.failed_seq:
                    raise DeltaAnalysisError(
                        f"line {places[fields.failed_row]} of stdin does not fit the table: {exc}"
                    ) from exc
            raise

    def _row(self, place: int, text: bytes) -> dict[str, Any] | None:
        """The row of a line; `None` where there is nothing to append."""
        field = self._seq_field
        try:
            row = _parsed(text)
            number = self.count if field is None else _number_of(row, field)
        except ValueError as exc:
            if not text.endswith(b"\n"):
                raise DeltaAnalysisError(
                    f"line {place} of stdin is cut off: the input ends within it ({exc}). It was "
                    "not taken, and its number is free: send it again when it is whole"
                ) from exc
            if field is None:
                self._number = self.count
            self.count += 1
            self._put_aside(place, text, exc)
            return None
        self.count += 1
        if number <= self._number:
            raise DeltaAnalysisError(
                f"line {place} of stdin has {field} {number}, after {self._number}: the numbers of "
                "--seq-field must be larger in each line"
            )
        self._number = number
        if number <= self._first:
            self.there_already += 1
            return None
        try:
            found: dict[str, Any] = self._read(row)
        except ValueError as exc:
            self._put_aside(place, text, exc)
            return None
        return found

    def _put_aside(self, place: int, text: bytes, why: Exception) -> None:
        reason = f"line {place} of stdin {why}"
        if not self._puts_aside:
            raise DeltaAnalysisError(reason) from why
        # Without a number it has a place: after the line before it.
        number, first = self._number, self._first
        if number > first or (self._seq_field is not None and number in (first, -1)):
            unread = {"line": text.decode(errors="replace").removesuffix("\n")}
            self._appender.reject(unread, reason, seq=max(number, 0))

    def _send(self, rows: list[dict[str, Any]], places: list[int]) -> None:
        try:
            ticket = self._appender.append(rows, seq=self._number)
        except DeltaAnalysisError as exc:
            if not rows:
                raise
            row = getattr(exc, "row", None)
            if row is None:  # a column that the table does not have
                column = getattr(exc, "column", None)
                row = next((at for at, each in enumerate(rows) if column in each), None)
            where, said = f"a line from {places[0]} to {places[-1]}", str(exc)
            if row is not None:
                # Its place in the append says nothing to whoever sent lines.
                where, said = f"line {places[row]}", said.replace(f" in row {row}: ", ": ", 1)
            raise DeltaAnalysisError(f"{where} of stdin does not fit the table: {said}") from exc
        self._sent = self._number
        self._waiting.append((ticket, places))
        while self._waiting and self._waiting[0][0].done():
            self._waiting.popleft()


def stdin_lines() -> Iterator[list[tuple[int, bytes]]]:
    """The lines that are there, as soon as there are any, each with its place from 1."""
    # Not `read`, which waits until it has so many bytes.
    read: Callable[[int], bytes] = getattr(sys.stdin.buffer, "read1", sys.stdin.buffer.read)
    begun: list[bytes] = []
    """The parts of a line whose end has not come: joined once, however long it is."""
    place = 1
    while chunk := read(_CHUNK):
        begun.append(chunk)
        if b"\n" not in chunk:
            continue
        *lines, rest = b"".join(begun).split(b"\n")
        begun = [rest]
        yield [(at, each + b"\n") for at, each in enumerate(lines, place)]
        place += len(lines)
    if rest := b"".join(begun):
        yield [(place, rest)]


def _parsed(text: bytes) -> dict[str, Any]:
    try:
        row = parse(text)
    except (ValueError, RecursionError) as exc:
        raise ValueError(f"is not JSON: {exc}") from exc
    if not isinstance(row, dict):
        raise ValueError(f"is not an object of JSON: {text.strip()[:100]!r}")
    return row


def _number_of(row: dict[str, Any], field: str) -> int:
    found = row.get(field)
    if not isinstance(found, int) or isinstance(found, bool) or found < 0:
        raise ValueError(
            f"has {field} {found!r}, which is no number of --seq-field: a whole number from 0 on"
        )
    return found
