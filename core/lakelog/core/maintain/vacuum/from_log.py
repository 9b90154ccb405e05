"""What the log says of files that were taken out of the table, and when."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple

import orjson
import pyarrow as pa

from lakelog.core.actions.file_table import TOMBSTONE_SCHEMA
from lakelog.core.errors import LogGapError
from lakelog.core.log.budget import LogBudget, read_log_file
from lakelog.core.log.commit_file import parse_commit
from lakelog.logstores.threads import REQUESTS, in_order

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from lakelog.logstores import FileStatus, LogStore

_TAKE_NOTHING_OUT: Final = frozenset({"add", "commitInfo"})
_FEW_LINES: Final = 1000
_FEW_BYTES: Final = 4 << 20
"""What so much is as objects is little; a commit of more is counted by `parse_commit`."""
# `empty_table` would import pandas.
_NO_ROWS: Final = pa.Table.from_batches([], TOMBSTONE_SCHEMA)


class Taken(NamedTuple):
    """The files that one version stopped to need, or never needed beyond its own changes."""

    version: int
    removed: pa.Table
    """Rows of `TOMBSTONE_SCHEMA`."""
    change_files: list[str]
    """`path`s of its change data files."""


def files_taken_out(
    store: LogStore, table: str, commits: Sequence[tuple[int, FileStatus]]
) -> Iterator[Taken]:
    """Read commits, several at a time, and yield what they have taken out, in their order.

    Args:
        store: the table's.
        table: its URI.
        commits: versions and their files.

    Raises:
        CorruptCommitError: one is torn, empty or not JSON.
        LogGapError: one is gone since it was listed.
        LogTooLargeError: one would take more memory than there is.
    """
    read = partial(_read, store, table)
    yield from in_order(read, commits, REQUESTS, "lakelog-vacuum")


def _read(store: LogStore, table: str, commit: tuple[int, FileStatus]) -> Taken:
    version, status = commit
    budget = LogBudget.from_store(store)
    try:
        data = read_log_file(store, status.path, budget)
    except FileNotFoundError as error:
        raise LogGapError(
            f"the commit {status.path} has just disappeared: log cleanup removed it, or the table "
            "is being deleted. No data file was deleted; run VACUUM again.",
            table=table,
            path=status.path,
            version=version,
            missing=[version],
        ) from error
    if _only_adds(data):
        return Taken(version, _NO_ROWS, [])
    removed = parse_commit(data, version, status.path, budget).removed()
    return Taken(version, removed, list(_change_files(data)))


def _only_adds(data: bytes) -> bool:
    """Whether a commit takes nothing out, as most do; `False` where that has to be looked at.

    What it adds is not checked: that is for whoever reads the table.
    """
    lines = data.removesuffix(b"\n").count(b"\n") + 1
    if lines > _FEW_LINES or len(data) > _FEW_BYTES:
        return False
    try:
        actions = orjson.loads(b"[%b]" % data.removesuffix(b"\n").replace(b"\n", b","))
    except orjson.JSONDecodeError:
        return False
    return len(actions) == lines and all(
        isinstance(action, dict) and action.keys() <= _TAKE_NOTHING_OUT for action in actions
    )


def _change_files(data: bytes) -> Iterator[str]:
    if b'"cdc"' not in data:
        return
    for line in data.split(b"\n"):
        # Within a string the quotes of a name are escaped.
        if b'"cdc"' in line:
            action = orjson.loads(line).get("cdc")
            if isinstance(action, dict) and isinstance(action.get("path"), str):
                yield action["path"]
