"""Isolation levels, and which one a commit gets."""

from __future__ import annotations

import enum

from lakelog.core.errors import DeltaAnalysisError


class IsolationLevel(enum.StrEnum):
    """What a transaction may miss of those that commit between its read and its commit."""

    SERIALIZABLE = "Serializable"
    """The log is a serial order: nothing that the transaction read may have changed."""
    WRITE_SERIALIZABLE = "WriteSerializable"
    """The same among writers that read; blind appends may slip in before."""
    SNAPSHOT_ISOLATION = "SnapshotIsolation"
    """Only that the files which it read or removes are still there."""

    @classmethod
    def parse(cls, text: str) -> IsolationLevel:
        """Read the value of `delta.isolationLevel`, in any case.

        Raises:
            DeltaAnalysisError: no such level.
        """
        for level in cls:
            if level.lower() == text.strip().lower():
                return level
        raise DeltaAnalysisError(
            f"[DELTA_INVALID_ISOLATION_LEVEL] invalid isolation level {text!r}: "
            f"delta.isolationLevel is one of {', '.join(cls)}",
            value=text,
        )
