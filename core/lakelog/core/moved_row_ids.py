"""Rows that move to another file take their ids along.

Two columns of the file carry them, under the names that the table's metadata has for it
(PROTOCOL.md, "Row Tracking", "Materialized columns"). A row without a value there has the id that
follows from its file and its position in it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from lakelog.core.compute import pc
from lakelog.core.row_tracking import is_row_tracking_enabled
from lakelog.core.row_tracking_names import materialized_names
from lakelog.core.schema import PrimitiveType, StructField, StructType

if TYPE_CHECKING:
    from lakelog.core.actions import AddFile
    from lakelog.core.snapshot import Snapshot

__all__ = ["MovedRowIds"]

_LONG = PrimitiveType("long")


class MovedRowIds:
    """Reads the ids of rows, and puts them beside the rows where these are written again."""

    def __init__(self, row_id: str, version: str) -> None:
        """Take the names; `of` is the way to get one.

        Args:
            row_id: the column of the ids.
            version: the column of the versions in which the rows came or changed.
        """
        self._row_id = row_id
        self._version = version

    @classmethod
    def of(cls, snapshot: Snapshot) -> MovedRowIds | None:
        """`None` where nobody relies on ids, or files can't carry them.

        With column mapping by id each column goes by its field id, and these two have none.
        """
        if not is_row_tracking_enabled(snapshot.protocol, snapshot.metadata):
            return None
        names = materialized_names(snapshot.metadata)
        if names is None or snapshot.properties.column_mapping_mode == "id":
            return None
        return cls(*names)

    def beside(self, schema: StructType) -> StructType:
        """A schema with the two columns behind its own."""
        return StructType(
            (*schema, StructField(self._row_id, _LONG), StructField(self._version, _LONG))
        )

    def numbered(self, rows: pa.Table, add: AddFile, start: int) -> pa.Table:
        """Rows of a file, with the id and the version that each has.

        Args:
            rows: in the order of the file, with the two columns as the file has them.
            add: the file.
            start: the position of the first of the rows, deleted ones counted.
        """
        if add.base_row_id is not None:
            first = add.base_row_id + start
            places = pa.array(range(first, first + rows.num_rows), pa.int64())
            rows = self._put(rows, self._row_id, pc.coalesce(rows[self._row_id], places))
        if add.default_row_commit_version is None:
            return rows
        versions = pc.fill_null(rows[self._version], add.default_row_commit_version)
        return self._put(rows, self._version, versions)

    def renewed(self, new: pa.Table, old: pa.Table) -> pa.Table:
        """Rows that were changed: they keep the ids of the old ones, and are of this commit.

        Args:
            new: without the two columns.
            old: from `numbered`; the same rows in the same order.
        """
        new = new.append_column(self._row_id, old[self._row_id])
        return new.append_column(self._version, pa.nulls(new.num_rows, pa.int64()))

    @staticmethod
    def _put(rows: pa.Table, name: str, values: object) -> pa.Table:
        return rows.set_column(rows.column_names.index(name), name, values)
