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

__all__ = ["read_commit_info"]


def read_commit_info(store: LogStore, path: str) -> dict[str, Any]:
    """The `commitInfo` of a commit, as JSON value; empty where there is none.

    Raises:
        CorruptCommitError: the line that should hold it is not JSON.
        LogTooLargeError: the file has more bytes than there is memory.
    """
    for line in _lines(store, path):
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
