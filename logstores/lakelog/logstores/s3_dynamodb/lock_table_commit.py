"""One commit by way of the lock table, step by step as Delta's `BaseExternalLogStore.write`.

    0    N.json exists?                                     -> lost
    1    the newest row: finish it if it is not complete; N-1.json must exist
    2.1  the draft T(N), whole
    2.2  the row E(N), if there is none                     -> lost, or *the commit is made*
    3    N.json from T(N), by a conditional put
    4    E(N) complete, with its time of expiry

After 2.2 nothing may say "lost" that only failed: the next reader or writer makes N.json. Two
things end otherwise. A writer that slept through the life of a rival's row gets a row of its own
for a version that has long been taken: step 3 meets the rival's file, or (if log cleanup removed
that) a log that goes on beyond it. And N.json may be there, new, from a writer that does not ask
the table.
"""

from __future__ import annotations

import time
from functools import partial
from typing import TYPE_CHECKING

from lakelog.logstores.errors import CommitOutcomeUnknownError, LogStoreError
from lakelog.logstores.object_store.client import NotTheServiceError, TryAgainError
from lakelog.logstores.s3_dynamodb.errors import LockTableError
from lakelog.logstores.s3_dynamodb.lock_rows import commit_file_name
from lakelog.logstores.s3_dynamodb.row_decided_log import SCHEME_KEY, SCHEMES
from lakelog.logstores.s3_dynamodb.row_table import RowTakenError

if TYPE_CHECKING:
    from lakelog.logstores.s3_dynamodb.lock_rows import CommitRow, LogFile
    from lakelog.logstores.s3_dynamodb.row_decided_log import LockedLog


def commit(log: LockedLog, file: LogFile, body: bytes) -> None:
    """Make a commit file that no other writer has made.

    Returns when the commit is permanent; its file may still be missing, and then every reader
    makes it first.

    Raises:
        FileExistsError: another writer has the version.
        CommitOutcomeUnknownError: it is unknown whether the row was written.
        LockTableError, LostDraftError, TableBypassedError, TableMovedError: it can't be done.
        OSError: it was not made.
    """
    began, began_wall = time.monotonic(), log.rules.clock()
    if log.objects.owner(file.name) is not None:
        raise _version_taken(file)
    # A row of the version before may stand for a file that is not there yet: to commit after it
    # would make a gap for those who do not ask the table.
    _prepare(log, file)
    row = file.new_row()
    # Before the row, which makes the commit: whoever finds the row has to find its bytes.
    log.objects.put_draft(row, body)
    rival = _claim(log, file, row)
    if rival is not None:
        # The loser is about to read the winner, which may be only a row so far.
        _make_readable(log, rival)
        raise _version_taken(file)
    # The two clocks differ where the machine was asleep.
    slept = max(time.monotonic() - began, log.rules.clock() - began_wall)
    if slept < log.rules.horizon:
        _publish(log, file, row, body)
    else:
        _publish_late(log, file, row, body)


def _version_taken(file: LogFile) -> FileExistsError:
    return FileExistsError(f"{file.path} exists: another writer made it")


def _prepare(log: LockedLog, file: LogFile) -> None:
    """Step 1: the predecessor exists, and everything known is consistent."""
    newest = log.newest()
    log.refuse_if_moved(newest)
    if newest is not None and newest.version is None:  # of some file that is not a commit
        newest = log.row(commit_file_name(file.version - 1)) if file.version else None
    if newest is None:
        _refuse_other_scheme(log, file)
    else:
        log.finish(newest)
        if newest.version is not None and newest.version >= file.version:
            _refuse_taken(log, file, newest)
    if file.version:
        _require_predecessor(log, file, newest)


def _refuse_taken(log: LockedLog, file: LogFile, newest: CommitRow) -> None:
    if log.objects.owner(file.name) is not None:
        raise _version_taken(file)
    raise LockTableError(
        f"{file.path} does not exist, but {log.rows.place} has a row for {newest.file_name} of "
        f"{newest.table_path}: old rows of a table that was dropped, or commit files that were "
        "deleted manually. To start the table again, delete all rows of that tablePath first; "
        "if its files were lost, restore them. Nothing was written."
    )


def _require_predecessor(log: LockedLog, file: LogFile, newest: CommitRow | None) -> None:
    name = commit_file_name(file.version - 1)
    owner = log.objects.owner(name)
    if owner is None:
        row_state = "has a row" if newest is not None and newest.file_name == name else "has no row"
        raise OSError(
            f"the previous commit {log.folder.uri}{name} does not exist, and {log.rows.place} "
            f"{row_state} for it. Nothing was written."
        )
    if newest is None or newest.version is None or newest.version >= file.version - 1:
        return
    if not log.is_young(owner):
        return
    row = log.row(name)  # it may have come since the newest row was asked for
    if row is None:
        raise log.bypassed(
            f"{log.folder.uri}{name} is new and has no row, while the newest row is that of "
            f"{newest.file_name}"
        )
    log.finish(row)


def _refuse_other_scheme(log: LockedLog, file: LogFile) -> None:
    """Find the rows of writers that spell the table with another scheme: none is excluded here.

    Asked only where the table's own partition is empty, which is the case for one commit.
    """
    if not file.version:
        return
    for scheme in SCHEMES:
        other = log.folder.under(scheme)
        if other == log.folder.table_path:
            continue
        row = log.ask(partial(log.rows.newest, other))
        if row is None or row.is_mark:
            continue
        if row.expire_time is not None and row.expire_time < log.rules.clock():
            continue
        raise LockTableError(
            f"{log.rows.place} has rows for {other} and none for {log.folder.table_path}: writers "
            "that spell the table's scheme differently don't exclude each other. Use the URI "
            f"{other}, or set {SCHEME_KEY}={scheme}. Nothing was written."
        )


def _claim(log: LockedLog, file: LogFile, row: CommitRow) -> CommitRow | None:
    """Step 2.2, whether or not replies get lost.

    Returns:
        `None` if the row is in the table, else the row that is there instead.
    """
    patience = log.rules.policy.start()
    uncertain = False
    while True:
        try:
            log.rows.insert(row)
        except RowTakenError as taken:
            # A condition that fails says that there is a row, and not whose: it may be our own,
            # inserted by a request whose reply was lost.
            holder = taken.row or _holder(log, file, "the table says that its row exists")
            if holder is not None:
                return _rival(holder, row)
            uncertain, seen = True, "the table said that its row exists, and then that it does not"
            more = patience.pause()
        except TryAgainError as error:
            uncertain, seen = uncertain or error.may_have_landed, str(error)
            more = patience.pause_after(error)
        except NotTheServiceError as error:
            return _last_look(log, file, row, str(error))
        except (OSError, LogStoreError) as error:
            if not uncertain:
                raise
            return _last_look(log, file, row, f"after a request without a reply, {error}")
        else:
            return None
        if not more:
            if uncertain:
                return _last_look(log, file, row, seen)
            raise patience.spent(f"{file.path} was not written: {seen}")


def _rival(holder: CommitRow, row: CommitRow) -> CommitRow | None:
    # The draft's name is this attempt's own: a row with it is this attempt's, its reply lost.
    return None if holder.temp_path == row.temp_path else holder


def _last_look(log: LockedLog, file: LogFile, row: CommitRow, seen: str) -> CommitRow | None:
    """Whose the row is, when this attempt's request may have landed or may still land."""
    holder = _holder(log, file, seen)
    if holder is None:
        raise CommitOutcomeUnknownError(
            file.path, f"{seen}; its row is absent, and may still appear"
        )
    return _rival(holder, row)


def _holder(log: LockedLog, file: LogFile, seen: str) -> CommitRow | None:
    """Who has the row, asked with a small budget of its own."""
    policy = log.rules.policy
    patience = policy.start(policy.grace)
    while True:
        try:
            return log.rows.get(file.folder.table_path, file.name)
        except TryAgainError as error:
            if patience.pause_after(error):
                continue
            trouble: Exception = error
        except (OSError, LogStoreError) as error:
            trouble = error
        raise CommitOutcomeUnknownError(
            file.path, f"{seen}; the row could not be looked up ({trouble})"
        ) from trouble


def _make_readable(log: LockedLog, rival: CommitRow) -> None:
    """Let the loser read the winner's file, which is missing if that writer died."""
    with log.forgiven(f"making {rival.file_name}"):
        if not rival.complete and log.objects.owner(rival.file_name) is None:
            log.finish(rival)


def _publish(log: LockedLog, file: LogFile, row: CommitRow, body: bytes) -> None:
    """Steps 3 and 4. The commit is made: the next reader or writer completes what fails here."""
    ours = True
    with log.forgiven(f"making {row.file_name}"):
        # A failure here is no failure of the commit, and must not be reported as one: the job would
        # write its rows again.
        ours = log.objects.publish(row, body)
        if ours:
            log.complete(row)
    if not ours:
        _judge_foreign(log, file, row)


def _publish_late(log: LockedLog, file: LogFile, row: CommitRow, body: bytes) -> None:
    """The same for a writer that slept so long that its row may have followed one that expired.

    Such a row decides nothing, so only the file shows whether the commit was made.
    """
    try:
        left_behind = log.is_left_behind(row)
        ours = not left_behind and log.objects.publish(row, body)
    except Exception as error:
        raise CommitOutcomeUnknownError(
            file.path,
            "its row was written so late that a rival's row may have expired before, and its file "
            f"could not be created ({error})",
        ) from error
    if ours or left_behind:
        log.complete_if_possible(row)
    if left_behind:
        raise _version_taken(file)
    if not ours:
        _judge_foreign(log, file, row)


def _judge_foreign(log: LockedLog, file: LogFile, row: CommitRow) -> None:
    """Step 3 met a file that is not ours, though the row is."""
    try:
        owner = log.objects.owner(file.name)
    except OSError as error:
        raise CommitOutcomeUnknownError(
            file.path, f"it differs from its row, and the object can't be read ({error})"
        ) from error
    if owner is None or log.is_young(owner):
        bypassed = log.bypassed(f"{file.path} was made by a writer that has no row for it")
        raise CommitOutcomeUnknownError(file.path, str(bypassed).rstrip(".")) from bypassed
    # Older than any row lives: its row expired while this writer slept. It has the version.
    log.complete_if_possible(row)
    raise _version_taken(file)
