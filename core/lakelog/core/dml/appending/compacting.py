"""The small files of an appender, put together as they come.

Sixteen files of about one size and one partition become one, which is of the next size, and so on
up to files that are large enough: each row is written again a few times at most, and there are few
small files at any time. Only files that this appender has written are touched. Whoever else changes
them wins: then they are left to OPTIMIZE.
"""

from __future__ import annotations

import logging
import threading
from collections import OrderedDict
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from lakelog.core.actions.operation import json_text
from lakelog.core.errors import DeltaConcurrentModificationException

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from lakelog.core.actions import AddFile
    from lakelog.core.delta_log import DeltaLog

_logger = logging.getLogger("lakelog")
_TOGETHER: Final = 16
_SIZES: Final = (64 << 10, 1 << 20, 16 << 20, 128 << 20)
"""Bytes: a file below the first is of the least size; one of the last or more is left alone."""
_MOST_GROUPS: Final = 10_000


class Compactor:
    """Compacts in a thread of its own, so that no commit waits for it."""

    def __init__(self, log: DeltaLog) -> None:
        """Compact nothing yet.

        Args:
            log: the table.
        """
        self._log = log
        self._groups: OrderedDict[tuple[object, int], list[str]] = OrderedDict()
        self._due: list[tuple[int, list[str]]] = []
        self._changed = threading.Condition()
        self._closes = False
        self._thread: threading.Thread | None = None
        self.files: int = 0
        """How many files were put together so far."""

    def take(self, adds: Iterable[AddFile]) -> None:
        """Compact files later, with others.

        Args:
            adds: that a commit has added.
        """
        with self._changed:
            for add in adds:
                size = next((at for at, most in enumerate(_SIZES) if add.size < most), None)
                if size is None:
                    continue
                key = (tuple(sorted(add.partition_values.items())), size)
                group = self._groups.setdefault(key, [])
                group.append(add.path)
                if len(group) == _TOGETHER:
                    self._due.append((size, self._groups.pop(key)))
                elif len(self._groups) > _MOST_GROUPS:
                    self._groups.popitem(last=False)  # of a partition that is long complete
            if self._due and self._thread is None and not self._closes:
                self._thread = threading.Thread(
                    target=self._run, name="lakelog-appender-compaction", daemon=True
                )
                self._thread.start()
            self._changed.notify_all()

    def close(self, timeout: float | None = None) -> None:
        """Compact what is due, and no more.

        Args:
            timeout: seconds; what takes longer goes on.
        """
        with self._changed:
            self._closes = True
            self._changed.notify_all()
        if self._thread is not None:
            self._thread.join(timeout)

    def _run(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._due or self._closes)
                if not self._due:
                    return
                size, paths = self._due.pop(0)
            try:
                made = self._compact(paths, _SIZES[size])
            except DeltaConcurrentModificationException as conflict:
                _logger.info(
                    "%s: an appender left %s small files to OPTIMIZE: %s",
                    self._log.table,
                    len(paths),
                    conflict,
                )
            except Exception as exc:
                _logger.warning(
                    "%s: an appender could not compact %s small files; its commits go on: %s",
                    self._log.table,
                    len(paths),
                    exc,
                )
            else:
                self.take(made)

    def _compact(self, paths: Sequence[str], most: int) -> Sequence[AddFile]:
        """The files that the rows are in now; none where there was nothing to do."""
        from lakelog.core.actions.file_keys import are_among
        from lakelog.core.actions.file_table import to_add_files
        from lakelog.core.features.protocol import supported_features
        from lakelog.core.maintain.optimize.committing import OptimizeBatch
        from lakelog.core.maintain.optimize.plan import Bin, Compaction, split_by_partition
        from lakelog.core.maintain.optimize.run_settings import OptimizeSettings

        log = self._log
        snapshot = log.update()
        if "clustering" in supported_features(snapshot.protocol):
            return ()  # which has an order to keep
        table = snapshot.file_table
        ours = are_among(log.table, table["path"], paths)
        found = to_add_files(table.filter(ours))
        groups = split_by_partition(snapshot, found, session_tz=log.conf.session_tz)
        bins = [Bin(key, tuple(files)) for key, files in groups if len(files) > 1]
        if not bins:
            return ()
        settings = OptimizeSettings.chosen(
            log.conf, snapshot.metadata.configuration, target_size=_TOGETHER * most
        )
        batch = OptimizeBatch(
            log,
            Compaction(replace(settings, min_size=most)),
            name="OPTIMIZE",
            parameters={
                "predicate": json_text([]),
                "auto": True,
                "clusterBy": json_text([]),
                "zOrderBy": json_text([]),
            },
            threads=settings.threads,
        )
        done = batch.run(bins, lambda _: None)
        if done is None:
            return ()
        self.files += len(done.removed)
        return done.added
