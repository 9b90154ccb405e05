"""Values at the edges of each type that statistics bound, and files of them."""

from __future__ import annotations

import datetime as dt
import math
from decimal import Decimal
from typing import Any

import pyarrow as pa

_MOMENTS = [
    dt.datetime(1, 1, 1, tzinfo=dt.UTC),
    dt.datetime(1969, 12, 31, 23, 59, 59, 999_999, dt.UTC),
    dt.datetime(2024, 1, 1, microsecond=123_456, tzinfo=dt.UTC),
    dt.datetime(9999, 12, 31, 23, 59, 59, 999_999, dt.UTC),
]
_PLAIN = [each.replace(tzinfo=None) for each in _MOMENTS]

EDGES: dict[str, tuple[pa.DataType, list[list[Any]]]] = {
    "boolean": (pa.bool_(), [[True], [False], [True, False], [None, True]]),
    "byte": (pa.int8(), [[-128, None], [127, 0]]),
    "short": (pa.int16(), [[-32768, 32767]]),
    "integer": (pa.int32(), [[-(2**31), 2**31 - 1]]),
    "long": (pa.int64(), [[-(2**63), None, 2**63 - 1], [2**53 + 1]]),
    "float": (
        pa.float32(),
        [[0.10000000149011612, -0.0], [0.0], [math.nan, 1.0], [math.inf, 2.0, None]],
    ),
    "double": (
        pa.float64(),
        [[5e-324, 0.1], [-0.0], [math.nan, 1.5], [-math.inf, 3.0], [None, math.nan]],
    ),
    "decimal(9,2)": (pa.decimal128(9, 2), [[Decimal("-9999999.99"), Decimal("0.01")]]),
    "decimal(38,18)": (
        pa.decimal128(38, 18),
        [[Decimal("0.000000000000000001"), Decimal("9" * 20 + "." + "9" * 18)], [None]],
    ),
    "date": (pa.date32(), [[dt.date(1, 1, 1), None], [dt.date(9999, 12, 31)]]),
    "timestamp": (pa.timestamp("us", "UTC"), [[each] for each in (*_MOMENTS, None)]),
    "timestamp_ntz": (pa.timestamp("us"), [_PLAIN[:3], [_PLAIN[3], None]]),
    "string": (
        pa.string(),
        [["", "a" * 31 + "\U0010ffff" * 40], ["é" * 40, None], ["\U0001f600" * 40], ["A" * 35]],
    ),
    "binary": (pa.binary(), [[b"", b"\xff" * 40], [None]]),
}
"""Type -> its Arrow type and the values of some files."""
