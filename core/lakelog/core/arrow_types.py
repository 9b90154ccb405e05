"""Delta and Arrow: the types (`arrow_mapping`) and the casts (`arrow_casts`), in one place."""

from __future__ import annotations

from lakelog.core.arrow_casts import cast_batch, cast_table
from lakelog.core.arrow_mapping import (
    from_arrow_schema,
    from_arrow_type,
    to_arrow_field,
    to_arrow_schema,
    to_arrow_type,
)

__all__ = [
    "cast_batch",
    "cast_table",
    "from_arrow_schema",
    "from_arrow_type",
    "to_arrow_field",
    "to_arrow_schema",
    "to_arrow_type",
]
