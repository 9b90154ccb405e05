"""What a reader of data files needs to know of a table; `FileLayout` is that for writers."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    import pyarrow as pa

    from lakelog.core.clock import Clock
    from lakelog.core.conf import DeltaConf
    from lakelog.core.expressions.tree import Expression
    from lakelog.core.features.table_properties import TableProperties
    from lakelog.core.schema import StructType
    from lakelog.logstores import LogStore


class TableVersion(Protocol):
    """One version of a table; `Snapshot` is one."""

    @property
    def table(self) -> str:
        """The table's URI."""
        ...

    @property
    def store(self) -> LogStore:
        """The store of the log, which also holds the table's own data files."""
        ...

    @property
    def conf(self) -> DeltaConf:
        """The conf that the table was opened with."""
        ...

    @property
    def clock(self) -> Clock:
        """The time that `current_timestamp()` in a filter returns."""
        ...

    @property
    def version(self) -> int:
        """For messages."""
        ...

    @cached_property
    def read_schema(self) -> StructType:
        """The schema, with the names and ids that data files know its fields by."""
        ...

    @property
    def partition_columns(self) -> list[str]:
        """In the order of the metadata."""
        ...

    @cached_property
    def partition_schema(self) -> StructType:
        """The partition columns, typed."""
        ...

    @cached_property
    def properties(self) -> TableProperties:
        """The table's properties, parsed."""
        ...

    def file_table_for(self, expression: Expression | None, /) -> pa.Table:
        """The files that may hold rows that a bound filter matches, as rows of `FILE_SCHEMA`."""
        ...
