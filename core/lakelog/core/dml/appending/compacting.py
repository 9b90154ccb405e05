"""The small files of appenders, put together as they come.

Sixteen or more files of about one size and one partition become one, which is of a larger size, and
so on up to files that are large enough: each row is written again a few times at most, and there
are few small files at any time. The files are marked: whichever appender looks next takes all of
them, so that many appenders leave no more of them than one, and those of a process that has died
are taken by another. What has no mark is not touched. Whoever else changes a file wins: then it is
left to the next one, or to OPTIMIZE.

Each appender looks after some commits of its own, the fewer the more files there were, and first
after a number that its name gives: so of many rarely two do the same work at once. At the end, who
has made the table's last version looks once more, since nobody is known to come after it, and takes
fewer files.
"""

from __future__ import annotations

import logging
import threading
import zlib
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from lakelog.core.actions.operation import json_text
from lakelog.core.errors import DeltaConcurrentModificationException

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from lakelog.core.actions import AddFile
    from lakelog.core.delta_log import DeltaLog
    from lakelog.core.maintain.optimize.plan import Bin
    from lakelog.core.state.snapshot import Snapshot

_logger = logging.getLogger("lakelog")
TAGS: Final[Mapping[str, str]] = {"lakelog.appended": "true"}
"""The mark of a file that appenders may put together with others."""
_TOGETHER: Final = 16
_AT_THE_END: Final = 4
"""So many files are put together by who comes last."""
_GROUP_ROWS, _LARGE = 1 << 15, 16 << 20
"""The rows of a row group of smaller files: who wants a single row reads one."""
_SIZES: Final = (64 << 10, 1 << 20, 16 << 20, 128 << 20)
"""Bytes: a file below the first is of the least size; one of the last or more is left alone."""


class Compactor:
    """Compacts in a thread of its own, so that no commit waits for it."""

    def __init__(self, log: DeltaLog, app_id: str) -> None:
        """Compact nothing yet.

        Args:
            log: the table.
            app_id: of the appender.
        """
        self._log = log
        self._left = _TOGETHER - zlib.crc32(app_id.encode()) % _TOGETHER
        self._last = -1
        self._changed = threading.Condition()
        self._closes = False
        self._thread: threading.Thread | None = None
        self.files: int = 0
        """How many files were put together so far."""

    def take(self, version: int) -> None:
        """Compact later what a commit has added, with others.

        Args:
            version: of the commit.
        """
        with self._changed:
            self._left -= 1
            self._last = max(self._last, version)
            if self._left <= 0 and not self._closes:
                self._begin()

    def close(self, timeout: float | None = None) -> None:
        """Compact what is due, and what is left where this is the last to commit.

        Args:
            timeout: seconds; what takes longer goes on.
        """
        with self._changed:
            self._closes = True
            if self._last >= 0:
                self._begin()
        if self._thread is not None:
            self._thread.join(timeout)

    def _begin(self) -> None:
        if self._thread is None:
            thread = threading.Thread(
                target=self._run, name="lakelog-appender-compaction", daemon=True
            )
            try:
                thread.start()
            except RuntimeError as exc:  # at the end of the interpreter, or of the system's threads
                _logger.warning(
                    "%s: an appender has no thread to compact small files with; they are left to "
                    "the next one, or to OPTIMIZE: %s",
                    self._log.table,
                    exc,
                )
                return
            self._thread = thread
        self._changed.notify_all()

    def _run(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._left <= 0 or self._closes)
                closes, is_due = self._closes, self._left <= 0
                self._left = _TOGETHER
            if is_due:
                fewest = self._look(_TOGETHER)
                with self._changed:
                    self._left = min(self._left, fewest)
            if closes:
                self._look(_AT_THE_END, only_as_last=True)
                return

    def _look(self, least: int, *, only_as_last: bool = False) -> int:
        """Compact what there is; say how many files are missing where most are, at least one."""
        count = 0
        try:
            while True:
                snapshot = self._log.update()
                if only_as_last and snapshot.version != self._last:
                    return least
                most, bins, missing = self._bins(snapshot, least)
                if not bins:
                    return missing
                count = sum(len(each.files) for each in bins)
                self._compact(snapshot, bins, most)
        except DeltaConcurrentModificationException as conflict:
            _logger.info(
                "%s: an appender left %s small files to the next one, or to OPTIMIZE: %s",
                self._log.table,
                count,
                conflict,
            )
        except Exception as exc:
            _logger.warning(
                "%s: an appender could not compact %s small files; its commits go on: %s",
                self._log.table,
                count,
                exc,
            )
        return least

    def _bins(self, snapshot: Snapshot, least: int) -> tuple[int, list[Bin], int]:
        """The files to put together of the least size that has so many, and that size.

        With no such files, the last is how many more the fullest partition needs.
        """
        from lakelog.core.maintain.optimize.plan import Bin, packed, split_by_partition

        zone = self._log.conf.session_tz
        groups = list(split_by_partition(snapshot, _marked(snapshot), session_tz=zone))
        missing, smallest = least, 0
        for most in _SIZES:
            found: list[Bin] = []
            for partition, files in groups:
                small = [each for each in files if smallest <= each.size < most]
                if len(small) < least:
                    missing = min(missing, least - len(small))
                    continue
                small.sort(key=lambda each: (each.modification_time, each.path))
                found += [Bin(partition, tuple(b)) for b in packed(small, _TOGETHER * most)]
            if found:
                return most, [each for each in found if len(each.files) > 1], missing
            smallest = most
        return 0, [], missing

    def _compact(self, snapshot: Snapshot, bins: Sequence[Bin], most: int) -> None:
        from lakelog.core.maintain.optimize.committing import OptimizeBatch
        from lakelog.core.maintain.optimize.plan import Compaction
        from lakelog.core.maintain.optimize.run_settings import OptimizeSettings

        settings = OptimizeSettings.chosen(
            self._log.conf, snapshot.metadata.configuration, target_size=_TOGETHER * most
        )
        batch = OptimizeBatch(
            self._log,
            Compaction(replace(settings, min_size=most), TAGS),
            name="OPTIMIZE",
            parameters={
                "predicate": json_text([]),
                "auto": True,
                "clusterBy": json_text([]),
                "zOrderBy": json_text([]),
            },
            threads=settings.threads,
            row_group_rows=_GROUP_ROWS if most < _LARGE else None,
        )
        done = batch.run(bins, lambda _: None)
        if done is not None:
            self.files += len(done.removed)
            with self._changed:
                self._last = max(self._last, done.version)


def _marked(snapshot: Snapshot) -> list[AddFile]:
    """The files that may be put together with others."""
    from lakelog.core.actions.file_table import to_add_files
    from lakelog.core.compute import pc
    from lakelog.core.features.protocol import supported_features

    if "clustering" in supported_features(snapshot.protocol):
        return []  # which has an order to keep
    table = snapshot.file_table
    table = table.filter(pc.less(pc.fill_null(table["size"], 0), _SIZES[-1]))
    ((key, value),) = TAGS.items()
    marks = pc.map_lookup(table["tags"], key, "first")
    return to_add_files(table.filter(pc.equal(pc.fill_null(marks, ""), value)))
