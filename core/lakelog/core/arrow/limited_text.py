"""Columns of `CHAR(n)` as Arrow data: filled up with spaces, as they are stored and compared."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from lakelog.core.compute import pc
from lakelog.core.schema.char_varchar import limit_of

if TYPE_CHECKING:
    from lakelog.core.schema import StructType

__all__ = ["with_padding"]


def with_padding(rows: pa.Table, schema: StructType) -> pa.Table:
    """Rows with each `CHAR` filled up to its length; strings within other columns stay.

    What is too long stays so, for the rule to refuse it.

    Args:
        rows: columns by the names of `schema`.
        schema: of the columns.
    """
    for field in schema:
        limit, at = limit_of(field), rows.schema.get_field_index(field.name)
        if limit is None or not limit.pads or at < 0:
            continue
        if pa.types.is_string(rows.schema.field(at).type):
            column = pc.utf8_rpad(rows.column(at), limit.length, padding=" ")
            rows = rows.set_column(at, rows.schema.field(at), column)
    return rows
