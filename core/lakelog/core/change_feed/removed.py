"""Reading what a commit removed while it changed the columns: as the version before stored it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from lakelog.core.data.file_reader import TableFileReader
from lakelog.core.errors import DeltaAnalysisError, VersionNotFoundError
from lakelog.core.features.table_properties import TableProperties
from lakelog.core.schema import StructType
from lakelog.core.schema.columns_before import as_stored_before, columns_of, lossy_columns
from lakelog.core.schema.rules import as_nullable

if TYPE_CHECKING:
    from collections.abc import Collection

    import pyarrow as pa

    from lakelog.core.clock import Clock
    from lakelog.core.conf import DeltaConf
    from lakelog.core.delta_log import DeltaLog
    from lakelog.core.expressions.tree import Expression
    from lakelog.core.state.snapshot import Snapshot
    from lakelog.logstores import LogStore

_MODE = "delta.columnMapping.mode"


class RemovedFiles:
    """Finds and reads the files that a version removed, as rows with the columns of another."""

    def __init__(self, log: DeltaLog, now: Snapshot, columns: Collection[str]) -> None:
        """Nothing is read yet.

        Args:
            log: the table's.
            now: the version whose columns come out.
            columns: some of them.
        """
        self._log = log
        self._now = now
        self._columns = columns

    def of(self, version: int) -> TableFileReader | None:
        """For the files that a version removed; `None` where they are stored as `now` says.

        Raises:
            DeltaAnalysisError: the version before can't be rebuilt any more, or had values that
                the columns don't hold.
        """
        now = self._now
        try:
            then = self._log.snapshot_at(version - 1)
        except VersionNotFoundError as exc:
            raise DeltaAnalysisError(
                f"the changes of version {version} of {now.table} can't be read: it changed the "
                f"columns, and how the files that it removed are stored is in version "
                f"{version - 1}, which can't be rebuilt any more ({exc}). Start from version "
                f"{version + 1}.",
                table=now.table,
                version=version,
            ) from exc
        if _stored(then) == _stored(now):
            return None
        lossy = lossy_columns(now.read_schema, then.read_schema)
        if lossy:
            raise DeltaAnalysisError(
                f"[DELTA_CHANGE_DATA_FEED_INCOMPATIBLE_SCHEMA_CHANGE] the changes of version "
                f"{version} of {now.table} can't be read: it removed rows and changed the type of "
                f"{', '.join(lossy)}, which does not hold all values from before. Start from "
                f"version {version + 1}, after reading what version {version - 1} had.",
                table=now.table,
                version=version,
                columns=lossy,
            )
        view = _Before(then, now)
        read = [each for each in view.read_schema if each.name in self._columns]
        return TableFileReader(view, StructType(tuple(read)), purpose="tell")


def _stored(version: Snapshot) -> tuple[StructType, list[str], str]:
    mode = version.properties.column_mapping_mode
    return version.read_schema, version.partition_columns, mode


@dataclass
class _Before:
    """A version with the columns of a later one: a `TableVersion`."""

    then: Snapshot
    now: Snapshot

    @property
    def table(self) -> str:
        return self.then.table

    @property
    def store(self) -> LogStore:
        return self.then.store

    @property
    def conf(self) -> DeltaConf:
        return self.then.conf

    @property
    def clock(self) -> Clock:
        return self.then.clock

    @property
    def version(self) -> int:
        return self.then.version

    @cached_property
    def read_schema(self) -> StructType:
        return as_nullable(as_stored_before(self.now.read_schema, self.then.read_schema))

    @property
    def partition_columns(self) -> list[str]:
        same = columns_of(self.now.read_schema, self.then.read_schema)
        return [name for name, each in same.items() if each.name in self.then.partition_columns]

    @cached_property
    def partition_schema(self) -> StructType:
        by = self.partition_columns
        return StructType(tuple(each for each in self.read_schema if each.name in by))

    @cached_property
    def properties(self) -> TableProperties:
        # The names of the schema are those of the files in any case.
        mode = self.then.properties.column_mapping_mode
        return TableProperties({_MODE: "id" if mode == "id" else "name"})

    def file_table_for(self, expression: Expression | None, /) -> pa.Table:
        return self.then.file_table_for(expression)
