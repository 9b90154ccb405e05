"""Statistics that a checkpoint has as typed columns alone, as the text that all else reads."""

from __future__ import annotations

import base64
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import orjson
import pyarrow as pa

from lakelog.core.arrays import array_of


def stats_from_struct(stats: pa.StructArray) -> pa.Array[Any]:
    """One JSON text a row; null where the struct is null."""
    texts = [
        None if value is None else orjson.dumps(_json(value)).decode()
        for value in stats.to_pylist()
    ]
    return array_of(texts, pa.string())


def _json(value: Any) -> Any:
    match value:
        case dict():
            return {key: _json(item) for key, item in value.items() if item is not None}
        case list():
            return [_json(item) for item in value]
        case Decimal():
            # A float would change the bound.
            return orjson.Fragment(format(value, "f"))
        case datetime():
            return _timestamp_text(value)
        case date():
            return value.isoformat()
        case bytes():
            return base64.b64encode(value).decode()
    return value


def _timestamp_text(value: datetime) -> str:
    zone = "" if value.tzinfo is None else "Z"
    if value.tzinfo is not None:
        value = value.astimezone(UTC).replace(tzinfo=None)
    return value.isoformat(timespec="milliseconds") + zone
