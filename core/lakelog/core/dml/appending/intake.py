"""What waits to be committed: in order, of bounded size, and each sequence number once."""

from __future__ import annotations

import hashlib
import threading
from collections import OrderedDict
from concurrent.futures import Future, InvalidStateError
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

import pyarrow as pa

from lakelog.core.arguments import BEYOND_LONG
from lakelog.core.arrow.encodings import held_bytes
from lakelog.core.errors import AppenderFullError, AppenderStoppedError, DeltaAnalysisError

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable, Generator, Sequence

    from lakelog.core.clock import Clock
    from lakelog.core.dml.appending.given import Fitted

_OVERHEAD: Final = 1024
"""Bytes that an append takes besides its rows, about."""
_REMEMBERED: Final = 10_000
"""Numbered appends whose rows a repeated number is compared with."""


class Ticket:
    """What `append` gives: by it the rows are known to be in the table.

    In a coroutine it may be awaited, for the same as `result` gives.
    """

    def __init__(self, seq: int) -> None:
        """Wait.

        Args:
            seq: of the append.
        """
        self.seq: int = seq
        """The append's number."""
        self._future: Future[int] = Future()
        self._saved: Future[None] = Future()
        # Who stops waiting doesn't take the rows back.
        self._future.set_running_or_notify_cancel()
        self._saved.set_running_or_notify_cancel()

    def done(self) -> bool:
        """Whether `result` returns or raises at once."""
        return self._future.done()

    def result(self, timeout: float | None = None) -> int:
        """Wait until the rows are in the table.

        Args:
            timeout: seconds; `None` waits for as long as it takes.

        Returns:
            The version that holds them; of an append that was in the table before the appender was
            opened, the version that it was opened at.

        Raises:
            TimeoutError: it takes longer; the rows still wait.
            AppenderStoppedError: they are not known to be in the table.
        """
        return self._future.result(timeout)

    def wait_saved(self, timeout: float | None = None) -> None:
        """Wait until the rows are safe: whatever becomes of this process, they come to the table.

        Without `save_every` that is when they are in the table.

        Args:
            timeout: seconds; `None` waits for as long as it takes.

        Raises:
            TimeoutError: it takes longer; the rows still wait.
            AppenderStoppedError: they are not known to be safe.
        """
        self._saved.result(timeout)

    async def saved(self) -> None:
        """`wait_saved`, for coroutines.

        Raises:
            AppenderStoppedError: see there.
        """
        import asyncio

        await asyncio.wrap_future(self._saved)

    def __await__(self) -> Generator[object, None, int]:
        """The same as `result`."""
        import asyncio

        waiting: asyncio.Future[int] = asyncio.wrap_future(self._future)
        return waiting.__await__()

    # One thread may say that all is well while another one stops: the first of them counts.

    def _is_saved(self) -> None:
        with suppress(InvalidStateError):
            self._saved.set_result(None)

    def _settle(self, version: int) -> None:
        self._is_saved()
        with suppress(InvalidStateError):
            self._future.set_result(version)

    def _fail(self, failure: AppenderStoppedError) -> None:
        for each in (self._saved, self._future):
            with suppress(InvalidStateError):
                each.set_exception(failure)


@dataclass(frozen=True, slots=True)
class Append:
    """Rows that wait, or are being committed."""

    fitted: Fitted
    ticket: Ticket
    size: int
    came: float
    """When, by the clock's `monotonic`."""

    @property
    def rows(self) -> pa.Table:
        """They."""
        return self.fitted.rows

    @property
    def seq(self) -> int:
        """Its number."""
        return self.ticket.seq


@dataclass(slots=True, kw_only=True)
class Intake:
    """The appends of one appender, shared by its threads."""

    table: str
    """For messages."""
    app_id: str
    clock: Clock
    every: float
    """Seconds that an append waits at most until it is taken."""
    save_every: float | None
    """Seconds that it waits at most until it is saved; `None`: its commit saves it."""
    max_bytes: int
    """Of all appends that are not settled; a single larger one is taken when there is no other."""
    acknowledged: int
    """The last number that is known to be safe."""
    version: int
    """The last version that is known to have rows of it."""
    appended: int = 0
    """Rows that were settled."""
    committed: int = field(init=False)
    """The last number that is known to be in the table."""
    _last: int = field(init=False)
    _first: int = field(init=False)
    _unsaved: list[Append] = field(default_factory=list)
    _waiting: list[Append] = field(default_factory=list)
    _taken: list[Append] = field(default_factory=list)
    _settling: tuple[Sequence[Append], int] = ((), -1)
    _held: int = 0
    _hurried: int = -1
    _closes: bool = False
    _drops: bool = False
    _failure: AppenderStoppedError | None = None
    _known: OrderedDict[int, tuple[bytes, Ticket]] = field(default_factory=OrderedDict)
    _changed: threading.Condition = field(default_factory=threading.Condition)

    def __post_init__(self) -> None:
        """Go on after the last number in the table."""
        self._last = self._first = self.committed = self.acknowledged

    @property
    def pending(self) -> int:
        """Appends that are not settled."""
        return len(self._unsaved) + len(self._waiting) + len(self._taken)

    @property
    def unsafe(self) -> int:
        """Those of them that are not known to be safe."""
        waiting = [*self._taken, *self._waiting, *self._unsaved]
        return sum(each.seq > self.acknowledged for each in waiting)

    @property
    def held(self) -> int:
        """Their bytes, about."""
        return self._held

    def recorded(self, seq: int | None) -> Ticket | None:
        """The ticket of an append that was in the table before; `None` for any other."""
        if seq is None or seq > self._first:
            return None
        ticket = Ticket(seq)
        ticket._settle(self.version)
        return ticket

    def put(
        self,
        fitted: Fitted,
        seq: int | None,
        timeout: float | None,
        before: Callable[[int], object] | None = None,
    ) -> Ticket:
        """Take rows, once there is room.

        Args:
            fitted: they.
            seq: `None` for the next one.
            timeout: seconds to wait for room; `None` waits for as long as it takes.
            before: called with the number once it is certain that they are taken; where it raises,
                they are not.

        Raises:
            AppenderFullError: there was no room; nothing was taken.
            AppenderStoppedError: nothing is taken any more.
            DeltaAnalysisError: a number that goes backwards, or that other rows have.
        """
        size = held_bytes(fitted.rows) + _OVERHEAD
        digest = None if seq is None else _digest(fitted.rows)
        with self._changed:
            if seq is not None and seq <= self._last:
                return self._repeated(seq, digest)
            self._changed.wait_for(lambda: self._has_room(size), timeout)
            self._check_open()
            if not self._has_room(size):
                raise self._full(timeout)
            if seq is not None and seq <= self._last:  # another thread's, while this one waited
                return self._repeated(seq, digest)
            number = self._next_number() if seq is None else seq
            if before is not None:
                before(number)
                if self._last >= number:
                    raise DeltaAnalysisError(
                        f"the dead_letter of the appender {self.app_id!r} of {self.table} has "
                        f"appended to that appender itself, while it was to take seq {number}, "
                        "which it did not take: give the dead_letter an appender of its own",
                        table=self.table,
                        app_id=self.app_id,
                        seq=number,
                    )
            append = Append(fitted, Ticket(number), size, self.clock.monotonic())
            self._hold(append, digest)
            return append.ticket

    def _hold(self, append: Append, digest: bytes | None) -> None:
        """Let it wait, or nothing of it is known, whatever interrupts this."""
        goes = self._waiting if self.save_every is None else self._unsaved
        count, last, held = len(goes), self._last, self._held
        try:
            self._last, self._held = append.seq, held + append.size
            if digest is not None:
                self._remember(digest, append.ticket)
            goes.append(append)
            if count == 0 or self._is_half_full:  # whoever takes them knows when they are due
                self._changed.notify_all()
        except BaseException:  # Ctrl-C, or a handler of a signal raises an error
            if len(goes) == count:
                self._last, self._held = last, held
                self._known.pop(append.seq, None)
            self._changed.notify_all()
            raise

    def unsaved(self) -> list[Append]:
        """What is to be saved next, once that is due; nothing once it is closed and empty."""
        assert self.save_every is not None
        with self._changed:
            every = self.save_every
            self._wait_until_due(lambda: self._unsaved, every)
            return list(self._unsaved)

    def saved(self, appends: Sequence[Append], *, by_commit: bool = False) -> None:
        """The first of what is unsaved is safe, and waits for its commit.

        Args:
            appends: they.
            by_commit: they are not safe before that, which is due at once.
        """
        with self._changed:
            if self._failure is not None:
                return
            # First: whatever is raised here, they are in one of both, for `stop`.
            if not self._drops:
                self._waiting += appends
            self._unsaved = self._unsaved[len(appends) :]
            if by_commit:
                self._hurried = max(self._hurried, appends[-1].seq)
            else:
                self.acknowledged = appends[-1].seq
            self._changed.notify_all()
        for each in () if by_commit else appends:
            each.ticket._is_saved()

    def take(self, *, waits: bool = True) -> list[Append]:
        """What is due, to be settled next; nothing once it is closed and empty.

        Args:
            waits: whether to wait until something is due.
        """
        with self._changed:
            if waits:
                self._wait_until_due(lambda: self._waiting, self.every)
            elif not self._is_due(self._waiting, self.every):
                return []
            self._taken, self._waiting = self._waiting, []
            return self._taken

    def settle(self, appends: Sequence[Append], version: int) -> None:
        """The first of what was taken are in the table.

        Args:
            appends: they.
            version: that holds them.
        """
        self._settling = appends, version
        self._note_settled(appends, version)
        for each in appends:
            each.ticket._settle(version)
        self._settling = (), version

    def _note_settled(self, appends: Sequence[Append], version: int) -> None:
        with self._changed:
            if appends:
                self.committed, self.version = appends[-1].seq, version
                self.acknowledged = max(self.acknowledged, self.committed)
            self.appended += sum(each.rows.num_rows for each in appends)
            if self._failure is None:
                self._held -= sum(each.size for each in appends)
                self._taken = self._taken[len(appends) :]
            self._changed.notify_all()

    def stop(self, failure: AppenderStoppedError) -> None:
        """Settle nothing any more: who waits gets the failure."""
        with self._changed:
            if self._failure is not None:
                return
            self._failure = failure
            # Whatever was raised there, these are in the table.
            settling, version = self._settling
            left = self._taken + self._waiting + self._unsaved
            self._taken, self._waiting, self._unsaved, self._held = [], [], [], 0
            self._changed.notify_all()
        for each in settling:
            each.ticket._settle(version)
        for each in left:
            each.ticket._fail(failure)

    def drop(self) -> list[Append]:
        """Take no more, and let go of what nobody commits at this moment.

        Returns:
            What will not be settled.
        """
        with self._changed:
            self._closes = self._drops = True
            dropped = self._waiting + self._unsaved
            self._waiting, self._unsaved = [], []
            self._held -= sum(each.size for each in dropped)
            self._changed.notify_all()
            return dropped

    def hurry(self) -> Ticket | None:
        """Let what waits be due now.

        Returns:
            The last of what is not settled.

        Raises:
            AppenderStoppedError: it has stopped.
        """
        with self._changed:
            if self._failure is not None:
                raise self._failure
            left = self._unsaved or self._waiting or self._taken
            self._hurried = self._last
            self._changed.notify_all()
            return left[-1].ticket if left else None

    def close(self) -> None:
        """Take no more."""
        with self._changed:
            self._closes = True
            self._changed.notify_all()

    @property
    def failure(self) -> AppenderStoppedError | None:
        """Why it has stopped."""
        return self._failure

    @property
    def _is_half_full(self) -> bool:
        return 2 * self._held >= self.max_bytes

    def _next_number(self) -> int:
        if self._last + 1 >= BEYOND_LONG:
            raise DeltaAnalysisError(
                f"the appender {self.app_id!r} of {self.table} has had the seq {self._last}, after "
                "which there is none: append with another app_id",
                table=self.table,
                app_id=self.app_id,
                last=self._last,
            )
        return self._last + 1

    def _has_room(self, size: int) -> bool:
        # Whoever waits must wake up where no room will ever come.
        over = self._failure is not None or self._closes
        return over or not self._held or self._held + size <= self.max_bytes

    def _wait_until_due(self, appends: Callable[[], list[Append]], every: float) -> None:
        """Wait until some are due, or no more can come."""
        while not self._is_due(appends(), every):
            first = next(iter(appends()), None)
            ends = self._closes and not self._unsaved and first is None
            if ends or self._failure is not None:
                return
            left = None if first is None else first.came + every - self.clock.monotonic()
            self._changed.wait(None if left is None else max(left, 0.001))

    def _is_due(self, appends: Sequence[Append], every: float) -> bool:
        if not appends:
            return False
        if self._is_half_full or self._closes or appends[0].seq <= self._hurried:
            return True
        return self.clock.monotonic() - appends[0].came >= every

    def _check_open(self) -> None:
        if self._failure is not None:
            raise self._failure
        if self._closes:
            raise DeltaAnalysisError(
                f"the appender {self.app_id!r} of {self.table} is closed: open another one",
                table=self.table,
                app_id=self.app_id,
            )

    def _full(self, timeout: float | None) -> AppenderFullError:
        return AppenderFullError(
            f"the appender {self.app_id!r} of {self.table} holds {self._held} bytes that are not "
            f"in the table yet, in {self.pending} appends, and had no room for more within "
            f"{timeout} seconds. These rows were not taken. The table has the appends up to seq "
            f"{self.committed} (version {self.version}). Append again later, or give more "
            f"max_bytes ({self.max_bytes}).",
            table=self.table,
            app_id=self.app_id,
            acknowledged=self.acknowledged,
            pending=self.pending,
        )

    def _remember(self, digest: bytes, ticket: Ticket) -> None:
        self._known[ticket.seq] = digest, ticket
        if len(self._known) > _REMEMBERED:
            self._known.popitem(last=False)

    def _repeated(self, seq: int, digest: bytes | None) -> Ticket:
        self._check_open()
        before = self._known.get(seq)
        if before is not None and before[0] == digest:
            return before[1]
        why = (
            "was given before, with other rows"
            if before is not None
            else f"goes backwards: the last one was {self._last}"
        )
        raise DeltaAnalysisError(
            f"the seq {seq} of the appender {self.app_id!r} of {self.table} {why}. Numbers of one "
            "app_id only grow, and what is appended again must be the same rows.",
            table=self.table,
            app_id=self.app_id,
            seq=seq,
            last=self._last,
        )


def _digest(rows: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows.schema) as writer:
        writer.write_table(rows.combine_chunks())
    return hashlib.blake2b(memoryview(sink.getvalue()), digest_size=16).digest()
