"""What all checks have: the size of the work, and other instances of the store."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

if TYPE_CHECKING:
    from lakelog.logstores._contract import LogStore

__all__ = ["Checks"]


class Checks:
    """Sizes, to be set lower in a subclass where each request costs money or time."""

    many_files: ClassVar[int] = 1050
    """Files of the long listing: more than the 1 000 that object stores give per page."""
    large_megabytes: ClassVar[int] = 50
    """Size of the large file."""
    race_rounds: ClassVar[int] = 25
    """Races among threads, and the same number among processes."""
    race_threads: ClassVar[int] = 8
    """Threads of a race."""
    race_processes: ClassVar[int] = 4
    """Processes of a race, where the store claims to exclude other processes."""
    model_examples: ClassVar[int] = 25
    """Random histories that are compared with a dict."""

    def another(self, store: LogStore) -> LogStore:
        """Another instance on the same storage, as another writer would have it."""
        return type(store)(store.conf)
