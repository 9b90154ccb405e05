"""Comparing Arrow data with Spark's meaning: NaN equals itself and is above every number."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from lakelog.core.compute import pc

# Not by `pa.scalar`, at the first of which pyarrow imports pandas.
_NULL = pa.nulls(1, pa.bool_())[0]
_FALSE = pa.Array.from_buffers(pa.bool_(), 1, [None, pa.py_buffer(bytes(1))])[0]


def compare(op: str, a: Any, b: Any, *, nans: bool, b_nan: bool | None) -> Any:
    """Compare two operands.

    Args:
        op: the operator.
        a: a column.
        b: a column or a value that is not null.
        nans: whether `a` may be NaN.
        b_nan: whether `b` is NaN; `None` where it is a column that may be.
    """
    if op == "<=>":
        equal = compare("=", a, b, nans=nans, b_nan=b_nan)
        if b_nan is not None:
            return pc.coalesce(equal, _FALSE)
        both = pc.and_kleene(pc.is_null(a), pc.is_null(b))
        return pc.or_kleene(both, pc.coalesce(equal, _FALSE))
    if op == "!=":
        return pc.invert(compare("=", a, b, nans=nans, b_nan=b_nan))
    if op in ("<", "<="):
        return pc.invert(compare(">=" if op == "<" else ">", a, b, nans=nans, b_nan=b_nan))
    plain = {"=": pc.equal, ">": pc.greater, ">=": pc.greater_equal}[op](a, b)
    if not nans and not b_nan:
        return plain
    # Arrow: any comparison with NaN is false. Spark: NaN = NaN, and NaN > every number.
    a_is = pc.is_nan(a)
    if b_nan is False:
        return plain if op == "=" else pc.or_kleene(plain, a_is)
    b_is = pc.is_nan(b)
    if op == "=":
        return pc.or_kleene(plain, pc.and_kleene(a_is, b_is))
    if op == ">=":
        return _and_valid(pc.or_kleene(plain, a_is), a, b)
    return _and_valid(pc.or_kleene(plain, pc.and_kleene(a_is, pc.invert(b_is))), a, b)


def _and_valid(truth: Any, a: Any, b: Any) -> Any:
    """Null where either side is: `NaN >= NULL` is not true."""
    valid = pc.and_kleene(pc.is_valid(a), pc.is_valid(b))
    return pc.if_else(valid, truth, _NULL)
