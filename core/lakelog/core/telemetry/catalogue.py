"""Every metric, span and attribute: the page `docs/metrics.md` is made from this.

Names and units are promises: dashboards and alerts are built on them. Units are UCUM's.
"""

from __future__ import annotations

from typing import Final, NamedTuple

ATTRIBUTES: Final[dict[str, tuple[str, str]]] = {
    "table": (
        "lakelog.table",
        "The table's URI, without secrets. After 1,000 tables of a process, `other`.",
    ),
    "statement": ("lakelog.statement", "The first word of the statement: `MERGE`."),
    "command": ("lakelog.command", "What was called, as the list of commands has it."),
    "operation": ("lakelog.operation", "The operation by its name in the table's history."),
    "outcome": (
        "lakelog.outcome",
        "How it ended, as the records of commits spell it; or `nothing to do`.",
    ),
    "conflict": ("lakelog.conflict", "Delta's name of the conflict: `DELTA_CONCURRENT_APPEND`."),
    "wait": ("lakelog.wait", "What was waited for: `lock`, `backoff` or `turn`."),
    "change": ("lakelog.change", "What happened to the files: `added`, `removed` or `cdc`."),
    "error": ("error.type", "The class of the exception that ended it; not set where none did."),
    "version": ("lakelog.version", "The version that was written, tried or read."),
    "attempt": ("lakelog.attempt", "The number of the attempt, from 1."),
    "txn_id": ("lakelog.txn_id", "The transaction's id, as the log and the records have it."),
    "winner_version": ("lakelog.winner.version", "The version that another writer took."),
    "winner_operation": ("lakelog.winner.operation", "What that writer did."),
    "requests": ("lakelog.requests", "Calls of the store that the attempt made."),
    "files": ("lakelog.files", "Data files that were chosen to be read."),
    "rows": ("lakelog.rows", "Rows that were read or appended."),
    "batch": ("lakelog.batch", "The number of the stream's batch."),
    "query_id": ("lakelog.query_id", "The id of the streaming query."),
}
"""Word -> the attribute's name, and what it says. A table's rows and the texts of conditions and
errors are no attributes: they may hold what a trace must not show."""

BUCKETS: Final = (
    *(0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0),
    *(30.0, 60.0, 300.0, 1800.0, 7200.0),
)
"""Seconds, of all durations: from a commit on a local disk to an OPTIMIZE over night."""


class Metric(NamedTuple):
    """A counter, or a histogram of durations."""

    name: str
    unit: str
    attributes: tuple[str, ...]
    """Words of `ATTRIBUTES`; each of few values but the table."""
    doc: str

    @property
    def is_duration(self) -> bool:
        """Whether it is a histogram over `BUCKETS`."""
        return self.unit == "s"


class SpanKind(NamedTuple):
    """A span, and the metric that gets its duration."""

    name: str
    parent: str
    attributes: tuple[str, ...]
    """Words of `ATTRIBUTES`."""
    duration: Metric | None
    doc: str
    shortest: float = 0.0
    """Seconds; what takes less has no span."""


_COMMIT: Final = ("table", "operation")

COMMIT_DURATION: Final = Metric(
    "lakelog.commit.duration",
    "s",
    (*_COMMIT, "outcome", "error"),
    "A commit from its call to its end, with its attempts, waits and checkpoint; its count is that "
    "of transactions.",
)
ATTEMPTS: Final = Metric(
    "lakelog.commit.attempts",
    "{attempt}",
    (*_COMMIT, "outcome"),
    "Attempts to write a version.",
)
CONFLICTS: Final = Metric(
    "lakelog.commit.conflicts",
    "{conflict}",
    (*_COMMIT, "conflict"),
    "Commits that failed because of another writer's.",
)
WAIT_DURATION: Final = Metric(
    "lakelog.commit.wait.duration",
    "s",
    ("table", "wait"),
    "Waits of commits: for the lock, where the store needs one, after a lost version, and for the "
    "turn among those who commit as one.",
)
FILES: Final = Metric(
    "lakelog.commit.files",
    "{file}",
    (*_COMMIT, "change"),
    "Files that commits added and removed, and files of changed rows.",
)
DATA_SIZE: Final = Metric(
    "lakelog.commit.data.size", "By", _COMMIT, "Bytes of the data files that commits added."
)
CHECKPOINT_DURATION: Final = Metric(
    "lakelog.checkpoint.duration",
    "s",
    ("table", "error"),
    "A checkpoint, with the cleanup of the log after it.",
)
SCAN_DURATION: Final = Metric(
    "lakelog.scan.duration",
    "s",
    ("table", "error"),
    "A read of rows by lakelog, from its plan to its last row or its end; with the time that the "
    "rows' consumer takes.",
)
SCAN_ROWS: Final = Metric("lakelog.scan.rows", "{row}", ("table",), "Rows that scans gave.")
SCAN_FILES: Final = Metric(
    "lakelog.scan.files", "{file}", ("table",), "Data files that scans chose to read."
)
COMMAND_DURATION: Final = Metric(
    "lakelog.command.duration",
    "s",
    ("table", "command", "error"),
    "A command from its call to its end, with its commits.",
)
BATCH_DURATION: Final = Metric(
    "lakelog.stream.batch.duration",
    "s",
    ("table", "error"),
    "One batch of a stream that writes to a table, with its commit.",
)

APPEND_DURATION: Final = Metric(
    "lakelog.append.duration",
    "s",
    ("table", "error"),
    "A batch of an appender: its commit, with whatever is tried again.",
)
SAVE_DURATION: Final = Metric(
    "lakelog.append.save.duration",
    "s",
    ("table", "error"),
    "Rows that an appender saves beside the table, before their commit.",
)
APPEND_ROWS: Final = Metric(
    "lakelog.append.rows", "{row}", ("table",), "Rows that appenders brought into the table."
)
APPEND_REJECTED: Final = Metric(
    "lakelog.append.rejected",
    "{row}",
    ("table",),
    "Rows that appenders put aside because they don't fit the table.",
)

METRICS: Final = (
    *(COMMAND_DURATION, COMMIT_DURATION, ATTEMPTS, CONFLICTS, WAIT_DURATION, FILES),
    *(DATA_SIZE, CHECKPOINT_DURATION, SCAN_DURATION, SCAN_ROWS, SCAN_FILES, BATCH_DURATION),
    *(APPEND_DURATION, SAVE_DURATION, APPEND_ROWS, APPEND_REJECTED),
)

STATEMENT: Final = SpanKind(
    "lakelog.statement",
    "the caller's span",
    ("statement", "error"),
    None,
    "A statement of SQL that lakelog runs, in Spark; a query is Spark's.",
)
COMMAND: Final = SpanKind(
    "lakelog.command",
    "the statement, or the caller's span",
    ("table", "command", "error"),
    COMMAND_DURATION,
    "A command. A command within one of the same name has no span of its own.",
)
BATCH: Final = SpanKind(
    "lakelog.stream.batch",
    "none: a stream outlives the span that started it, which the batch has a link to",
    ("table", "batch", "query_id", "error"),
    BATCH_DURATION,
    "One batch of a stream that writes to a table.",
)
APPEND: Final = SpanKind(
    "lakelog.append",
    "none: an appender commits in a thread of its own",
    ("table", "version", "rows", "error"),
    APPEND_DURATION,
    "A batch of an appender: the rows of many appends, in one commit.",
)
SAVE: Final = SpanKind(
    "lakelog.append.save",
    "none: an appender saves in a thread of its own",
    ("table", "rows", "error"),
    SAVE_DURATION,
    "Rows that an appender saves beside the table, before their commit.",
)
COMMIT: Final = SpanKind(
    "lakelog.commit",
    "the command, the batch, or the caller's span",
    (*_COMMIT, "txn_id", "version", "outcome", "error"),
    COMMIT_DURATION,
    "The commit of one transaction.",
)
ATTEMPT: Final = SpanKind(
    "lakelog.commit.attempt",
    "the commit",
    ("version", "attempt", "outcome", "conflict", "winner_version", "winner_operation", "requests"),
    None,
    "One attempt to write a version; of one that lost, with the wait after it and the check of the "
    "commits that won. A first attempt that commits has none: the commit's own says the same.",
)
WAIT: Final = SpanKind(
    "lakelog.commit.wait",
    "the commit",
    ("table", "wait"),
    WAIT_DURATION,
    "A wait of a commit that took a millisecond or more.",
    shortest=0.001,
)
CHECKPOINT: Final = SpanKind(
    "lakelog.checkpoint",
    "the commit that it follows, or the caller's span",
    ("table", "version", "error"),
    CHECKPOINT_DURATION,
    "A checkpoint.",
)
SCAN: Final = SpanKind(
    "lakelog.scan",
    "the command, or the caller's span",
    ("table", "version", "files", "rows", "error"),
    SCAN_DURATION,
    "A read of rows by lakelog. What Spark reads by itself is in Spark's own metrics.",
)

SPANS: Final = (STATEMENT, COMMAND, BATCH, APPEND, SAVE, COMMIT, ATTEMPT, WAIT, CHECKPOINT, SCAN)

COMMANDS: Final = (
    *("add columns", "add constraint", "change column", "clone", "cluster by"),
    *("convert to delta", "create table", "delete", "drop columns", "drop constraint"),
    *("drop feature", "enable row tracking", "merge", "optimize", "purge", "rename column"),
    *("repair", "replace columns", "restore", "set properties", "sync identity", "undo repair"),
    *("unset properties", "update", "vacuum", "write"),
)
"""The values of `lakelog.command`."""
