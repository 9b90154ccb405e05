"""Which live files a filter selects, as a value that can be sent to other processes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from lakelog.core.expressions.prune import keep_files

if TYPE_CHECKING:
    import pyarrow as pa

    from lakelog.core.expressions.tree import Expression
    from lakelog.core.schema import StructType


@dataclass(frozen=True, slots=True)
class FileSelection:
    """The files that may hold rows for which a filter is true."""

    expression: Expression
    schema: StructType
    """As `Snapshot.read_schema` has it."""
    partition_columns: tuple[str, ...]
    session_tz: str
    """The zone of partition values that name none."""

    def mask(self, rows: pa.Table) -> pa.BooleanArray:
        """For each of these rows of `FILE_SCHEMA`, whether it is selected.

        Raises:
            InvalidPredicateError: the filter names an unknown column.
        """
        found: pa.BooleanArray = keep_files(
            rows,
            self.expression,
            self.schema,
            self.partition_columns,
            session_tz=self.session_tz,
        )
        return found

    def select(self, rows: pa.Table) -> pa.Table:
        """The selected ones of these rows of `FILE_SCHEMA`.

        Raises:
            InvalidPredicateError: the filter names an unknown column.
        """
        return rows.filter(self.mask(rows))
