"""Rows: what a table asks of each, and what it fills in.

`table_constraints` are the conditions that each row must meet; `generation_of`, `identity_of` and
`default_of` say how a column is filled that an INSERT leaves out. An engine that evaluates them
raises `ConstraintViolationError` before it commits. `MovedRowIds` are the columns by which rows
that move to another file keep their ids.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from lakelog.core.lazy_names import lazy_names

if TYPE_CHECKING:
    from lakelog.core.features.identity_columns import missing_identities
    from lakelog.core.rows.constraints import table_constraints
    from lakelog.core.rows.filling import check_fillable
    from lakelog.core.rows.moved_row_ids import MovedRowIds
    from lakelog.core.schema.column_fills import (
        HIGH_WATER_MARK,
        Identity,
        default_of,
        generation_of,
        identity_of,
        is_filled,
    )
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "features.identity_columns": "missing_identities",
            "rows.constraints": "table_constraints",
            "rows.filling": "check_fillable",
            "rows.moved_row_ids": "MovedRowIds",
            "schema.column_fills": (
                "HIGH_WATER_MARK Identity default_of generation_of identity_of is_filled"
            ),
        },
        below="lakelog.core",
    )
