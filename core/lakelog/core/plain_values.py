"""Converts numpy, pandas and Arrow values to Python values, for arguments and filters."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

MISSING = ("NaTType", "NAType")
"""The nulls of pandas; it needn't be installed."""


def plain_value(value: Any) -> Any:
    """The Python value of a scalar of another library; any other value as it is.

    Raises:
        ValueError: a scalar that Python can't represent, such as a time after the year 9999.
    """
    if type(value).__name__ in MISSING:
        return None
    if type(value).__module__ == "numpy":
        value = _from_numpy(value)
    if not isinstance(value, pa.Scalar):
        return value
    try:
        return value.as_py()
    except (OverflowError, ValueError) as exc:
        raise ValueError(f"Python can't represent this {value.type}: {exc}") from None


def setting_text(value: Any) -> str | None:
    """A setting as Spark's conf has it: `true`, a number's digits, or the text; else `None`."""
    if isinstance(value, str):
        return value
    try:
        found = plain_value(value)
    except ValueError:
        return None
    if isinstance(found, bool):
        return str(found).lower()
    return str(found) if isinstance(found, int | float) else None


def _from_numpy(value: Any) -> Any:
    if getattr(value, "ndim", 0) or not hasattr(value, "item"):
        return value
    plain = value.item()
    if value.dtype.kind == "M" and (plain is None or isinstance(plain, int)):
        # A time with nanoseconds, or one that Python can't represent, is a bare number there.
        unit = value.dtype.str.partition("[")[2].rstrip("]")
        if plain is None or unit not in ("s", "ms", "us", "ns"):
            return _no_time(value, plain)
        return pa.scalar(plain, pa.timestamp(unit))
    if type(plain).__module__ == "numpy":
        raise ValueError(f"{value!r} is too large for a Python number")
    return plain


def _no_time(value: Any, plain: int | None) -> None:
    if plain is not None:
        raise ValueError(f"{value!r} is a time that Python can't represent")
