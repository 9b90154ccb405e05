"""Row ids of rows that are moved to another file.

Two columns of the file carry them, under the names that the table's metadata has for it
(PROTOCOL.md, "Row Tracking", "Materialized columns"). A row without a value there has the id that
follows from its file and its position in it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from lakelog.core.arrays import integers
from lakelog.core.compute import pc
from lakelog.core.metadata.row_tracking_rules import materialized_names
from lakelog.core.schema import PrimitiveType, StructField, StructType

if TYPE_CHECKING:
    from lakelog.core.actions import AddFile
    from lakelog.core.state.snapshot import Snapshot

_LONG = PrimitiveType("long")


class MovedRowIds:
    """Reads the ids of rows, and adds them to the rows where these are rewritten."""

    def __init__(self, row_id: str, version: str) -> None:
        """Take the names; use `from_snapshot` to get one.

        Args:
            row_id: the column of the ids.
            version: the column of the versions in which the rows came or changed.
        """
        self._row_id = row_id
        self._version = version

    @classmethod
    def from_snapshot(cls, snapshot: Snapshot) -> MovedRowIds | None:
        """The names from a table; `None` where no reader relies on ids.

        Even with column mapping by id these two are found by their names: they have no field id.
        """
        if not snapshot.terms.is_row_tracking_enabled:
            return None
        names = materialized_names(snapshot.metadata)
        return None if names is None else cls(*names)

    def add_id_columns(self, schema: StructType) -> StructType:
        """A schema with the two columns after its own."""
        return StructType(
            (*schema, StructField(self._row_id, _LONG), StructField(self._version, _LONG))
        )

    def with_row_ids(self, rows: pa.Table, add: AddFile, start: int) -> pa.Table:
        """Rows of a file, with the id and the version that each has.

        Args:
            rows: in the order of the file, with the two columns as the file has them.
            add: the file.
            start: the position of the first of the rows, deleted ones counted.
        """
        if add.base_row_id is not None:
            first = add.base_row_id + start
            places = integers(range(first, first + rows.num_rows), pa.int64())
            rows = self._put(rows, self._row_id, pc.coalesce(rows[self._row_id], places))
        if add.default_row_commit_version is None:
            return rows
        versions = pc.fill_null(rows[self._version], add.default_row_commit_version)
        return self._put(rows, self._version, versions)

    def carry_over_ids(self, new: pa.Table, old: pa.Table) -> pa.Table:
        """Updated rows with the ids of the old ones; their version is that of this commit.

        Args:
            new: without the two columns.
            old: from `with_row_ids`; the same rows in the same order.
        """
        new = new.append_column(self._row_id, old[self._row_id])
        return new.append_column(self._version, pa.nulls(new.num_rows, pa.int64()))

    def without_ids(self, new: pa.Table) -> pa.Table:
        """Inserted rows, which get theirs by their places in the new file."""
        nothing = pa.nulls(new.num_rows, pa.int64())
        return new.append_column(self._row_id, nothing).append_column(self._version, nothing)

    @staticmethod
    def _put(rows: pa.Table, name: str, values: object) -> pa.Table:
        return rows.set_column(rows.column_names.index(name), name, values)
