"""Values as messages show them, those included that Python does not have.

Imports the standard library and pyarrow only: it is sent to executors with `writer`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

if TYPE_CHECKING:
    from typing import Any


def python_value(value: pa.Scalar[Any]) -> Any:
    """The value in Python, or a description of one that Python can't represent.

    Arrow has times and dates beyond the years 1 to 9999, and texts of bytes that are not UTF-8.
    """
    try:
        return value.as_py()
    except (OverflowError, ValueError):
        pass
    kind = value.type
    types = pa.types
    if types.is_date32(kind):
        return f"{value.cast(pa.int32()).as_py()} days from 1970"
    if types.is_timestamp(kind):
        units = {"s": "seconds", "ms": "milliseconds", "us": "microseconds", "ns": "nanoseconds"}
        return f"{value.cast(pa.int64()).as_py()} {units[kind.unit]} from 1970"
    if types.is_string(kind) or types.is_large_string(kind):
        return f"the bytes {value.as_buffer().to_pybytes()!r}"
    return f"a value of type {kind}"
