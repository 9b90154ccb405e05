"""Appending rows as they come."""

from __future__ import annotations

import asyncio
import os
import re
import threading
import time
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

from lakelog.core.arguments import (
    is_text,
    read_arguments,
    read_number,
    read_whole,
    refusal,
    require,
)
from lakelog.core.delta_log import log_of
from lakelog.core.dml.appending.committing import (
    BatchCommitter,
    RecordGoneError,
    RefusedAppendError,
)
from lakelog.core.dml.appending.compacting import Compactor
from lakelog.core.dml.appending.dead_letters import DeadLetters, UnfitRow
from lakelog.core.dml.appending.given import fitted_rows
from lakelog.core.dml.appending.intake import Intake, Ticket
from lakelog.core.dml.appending.patience import Patience
from lakelog.core.dml.appending.saving import Saver, take_over
from lakelog.core.dml.appending.segments import Segments, turn_app
from lakelog.core.errors import AppenderFullError, AppenderStoppedError, DeltaAnalysisError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from types import TracebackType
    from typing import Self

    from lakelog.core.delta_log import DeltaLog, TableOrLog
    from lakelog.core.dml.appending.dead_letters import DeadLetter
    from lakelog.core.input.given_rows import GivenRows
    from lakelog.core.state.snapshot import Snapshot

Span: TypeAlias = "str | float | timedelta"

_SPAN: Final = re.compile(r"\s*(\d+(?:\.\d+)?)\s*(ms|s|m|h)\s*", re.ASCII)
_SECONDS: Final = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}
_MOST: Final = 64 << 20


@dataclass(frozen=True, slots=True)
class AppenderMetrics:
    """What an appender has done so far."""

    rows: int
    """Rows that are in the table."""
    commits: int
    retries: int
    """Commits that were tried again: after a conflict, or because the storage failed."""
    rejected: int
    """Rows that were put aside as dead letters."""
    pending: int
    """Appends that are not in the table yet."""
    pending_bytes: int
    """What they take in memory, about."""
    compacted: int
    """Small files that it has put together, those of other appenders among them."""


class Appender:
    """Takes rows of many threads, and commits them together; `appender` opens one."""

    def __init__(
        self,
        log: DeltaLog,
        *,
        app_id: str,
        every: float,
        save_every: float | None,
        max_bytes: int,
        patience: float,
        merge_schema: bool,
        dead_letter: DeadLetter | None,
        compact: bool,
    ) -> None:
        """Call `appender` instead."""
        snapshot = log.update()
        self._log, self._merges = log, merge_schema
        self._opened, self._pid = snapshot, os.getpid()
        self._dead = None if dead_letter is None else DeadLetters(dead_letter)
        self._compactor = Compactor(log, app_id) if compact else None
        self._committer = BatchCommitter(
            log=log,
            app_id=app_id,
            opened=snapshot,
            merge_schema=merge_schema,
            patience=Patience(log.clock, patience),
            recorded=snapshot.txn_version(app_id),
            turn=snapshot.txn_version(turn_app(app_id)),
            dead_letters=self._dead,
            compactor=self._compactor,
        )
        self._segments = Segments(log, app_id, snapshot.metadata.id)
        saves = save_every is not None
        if saves:
            self._segments.check_storage()
        if saves or self._segments.listed():
            self._take_over()
        self._intake = Intake(
            table=log.table,
            app_id=app_id,
            clock=log.clock,
            every=every,
            save_every=save_every,
            max_bytes=max_bytes,
            acknowledged=self._committer.recorded,
            version=self._snapshot.version,
        )
        self._saver = Saver(
            log=log,
            app_id=app_id,
            segments=self._segments,
            committer=self._committer,
            opened=snapshot,
            patience=Patience(log.clock, patience),
        )
        works = [self._run, self._run_saver] if saves else [self._run]
        self._threads = [
            threading.Thread(target=each, name="lakelog-appender", daemon=True) for each in works
        ]
        for each in self._threads:
            each.start()

    @property
    def app_id(self) -> str:
        """As given."""
        return self._intake.app_id

    @property
    def last_seq(self) -> int:
        """The last `seq` that is known to be safe, with all before it; -1 for none.

        It is in the table, or with `save_every` saved beside it.

        After a crash a producer goes on with what comes after it.
        """
        return self._intake.acknowledged

    @property
    def metrics(self) -> AppenderMetrics:
        """What was done so far."""
        committer, intake = self._committer, self._intake
        return AppenderMetrics(
            rows=intake.appended,
            commits=committer.commits,
            retries=committer.patience.retries + self._saver.patience.retries,
            rejected=0 if self._dead is None else self._dead.count,
            pending=intake.pending,
            pending_bytes=intake.held,
            compacted=0 if self._compactor is None else self._compactor.files,
        )

    @property
    def rejected_sample(self) -> list[UnfitRow]:
        """The first ten rows that were put aside as dead letters."""
        return [] if self._dead is None else list(self._dead.sample)

    def append(
        self, rows: GivenRows, *, seq: int | None = None, timeout: float | None = None
    ) -> Ticket:
        """Take rows, to be committed within the interval.

        Waits while the appender holds as much as it may. Any number of threads may call it; those
        that give a `seq` must agree on the order.

        Args:
            rows: as for `write_arrow`; a stream is read to its end first. Dicts get the types of
                the table.
            seq: the number of the append: larger than all before it of this `app_id`, with gaps if
                need be. One that the table has already is not appended again, and neither is one
                that is repeated with the same rows. `None`: the next number.
            timeout: seconds to wait for room; `None` waits for as long as it takes.

        Returns:
            A ticket; its `result` waits until the rows are in the table, and `wait_saved` until
            they are safe.

        Raises:
            SchemaMismatchError: the rows don't fit the table; they were not taken, and the `seq`
                is free.
            DeltaAnalysisError: the same of single values; a `seq` that goes backwards or was given
                with other rows; or the appender is closed.
            AppenderFullError: there was no room; the rows were not taken.
            AppenderStoppedError: it takes no more.
        """
        return self._offered(rows, seq)(timeout)

    def _offered(self, rows: GivenRows, seq: int | None) -> Callable[[float | None], Ticket]:
        """What takes the rows, within a time to wait for room; a stream is read but once."""
        self._check_process()
        if seq is not None:
            seq = read_whole(seq, "seq")
            require(seq, lambda each: each >= 0, "seq", "0 or more")
        if (known := self._intake.recorded(seq)) is not None:
            return lambda _: known
        dead = self._dead
        fitted, unfit = fitted_rows(
            rows, self._snapshot, merges=self._merges, sifts=dead is not None
        )

        def put_aside(number: int) -> None:
            if dead is not None:
                dead.put([UnfitRow(number, row, str(exc)) for row, exc in unfit])

        before = put_aside if unfit else None
        return lambda timeout: self._intake.put(fitted, seq, timeout, before)

    def reject(self, row: Mapping[str, Any], reason: str, *, seq: int) -> None:
        """Put a row aside as a dead letter: one that the producer itself can't read.

        Args:
            row: what there is of it.
            reason: for whoever looks at the dead letters.
            seq: of the append that it would have been in; that is still to be appended, without it.

        Raises:
            DeltaAnalysisError: the appender has no `dead_letter`.
            OSError: the file of dead letters can't be written.
        """
        if self._dead is None:
            raise DeltaAnalysisError(
                f"the appender {self.app_id!r} of {self._log.table} has no dead_letter, to which "
                f"a row with seq {seq} could be put aside: {reason}",
                table=self._log.table,
                app_id=self.app_id,
            )
        self._dead.put([UnfitRow(seq, row, reason)])

    def flush(self, timeout: float | None = None) -> int:
        """Commit now what was taken so far, and wait for it.

        Args:
            timeout: seconds; `None` waits for as long as it takes.

        Returns:
            The version that holds it, or what was committed last.

        Raises:
            TimeoutError: it takes longer, and goes on.
            AppenderStoppedError: not all of it is known to be in the table.
        """
        self._check_process()
        last = self._intake.hurry()
        return self._intake.version if last is None else last.result(timeout)

    def abort(self, timeout: float | None = None) -> None:
        """Drop what was taken and is not on its way, and take no more; a fork drops nothing.

        Afterwards `last_seq` says what the table has, and with `save_every` what is saved, which
        comes to it when the next appender is opened. Tickets of what was dropped raise
        `AppenderStoppedError`. `close`, and the end of a `with` block, have nothing left to do.

        Args:
            timeout: seconds to wait for the commit that is being made; `None` waits for as long as
                it takes.

        Raises:
            TimeoutError: it takes longer, and goes on.
            AppenderStoppedError: the appender has stopped by itself before.
        """
        if os.getpid() != self._pid:
            return
        dropped = self._intake.drop()
        acknowledged = self._intake.acknowledged
        unsafe = sum(each.seq > acknowledged for each in dropped)
        failure = AppenderStoppedError(
            f"the appender {self.app_id!r} of {self._log.table} was aborted. Its appends up to seq "
            f"{acknowledged} were safe then; {unsafe} after that were dropped.",
            table=self._log.table,
            app_id=self.app_id,
            acknowledged=acknowledged,
            pending=unsafe,
            failed_seq=None,
            failed_row=None,
        )
        for each in dropped:
            each.ticket._fail(failure)
        self.close(timeout)

    def close(self, timeout: float | None = None) -> None:
        """Commit what was taken, and take no more; a second call does nothing, nor one of a fork.

        Args:
            timeout: seconds; `None` waits for as long as it takes.

        Raises:
            TimeoutError: it takes longer, and goes on.
            AppenderStoppedError: not all of it is known to be in the table.
        """
        if os.getpid() != self._pid:
            return  # a fork has none of the threads; the process that opened it commits
        self._intake.close()
        until = None if timeout is None else time.monotonic() + timeout
        for each in self._threads:
            each.join(None if until is None else max(until - time.monotonic(), 0))
        if any(each.is_alive() for each in self._threads):
            raise TimeoutError(
                f"the appender {self.app_id!r} of {self._log.table} still commits what it has: "
                f"{self._intake.pending} appends after seq {self.last_seq}"
            )
        if self._compactor is not None:
            self._compactor.close(timeout)
        if self._intake.failure is not None:
            raise self._intake.failure

    def __enter__(self) -> Self:
        """Nothing to do."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """`close`, also where the block fails: what was taken is committed."""
        if error is None:
            self.close()
            return
        try:
            self.close()
        except AppenderStoppedError as exc:
            if exc is not error:
                error.add_note(str(exc))

    def _check_process(self) -> None:
        if os.getpid() != self._pid:
            raise DeltaAnalysisError(
                f"the appender {self.app_id!r} of {self._log.table} was opened by another process, "
                "of which this one is a fork: open one here, with an app_id of its own",
                table=self._log.table,
                app_id=self.app_id,
            )

    @property
    def _snapshot(self) -> Snapshot:
        # As of the last commit: no request for each append.
        return self._log.known_snapshot or self._opened

    def _run(self) -> None:
        try:
            while batch := self._intake.take():
                self._committer.commit(self._intake, batch)
                self._segments.forget(self._committer.recorded)
        except BaseException as exc:
            self._intake.stop(self._stopped(exc))

    def _run_saver(self) -> None:
        try:
            self._saver.run(self._intake)
        except BaseException as exc:
            self._intake.stop(self._stopped(exc))

    def _take_over(self) -> None:
        log, app_id = self._log, self._committer.app_id
        try:
            take_over(log, app_id, self._segments, self._committer)
        except RefusedAppendError as exc:
            why = exc.__cause__ or exc
            raise AppenderStoppedError(
                f"the table {log.table} refuses rows with seq {exc.seq} that an appender "
                f"{app_id!r} has saved before: {why} Change the table so that it takes them, or "
                "open the appender with schema_mode='merge' or a dead_letter.",
                table=log.table,
                app_id=app_id,
                acknowledged=self._committer.recorded,
                pending=0,
                failed_seq=exc.seq,
                failed_row=exc.row,
            ) from why

    def _stopped(self, error: BaseException) -> AppenderStoppedError:
        intake, seq, row, why = self._intake, None, None, error
        if isinstance(error, RefusedAppendError):
            seq, row, why = error.seq, error.row, error.__cause__ or error
        at = "" if seq is None else f" at row {row}, counted from 0, of the append with seq {seq}"
        reason = str(why).rstrip(".") or type(why).__name__
        saved = ""
        if intake.acknowledged > intake.committed:
            saved = (
                f"; those up to seq {intake.acknowledged} are saved beside it, and come to it when "
                "the next appender is opened"
            )
        advice = (
            "Open an appender with the same app_id, and append what is after its last_seq."
            if not isinstance(error, RecordGoneError)
            else f"Open another appender, and append what is after seq {intake.acknowledged}, "
            "whatever its last_seq is: all before that would be there twice."
        )
        failure = AppenderStoppedError(
            f"the appender {self.app_id!r} of {self._log.table} stopped{at}: {reason}. "
            f"The table has its appends up to seq {intake.committed} (version "
            f"{intake.version}){saved}; {intake.unsafe} after that were taken and are not known to "
            f"be safe. {advice}",
            table=self._log.table,
            app_id=self.app_id,
            acknowledged=intake.acknowledged,
            pending=intake.unsafe,
            failed_seq=seq,
            failed_row=row,
        )
        failure.__cause__ = why
        return failure

    async def __aenter__(self) -> AsyncAppender:
        """The same for coroutines."""
        return AsyncAppender(self)

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """`close`, in a thread."""
        await asyncio.to_thread(self.__exit__, kind, error, trace)


class AsyncAppender:
    """What `async with appender(…)` gives: nothing in it blocks the event loop."""

    def __init__(self, appender: Appender) -> None:
        """Use an appender.

        Args:
            appender: its methods are those that this one has.
        """
        self._appender = appender

    @property
    def last_seq(self) -> int:
        """See `Appender.last_seq`."""
        return self._appender.last_seq

    @property
    def metrics(self) -> AppenderMetrics:
        """See `Appender.metrics`."""
        return self._appender.metrics

    async def append(
        self, rows: GivenRows, *, seq: int | None = None, timeout: float | None = None
    ) -> Ticket:
        """See `Appender.append`; the ticket can be awaited.

        Raises:
            DeltaError: what `Appender.append` raises.
        """
        take = self._appender._offered(rows, seq)
        try:
            # In the order of the calls, which threads would not keep.
            return take(0)
        except AppenderFullError:
            if timeout == 0:
                raise
        return await asyncio.to_thread(take, timeout)

    async def abort(self) -> None:
        """See `Appender.abort`.

        Raises:
            AppenderStoppedError: see there.
        """
        await asyncio.to_thread(self._appender.abort)

    async def flush(self) -> int:
        """See `Appender.flush`.

        Raises:
            AppenderStoppedError: not all of it is known to be in the table.
        """
        return await asyncio.to_thread(self._appender.flush)


@read_arguments
def appender(
    uri: TableOrLog,
    *,
    app_id: str,
    every: Span = "1s",
    save_every: Span | None = None,
    schema_mode: Literal["merge"] | None = None,
    dead_letter: DeadLetter | None = None,
    compact: bool = False,
    max_bytes: int = _MOST,
    patience: Span = "60s",
    conf: Mapping[str, str] | None = None,
) -> Appender:
    """Open an appender of a table, for rows that come one by one.

        with appender("/lake/events", app_id="sensor-7", every="1s") as a:
            for seq, event in events(after=a.last_seq):
                a.append([event], seq=seq)

    Rows come to the table exactly once: each commit records the last `seq` that it has as the
    application's, in the same version. After a crash, another appender with the same `app_id`
    knows by `last_seq` what the table has, and does not append it again. One `app_id` has one
    appender at a time; of two, one is found out at its next commit, and stops.

    Args:
        uri: where the table is, or its `DeltaLog`; the table must exist.
        app_id: who appends; the table's record of it (`txn`) is how it goes on after a crash.
        every: how long rows wait at most until their commit begins: "500ms", "1s", "2m", seconds,
            or a `timedelta`.
        save_every: how long rows wait at most until they are saved, in a file beside the table,
            where they are safe; `None`: they are safe once they are in the table. An appender that
            is opened after a crash brings what was saved into the table first.
        schema_mode: `merge` adds columns that only the rows have.
        dead_letter: what to do with rows that don't fit: a local file, which gets a line of JSON
            for each, or a function of a list of `UnfitRow`. They are there before the commit that
            leaves them out; after a crash they may be there twice. `None`: they are refused.
        compact: put together the small files of this appender and of others that were opened with
            this, as they come. Rivals win, but a DELETE, UPDATE or MERGE that has read such files
            meanwhile must run again.
        max_bytes: of rows that are held; `append` waits for room. Half of it makes a commit
            before its time.
        patience: for how long a commit is tried again where the storage fails or others are
            faster; then the appender stops.
        conf: the user's whole Spark conf; a `DeltaLog` has its own.

    Raises:
        TableNotFoundError: there is no table; `create_table` makes one.
        AppenderStoppedError: rows that were saved before can't be brought into the table.
        DeltaAnalysisError: an argument that can't be.
    """
    require(app_id, lambda each: is_text(each) and bool(each), "app_id", "a text")
    if schema_mode not in (None, "merge"):
        raise refusal(schema_mode, "schema_mode", "'merge' or None")
    if not isinstance(compact, bool):
        raise refusal(compact, "compact", "True or False")
    if not (dead_letter is None or callable(dead_letter) or _is_file(dead_letter)):
        raise refusal(dead_letter, "dead_letter", "the path of a local file, or a function")
    max_bytes = read_whole(max_bytes, "max_bytes")
    require(max_bytes, lambda each: each > 0, "max_bytes", "1 or more")
    return Appender(
        log_of(uri, conf),
        app_id=app_id,
        every=_seconds(every, "every"),
        save_every=None if save_every is None else _seconds(save_every, "save_every"),
        max_bytes=max_bytes,
        patience=_seconds(patience, "patience"),
        merge_schema=schema_mode == "merge",
        dead_letter=dead_letter,
        compact=compact,
    )


def _is_file(path: Any) -> bool:
    """Whether it is a path, and of no folder; the file may be made later."""
    is_path = isinstance(path, str | os.PathLike) and isinstance(os.fspath(path), str)
    return is_path and bool(os.fspath(path)) and not Path(path).is_dir()


def _seconds(span: Span, name: str) -> float:
    what = "a time such as '500ms', '1s', '2m', or seconds, of less than 1,000,000 seconds"
    if isinstance(span, timedelta):
        found = span.total_seconds()
    elif isinstance(span, str):
        match = _SPAN.fullmatch(span)
        if match is None:
            raise refusal(span, name, what)
        found = float(match[1]) * _SECONDS[match[2]]
    else:
        found = read_number(span, name)
    require(found, lambda each: 0 <= each < 1e6, name, what)
    return found
