"""Saving appends beside their table as they come, and bringing what was saved into it."""

from __future__ import annotations

from concurrent.futures import wait
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from lakelog.core.dml.appending.committing import RecordMovedError, joined
from lakelog.core.dml.appending.intake import Append, Intake, Ticket
from lakelog.core.dml.appending.segments import MissingSegmentError, new_identity, turn_app
from lakelog.core.telemetry.catalogue import SAVE
from lakelog.core.telemetry.switch import observed

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lakelog.core.delta_log import DeltaLog
    from lakelog.core.dml.appending.committing import BatchCommitter
    from lakelog.core.dml.appending.given import Fitted
    from lakelog.core.dml.appending.patience import Patience
    from lakelog.core.dml.appending.segments import SavedAppend, Segments
    from lakelog.core.state.snapshot import Snapshot
    from lakelog.logstores import FileStatus

_LARGEST: Final = 8 << 20
"""Bytes of one segment, about; a larger append is committed at once instead."""
_IDLE: Final = 3600.0
"""Seconds after which a take-over is looked for before the next segment: of the next ones, too,
long before it is old enough to be deleted."""


@dataclass(slots=True, kw_only=True)
class Saver:
    """Saves what an intake gives it, one segment at a time."""

    log: DeltaLog
    app_id: str
    segments: Segments
    committer: BatchCommitter
    opened: Snapshot
    patience: Patience
    _at: tuple[float, float] = field(init=False)

    def __post_init__(self) -> None:
        """Begin with the own take-over, which was just made."""
        self._at = self._now()

    def run(self, intake: Intake) -> None:
        """Save until the intake is closed.

        Raises:
            TakenOverError: another appender of the application was opened.
            DeltaError: nothing more is saved.
            OSError: the storage failed for longer than `patience`.
        """
        while appends := intake.unsaved():
            part: list[Append] = []
            size = 0
            for each in appends:
                size += each.size
                if part and size > _LARGEST:
                    break
                part.append(each)
            if part[0].size > _LARGEST:
                intake.saved(part, by_commit=True)
                wait([part[0].ticket._future])
                self.segments.go_on_after(part[0].seq)
                continue
            count, rows = joined(part)
            self._save(part[:count], rows)
            intake.saved(part[:count])

    def _save(self, appends: Sequence[Append], rows: Fitted) -> None:
        log, count = self.log, rows.rows.num_rows
        with observed(log.conf, SAVE, log.table, rows=count):
            self._put(appends, rows)

    def _put(self, appends: Sequence[Append], rows: Fitted) -> None:
        identity, until = new_identity(), self.patience.begin()
        while True:
            try:
                if any(now - at > _IDLE for now, at in zip(self._now(), self._at, strict=True)):
                    self._check_turn()
                self.segments.put(appends, rows, self.committer.recorded, identity)
            except Exception as exc:
                self.patience.bear(exc, until)
                continue
            self._at = self._now()
            return

    def _now(self) -> tuple[float, float]:
        # One clock stands still while the machine sleeps, and the other one may be set back.
        return self.log.clock.monotonic(), self.log.clock.now_ms() / 1000

    def _check_turn(self) -> None:
        if self.log.update().txn_version(turn_app(self.app_id)) > self.committer.turn:
            raise self.segments.taken_over()


def take_over(log: DeltaLog, app_id: str, segments: Segments, committer: BatchCommitter) -> None:
    """Bring what was saved for an application into the table, and keep all others from it.

    Args:
        log: the table.
        app_id: the application.
        segments: its chain.
        committer: commits for it from now on.

    Raises:
        RefusedAppendError: the table refuses rows that were saved.
        AppenderStoppedError: it is not known what the table has.
        DeltaError: what a commit raises.
        OSError: the storage failed for longer than `patience`.
    """
    patience, identity = committer.patience, new_identity()
    until, turn = patience.begin(), -1
    listed: Sequence[FileStatus] = ()
    while True:
        try:
            if turn < 0:
                turn, listed = segments.take_over(identity, committer.turn)
            snapshot = log.update()
            committer.recorded = snapshot.txn_version(app_id)
            committer.turn = snapshot.txn_version(turn_app(app_id))
            if committer.turn > turn:
                raise segments.taken_over()
            saved = segments.saved(listed, committer.turn, committer.recorded)
            _bring_in(log, app_id, committer, saved)
            committer.take_turn(turn)
        except (RecordMovedError, MissingSegmentError) as exc:
            # Who had the application before may have committed meanwhile what it had saved.
            moved = log.update().txn_version(app_id) != committer.recorded
            if not (moved or isinstance(exc, RecordMovedError)) or log.clock.monotonic() >= until:
                raise
        except Exception as exc:
            patience.bear(exc, until)
        else:
            break
    segments.forget(committer.recorded)
    segments.go_on_after(committer.recorded)
    segments.tidy(listed, turn)


def _bring_in(
    log: DeltaLog, app_id: str, committer: BatchCommitter, saved: Sequence[SavedAppend]
) -> None:
    appends = [Append(each.fitted, Ticket(each.seq), 0, 0.0) for each in saved]
    intake = Intake(
        table=log.table,
        app_id=app_id,
        clock=log.clock,
        every=0.0,
        save_every=None,
        max_bytes=1,
        acknowledged=committer.recorded,
        version=-1,
    )
    intake._taken = appends
    committer.commit(intake, appends)
