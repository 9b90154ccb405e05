"""Moving a table's log between the lock table and conditional puts, without losing exclusion.

Rows don't stop a writer that does not look at them, and a conditional put does not stop one that
overwrites. So each direction ends with something that makes the other writers fail instead of
going on:

To conditional puts, two rows are left. One takes the next version, for writers that are in the
middle of a commit. The other sorts after every commit and can't be finished, so that Delta's own
store, which finishes the newest row before each listing, stops with an error that names it; ours
says what happened. Both are needed for as long as writers of the lock table may come back.

To the lock table, nothing stops the writers of conditional puts, for they read no row. They have
to be stopped manually; what they write meanwhile is looked for at the end, and later by the guard.
"""

from __future__ import annotations

import re
import uuid
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Final, Literal

from lakelog.logstores.object_store.store import ObjectLogStore
from lakelog.logstores.s3_dynamodb.errors import LockTableError, TableBypassedError
from lakelog.logstores.s3_dynamodb.lock_rows import (
    DRAFTS,
    MOVED_DRAFT,
    MOVED_NAME,
    CommitRow,
    LogFolder,
    commit_file_name,
    version_of,
)
from lakelog.logstores.s3_dynamodb.row_table import RowTakenError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from lakelog.logstores.s3_dynamodb.row_decided_log import LockedLog
    from lakelog.logstores.s3_dynamodb.store import S3DynamoDBLogStore

_CHECKPOINT: Final = re.compile(
    r"([0-9]{20})\.checkpoint\..*parquet|([0-9]{20})\.checkpoint\..*json"
)
_TRIES: Final = 5


@dataclass(frozen=True, slots=True)
class Migration:
    """What `migrate` did."""

    table: str
    """The table's URI."""
    to: str
    version: int
    """The newest commit of the log."""
    steps: tuple[str, ...]
    """What was done, in order, one sentence each."""


def migrate(
    uri: str,
    conf: Mapping[str, str] | None = None,
    *,
    to: Literal["conditional", "dynamodb"],
    keep_files: bool = False,
) -> Migration:
    """Move a table's log from DynamoDB rows to conditional puts, or back.

    Either way half-finished commits are finished first, and the log must be whole. May be run
    again at any time: finished steps are not repeated.

    Args:
        uri: the table, spelled as its writers spell it.
        conf: the Spark conf of those writers, with the settings of the lock table.
        to: where commits are to be decided from now on.
        keep_files: where a commit file differs from what its row says (a writer bypassed the
            table), keep the file, and give up what the row says.

    Raises:
        ValueError: the URI is not one of S3, or `to` is something else.
        FileNotFoundError: there is no log.
        LostDraftError: a commit was decided, and can't be finished.
        TableBypassedError: a file differs from its row; or, to DynamoDB, others still commit.
        LockTableError: the log has a gap, or the table has rows that don't fit it.
        UnsafeLogStoreError: to conditional puts, and those of the endpoint can't be trusted.
        OSError: the storage or the table can't be reached.
    """
    from lakelog.logstores.s3_dynamodb.store import S3DynamoDBLogStore

    if to not in ("conditional", "dynamodb"):
        raise ValueError(f"to must be 'conditional' or 'dynamodb', but it is {to!r}")
    store = S3DynamoDBLogStore(conf)
    folder = LogFolder.from_uri(uri.rstrip("/") + "/_delta_log", store.key_scheme)
    if folder is None:
        raise ValueError(f"{uri!r} is not a table on S3: give s3a://bucket/table")
    log = store.locked_log(folder)
    move = _Move(store, log, keep_files)
    version = move.to_conditional() if to == "conditional" else move.to_dynamodb()
    return Migration(uri, to, version, tuple(move.steps))


class _Move:
    def __init__(self, store: S3DynamoDBLogStore, log: LockedLog, keep_files: bool) -> None:
        self._store = store
        self._log = log
        self._keep_files = keep_files
        self.steps: list[str] = []

    def to_conditional(self) -> int:
        self._store.require_conditional_puts(self._log.folder)
        for _ in range(_TRIES):
            rows = self._finished_rows()
            version = self._newest_version()
            self._refuse_rows_beyond(rows, version)
            if self._block(version + 1):
                self._mark()
                self.steps.append("marked the table's rows: their writers stop from now on")
                return version
        raise LockTableError(
            f"{self._log} was committed to {_TRIES} times while it was being moved. Run this "
            "again when its writers are idle. Nothing was changed."
        )

    def to_dynamodb(self) -> int:
        rows = self._finished_rows()
        version = self._newest_version()
        self._refuse_rows_beyond(rows, version)
        self._enter(rows, version)
        marks = [row for row in rows if row.is_mark and row.file_name != commit_file_name(version)]
        # The mark that stops all writers sorts last, and is removed last.
        for row in sorted(marks, key=lambda row: row.file_name):
            if row.file_name == MOVED_NAME:
                self._refuse_progress(version)
            self._log.ask(partial(self._log.rows.delete, row))
            self.steps.append(f"removed the mark {row.file_name}")
        try:
            self._refuse_progress(version)
        except TableBypassedError:
            if any(row.file_name == MOVED_NAME for row in marks):
                self._mark()
            raise
        return version

    def _finished_rows(self) -> list[CommitRow]:
        rows = self._log.ask(lambda: list(self._log.rows.rows(self._log.folder.table_path)))
        for row in rows:
            if row.complete or row.is_mark:
                continue
            try:
                self._log.finish(row)
                self.steps.append(f"finished the commit {row.file_name}")
            except TableBypassedError:
                if not self._keep_files:
                    raise
                self._log.complete(row)
                self.steps.append(f"kept {row.file_name}, which differs from its row")
        return rows

    def _newest_version(self) -> int:
        """The newest commit, of a log that is complete from its newest checkpoint on."""
        folder = self._log.folder.uri
        names = [entry.name for entry in ObjectLogStore.list_from(self._store, folder + "0")]
        commits = {version for name in names if (version := version_of(name)) is not None}
        if not commits:
            raise FileNotFoundError(f"{folder} has no commit")
        found = [_CHECKPOINT.fullmatch(name) for name in names]
        checkpoints = [int(match[1] or match[2]) for match in found if match]
        newest = max(commits)
        oldest = max((each for each in checkpoints if each <= newest), default=min(commits))
        missing = sorted(set(range(oldest + 1, newest)) - commits)
        if missing:
            raise LockTableError(
                f"the log {folder} is incomplete: {commit_file_name(missing[0])} is missing"
                f"{f', and {len(missing) - 1} more' if missing[1:] else ''}. Nothing was changed."
            )
        return newest

    def _refuse_rows_beyond(self, rows: list[CommitRow], version: int) -> None:
        beyond = [row for row in rows if not row.is_mark and (row.version or 0) > version]
        if beyond:
            raise LockTableError(
                f"{self._log.rows.place} has a row for {beyond[-1].file_name}, and the log of "
                f"{self._log} ends with {commit_file_name(version)}: rows of a table that was "
                "dropped, or commit files that were deleted. Restore the files, or delete those "
                f"rows (tablePath {self._log.folder.table_path}). Nothing was changed."
            )

    def _block(self, version: int) -> bool:
        """Take a version's row, so that no writer in the middle of a commit can."""
        folder = self._log.folder
        row = CommitRow(folder.table_path, commit_file_name(version), MOVED_DRAFT, complete=True)

        def put() -> bool:
            try:
                self._log.rows.insert(row)
            except RowTakenError as taken:
                holder = taken.row or self._log.rows.get(row.table_path, row.file_name)
                return holder is not None and holder.is_mark
            return True

        taken = self._log.ask(put)
        if taken:
            self.steps.append(f"took the row of {row.file_name}")
        return taken

    def _mark(self) -> None:
        mark = CommitRow(self._log.folder.table_path, MOVED_NAME, MOVED_DRAFT)
        self._log.ask(lambda: self._log.rows.replace(mark))

    def _enter(self, rows: list[CommitRow], version: int) -> None:
        """Give the newest commit a row, so that the next writer finds a row of its predecessor."""
        name = commit_file_name(version)
        if any(row.file_name == name and not row.is_mark for row in rows):
            return
        row = CommitRow(self._log.folder.table_path, name, f"{DRAFTS}{name}.{uuid.uuid4()}")
        self._log.complete(row)
        self.steps.append(f"put a row for {name}")

    def _refuse_progress(self, version: int) -> None:
        name = commit_file_name(version + 1)
        if self._log.objects.owner(name) is None or self._log.row(name) is not None:
            return
        raise TableBypassedError(
            f"{self._log.folder.uri}{name} appeared while the table was being moved: a writer of "
            "conditional puts is still at work. Nothing else can stop that writer: end it and run "
            "this again."
        )
