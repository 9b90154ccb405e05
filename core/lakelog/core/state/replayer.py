"""Replay of file actions outside this process.

A log of a hundred million files is too much for one process. A caller that has more of them, such
as `lakelog.spark`, passes a `Replayer`: it is asked for the files of a version when they are
needed, with the filter that they must pass, so that only those come here. The small actions
(protocol, metadata, transactions, domains) are read here in any case.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, Protocol, TypeAlias

from lakelog.core.errors import CorruptCheckpointError, LogGapError, VersionNotFoundError
from lakelog.core.state.file_state import FileState

if TYPE_CHECKING:
    from collections.abc import Callable

    import pyarrow as pa

    from lakelog.core.log.checkpoint_reader import CheckpointReader
    from lakelog.core.log.segment import LogSegment
    from lakelog.core.state.file_selection import FileSelection
    from lakelog.logstores.contract import LogStore

_log = logging.getLogger("lakelog")

Kind: TypeAlias = Literal["add", "remove"]


@dataclass(frozen=True, slots=True)
class ReplayJob:
    """The files whose replay gives a version."""

    store: LogStore
    segment: LogSegment
    checkpoint: CheckpointReader | None

    @property
    def size_in_bytes(self) -> int:
        """Bytes of all of them: of commits, checkpoint and sidecars.

        Raises:
            CorruptCheckpointError: the checkpoint can't be read.
        """
        size = sum(each.length for each in self.segment.commits)
        if self.checkpoint is not None:
            size += self.checkpoint.checkpoint.size_in_bytes
            size += sum(part.size or 0 for part in self.checkpoint.parts())
        return size


class Replayer(Protocol):
    """Replays file actions."""

    def takes(self, job: ReplayJob) -> bool:
        """Whether it replays this, rather than the calling process."""
        ...

    def replay(self, job: ReplayJob, kind: Kind, selection: FileSelection | None) -> pa.Table:
        """Replay.

        Args:
            job: what.
            kind: `add` for the live files, as rows of `FILE_SCHEMA`; `remove` for the tombstones,
                as rows of `TOMBSTONE_SCHEMA`. In any order.
            selection: of the live files only these.

        Raises:
            CorruptLogError: a file of the log is damaged or gone.
        """
        ...


def deferred_files(
    job: ReplayJob, replayer: Replayer, without_checkpoint: Callable[[], FileState]
) -> FileState:
    """The files of a version, replayed elsewhere when they are asked for.

    Args:
        job: what to replay.
        replayer: does it.
        without_checkpoint: loads the files of the same version without the job's checkpoint,
            should that turn out to be unreadable.
    """

    def ask(kind: Kind, selection: FileSelection | None = None) -> pa.Table:
        try:
            return replayer.replay(job, kind, selection)
        except CorruptCheckpointError as exc:
            _log.warning("falling back to an older checkpoint: %s", exc)
            try:
                files = without_checkpoint()
            except (LogGapError, VersionNotFoundError):
                raise exc from None
            if selection is not None:
                return files.selected_by(selection)
            return files.live if kind == "add" else files.tombstones

    return FileState(
        job.segment.table,
        live=lambda: ask("add"),
        tombstones=lambda: ask("remove"),
        select=lambda selection: ask("add", selection),
    )
