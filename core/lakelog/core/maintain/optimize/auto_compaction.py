"""Auto compaction: a commit after which a partition has many small files puts them together.

A hook does it after the commit, as Delta's does. It can't fail the commit: where another writer was
faster, or the storage refused, the files stay small until the next one.
"""

from __future__ import annotations

import logging
from collections import Counter
from typing import TYPE_CHECKING

from lakelog.core import keys
from lakelog.core.actions import AddFile
from lakelog.core.actions.operation import json_text
from lakelog.core.delta_log import DeltaLog
from lakelog.core.errors import DeltaConcurrentModificationException
from lakelog.core.hooks.post_commit import PostCommitHook

if TYPE_CHECKING:
    import pyarrow as pa

    from lakelog.core.conf import DeltaConf
    from lakelog.core.hooks.post_commit import CommittedTransaction
    from lakelog.core.maintain.optimize.run_settings import OptimizeSettings
    from lakelog.core.state.snapshot import Snapshot

_logger = logging.getLogger("lakelog")


class AutoCompaction(PostCommitHook):
    """Puts small files together in the partitions that a commit added files to."""

    @property
    def name(self) -> str:
        """Delta's name."""
        return "Auto Compact"

    def __call__(self, committed: CommittedTransaction) -> None:
        """Compact, where a partition has enough small files."""
        from lakelog.core.maintain.optimize.optimize_table import strategy_of
        from lakelog.core.maintain.optimize.running import Run

        log = committed.delta_log
        added = [a for a in committed.actions if isinstance(a, AddFile) and a.data_change]
        if not added or not isinstance(log, DeltaLog):
            return
        snapshot = log.update()
        settings = _settings(log.conf, snapshot)
        files = _crowded(snapshot, added, settings, log.conf)
        if files is None:
            return
        strategy, columns = strategy_of(snapshot, settings)
        parameters = {
            "predicate": json_text([]),
            "auto": True,
            "clusterBy": json_text(columns),
            "zOrderBy": json_text([]),
        }
        run = Run(log, snapshot, strategy, settings)
        try:
            run.rewrite("OPTIMIZE", parameters, files, dry_run=False)
        except DeltaConcurrentModificationException as conflict:
            _logger.info("%s: auto compaction left files to the next one: %s", log.table, conflict)


def _settings(conf: DeltaConf, snapshot: Snapshot) -> OptimizeSettings:
    from dataclasses import replace

    from lakelog.core.maintain.optimize.run_settings import OptimizeSettings, byte_size

    largest = byte_size(conf.read(keys.AUTO_MAX_SIZE), f"the conf {keys.AUTO_MAX_SIZE}")
    smallest = conf.read(keys.AUTO_MIN_SIZE)
    least = (
        largest // 2 if smallest is None else byte_size(smallest, f"the conf {keys.AUTO_MIN_SIZE}")
    )
    settings = OptimizeSettings.chosen(conf, snapshot.metadata.configuration, target_size=largest)
    return replace(settings, min_size=max(1, least))


def _crowded(
    snapshot: Snapshot, added: list[AddFile], settings: OptimizeSettings, conf: DeltaConf
) -> pa.Table | None:
    """The files of the partitions that got files and have many small ones; `None` for none."""
    from lakelog.core.actions.file_table import to_add_files
    from lakelog.core.compute import pc
    from lakelog.core.data.partition_keys import (
        files_in_partitions,
        partition_key,
        partition_keys,
    )

    schema, zone = snapshot.partition_schema, conf.session_tz
    touched = partition_keys(added, schema, session_tz=zone)
    files = files_in_partitions(snapshot.file_table, touched, schema, session_tz=zone)
    small = files.filter(pc.less(pc.fill_null(files["size"], 0), settings.min_size))
    least = conf.read(keys.AUTO_MIN_FILES)
    if small.num_rows < least:
        return None
    counts = Counter(
        partition_key(file.partition_values, schema, session_tz=zone)
        for file in to_add_files(small)
    )
    most = conf.read(keys.AUTO_MAX_PARTITIONS)
    crowded = {key for key, count in counts.most_common(most) if count >= least}
    if not crowded:
        return None
    return files_in_partitions(files, crowded, schema, session_tz=zone)
