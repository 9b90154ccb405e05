"""Schemas: comparing, changing and storing them, and the columns within.

`check_write_compatible` and `merge_schemas` raise `SchemaMismatchError` where rows don't fit a
table, and say why. `physical_name` and its like say how files name a mapped column, `limit_of` how
long a CHAR or VARCHAR may be, `dotted`, `split_path` and `sql_path` spell the path of a field.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from lakelog.core.lazy_names import lazy_names

if TYPE_CHECKING:
    from lakelog.core.schema.assignment import fits_by_name, fitting, named_by_position
    from lakelog.core.schema.char_varchar import (
        MARK,
        limit_of,
        stored_sql,
        with_current_marks,
        without_limits,
    )
    from lakelog.core.schema.column_mapping import (
        mapped_like,
        physical_name,
        physical_path,
        physical_schema,
    )
    from lakelog.core.schema.column_paths import dotted, find_column, split_path, sql_path, walk
    from lakelog.core.schema.diff import TYPES, differences, same_type
    from lakelog.core.schema.edits import column_path, nearest_field
    from lakelog.core.schema.rules import as_nullable, check_holds_rows, check_known
    from lakelog.core.schema.schema_evolution import merge_schemas
    from lakelog.core.schema.type_widening import TYPE_CHANGES
    from lakelog.core.schema.types import holds_months, is_known
    from lakelog.core.schema.upcasts import is_widening, shares_int32
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "schema.assignment": "fits_by_name fitting named_by_position",
            "schema.char_varchar": ("MARK limit_of stored_sql with_current_marks without_limits"),
            "schema.column_mapping": ("mapped_like physical_name physical_path physical_schema"),
            "schema.column_paths": "dotted find_column split_path sql_path walk",
            "schema.diff": "TYPES differences same_type",
            "schema.edits": "column_path nearest_field",
            "schema.schema_evolution": "merge_schemas",
            "schema.rules": "as_nullable check_holds_rows check_known",
            "schema.type_widening": "TYPE_CHANGES",
            "schema.types": "holds_months is_known",
            "schema.upcasts": "is_widening shares_int32",
        },
        below="lakelog.core",
    )
