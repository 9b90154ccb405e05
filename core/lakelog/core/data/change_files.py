"""Change data files: the rows that a commit changed, apart from those that the table has now.

PROTOCOL.md, "Change Data Files". A commit has them where its added and removed files do not show
by themselves what changed: where rows were copied from one file to another, or updated. Readers
then read only them, so they hold every change of the commit.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pyarrow as pa

from lakelog.core.actions import AddCDCFile
from lakelog.core.arrays import scalar_of
from lakelog.core.data.partition_errors import partition_errors
from lakelog.core.paths import encode_path
from lakelog.core.portable.hive_writer import PartitionedWriter
from lakelog.core.schema import PrimitiveType, StructField, StructType

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import Any

    from lakelog.core.data.file_layout import FileLayout
    from lakelog.logstores import LogStore

CHANGE_FOLDER = "_change_data"
CHANGE_TYPE = "_change_type"
"""The column that says what happened to a row: `insert`, `delete`, `update_preimage` or
`update_postimage`."""


def change_layout(layout: FileLayout) -> FileLayout:
    """The layout of change data files, from that of data files."""
    return replace(
        layout,
        schema=StructType((*layout.schema, StructField(CHANGE_TYPE, PrimitiveType("string")))),
        stats=None,
        options={**layout.options, "folder": CHANGE_FOLDER},
    )


def change_actions(results: Iterable[Sequence[Any]]) -> list[AddCDCFile]:
    """The actions for what `lakelog.core.portable.hive_writer` reported for a `change_layout`."""
    import orjson

    return [
        AddCDCFile(path=encode_path(path), partition_values=orjson.loads(values), size=size)
        for path, size, _, values, *_ in results
    ]


class ChangeFileWriter:
    """Writes changed rows; the actions come when it is closed."""

    def __init__(self, store: LogStore, table: str, layout: FileLayout) -> None:
        """Prepare to write; no file is opened yet.

        Args:
            store: of the table.
            table: its URI.
            layout: of its files of data.
        """
        self._table = table
        self._writer = PartitionedWriter(change_layout(layout).plan(store, table))

    def write(self, rows: pa.Table, change: str) -> None:
        """Write rows with the table's columns that were all changed in the same way."""
        kinds = pa.repeat(scalar_of(change, pa.string()), rows.num_rows)
        with partition_errors(self._table):
            for batch in rows.append_column(CHANGE_TYPE, kinds).to_batches():
                self._writer.write(batch)

    def close(self) -> list[AddCDCFile]:
        """Close the files."""
        with partition_errors(self._table):
            return change_actions(self._writer.close())

    def abort(self) -> None:
        """Delete what was written. Never call it after a commit that may have landed."""
        self._writer.abort()
