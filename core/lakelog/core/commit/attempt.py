"""What a commit writes, what each attempt did so far, and whether the commit may be in the log.

A writer knows that nothing landed only as long as it has sent nothing, or after a proof: another's
commit has the version, or the storage refused the write and shows no file. Everything between is
doubt, and in doubt nothing is deleted that the commit names. So the mark is set before the first
byte goes to the storage, and only a proof clears it: an exception raised between any two
statements finds it set.
"""

from __future__ import annotations

import errno
import time
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Protocol

from lakelog.core.actions import (
    AddCDCFile,
    AddFile,
    DomainMetadata,
    RemoveFile,
    SetTransaction,
)
from lakelog.core.errors import CatalogError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from lakelog.core.actions import Action, CommitInfo
    from lakelog.core.conflicts.winner import WinningCommit
    from lakelog.core.errors import DeltaError


_ADVICE = {
    errno.ENOSPC: "Free space on the disk and run the job again.",
    errno.EDQUOT: "Free space in your quota and run the job again.",
    errno.EACCES: "Make the folder writable for this user and run the job again.",
    errno.EPERM: "Make the folder writable for this user and run the job again.",
    errno.EROFS: "Mount the file system writable and run the job again.",
}

_KEPT_LINES = 10_000


class Landing:
    """What is known of one transaction's commit; `CommitWriter` keeps it."""

    __slots__ = ("_given", "_tried", "_version", "elsewhere")

    def __init__(self, *, elsewhere: int | None = None) -> None:
        """Nothing was sent.

        Args:
            elsewhere: see the attribute.
        """
        self.elsewhere: int | None = elsewhere
        """The first version as which another process may have committed it, or may still do so;
        None where none was asked, or it said that it will not."""
        self._given: set[bytes] = set()
        self._tried: int | None = None
        self._version: int | None = None

    @property
    def is_possible(self) -> bool:
        """Whether the commit is in the log, or may be, or may still land."""
        return self._tried is not None or self.elsewhere is not None

    @property
    def tried(self) -> int | None:
        """The version that may hold the commit; None where none can."""
        return self._tried

    @property
    def version(self) -> int | None:
        """The version that does hold it; None where that is not known."""
        return self._version

    def trying(self, version: int) -> None:
        """The next statement sends the commit to the storage, as this version."""
        # An earlier commit of the transaction may have sent a greater one, which may still land.
        self._tried = version if self._tried is None else max(self._tried, version)

    def given(self, digest: bytes) -> None:
        """A store gets the last of these lines with the next statement; see `LineDigest`."""
        # A set: a commit that is rebased sends other lines than before, and each may have landed.
        self._given.add(digest)

    def was_given(self, digest: bytes) -> bool:
        """Whether a store got all of these lines. A file of ours with other lines is torn."""
        return digest in self._given

    def landed(self, version: int) -> None:
        """It is proven that this version holds the commit."""
        self._tried = version
        self._version = version

    def refused(self, version: int) -> None:
        """It is proven that this version does not hold the commit, and never will."""
        # Proof about an older version says nothing of a later write that may be on its way.
        if version == self._tried and self._version is None:
            self._tried = None


class Lines(Protocol):
    """What a commit writes, however it is kept."""

    @property
    def commit_info(self) -> CommitInfo:
        """The first line; carries the txnId."""
        ...

    @property
    def bytes(self) -> int:
        """Written so far."""
        ...

    @property
    def num_actions(self) -> int:
        """Lines besides the commitInfo."""
        ...

    def sizes(self) -> dict[str, int]:
        """The counts of `CommitStats`."""
        ...

    def __iter__(self) -> Iterator[str]:
        """The lines, in order."""
        ...


class CommitLines:
    """The lines of the commit, measured on the way.

    They are kept from one try to the next, so that only actions that have changed are encoded
    again; those of a very large commit are made again each time, because they would fill the
    memory.
    """

    def __init__(self, commit_info: CommitInfo, actions: Sequence[Action]) -> None:
        """Encode nothing yet."""
        self.bytes: int = 0
        self._kept: dict[int, tuple[Action, str]] = {}
        self.change(commit_info, actions)

    def change(self, commit_info: CommitInfo, actions: Sequence[Action]) -> None:
        """Write something else from the next try on."""
        self.commit_info = commit_info
        self.actions = actions
        # Keyed by id(): ids are unique while the action is alive.
        current = {id(action) for action in (commit_info, *actions)}
        self._kept = {key: held for key, held in self._kept.items() if key in current}

    @property
    def num_actions(self) -> int:
        """Lines besides the commitInfo."""
        return len(self.actions)

    def sizes(self) -> dict[str, int]:
        """The counts of `CommitStats`."""
        counts = CommitSizes()
        for action in self.actions:
            counts.add(action)
        return counts.values()

    def __iter__(self) -> Iterator[str]:
        self.bytes = 0
        # A store repeats a write by asking for the lines again, and a lost version changes few of
        # them: most are encoded once, however many races are lost.
        keep = len(self.actions) < _KEPT_LINES
        for action in (self.commit_info, *self.actions):
            known = self._kept.get(id(action))
            line = action.to_json() if known is None else known[1]
            if keep and known is None:
                self._kept[id(action)] = action, line
            self.bytes += len(line) + 1
            yield line


@dataclass(slots=True)
class Attempt:
    """What one attempt did so far; becomes a CommitStats."""

    version: int
    backoff: float = 0.0
    """Seconds waited before it."""
    began: int = field(default_factory=time.time_ns)
    """For its span: nanoseconds since the epoch."""
    wait: float = 0.0
    """Seconds waited after it."""
    requests: int = 0
    sent_at: float = 0.0
    """When its write began, by the monotonic clock."""
    write_seconds: float = 0.0
    check_seconds: float = 0.0
    winners: int = 0
    first: WinningCommit | None = None
    """The commit that took the version, or the one that is in conflict."""
    error: str | None = None
    conflict: DeltaError | None = None
    """What ended it, if a commit of another writer did."""

    @property
    def condition(self) -> str | None:
        """Delta's name for the conflict."""
        if self.conflict is None:
            return None
        return getattr(self.conflict, "condition", None) or type(self.conflict).__name__

    @property
    def conflict_partition(self) -> Mapping[str, str | None] | None:
        """The partition that both touched; None where the conflict is not about one."""
        return self.conflict.fields.get("partition_values") or None if self.conflict else None


def explain(failure: OSError, table: str, version: int) -> None:
    """Note on the storage's error what it means for the table, and what to do."""
    note = f"Version {version} of {table} was not committed; the table is as it was."
    if not isinstance(failure, CatalogError):  # which says itself what to do
        advice = _ADVICE.get(failure.errno or 0, "Run the job again once the storage answers.")
        note = f"{note} {advice}"
    failure.add_note(note)


@dataclass(slots=True)
class CommitSizes:
    """The counts so far."""

    num_add: int = 0
    num_remove: int = 0
    num_cdc_files: int = 0
    num_set_transaction: int = 0
    num_domain_metadatas: int = 0
    bytes_new: int = 0
    """Of files that change data."""
    cdc_bytes_new: int = 0
    num_absolute_paths_in_add: int = 0
    _partitions: set[tuple[tuple[str, str | None], ...]] = field(default_factory=set)

    def add(self, action: Action) -> None:
        """Count one more."""
        match action:
            case AddFile():
                self.num_add += 1
                self.bytes_new += action.size if action.data_change else 0
                self.num_absolute_paths_in_add += _is_absolute(action.path)
                self._partitions.add(tuple(sorted(action.partition_values.items())))
            case RemoveFile():
                self.num_remove += 1
            case AddCDCFile():
                self.num_cdc_files += 1
                self.cdc_bytes_new += action.size
            case SetTransaction():
                self.num_set_transaction += 1
            case DomainMetadata():
                self.num_domain_metadatas += 1
            case _:
                pass

    def values(self) -> dict[str, int]:
        """By the names of `CommitStats`."""
        counts = {f.name: getattr(self, f.name) for f in fields(self) if f.name[0] != "_"}
        return {**counts, "num_distinct_partitions_in_add": len(self._partitions)}


def _is_absolute(path: str) -> bool:
    return path.startswith(("/", "file:")) or "://" in path
