"""A commit of more actions than fit in memory: streamed to the log, in one attempt.

For operations that make a table from existing files (CONVERT, CLONE, RESTORE). Nothing is rebased:
the first writer to take the version wins, and what was read is not compared. In return the actions
come from an iterator and are never all in memory here; a store that sends a file in one request
holds its bytes.

1. `commitInfo`, the metadata, the actions as they come, and the protocol if it is new.
2. If the version is taken, or the storage does not say, the version is read: ours, or not.
3. The commit must be seen; symlink manifests and a checkpoint follow. No other hooks run.
"""

from __future__ import annotations

import logging
import time
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import TYPE_CHECKING

from lakelog.core.actions import CommitInfo, Metadata, Protocol
from lakelog.core.actions.checked_values import check_actions
from lakelog.core.commit.attempt import Attempt, CommitSizes, explain
from lakelog.core.commit.backoff import Backoff
from lakelog.core.commit.commit_settings import CommitSettings
from lakelog.core.commit.draft import first_draft
from lakelog.core.commit.fence import check_fence
from lakelog.core.commit.lock import hold_lock
from lakelog.core.commit.report import CommitMessages, CommitRecords
from lakelog.core.commit.version_writer import CommitWriter, Written
from lakelog.core.errors import (
    ConcurrentWriteException,
    DeltaAnalysisError,
    DeltaError,
    InvalidCommittedVersionError,
)
from lakelog.core.events import CommitOutcome
from lakelog.core.features.numbered_rows import (
    mark_action,
    with_row_ids,
    with_versions,
)
from lakelog.core.hooks.post_commit import check_committed_version
from lakelog.core.hooks.publishing import publish_later
from lakelog.core.log.file_names import log_path
from lakelog.core.progress import Progress
from lakelog.logstores.limits import limited

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from lakelog.core.actions import Action, DomainMetadata
    from lakelog.core.commit.attempt import Landing
    from lakelog.core.commit.lock import LockChoice
    from lakelog.core.commit.prepare import PreparedCommit
    from lakelog.core.conflicts.checker import PendingCommit
    from lakelog.core.conflicts.winner import WinningCommit
    from lakelog.core.events import CommitStats
    from lakelog.core.progress import ProgressCallback
    from lakelog.core.state.snapshot import Snapshot
    from lakelog.core.table_log import TableLog

logger: logging.Logger = logging.getLogger("lakelog")
_BATCH = 1000


@dataclass(slots=True)
class _RowIds:
    """Hands out row ids as the files pass."""

    table: str
    version: int
    first: int
    """The table's high-water mark before the commit."""
    mark: int

    def assign(self, batch: list[Action]) -> list[Action]:
        actions, self.mark = with_row_ids(batch, self.mark, self.table)
        return with_versions(actions, self.version)

    def mark_action(self) -> DomainMetadata | None:
        return None if self.mark == self.first else mark_action(self.mark)


@dataclass(slots=True)
class _Stream:
    """The lines of a large commit: made once, checked and counted on the way."""

    commit_info: CommitInfo
    metadata: Metadata
    actions: Iterable[Action]
    protocol: Protocol | None
    ids: _RowIds | None
    check: Callable[[list[Action]], list[Action]]
    report: ProgressCallback
    fence: Callable[[], None]
    bytes: int = 0
    num_actions: int = 0
    counts: CommitSizes = field(default_factory=CommitSizes)

    def sizes(self) -> dict[str, int]:
        return self.counts.values()

    def __iter__(self) -> Iterator[str]:
        if self.bytes:
            raise RuntimeError(
                "the lines of a large commit can be produced only once, but the store asked for "
                "them again"
            )
        # The order is that of Delta's `commitLarge`.
        yield self._line(self.commit_info)
        self.num_actions = 1
        yield self._line(self.metadata)
        rest = iter(self.actions)
        while batch := list(islice(rest, _BATCH)):
            kept = self.check(batch)
            for action in kept if self.ids is None else self.ids.assign(kept):
                self.num_actions += 1
                self.counts.add(action)
                yield self._line(action)
            self.report(Progress(text="committing", done=self.num_actions - 1, unit="actions"))
        # Once more, as the actions may have taken hours to make.
        self.fence()
        # The mark says how many ids the files took, so it can only follow them.
        mark = None if self.ids is None else self.ids.mark_action()
        for last in (mark, self.protocol):
            if last is not None:
                self.num_actions += 1
                self.counts.add(last)
                yield self._line(last)

    def _line(self, action: Action) -> str:
        line = action.to_json()
        self.bytes += len(line) + 1
        return line


@dataclass(kw_only=True)
class LargeCommit:
    """A commit whose actions have not come yet."""

    log: TableLog
    snapshot: Snapshot | None
    """What was read."""
    prepared: PreparedCommit
    """Its metadata, and its protocol where that changes."""
    check: Callable[[Iterable[Action]], list[Action]]
    """Checks actions as they pass, and says which are kept."""
    pending: PendingCommit
    lock: LockChoice
    read_at_ms: int
    """When the table was read."""
    attempts: list[CommitStats]
    """Gets the record of the attempt."""
    landing: Landing

    def commit(self, actions: Iterable[Action], report: ProgressCallback) -> int:
        """Stream it into the log; see `OptimisticTransaction.commit_large`.

        Whatever is raised once `landing` has a version was raised after the commit.
        """
        log, read, pending = self.log, self.snapshot, self.pending
        attempt = Attempt(pending.read_version + 1)

        def fence() -> None:
            attempt.requests += 1
            known = (None, None) if read is None else (read.commit_info, read.state.timestamp)
            writer.repeat(lambda: check_fence(log.store, log.table, attempt.version, *known))

        stream = self._stream(actions, report, fence)
        # The lines are made once and not kept: a write of unknown outcome can't be sent again.
        limits = replace(log.conf.derived(CommitSettings).limits, unknown=0)
        writer = CommitWriter(
            log.store, log.clock, log.table, stream, limits, Backoff(log.clock), self.landing
        )
        records = CommitRecords(
            log.clock, log.conf, self.lock, stream, self.attempts, self.read_at_ms
        )
        writer.deadline, writer.brief = log.clock.monotonic() + limits.seconds, limits.brief
        writer.makes_lines_as_it_goes = True

        def write() -> Exception | None:
            if attempt.version == 0:
                log.store.create_folder(log_path(log.table))
            with hold_lock(self.lock, log.table, timeout=limits.seconds):
                attempt.began = time.time_ns()
                fence()
                return _write(writer, attempt, records, pending, self.landing)

        failure = limited(lambda: writer.deadline - limits.reserve - log.clock.monotonic(), write)
        if failure is not None:
            raise failure
        messages = CommitMessages(log.clock, pending, stream.commit_info.txn_id)
        messages.committed(attempt.version, pending)
        return attempt.version

    def _stream(
        self, actions: Iterable[Action], report: ProgressCallback, fence: Callable[[], None]
    ) -> _Stream:
        # The in-commit timestamp, its traces in the metadata, and where row ids start.
        draft, ids = first_draft(self.prepared, self.snapshot, self.log.table), None
        mark = draft.row_id_mark
        if self.prepared.terms.assigns_row_ids:
            ids = _RowIds(self.log.table, self.pending.read_version + 1, mark, mark)
        return _Stream(
            commit_info=draft.commit_info,
            metadata=draft.metadata or self.pending.metadata,
            actions=actions,
            protocol=next((a for a in draft.actions if isinstance(a, Protocol)), None),
            ids=ids,
            check=self._checked,
            report=report,
            fence=fence,
        )

    def _checked(self, batch: list[Action]) -> list[Action]:
        for action in batch:
            if isinstance(action, Metadata | Protocol | CommitInfo):
                raise DeltaAnalysisError(
                    f"a large commit to {self.log.table} takes its {action.kind} from the "
                    "transaction, not from the actions: call update_metadata, or pass protocol",
                    table=self.log.table,
                )
        check_actions(batch)
        return self.check(batch)


def after_large_commit(log: TableLog, version: int) -> None:
    """Check that a large commit is there, and do what is due after it: manifests, a checkpoint,
    publishing.

    Raises:
        InvalidCommittedVersionError: the storage accepted the commit but does not show it.
    """
    try:
        check_committed_version(log, version)
    except InvalidCommittedVersionError:
        raise
    except Exception:
        # The log reads the commit next time; the checkpoint may still succeed.
        logger.warning(
            "%s: version %d is committed, but the table could not be read again",
            log.table,
            version,
            exc_info=True,
        )
    _keep_manifests(log)
    try:
        log.checkpoint(version)
    except Exception:
        logger.warning(
            "%s: version %d is committed, but its checkpoint failed",
            log.table,
            version,
            exc_info=True,
        )
    publish_later(log)


def _keep_manifests(log: TableLog) -> None:
    """Bring lists of files for readers that know no log up to date, where the table has them."""
    try:
        if log.update().terms.keeps_symlink_manifest:
            log.generate_symlink_manifest()
    except Exception:
        logger.warning("%s: its symlink manifests are not up to date", log.table, exc_info=True)


def _write(
    writer: CommitWriter,
    attempt: Attempt,
    records: CommitRecords,
    pending: PendingCommit,
    landing: Landing,
) -> Exception | None:
    """Write the version; return what was raised after the commit had landed."""
    try:
        if writer.write(attempt) is Written.TAKEN:
            winner = writer.read(attempt, attempt.version)
            if winner is None or not writer.is_ours(winner):
                if winner is not None:
                    landing.refused(attempt.version)
                attempt.first, attempt.conflict = winner, _lost(pending, winner)
                raise attempt.conflict
            landing.landed(attempt.version)
    except Exception as exc:
        attempt.error = attempt.error or f"{type(exc).__name__}: {exc}"
        unknown = writer.settle(attempt, exc)
        if landing.version is not None:
            records.record(attempt, CommitOutcome.COMMITTED, pending, landing.version)
            return exc
        if unknown is not None:
            records.record(attempt, CommitOutcome.UNKNOWN, pending)
            if unknown is exc:
                raise
            raise unknown from exc
        lost = CommitOutcome.FAILED if attempt.conflict is None else CommitOutcome.CONFLICT
        records.record(attempt, lost, pending)
        if isinstance(exc, OSError) and not isinstance(exc, DeltaError):
            explain(exc, pending.table, attempt.version)
        raise
    records.record(attempt, CommitOutcome.COMMITTED, pending, attempt.version)
    return None


def _lost(pending: PendingCommit, winner: WinningCommit | None) -> ConcurrentWriteException:
    version = pending.read_version + 1
    info = winner.commit_info if winner else None
    who = f" by {winner.operation}" if winner else ""
    return ConcurrentWriteException(
        f"[{ConcurrentWriteException.condition}] A concurrent transaction has written new data "
        f"since the current transaction read the table: version {version} of {pending.table} was "
        f"taken{who}. A large commit is tried only once. Nothing was committed. Read the table "
        "again and run the job again (lakelog.core.retry_on_conflict does).",
        table=pending.table,
        version=version,
        read_version=pending.read_version,
        commit_info=None if info is None else info.to_json_value(),
    )
