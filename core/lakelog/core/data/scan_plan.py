"""What an engine needs to read the files of a version itself, as Arrow tables that it can join."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

import orjson
import pyarrow as pa

from lakelog.core.arrays import empty_table, integers
from lakelog.core.compute import pc
from lakelog.core.data.file_reader import TableFileReader
from lakelog.core.data.readable_partitions import readable_partitions
from lakelog.core.schema import StructType
from lakelog.logstores.threads import in_order, readers

if TYPE_CHECKING:
    from lakelog.core.data.table_version import TableVersion

_DELETED = pa.schema([("file", pa.int64()), ("row", pa.int64())])


class ScanPlan:
    """The data files that a read takes, which rows of them are gone, and what no file says.

        plan = ScanPlan(snapshot, snapshot.file_table_for("day >= '2024-01-01'"))
        plan.paths, plan.partitions, plan.deleted

    Files are known by their numbers from 0 on, rows by their positions in the file from 0 on,
    deleted ones counted. The files may hold rows for which the condition is false: the engine
    applies it. Columns are found in files by the names and ids that the fields of `read_schema`
    carry.
    """

    def __init__(self, snapshot: TableVersion, files: pa.Table) -> None:
        """Plan a read; no file is opened yet.

        Args:
            snapshot: the version.
            files: rows of its `file_table`.

        Raises:
            CorruptLogError: the log does not say where a deletion vector is.
        """
        self._snapshot = snapshot
        self._files = files
        self._reader = TableFileReader(snapshot, StructType())
        self._found = self._reader.find(files)

    @property
    def paths(self) -> list[str]:
        """Where the storage has each file."""
        return [each.path for each in self._found]

    @cached_property
    def partitions(self) -> pa.Table:
        """The typed values of the partition columns, which files need not have: a row a file.

        Raises:
            CorruptLogError: a value can't be read.
        """
        return readable_partitions(self._snapshot, self._files)

    @cached_property
    def _counts(self) -> list[int | None]:
        return rows_of_files(self._files)

    def gone(self, number: int) -> pa.BooleanArray:
        """Which rows of a file its deletion vector removed, by position.

        Args:
            number: of the file.

        Raises:
            DataFileMissingError: the storage does not have the vector.
            DataFileError: it is damaged, or is of another file.
        """
        return self._reader.gone(self._found[number], self._counts[number])

    @cached_property
    def deleted(self) -> pa.Table:
        """All rows of `gone`, as `file` and `row`; no reader may show them."""

        def rows(number: int) -> pa.Table:
            positions = pc.indices_nonzero(self.gone(number)).cast(pa.int64())
            of_file = integers([number] * len(positions), pa.int64())
            return pa.table([of_file, positions], schema=_DELETED)

        masked = [number for number, each in enumerate(self._found) if each.vector is not None]
        return pa.concat_tables(
            [empty_table(_DELETED), *in_order(rows, masked, readers(), "lakelog-scan")]
        )


def rows_of_files(files: pa.Table) -> list[int | None]:
    """How many rows each file has, deleted ones too, by its statistics; `None` where it has none.

    Args:
        files: rows of `FILE_SCHEMA`.
    """
    found: list[int | None] = []
    for stats in files["stats"].to_pylist():
        try:
            count = orjson.loads(stats or "{}").get("numRecords")
        except (ValueError, AttributeError):
            count = None
        found.append(count if type(count) is int and count >= 0 else None)
    return found
