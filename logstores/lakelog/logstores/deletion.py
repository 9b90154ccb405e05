"""Deleting many files, some at once."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lakelog.logstores.errors import LogStoreError
from lakelog.logstores.threads import REQUESTS, at_once

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


def delete_each(paths: Sequence[str], delete: Callable[[str], None]) -> dict[str, Exception]:
    """Delete files one by one, on some threads.

    Args:
        paths: which.
        delete: deletes one; where there is none it returns, or raises `FileNotFoundError`.

    Returns:
        Path -> why, of those for which it raised something else that a storage raises.
    """
    failed: dict[str, Exception] = {}

    def run(path: str) -> None:
        try:
            delete(path)
        except FileNotFoundError:
            pass
        except (OSError, LogStoreError) as error:
            failed[path] = error

    at_once(run, paths, REQUESTS, "lakelog-delete")
    return failed
