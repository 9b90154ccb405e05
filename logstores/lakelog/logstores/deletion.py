"""Deleting many files, some at once."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Final

from lakelog.logstores.errors import LogStoreError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

DELETING_THREADS: Final = 16
_SHARE: Final = 256
"""The most files of one task: with fewer, handing them to threads takes longer than the calls."""


def delete_each(paths: Sequence[str], delete: Callable[[str], None]) -> dict[str, Exception]:
    """Delete files one by one, on some threads.

    Args:
        paths: which.
        delete: deletes one; where there is none it returns, or raises `FileNotFoundError`.

    Returns:
        Path -> why, of those for which it raised something else that a storage raises.
    """
    failed: dict[str, Exception] = {}

    def run(share: Sequence[str]) -> None:
        for path in share:
            try:
                delete(path)
            except FileNotFoundError:
                continue
            except (OSError, LogStoreError) as error:
                failed[path] = error

    size = min(_SHARE, -(-len(paths) // DELETING_THREADS)) or 1
    shares = [paths[start : start + size] for start in range(0, len(paths), size)]
    if len(shares) < 2:
        for each in shares:
            run(each)
        return failed
    with ThreadPoolExecutor(min(DELETING_THREADS, len(shares)), "lakelog-delete") as pool:
        for _ in pool.map(run, shares):
            pass
    return failed
