"""From the files of a log to the state of a version.

The small actions (protocol, metadata, transactions, domains) are read at once, because every
user needs them; the file actions when asked for (`file_state.py`).

A checkpoint that can't be read does no harm: the log is searched again without it, for an older
checkpoint or for the commits from version 0. The result is the same version of the same table, or
the error about the checkpoint.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from lakelog.core.errors import (
    CorruptCheckpointError,
    CorruptCommitError,
    CorruptLogError,
    LogGapError,
    VersionNotFoundError,
)
from lakelog.core.features.protocol import check_readable
from lakelog.core.log.budget import LogBudget, read_log_file
from lakelog.core.log.checkpoint_reader import CheckpointReader, SmallActions
from lakelog.core.log.commit_file import Commit, commit_is_gone, read_commit, skim_commit
from lakelog.core.log.compaction import read_compacted
from lakelog.core.log.far import is_far
from lakelog.core.log.segment import CheckpointFiles, LogSegment, find_segment
from lakelog.core.log.stated_protocol import stated_protocol
from lakelog.core.state.file_state import FileState
from lakelog.core.state.replayer import ReplayJob, deferred_files
from lakelog.logstores.threads import beside

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    import pyarrow as pa

    from lakelog.core.actions import CommitInfo, DomainMetadata, Metadata, Protocol, SetTransaction
    from lakelog.core.state.replayer import Replayer
    from lakelog.logstores.contract import LogStore

_log = logging.getLogger("lakelog")


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """Everything that the log says about one version."""

    version: int
    timestamp: int | None
    """Milliseconds since the epoch, by the storage; `None` where no listing gave it."""
    protocol: Protocol
    metadata: Metadata
    transactions: Mapping[str, SetTransaction]
    domains: Mapping[str, DomainMetadata]
    """Those that are not removed."""
    info: CommitInfo | None
    """The `commitInfo` of the version, if its commit was read and has one."""
    files: FileState
    segment: LogSegment
    """What was found when the table was opened; `version` may be later than it."""


def load_state(
    store: LogStore,
    table: str,
    version: int | None = None,
    *,
    rejected: Sequence[CheckpointFiles] = (),
    use_compacted: bool = True,
    replayer: Replayer | None = None,
) -> State:
    """Load a version.

    Args:
        store: the store of the log.
        table: the table's URI.
        version: which one; the newest if `None`.
        rejected: checkpoints that turned out to be unreadable.
        use_compacted: whether to read log compaction files instead of the commits they hold.
        replayer: replays the file actions of logs that it accepts.

    Raises:
        TableNotFoundError: no log, or nothing in it.
        VersionNotFoundError: no such version, or it can't be rebuilt any more.
        CorruptLogError: a commit is damaged or missing, or a checkpoint is and nothing can
            replace it.
        LogTooLargeError: it would take more memory than there is.
    """
    rejects = list(rejected)
    first: CorruptCheckpointError | None = None
    while True:
        try:
            # A new search, not only without the checkpoint: commits from before it are needed
            # then, and an older checkpoint may be the nearest.
            segment = find_segment(store, table, version, rejected=rejects)
        except (LogGapError, VersionNotFoundError):
            if first is None:
                raise
            raise first from None
        try:
            return _load(store, segment, rejects, use_compacted=use_compacted, replayer=replayer)
        except CorruptCommitError:
            # What a newer client writes is not malformed, but nothing for this one.
            if protocol := stated_protocol(store, segment):
                check_readable(protocol, table)
            raise
        except CorruptCheckpointError as exc:
            if protocol := stated_protocol(store, segment):
                check_readable(protocol, table)
            first = first or exc
            assert segment.checkpoint is not None  # else nothing could be corrupt in this way
            rejects.append(segment.checkpoint)
            # The version is fixed by now: a commit that has come since must not make the second try
            # another answer.
            version = segment.version
            _log.warning("falling back to an older checkpoint: %s", exc)


def _load(
    store: LogStore,
    segment: LogSegment,
    rejected: Sequence[CheckpointFiles],
    *,
    use_compacted: bool,
    replayer: Replayer | None,
) -> State:
    # An object store returns whole files, and the listing has given their lengths.
    LogBudget.from_store(store).check_files(segment.commits)
    reader = None if segment.checkpoint is None else CheckpointReader(store, segment)
    elsewhere = None
    if replayer is not None:
        if reader is not None:
            reader.small_actions()  # before its size is asked for: an error of it comes first
        elsewhere = _replayed_by_engine(ReplayJob(store, segment, reader), rejected, replayer)
    # A compaction file saves requests here; elsewhere the commits themselves are read.
    if elsewhere is not None or not use_compacted:
        segment = replace(segment, compacted=())
    read = partial(read_commits, store, segment.table, skim=elsewhere is not None)
    small, commits = _small_and_commits(store, segment, reader, read)
    # Removed domains stay among the others until all is folded: they have to hide what the
    # checkpoint says.
    for commit in commits:
        _fold(small, commit)
    if (small.protocol is None or small.metadata is None) and segment.compacted:
        _log.warning("a compaction file of %s lacks the table's first actions", segment.table)
        return _load(store, segment, rejected, use_compacted=False, replayer=replayer)
    if small.protocol is None or small.metadata is None:
        lacking = "protocol" if small.protocol is None else "metaData"
        raise CorruptLogError(
            f"the log of {segment.table} has no {lacking} action up to version {segment.version}: "
            "it is not a Delta table, or its first commit was damaged",
            table=segment.table,
            path=segment.last_file.path,
            version=segment.version,
        )
    files = elsewhere
    if files is None:
        base = FileState(segment.table)
        if reader is not None:
            base = _checkpoint_files(store, segment, reader, rejected)
        files = base.after(commits)
    return State(
        version=segment.version,
        timestamp=segment.timestamp,
        protocol=small.protocol,
        metadata=small.metadata,
        transactions=small.transactions,
        domains={k: d for k, d in small.domains.items() if not d.removed},
        info=commits[-1].info if commits else None,
        files=files,
        segment=segment,
    )


def _small_and_commits(
    store: LogStore,
    segment: LogSegment,
    reader: CheckpointReader | None,
    read: Callable[[Mapping[int, str]], list[Commit]],
) -> tuple[SmallActions, list[Commit]]:
    """What the checkpoint says but for files, and the commits after it.

    Over a network both are waited for at once. What is wrong with the checkpoint is said first,
    since another one may do.
    """
    if reader is None:
        return SmallActions(), read_compacted(store, segment, read)
    if not segment.commits or not is_far(store):
        small = reader.small_actions()
        return small, read_compacted(store, segment, read)
    with beside(1, "lakelog-commits") as begun:
        begun.begin(read_compacted, store, segment, read)
        return reader.small_actions(), begun.take()


def _replayed_by_engine(
    job: ReplayJob, rejected: Sequence[CheckpointFiles], replayer: Replayer
) -> FileState | None:
    if not replayer.takes(job):
        return None

    def without_checkpoint() -> FileState:
        store, segment = job.store, job.segment
        assert segment.checkpoint is not None  # else nothing could be wrong with it
        rejects = [*rejected, segment.checkpoint]
        return load_state(
            store, segment.table, segment.version, rejected=rejects, replayer=replayer
        ).files

    return deferred_files(job, replayer, without_checkpoint)


def _checkpoint_files(
    store: LogStore,
    segment: LogSegment,
    reader: CheckpointReader,
    rejected: Sequence[CheckpointFiles],
) -> FileState:
    """The files of the checkpoint, with a fallback if reading them fails later on."""

    def guarded(read: Callable[[], pa.Table], kind: str) -> pa.Table:
        try:
            return read()
        except CorruptCheckpointError as exc:
            _log.warning("falling back to an older checkpoint: %s", exc)
            try:
                other = load_state(
                    store,
                    segment.table,
                    reader.checkpoint.version,
                    rejected=[*rejected, reader.checkpoint],
                )
            except (LogGapError, VersionNotFoundError):
                raise exc from None
            known = reader.small_actions().metadata
            if known is not None and other.metadata.id != known.id:
                raise  # the path has become another table's
            rows: Any = getattr(other.files, kind)
            return rows

    return FileState(
        segment.table,
        live=lambda: guarded(reader.files, "live"),
        tombstones=lambda: guarded(reader.tombstones, "tombstones"),
    )


def read_commits(
    store: LogStore, table: str, paths: Mapping[int, str], *, skim: bool = False
) -> list[Commit]:
    """Read commits, several at a time; they come back ascending by version.

    Args:
        store: the store of the log.
        table: the table's URI.
        paths: version -> path.
        skim: leave out the file actions.

    Raises:
        CorruptCommitError: one is torn, empty or not JSON.
        LogGapError: one is gone since it was listed.
        LogTooLargeError: together they would take more memory than there is.
    """
    budget = LogBudget.from_store(store)

    def read(version: int) -> Commit:
        path = paths[version]
        try:
            if skim:
                return skim_commit(read_log_file(store, path, budget), version, path, budget)
            return read_commit(store, table, version, path, budget)
        except FileNotFoundError as exc:
            raise commit_is_gone(table, path, version) from exc

    versions = sorted(paths)
    far = is_far(store)
    if len(versions) < 2:
        return [read(version) for version in versions]
    from lakelog.core.log.readers import read_side_by_side

    return read_side_by_side(read, versions, far=far)


def advance(state: State, commits: Sequence[Commit], timestamp: int | None = None) -> State:
    """The state after these commits, which follow it without a gap.

    Args:
        state: where to start; it stays as it is.
        commits: ascending.
        timestamp: of the last commit, if known.
    """
    if not commits:
        return state
    small = SmallActions(
        state.protocol, state.metadata, dict(state.transactions), dict(state.domains)
    )
    for commit in commits:
        _fold(small, commit)
    assert small.protocol is not None
    assert small.metadata is not None
    return replace(
        state,
        version=commits[-1].version,
        # None where only commits are known: to ask the storage for it would cost each commit a
        # request, and few users want it.
        timestamp=timestamp,
        protocol=small.protocol,
        metadata=small.metadata,
        transactions=small.transactions,
        domains={k: d for k, d in small.domains.items() if not d.removed},
        info=commits[-1].info,
        files=state.files.after(commits),
    )


def _fold(small: SmallActions, commit: Commit) -> None:
    # The objects themselves and no copies: a table's terms, which are costly to work out, are
    # handed on for as long as both are the same.
    small.protocol = commit.protocol or small.protocol
    small.metadata = commit.metadata or small.metadata
    small.transactions.update(commit.transactions)
    small.domains.update(commit.domains)
