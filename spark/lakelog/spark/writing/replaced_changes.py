"""`replaceWhere` on columns of the data in a table with a change data feed.

The rows that stay go to new files, so removed and added files do not show which rows changed;
change data files do. New rows are read back from the files that hold them by then: computed a
second time they might differ.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from lakelog.core.engine.log import from_add_files
from lakelog.core.engine.write import CHANGE_TYPE
from lakelog.spark.reading.read_files import files_df
from lakelog.spark.types.path_forms import quoted
from lakelog.spark.writing.overwrite import Replaced

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import DataFrame

    from lakelog.core import OptimisticTransaction
    from lakelog.core.actions import AddCDCFile, AddFile
    from lakelog.core.schema import StructType
    from lakelog.spark.writing.write_files import TableFileWriter


@dataclass(frozen=True, slots=True)
class Written:
    """The files of a write, and what they replace."""

    adds: Sequence[AddFile]
    replaced: Replaced
    changes: Sequence[AddCDCFile] = field(default_factory=list)


def write_with_changes(
    txn: OptimisticTransaction,
    rows: DataFrame,
    replaced: Replaced,
    files: TableFileWriter,
    target: StructType,
) -> Written:
    """Write new rows, rows that stay, and what changed.

    Args:
        txn: has the snapshot that the replaced files are of.
        rows: the new ones, with the columns of the table.
        replaced: the files that the condition may match, with rows that stay and rows that go.
        files: writes.
        target: the columns of the table.
    """
    snapshot, spark = txn.snapshot, rows.sparkSession
    assert snapshot is not None
    assert replaced.kept_rows is not None
    assert replaced.deleted_rows is not None
    new = files.write(rows)
    changed = _with_change_type(replaced.deleted_rows, "delete")
    if new:
        # From the new files, not from the rows: planned a second time these may be others (rand(),
        # a source that has grown), and the feed must show what was written.
        inserted = files_df(spark, snapshot, from_add_files(new), schema=target)
        names = map(quoted, target.names)
        changed = changed.union(_with_change_type(inserted.select(*names), "insert"))
    changes = files.write_changes(changed)
    if not changes:
        # No row comes and none goes. Files that are rewritten without change data files
        # would look as if all their rows did both.
        return Written([], Replaced())
    return Written([*new, *files.write(replaced.kept_rows)], replaced, changes)


def _with_change_type(rows: DataFrame, change: str) -> DataFrame:
    return rows.selectExpr("*", f"'{change}' AS {CHANGE_TYPE}")
