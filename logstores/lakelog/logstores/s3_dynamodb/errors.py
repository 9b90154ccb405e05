"""What the DynamoDB store raises of its own, in addition to the family in `errors`."""

from __future__ import annotations

from lakelog.logstores.errors import LogStoreError


class LockTableError(LogStoreError):
    """The DynamoDB table is missing, has other keys, or holds rows that don't fit the log.

    The message says which, and what to do. Nothing was written.
    """


class LostDraftError(LogStoreError):
    """A commit was begun, but its draft is gone and its file was never made: it is lost."""


class TableBypassedError(LogStoreError):
    """A commit file was written without a row in the DynamoDB table.

    Such a writer excludes no other: its commits and those of the table's writers can replace each
    other. Find it and stop it before anything else writes.
    """


class TableMovedError(LogStoreError):
    """`migrate` moved the table's log to conditional puts; rows no longer exclude writers there."""
