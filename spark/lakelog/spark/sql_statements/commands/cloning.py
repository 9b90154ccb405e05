"""CLONE and CONVERT TO DELTA: tables that begin with the files of others."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lakelog.core import DeltaConf, clone, convert_to_delta
from lakelog.spark.replay.logs import session_log
from lakelog.spark.session.session import session_conf
from lakelog.spark.sql_statements.commands.new_tables import place_for_statement
from lakelog.spark.sql_statements.queries.named_tables import path_in
from lakelog.spark.table.convert_arguments import parquet_folder, partition_schema
from lakelog.spark.table.delta_table import DeltaTable
from lakelog.spark.table.older_versions import metrics_row

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from lakelog.spark.sql_statements.commands.context import Command, CommandContext
    from lakelog.spark.sql_statements.commands.new_tables import NewTable
    from lakelog.spark.sql_statements.queries.named_tables import Place

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
        target = None if path is None else session_log(s.spark, path, conf, makes=True)
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


def convert(s: CommandContext) -> Command | None:
    """`CONVERT TO DELTA parquet.`/path` [NO STATISTICS] [PARTITIONED BY (columns)]`."""
    c = s.cursor
    c.need("CONVERT", "TO", "DELTA")
    s.is_ours = True
    name = c.name()
    statistics = not c.took("NO", "STATISTICS")
    columns = None
    if c.took("PARTITIONED"):
        c.need("BY")
        columns = c.group().text
    if c.took("NO", "STATISTICS"):
        statistics = False
    c.end()

    def run() -> DataFrame:
        path = path_in(name.parts)
        if path is not None:  # a table already, or an error that there is none
            DeltaTable.forPath(s.spark, path)
            return s.nothing()
        text = f"{name.parts[0]}.`{name.parts[-1]}`" if len(name.parts) > 1 else name.text
        convert_to_delta(
            parquet_folder(text),
            partition_schema(s.spark, columns),
            conf=session_conf(s.spark),
            collect_stats=statistics,
        )
        return s.nothing()

    return run
