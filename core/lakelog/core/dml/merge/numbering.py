"""Numbers for the identity columns of inserted rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lakelog.core.features.identity_columns import check_capacity
from lakelog.core.rows.filling import numbered
from lakelog.core.schema.column_fills import identity_of

if TYPE_CHECKING:
    import pyarrow as pa

    from lakelog.core.schema import StructField


class Numbering:
    """Numbers for identity columns, through all batches of one commit."""

    def __init__(self, table: str) -> None:
        """No number is given out yet; `table` is for messages."""
        self._table = table
        self._taken: dict[str, int] = {}
        self.marks: dict[str, int] = {}
        """Column -> its last number, for those that were numbered."""

    def next(self, field: StructField, count: int) -> pa.Array[Any]:
        """So many numbers for a column.

        Raises:
            DeltaAnalysisError: there are not that many left.
        """
        sequence = identity_of(field)
        assert sequence is not None  # the analysis says so
        first = self._taken.get(field.name, sequence.taken)
        if count:
            last = first + count - 1
            check_capacity(field.name, sequence, last, self._table)
            self.marks[field.name] = sequence.value(last)
            self._taken[field.name] = first + count
        return numbered(sequence, first, count)
