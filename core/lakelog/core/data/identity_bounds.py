"""The least and the greatest number that data files hold, by their footers.

The statistics of the log are not enough: a table may keep none of the identity column.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lakelog.core.errors import DataFileError
from lakelog.core.features.identity_columns import advanced_mark
from lakelog.core.schema.column_mapping import physical_name

if TYPE_CHECKING:
    from collections.abc import Mapping

    from lakelog.core.schema import StructType
    from lakelog.core.schema.column_fills import Identity


class IdentityBounds:
    """Collects the bounds from the footers of the files that a write made, from any thread."""

    def __init__(self, schema: StructType, sequences: Mapping[str, Identity]) -> None:
        """Start without bounds.

        Args:
            schema: the table's.
            sequences: the columns that the write numbers.
        """
        self._sequences = dict(sequences)
        fields = {name: schema.get(name) for name in sequences}
        self._names = {n: name for name, f in fields.items() if f for n in (physical_name(f), name)}
        self._seen: list[tuple[str, int, int]] = []

    def see(self, footer: Any) -> None:
        """Take one file's footer, a `pyarrow.parquet.FileMetaData`.

        Raises:
            DataFileError: it has rows but no statistics for their numbers.
        """
        for index in range(footer.num_columns):
            name = self._names.get(footer.schema.column(index).path)
            if name is None:
                continue
            for group in range(footer.num_row_groups):
                chunk = footer.row_group(group).column(index)
                found = chunk.statistics
                if not chunk.num_values:
                    continue
                if found is None or not found.has_min_max:
                    raise DataFileError(
                        f"a data file has no statistics for the identity column {name}, so it is "
                        "unknown which numbers are taken. Nothing was committed."
                    )
                self._seen.append((name, found.min, found.max))

    def marks(self) -> dict[str, int]:
        """The new high-water marks of the columns whose numbers were seen."""
        found = {}
        for name, sequence in self._sequences.items():
            bounds = [(least, most) for each, least, most in self._seen if each == name]
            if bounds:
                least, most = min(low for low, _ in bounds), max(high for _, high in bounds)
                found[name] = advanced_mark(sequence, least, most)
        return found
