"""What the log says of files that were taken out of the table, and when."""

from __future__ import annotations

from collections import Counter
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, NamedTuple

import orjson

from lakelog.core.actions.file_table import NO_TOMBSTONES
from lakelog.core.compute import pc
from lakelog.core.errors import LogGapError
from lakelog.core.log.budget import LogBudget, read_log_file
from lakelog.core.log.commit_file import parse_commit
from lakelog.core.log.file_changes import change_file_paths
from lakelog.logstores.threads import REQUESTS, in_order

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    import pyarrow as pa

    from lakelog.core.log.file_changes import FileChanges
    from lakelog.logstores import FileStatus, LogStore

_TAKE_NOTHING_OUT: Final = frozenset({"add", "commitInfo"})
_FEW_LINES: Final = 1000
_FEW_BYTES: Final = 4 << 20
"""What so much is as objects is little; a commit of more is counted by `parse_commit`."""


class Taken(NamedTuple):
    """The files that one version stopped to need, or never needed beyond its own changes."""

    version: int
    removed: pa.Table
    """With the columns `path`, `size` and `deletion_vector` of `TOMBSTONE_SCHEMA`."""
    change_files: list[str]
    """`path`s of its change data files."""


def files_taken_out(
    store: LogStore,
    table: str,
    commits: Sequence[tuple[int, FileStatus]],
    known: Mapping[int, Taken] = MappingProxyType({}),
) -> Iterator[Taken]:
    """Read commits, several at a time, and yield what they have taken out, in their order.

    Args:
        store: the table's.
        table: its URI.
        commits: versions and their files.
        known: what some of them have taken out; these are not read.

    Raises:
        CorruptCommitError: one is torn, empty or not JSON.
        LogGapError: one is gone since it was listed.
        LogTooLargeError: one would take more memory than there is.
    """
    read = partial(_read, store, table)
    unknown = [each for each in commits if each[0] not in known]
    others = in_order(read, unknown, REQUESTS, "lakelog-vacuum")
    for version, _ in commits:
        yield known[version] if version in known else next(others)


def taken_out(changes: FileChanges) -> Iterator[Taken]:
    """What commits that were read with their files have taken out.

    Args:
        changes: of some commits.
    """
    gone = changes.files.filter(pc.invert(changes.files["adds"]))
    gone = gone.select(["version", "path", "size", "deletion_vector"]).sort_by("version")
    rows = Counter(gone["version"].to_pylist())
    start = 0
    for version in sorted(each.version for each in changes.commits):
        count = rows[version]
        removed = gone.slice(start, count) if count else NO_TOMBSTONES
        yield Taken(version, removed, changes.change_files.get(version, []))
        start += count


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
        return Taken(version, NO_TOMBSTONES, [])
    removed = parse_commit(data, version, status.path, budget).removed()
    return Taken(version, removed, change_file_paths(data))


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
