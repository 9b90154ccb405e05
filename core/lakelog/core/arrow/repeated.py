"""Repeating one value for many rows, where a string would not fit into one array."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

_MOST_BYTES = 1 << 30
"""Bytes of text in one array; 32-bit offsets would allow twice as much."""


def repeated(value: pa.Scalar[Any], count: int) -> pa.ChunkedArray[Any]:
    """The value as often as there are rows; a long text in several chunks."""
    size = 1
    if value.is_valid and isinstance(value, pa.StringScalar | pa.BinaryScalar):
        size = max(value.as_buffer().size, 1)
    most = max(_MOST_BYTES // size, 1)
    full, rest = divmod(count, most)
    # The chunks share their memory.
    whole = [pa.repeat(value, most)] * full if full else []
    return pa.chunked_array([*whole, pa.repeat(value, rest)], type=value.type)
