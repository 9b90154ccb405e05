"""CLONE."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lakelog.core.conf import DeltaConf
from lakelog.core.create.clone.command import clone
from lakelog.spark.replay.logs import session_log
from lakelog.spark.session.session import session_conf
from lakelog.spark.sql_statements.commands.made_tables import place_for_statement
from lakelog.spark.table.older_versions import metrics_row

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from lakelog.spark.sql_statements.commands.base import CommandContext
    from lakelog.spark.sql_statements.commands.table_definition import NewTable
    from lakelog.spark.sql_statements.named_tables import Place

_COLUMNS = {
    "source_table_size": "sourceTableSize",
    "source_num_of_files": "sourceNumOfFiles",
    "num_removed_files": "numRemovedFiles",
    "num_copied_files": "numCopiedFiles",
    "removed_files_size": "removedFilesSize",
    "copied_files_size": "copiedFilesSize",
}
"""Column of delta-spark's answer -> metric of the history."""


def clone_into(
    s: CommandContext,
    wanted: NewTable,
    source: Place,
    when: tuple[str, str] | None,
    *,
    shallow: bool,
) -> DataFrame:
    """Clone a table to where a statement wants it."""
    log, version, timestamp = s.log(source), None, None
    if when is not None:
        travel, expression = when
        moment = s.runner.moment(travel, expression)
        if travel == "version":
            version = int(moment)
        else:
            timestamp = s.runner.millis(moment)
    with place_for_statement(s, wanted, log.update().schema) as (path, mode):
        conf = DeltaConf.from_mapping(session_conf(s.spark))
        target = None if path is None else session_log(s.spark, path, conf)
        if target is None or (mode == "create_if_not_exists" and target.table_exists()):
            return metrics_row(s.spark, _COLUMNS, {})
        done = clone(
            log,
            target,
            version,
            timestamp,
            shallow=shallow,
            replace_target=mode in ("replace", "create_or_replace"),
            properties=wanted.properties or None,
        )
        return metrics_row(s.spark, _COLUMNS, done.metrics)
