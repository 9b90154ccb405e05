"""Drafts in the log: what a writer creates before it names a file, and a killed one leaves behind.

Two forms are known, of this project's stores and of Delta's own:

    .<name>.<uuid>.tmp      HDFS, local and NFS disks, and staged checkpoints
    .tmp/<name>.<uuid>      DynamoDB's; each commit leaves one, killed or not

A draft may be the only copy of a commit (whose row in DynamoDB is there, while its file is still to
come), so it is deleted only with its version: below a checkpoint that holds all of it.
"""

from __future__ import annotations

import itertools
import re
from typing import TYPE_CHECKING

from lakelog.core.log.file_names import log_path, parse_log_name

if TYPE_CHECKING:
    from collections.abc import Iterator

    from lakelog.logstores.contract import FileStatus, LogStore

DRAFT_FOLDER = ".tmp"
_UUID = r"[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}"
_HIDDEN = re.compile(rf"(?i)\.(?P<name>.+)\.{_UUID}\.tmp")
_FILED = re.compile(rf"(?i)(?P<name>.+)\.{_UUID}")
_LIVING_MS = 86_400_000
"""No writer lives for a day between its draft and its commit, however short the retention is."""


def is_draft(name: str, folder: str = "") -> bool:
    """Whether a file has the name of a draft.

    Args:
        name: of the file.
        folder: that it is in, below the log; `.tmp` has another form.
    """
    return (_FILED if folder == DRAFT_FOLDER else _HIDDEN).fullmatch(name) is not None


def old_drafts(
    store: LogStore, table: str, boundary: int, cutoff: int, now: int
) -> Iterator[FileStatus]:
    """The drafts that are no longer needed.

    Args:
        store: of the log.
        table: its URI.
        boundary: the version of a complete checkpoint; drafts of it and of later ones stay.
        cutoff: epoch milliseconds; what is younger stays.
        now: the same, of the clock.

    Raises:
        OSError: the storage can't be listed.
    """
    # By both: a retention of an hour must not take the draft of a commit that is under way.
    latest = min(cutoff, now - _LIVING_MS)
    for status, name in drafts(store, table):
        if status.modification_time > latest:
            continue
        file = parse_log_name(name)
        # One without a version is a draft of a hint, which is replaced all the time.
        if file.version < boundary if file else name.startswith("_"):
            yield status


def drafts(store: LogStore, table: str) -> Iterator[tuple[FileStatus, str]]:
    """Every draft with the name of the file that it was to be, those under way included.

    Args:
        store: of the log.
        table: its URI.

    Raises:
        OSError: the storage can't be listed.
    """
    entries = store.list_from(log_path(table, "."))
    for status in itertools.takewhile(lambda each: each.name.startswith("."), entries):
        if status.name == DRAFT_FOLDER and status.is_directory:
            for filed in store.list_from(log_path(table, f"{DRAFT_FOLDER}/")):
                match = _FILED.fullmatch(filed.name)
                if match and not filed.is_directory:
                    yield filed, match["name"]
            continue
        match = _HIDDEN.fullmatch(status.name)
        if match and not status.is_directory:
            yield status, match["name"]
