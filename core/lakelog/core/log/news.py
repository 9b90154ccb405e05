"""What was committed after a version that is known, and whether that version is still in the log.

Commits are read one by one until one is missing. What was read belongs to the known log only if the
known version is found there *afterwards*: the table may have been replaced meanwhile. Where a
request is a journey, the look at the known version travels with the probe for the next one, which
is mostly missing; a look that came too early, because there was one more commit, is repeated.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from lakelog.core.errors import TableNotFoundError
from lakelog.core.log.commit_file import read_commit
from lakelog.core.log.commit_identity import still_there
from lakelog.logstores.threads import beside

if TYPE_CHECKING:
    from collections.abc import Callable

    from lakelog.core.actions import CommitInfo
    from lakelog.core.log.commit_file import Commit
    from lakelog.logstores.contract import LogStore


def read_news(
    store: LogStore,
    table: str,
    version: int,
    info: CommitInfo | None,
    *,
    modified: int | None = None,
    most: int,
    trusted: bool,
    at_once: bool,
) -> tuple[list[Commit], bool | None]:
    """Read the commits after a version.

    Args:
        store: the store of the log.
        table: the table's URI.
        version: the known one.
        info: its `commitInfo`; `None` if it is not known.
        modified: when its file was written; `None` if it is not known.
        most: end after so many commits.
        trusted: whether the known version need not be looked at as long as nothing follows it.
        at_once: whether to make two requests at a time.

    Returns:
        The commits, ascending, and whether the known version is in the log; `None` for the second
        where it was not looked at.

    Raises:
        TableNotFoundError: a catalog governs the table, and has it no more.
        CorruptCommitError: a commit is torn, empty or not JSON.
        OSError: the storage failed.
    """

    def probe() -> Commit | None:
        try:
            return read_commit(store, table, version + 1 + len(commits))
        except TableNotFoundError:
            raise  # a catalog's word that there is no table any more
        except FileNotFoundError:
            return None

    def look() -> bool:
        return still_there(store, table, version, info, modified)

    commits: list[Commit] = []
    while len(commits) < most:
        if trusted and not commits:
            found, seen = probe(), None
        elif at_once:
            found, seen = _both(probe, look)
        else:
            found = probe()
            seen = look() if found is None else None
        if found is None:
            return commits, seen
        commits.append(found)
    return commits, look()


def _both(
    probe: Callable[[], Commit | None], look: Callable[[], bool]
) -> tuple[Commit | None, bool | None]:
    """Probe and look at the same time; what the look met counts only where nothing was found."""
    with beside(1, "lakelog-update") as begun:
        begun.begin(look)
        found, seen = probe(), begun.take()
    return found, seen if found is None else None
