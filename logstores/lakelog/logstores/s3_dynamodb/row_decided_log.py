"""A log whose commits are decided by rows: reading the newest, and finishing commits.

A commit is made the moment that its row is in the table. Its file follows, by the writer's hand
or, if that one died, by the next reader or writer: every listing, every read that misses its
file, and every next commit looks for such a row first. This is Delta's own recovery
(`BaseExternalLogStore.fixDeltaLog`), with a check that the file is the one that was decided.
"""

from __future__ import annotations

import contextlib
import logging
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeVar

from lakelog.logstores import keys
from lakelog.logstores.object_store.create_once import repeat
from lakelog.logstores.s3_dynamodb.errors import (
    LostDraftError,
    TableBypassedError,
    TableMovedError,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from lakelog.logstores.object_store.client import Owner
    from lakelog.logstores.object_store.create_once import RetryPolicy
    from lakelog.logstores.s3_dynamodb.lock_rows import CommitRow, LogFile, LogFolder
    from lakelog.logstores.s3_dynamodb.log_objects import LogObjects
    from lakelog.logstores.s3_dynamodb.row_table import RowTable

GUARD_KEY: Final = keys.DYNAMODB_GUARD.name
SCHEME_KEY: Final = keys.DYNAMODB_KEY_SCHEME.name
SCHEMES: Final = ("s3a", "s3", "s3n")

_log = logging.getLogger("lakelog")
_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class LogRules:
    """The settings of the protocol."""

    policy: RetryPolicy
    ttl: int = 86_400
    """Seconds that a completed row lives, at least."""
    guard: bool = True
    """Whether to stop when a writer is seen to bypass the table."""
    clock: Callable[[], float] = time.time
    """Seconds since 1970-01-01 UTC."""

    @property
    def horizon(self) -> float:
        """Seconds within which a row can't have expired, allowing for clocks that differ."""
        return self.ttl / 2


class LockedLog:
    """One `_delta_log`, its objects and its rows."""

    def __init__(
        self, folder: LogFolder, rows: RowTable, objects: LogObjects, rules: LogRules
    ) -> None:
        """Keep the parts; ask for nothing."""
        self.folder = folder
        self.rows = rows
        self.objects = objects
        self.rules = rules

    def newest(self) -> CommitRow | None:
        """The newest row: a consistent read."""
        return self.ask(lambda: self.rows.newest(self.folder.table_path))

    def row(self, file_name: str) -> CommitRow | None:
        """The row of a file: a consistent read."""
        return self.ask(lambda: self.rows.get(self.folder.table_path, file_name))

    def settle(self) -> None:
        """Finish the newest commit if its writer did not. Goes before every listing.

        Older ones need no look: no writer begins a commit before its predecessor is finished.

        Raises:
            LostDraftError, TableBypassedError: it can't be finished.
            OSError: it could not be finished for now.
        """
        row = self.newest()
        if row is not None and not row.is_mark:
            self.finish(row)

    def roll_forward(self, file: LogFile) -> bool:
        """If a file that a reader missed was decided, make it.

        Returns:
            Whether there is a row, and so a file that may be there by now.
        """
        row = self.row(file.name)
        if row is None or row.is_mark:
            return False
        self.finish(row)
        return True

    def finish(self, row: CommitRow) -> None:
        """Make the file of a row if it is missing, and mark the row complete.

        Any number may do so at once: they make the same bytes, and write the same row.

        Raises:
            LostDraftError: neither file nor draft exists.
            TableBypassedError: the file is new and is not made of the row's draft.
            OSError: a request failed for good.
        """
        if row.complete:
            return
        owner = self.objects.owner(row.file_name)
        if owner is None:
            if self.is_left_behind(row):
                self.complete(row)
                return
            draft = self.objects.read(row.temp_path)
            if draft is not None and self.objects.publish(row, draft):
                self.complete(row)
                return
            owner = self.objects.owner(row.file_name)
            if owner is None:
                raise self._lost_draft(row)
        # The row of a writer that slept past the expiry of its rival's row meets an old file.
        # That file stands. A new one was made by a writer that did not ask the table.
        if self.is_young(owner) and not self.objects.is_made_of(row, owner):
            raise self.bypassed(
                f"{self.folder.uri}{row.file_name} does not hold what the row of the table says "
                f"(the draft {row.temp_path})"
            )
        self.complete(row)

    def is_left_behind(self, row: CommitRow) -> bool:
        """Whether the log has gone on beyond a row whose file is missing.

        A row is finished before the next one is begun, so this one came too late: from a
        writer that slept while its version was taken, the rival's row expired, and log cleanup
        removed the file. To make the file again would change the past, and save no commit.
        """
        version = row.version
        return (
            version is not None
            and self.objects.owner(row.file_name) is None
            and self.objects.goes_beyond(version)
        )

    def complete(self, row: CommitRow) -> None:
        """Mark a row complete; DynamoDB may delete it when its time is up."""
        done = row.completed(int(self.rules.clock()) + self.rules.ttl)
        self.ask(lambda: self.rows.replace(done))

    def complete_if_possible(self, row: CommitRow) -> None:
        """The same; where it fails, the next reader or writer does it."""
        with self.forgiven(f"marking {row.file_name} complete"):
            self.complete(row)

    @contextlib.contextmanager
    def forgiven(self, what: str) -> Iterator[None]:
        """Log any failure of something that others will complete."""
        try:
            yield
        except Exception as error:  # a decided commit has not failed
            _log.warning("%s: %s is left to the next reader or writer: %s", self, what, error)

    def is_young(self, owner: Owner) -> bool:
        """Whether an object is too new for its row to have expired. No, where the guard is off."""
        if not self.rules.guard or owner.modification_time is None:
            return False
        age = self.rules.clock() - owner.modification_time / 1000
        return age < self.rules.horizon

    def refuse_if_moved(self, row: CommitRow | None) -> None:
        """Stop where `migrate` has left its mark.

        Raises:
            TableMovedError: it has.
        """
        if row is not None and row.is_mark:
            raise TableMovedError(
                f"{self} was moved to conditional puts: writers that use the DynamoDB table don't "
                "exclude other writers there. Unset spark.delta.logStore.<scheme>.impl (and "
                ".class) to write with S3ConditionalLogStore, or move the table back with "
                f"`lakelog migrate {self} --to dynamodb`. Nothing was written."
            )

    def bypassed(self, seen: str) -> TableBypassedError:
        """The error for a writer that does not use the table."""
        return TableBypassedError(
            f"{seen}: a writer bypasses the DynamoDB table {self.rows.place}. It may be one that "
            "uses S3ConditionalLogStore, S3SingleDriverLogStore or deltalake, or another table, "
            "region or URI scheme. Stop it: it and the table's writers can replace each other's "
            "commits. Look at the commit (commitInfo names its engine), then run "
            f"`lakelog migrate {self} --to dynamodb`, which says what is left to decide. "
            f"(A writer whose ddb.ttl is far below this one's {self.rules.ttl} s looks the same: "
            f"set one ddb.ttl for all. {GUARD_KEY}=false turns this check off.)"
        )

    def ask(self, request: Callable[[], _T]) -> _T:
        """Make a request to the table, and repeat it within the budget.

        Raises:
            OSError: every try failed.
        """
        return repeat(request, f"{self}", self.rules.policy)

    def __str__(self) -> str:
        """The table's root, as the user spells it."""
        return self.folder.uri.removesuffix("_delta_log/").rstrip("/")

    def _lost_draft(self, row: CommitRow) -> LostDraftError:
        return LostDraftError(
            f"{self.folder.uri}{row.file_name} was decided by a row in {self.rows.place}, but it "
            f"was never made and its draft {self.folder.uri}{row.temp_path} is gone (a lifecycle "
            "rule on .tmp/ that is too eager?). Restore the draft from a version of the bucket "
            "or a backup. If that is impossible, the commit is lost: stop all writers, delete the "
            f"row (tablePath {row.table_path}, fileName {row.file_name}) with `aws dynamodb "
            "delete-item`, and run the job of that commit again."
        )
