"""Isolation levels."""

from __future__ import annotations

import enum


class IsolationLevel(enum.StrEnum):
    """What a transaction may miss of those that commit between its read and its commit."""

    SERIALIZABLE = "Serializable"
    """The log is a serial order: nothing that the transaction read may have changed."""
    WRITE_SERIALIZABLE = "WriteSerializable"
    """The same among writers that read; blind appends may slip in before."""
    SNAPSHOT_ISOLATION = "SnapshotIsolation"
    """Only that the files which it read or removes are still there."""
