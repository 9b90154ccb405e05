"""Bringing appends into their table: each exactly once, whatever fails on the way.

The commit of a batch records the batch's last number as the application's (`txn`), in the same
version. So a batch whose reply was lost is looked for before it is tried again, and one of another
appender with the same application is seen, in the version that is read or as a conflict.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from lakelog.core.actions.operation import Operation
from lakelog.core.delta_log import begin_change
from lakelog.core.dml.appending.compacting import TAGS
from lakelog.core.dml.appending.dead_letters import UnfitRow
from lakelog.core.dml.appending.given import Fitted, filled_columns, have_same_columns
from lakelog.core.dml.appending.segments import turn_app
from lakelog.core.dml.arrow_write import Written, append_rows, unfit_rows
from lakelog.core.dml.table_write import WriteRequest
from lakelog.core.errors import (
    ConstraintViolationError,
    DeltaAnalysisError,
    InvalidCommittedVersionError,
    PostCommitError,
    SchemaMismatchError,
)
from lakelog.core.log.commit_identity import transactions_in
from lakelog.core.telemetry.catalogue import APPEND, APPEND_REJECTED, APPEND_ROWS
from lakelog.core.telemetry.switch import observing
from lakelog.core.transaction.command_commit import commit_command

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lakelog.core.delta_log import DeltaLog
    from lakelog.core.dml.appending.compacting import Compactor
    from lakelog.core.dml.appending.dead_letters import DeadLetters
    from lakelog.core.dml.appending.intake import Append, Intake
    from lakelog.core.dml.appending.patience import Patience
    from lakelog.core.schema import StructType
    from lakelog.core.state.snapshot import Snapshot
    from lakelog.core.telemetry.switch import Seen
    from lakelog.core.transaction.optimistic import OptimisticTransaction

_UNFIT: Final = (ConstraintViolationError, SchemaMismatchError)


class RefusedAppendError(Exception):
    """The table refuses rows of an append, and they may not be put aside; its cause says why."""

    def __init__(self, seq: int, row: int) -> None:
        """Name the append, and the first of its rows."""
        super().__init__(f"the table refuses row {row} of the append with seq {seq}")
        self.seq: int = seq
        self.row: int = row


class RecordMovedError(DeltaAnalysisError):
    """Another appender has the same application."""


class RecordGoneError(RecordMovedError):
    """The table has forgotten what it recorded of the application."""


@dataclass(slots=True, kw_only=True)
class BatchCommitter:
    """Commits what an intake gives it, one batch at a time."""

    log: DeltaLog
    app_id: str
    opened: Snapshot
    """The table as it was opened; one that was made in its place is another."""
    merge_schema: bool
    patience: Patience
    recorded: int
    """The number that the table has recorded last."""
    turn: int = -1
    """The last take-over of the application that the table has recorded; see `segments`."""
    dead_letters: DeadLetters | None
    compactor: Compactor | None
    commits: int = 0
    _rejected: int = 0

    def commit(self, intake: Intake, batch: Sequence[Append]) -> None:
        """Commit what was taken, and settle it.

        Raises:
            RefusedAppendError: what is before that append is settled.
            DeltaError: nothing more is settled.
            OSError: the storage failed for longer than `patience`.
        """
        left = list(batch)
        while left:
            count, fitted = joined(left)
            part = left[:count]
            try:
                version = self._observed(fitted, part[-1].seq)
            except _UNFIT as exc:
                left[:count] = self._sifted(intake, part, fitted, exc)
                continue
            self.commits += 1
            self.recorded = part[-1].seq
            intake.settle(part, version)
            left = left[count:]

    def _observed(self, fitted: Fitted, last: int) -> int:
        log, count = self.log, fitted.rows.num_rows

        def work(seen: Seen) -> int:
            version = self._committed(fitted, last)
            seen.note(version=version, rows=count)
            seen.count(APPEND_ROWS, count)
            if self.dead_letters is not None:
                rejected = self.dead_letters.count
                seen.count(APPEND_REJECTED, rejected - self._rejected)
                self._rejected = rejected
            return version

        return observing(log.conf, APPEND, log.table, work)

    def _committed(self, fitted: Fitted, last: int) -> int:
        """The version that has the rows, with the record of their last number."""
        until, tried, read = self.patience.begin(), set[str](), None
        while True:
            txn = None
            try:
                txn = self._begun()
                if not self._is_mine(txn):
                    return self._landed(txn, tried, read)
                read = txn.reads.version if read is None else read
                done = self._append(txn, fitted, last)
                if self.compactor is not None:
                    self.compactor.take(done.version)
                return done.version
            except InvalidCommittedVersionError:
                raise  # no reader would find the rows
            except PostCommitError as exc:
                return int(exc.version)
            except Exception as exc:
                # Its own id, too: another process may have committed it, of whose attempts nothing
                # came back.
                if txn:
                    tried |= {txn._committer.txn_id, *(each.txn_id for each in txn.attempts)}
                self.patience.bear(exc, until)

    def take_turn(self, turn: int) -> None:
        """Let the table refuse the commits of whoever had the application before.

        Args:
            turn: the position of the take-over.

        Raises:
            RecordMovedError: whoever had it has committed meanwhile.
            DeltaError: what a commit raises.
            OSError: the storage failed for longer than `patience`.
        """
        until, operation = self.patience.begin(), Operation.write("Append")
        while True:
            try:
                txn = self._begun()
                if txn.txn_version(turn_app(self.app_id)) != turn:
                    if not self._is_mine(txn):
                        raise self._moved(txn)
                    batch = (turn_app(self.app_id), turn)
                    commit_command(txn, [], operation, batch=batch, skips_empty=False)
            except InvalidCommittedVersionError:
                raise
            except PostCommitError:
                pass
            except Exception as exc:
                self.patience.bear(exc, until)
                continue
            self.turn = turn
            return

    def _is_mine(self, txn: OptimisticTransaction) -> bool:
        """Whether the table has recorded what this appender did last, and no later take-over."""
        is_last = txn.txn_version(self.app_id) == self.recorded
        return txn.txn_version(turn_app(self.app_id)) <= self.turn and is_last

    def _append(self, txn: OptimisticTransaction, fitted: Fitted, last: int) -> Written:
        if fitted.rows.num_rows:
            rows = fitted.under(_columns(txn))
            return append_rows(txn, rows, self._request(last))
        # All of them were put aside: only the record moves.
        operation = Operation.write("Append")
        done = commit_command(txn, [], operation, batch=(self.app_id, last), skips_empty=False)
        assert done.version is not None
        return Written(done.version, ())

    def _request(self, last: int) -> WriteRequest:
        merges = True if self.merge_schema else None
        tags = {} if self.compactor is None else TAGS
        batch = (self.app_id, last)
        return WriteRequest(mode="append", merge_schema=merges, batch=batch, file_tags=tags)

    def _begun(self) -> OptimisticTransaction:
        txn = begin_change(self.log)
        if txn.metadata.id != self.opened.metadata.id:
            raise DeltaAnalysisError(
                f"the table at {self.log.table} is another one than the appender {self.app_id!r} "
                "was opened for: it was dropped, and made again. Open an appender for it, and "
                "append what it is to have.",
                table=self.log.table,
                app_id=self.app_id,
            )
        return txn

    def _landed(self, txn: OptimisticTransaction, tried: set[str], read: int | None) -> int:
        """The version of a batch whose reply was lost, if it is what moved the record."""
        newest = txn.reads.version
        if tried and read is not None and newest > read:
            for entry in self.log.history(newest - read):
                info: Any = entry.commit_info
                if tried & transactions_in(info):
                    return entry.version
        raise self._moved(txn)

    def _moved(self, txn: OptimisticTransaction) -> RecordMovedError:
        log, app_id, found = self.log, self.app_id, txn.txn_version(self.app_id)
        if found < self.recorded:
            return RecordGoneError(
                f"the table {log.table} has recorded seq {found} of the app_id {app_id!r}, and had "
                f"recorded {self.recorded} for this appender: it has forgotten that, as "
                "delta.setTransactionRetentionDuration lets it. Let that be longer than the "
                "application is silent",
                table=log.table,
                app_id=app_id,
            )
        return RecordMovedError(
            f"the table {log.table} has recorded seq {found} of the app_id {app_id!r}, and this "
            f"appender {self.recorded}: another appender has the same app_id (give each its own). "
            "Nothing was doubled",
            table=log.table,
            app_id=app_id,
        )

    def _sifted(
        self, intake: Intake, part: Sequence[Append], fitted: Fitted, error: DeltaAnalysisError
    ) -> list[Append]:
        """The appends without the rows that the table refuses, which are put aside.

        Raises:
            RefusedAppendError: they may not be put aside; what is before them is settled.
        """
        ends = list(accumulate(each.rows.num_rows for each in part))
        starts = [0, *ends]
        found = self._unfit(part, fitted, starts)
        if not found:
            raise error
        if self.dead_letters is None:
            first = min(found)
            at = bisect_right(ends, first)
            self.commit(intake, part[:at])
            raise RefusedAppendError(part[at].seq, first - starts[at]) from found[first]
        places = sorted(found)
        refused = fitted.rows.take(places).to_pylist()
        self.dead_letters.put(
            [
                UnfitRow(part[bisect_right(ends, at)].seq, row, str(found[at]))
                for at, row in zip(places, refused, strict=True)
            ]
        )
        kept = []
        for each, end in zip(part, ends, strict=True):
            start = end - each.rows.num_rows
            places = [at for at in range(each.rows.num_rows) if start + at not in found]
            rows = each.rows.take(pa.array(places, pa.int64()))
            kept.append(replace(each, fitted=each.fitted._replace(rows=rows)))
        return kept

    def _unfit(
        self, part: Sequence[Append], fitted: Fitted, starts: Sequence[int]
    ) -> dict[int, DeltaAnalysisError]:
        request, txn = self._request(part[-1].seq), self._begun()
        try:
            return unfit_rows(txn, fitted.under(_columns(txn)), request)
        except SchemaMismatchError as exc:
            if len(part) == 1:
                return dict.fromkeys(range(fitted.rows.num_rows), exc)
        # Columns that only some of them have.
        return {
            start + at: exc
            for start, each in zip(starts, part, strict=False)
            for at, exc in self._unfit([each], each.fitted, [0]).items()
        }


def _columns(txn: OptimisticTransaction) -> StructType:
    """The table's, as a transaction that has begun has read them."""
    assert txn.snapshot is not None
    return txn.snapshot.read_schema


def joined(appends: Sequence[Append]) -> tuple[int, Fitted]:
    """As many of the first ones as make one table, and that."""
    first, table = appends[0].fitted
    schema, count = first.schema, 0
    filled, same = filled_columns(table), {id(table)}
    for each in appends:
        if id(each.fitted.schema) not in same:
            if not have_same_columns(each.fitted.schema, table):
                break  # equal names may be of different columns
            same.add(id(each.fitted.schema))
        if not each.rows.schema.equals(schema):
            # Beside rows that have it, a column would be null, and not what it is filled with.
            if filled & {*schema.names} ^ filled & {*each.rows.schema.names}:
                break
            try:
                both = [schema, each.rows.schema]
                schema = pa.unify_schemas(both, promote_options="permissive")
            except pa.ArrowException:
                break
        count += 1
    tables = [each.rows for each in appends[:count]]
    try:
        rows = pa.concat_tables(tables, promote_options="permissive")
    except pa.ArrowInvalid:  # a number that the type of the other rows can't hold
        count, rows = 1, first
    return count, Fitted(rows.combine_chunks(), table)
