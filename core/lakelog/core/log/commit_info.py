"""What `commitInfo` says of a version, without the rest of its commit, and without Arrow."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import orjson

from lakelog.core.errors import (
    CorruptCommitError,
)
from lakelog.core.log.budget import LogBudget
from lakelog.logstores.errors import FileTooLargeError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from lakelog.logstores.contract import LogStore

_MOST_BLANK = 1 << 16


def read_commit_info(store: LogStore, path: str) -> dict[str, Any]:
    """The `commitInfo` of a commit, as JSON value; empty where there is none.

    Raises:
        CorruptCommitError: the line that should hold it is not JSON, or blank lines never end.
        LogTooLargeError: the file has more bytes than there is memory.
    """
    blank = 0
    for line in _lines(store, path):
        if not line.strip():
            blank += 1
            if blank > _MOST_BLANK:
                raise CorruptCommitError(
                    f"the commit file {path} begins with more than {_MOST_BLANK} blank lines, "
                    "which no writer makes: it was damaged",
                    path=path,
                )
        # It is the first line of nearly every writer; adds can be large, and are not parsed.
        if '"commitInfo"' not in line[:64]:
            continue
        try:
            info = orjson.loads(line).get("commitInfo")
        except (orjson.JSONDecodeError, AttributeError) as exc:
            raise CorruptCommitError(
                f"the commitInfo in {path} is not JSON ({exc})", path=path
            ) from exc
        if isinstance(info, dict):
            return info
    return {}


def _lines(store: LogStore, path: str) -> Iterator[str]:
    try:
        yield from store.read(path)
    except FileTooLargeError as exc:
        raise LogBudget.from_store(store).refusal(path, exc.size) from exc
