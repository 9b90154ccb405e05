"""Values of rows for JSON, CSV and cells: exact, and the same in each of them."""

from __future__ import annotations

import base64
import json
import math
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from lakelog.core.engine.values import python_value

if TYPE_CHECKING:
    from collections.abc import Iterator

_WORDS = {math.inf: "Infinity", -math.inf: "-Infinity"}


def json_rows(table: pa.Table) -> Iterator[dict[str, Any]]:
    """The rows, by column, with values that JSON has.

    Decimals and what is not a finite number come as text, so that no digit is lost; binary as
    base64; times as ISO 8601, with `Z` where they are a moment; a map as an object by the texts of
    its keys.
    """
    names, columns = table.column_names, table.columns
    for row in range(table.num_rows):
        yield {
            name: _json(python_value(column[row]), column.type)
            for name, column in zip(names, columns, strict=True)
        }


def text_of(value: Any) -> str:
    """A value of `json_rows` as one text: nested ones as JSON, null as nothing."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, dict | list):
        return json.dumps(value, ensure_ascii=False)
    return str(value)


def _json(value: Any, kind: Any) -> Any:
    types = pa.types
    match value:
        case None | bool() | int() | str():
            return value
        case float():
            return value if math.isfinite(value) else _WORDS.get(value, "NaN")
        case Decimal():
            return f"{value:f}"
        case bytes():
            return base64.b64encode(value).decode()
        case datetime():
            return _moment(value)
        case date():
            return value.isoformat()
    if types.is_map(kind):
        return {
            text_of(_json(key, kind.key_type)): _json(item, kind.item_type) for key, item in value
        }
    if types.is_struct(kind):
        return {field.name: _json(value[field.name], field.type) for field in kind}
    if types.is_list(kind) or types.is_large_list(kind):
        return [_json(each, kind.value_type) for each in value]
    return str(value)


def _moment(value: datetime) -> str:
    if value.tzinfo is None:
        return value.isoformat()
    return value.astimezone(UTC).replace(tzinfo=None).isoformat() + "Z"
