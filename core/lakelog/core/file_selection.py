"""Which live files a filter leaves over, as a thing that can travel."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from lakelog.core.pruning import keep_files

if TYPE_CHECKING:
    import pyarrow as pa

    from lakelog.core.expressions import Expression
    from lakelog.core.file_state import FileState
    from lakelog.core.schema import StructType

__all__ = ["FileSelection"]


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
        """For each of these rows of `FILE_SCHEMA` whether it is among them.

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

    def of(self, rows: pa.Table) -> pa.Table:
        """Those of these rows of `FILE_SCHEMA`.

        Raises:
            InvalidPredicateError: the filter names an unknown column.
        """
        return rows.filter(self.mask(rows))

    def among(self, files: FileState) -> pa.Table:
        """Those of a state's live files, without reading the others here if that can be.

        Raises:
            InvalidPredicateError: the filter names an unknown column.
        """
        found = files.selected(self)
        return self.of(files.live) if found is None else found
