"""How many rows of a checkpoint are decoded at once.

Parquet stores a string once and refers to it from any number of rows. Each of them gets a copy when
it is decoded: a file of a few kilobytes may hold more than fits in memory, and nothing in its
footer says so. The longest string of such a column determines how many rows fit.
"""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from lakelog.core.compute import pc

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

MOST_ROWS: Final = 1 << 14
"""Columns of this many are decoded faster than those of a million, and conformed as fast."""
_FAIR: Final = 16
"""Bytes of a file for each of its rows: a random name does not compress to less."""
_BUFFER: Final = 1 << 21
"""Dictionaries are mostly of 1 MB at most."""


def rows_at_once(
    file: Any, source: Any, columns: Iterable[str], groups: Sequence[int], room: int
) -> int:
    """The rows of a batch whose texts fit into memory, and no more than `MOST_ROWS`.

    Args:
        file: a `ParquetFile`.
        source: the open file that it reads.
        columns: `kind` or `kind.field`.
        groups: row groups.
        room: bytes for a batch.

    Raises:
        pyarrow.ArrowException: the file is damaged; as in `read_columns`.
    """
    wanted = tuple(f"{name}." for name in columns)
    leaves = [file.schema.column(index) for index in range(len(file.schema))]
    texts = [
        each.path
        for each in leaves
        if each.physical_type == "BYTE_ARRAY" and f"{each.path}.".startswith(wanted)
    ]
    rows = MOST_ROWS
    # To look into each column of a file as large as its paths would be takes as long as half of it.
    if source.size() >= _FAIR * file.metadata.num_rows:
        return rows
    for group in groups:
        # Nothing is asked about its columns: damaged ones make pyarrow end the process.
        about = file.metadata.row_group(group)
        # No text is longer than all that is stored: in a small file that is little enough.
        if texts and min(rows, about.num_rows) * about.total_byte_size > room:
            length = _longest(file, source, texts, group)
            rows = max(min(rows, room // max(length, 1)), 1)
    return rows


def _longest(file: Any, source: Any, leaves: list[str], group: int) -> int:
    """Bytes of a row that has the longest shared text of each column."""
    import pyarrow.parquet as pq

    # Read in pieces: a column's dictionary is at its beginning.
    texts = pq.ParquetFile(
        source,
        metadata=file.metadata,
        read_dictionary=leaves,
        buffer_size=_BUFFER,
        page_checksum_verification=True,
    )
    first = texts.iter_batches(batch_size=1, row_groups=[group], columns=leaves)
    return sum(_longest_of(column) for batch in islice(first, 1) for column in batch.columns)


def _longest_of(array: pa.Array[Any]) -> int:
    if pa.types.is_dictionary(array.type):
        if not _is_text(array.type.value_type):
            return 0
        return int(pc.max(pc.binary_length(array.dictionary)).as_py() or 0)
    if pa.types.is_struct(array.type):
        return sum(_longest_of(array.field(index)) for index in range(array.type.num_fields))
    if pa.types.is_map(array.type):
        return _longest_of(array.keys) + _longest_of(array.items)
    if pa.types.is_list(array.type):
        return _longest_of(array.values)
    return 0


def _is_text(of: pa.DataType) -> bool:
    return bool(pa.types.is_string(of) or pa.types.is_binary(of))
