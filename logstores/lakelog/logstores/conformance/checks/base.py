"""What all checks have: the size of the work, and other instances of the store."""

from __future__ import annotations

import os
from typing import ClassVar

from lakelog.logstores.conformance.checks.expect import expect
from lakelog.logstores.conformance.processes.children import Child
from lakelog.logstores.contract import LogStore, Scope
from lakelog.logstores.systems import need


class Checks:
    """Sizes; a subclass may lower them where each request costs money or time."""

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
    crash_rounds: ClassVar[int] = 4
    """Writers killed between their last line and their end; three more are killed earlier."""
    model_examples: ClassVar[int] = 25
    """Random histories that are compared with a dict."""
    watched_megabytes: ClassVar[int] = 24
    """Size of a file that is looked at while it is written, or whose lines fail: more than any
    buffer holds."""
    watched_writes: ClassVar[int] = 30
    """Writes after each of which every instance has to list and read the file."""
    appends: ClassVar[int] = 6
    """Appends of each thread to one log."""
    unfinished_reads: ClassVar[int] = 120
    """Readings, and as many listings, that end half-way. Connection pools may open a few files."""

    undeclared: str = ""
    """What a check found that the store does not declare, so that less could be demanded of it."""

    def another(self, store: LogStore) -> LogStore:
        """Another instance on the same storage, like another writer's."""
        return type(store)(store.conf)

    def shared_with_processes(self, store: LogStore, folder: str) -> bool:
        """Whether another process sees the storage. A store that claims host scope has to prove it.

        Args:
            store: the store.
            folder: one that exists, for a hidden file.

        Raises:
            UnsafeLogStoreError: the system has no forks.
        """
        need(os, "fork", "a check with other processes, which it forks and kills,")
        storage = (type(store), frozenset(store.conf.items()))
        if storage in _SHARED:
            return True
        path = folder + "/.is-shared"
        store.write(path, ["yes"], overwrite=True)
        with Child("observers:observe", store) as child:
            child.tell([folder + "/", path])
            try:
                seen = child.hear()
            except EOFError:
                seen = "nothing, for it died"
        shared = isinstance(seen, list) and seen[1] == ["yes"]
        if not shared:
            claims = store.capabilities.exclusive_create >= Scope.HOST
            expect(not claims, f"another process sees {seen} of a file just written")
            self.undeclared = "exclusive_create does not cover other processes"
        else:
            _SHARED.add(storage)
        return shared


_SHARED: set[tuple[type[LogStore], frozenset[tuple[str, str]]]] = set()
"""Stores, by class and conf, whose storage another process was seen to see: it is asked once."""
