"""The SQL names of column types, as sqlglot spells them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from lakelog.core.schema import DecimalType

if TYPE_CHECKING:
    from collections.abc import Sequence

_MOST_DIGITS: Final = 9
"""Of a size. Python converts no text of thousands of digits, and says so in a bare ValueError."""
SQL_TYPES: Final = {
    "TINYINT": "byte",
    "SMALLINT": "short",
    "INT": "integer",
    "BIGINT": "long",
    "FLOAT": "float",
    "DOUBLE": "double",
    "BOOLEAN": "boolean",
    "TEXT": "string",
    "BINARY": "binary",
    "DATE": "date",
    "TIMESTAMP": "timestamp",
    "TIMESTAMPTZ": "timestamp",
    "TIMESTAMPLTZ": "timestamp",
    "TIMESTAMPNTZ": "timestamp_ntz",
    "VARIANT": "variant",
}
"""Type of sqlglot -> name of ours. Types with parameters are not among them."""


def size_of(node: Any) -> int | None:
    """What stands in a type's parentheses; `None` of anything but a number that may be one."""
    text = node.name
    is_plain = text.isascii() and text.isdigit() and len(text) <= _MOST_DIGITS
    return int(text) if is_plain and node.args.get("expression") is None else None


def decimal_type(sizes: Sequence[Any]) -> DecimalType | None:
    """`DECIMAL`, `DECIMAL(p)` and `DECIMAL(p, s)`; `None` where they are no sizes.

    Raises:
        DeltaAnalysisError: no decimal has these.
    """
    given = [size for each in sizes if (size := size_of(each)) is not None]
    if len(given) < len(sizes) or len(given) > 2:
        return None
    return DecimalType(*given, *(10, 0)[len(given) :])
