"""Changes that touch no row: columns, constraints, properties, clustering, features.

Each is a function of a table, its URI or its `DeltaLog`, and one commit.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from lakelog.core.lazy_names import lazy_names

if TYPE_CHECKING:
    from lakelog.core.alter.check_constraints import add_constraint, drop_constraint
    from lakelog.core.alter.clustered_by import cluster_by
    from lakelog.core.alter.column_order import replace_columns
    from lakelog.core.alter.columns import change_column, drop_columns, rename_column
    from lakelog.core.alter.feature_removal.drop_feature import drop_feature
    from lakelog.core.alter.identity_numbers import sync_identity
    from lakelog.core.alter.new_columns import add_columns
    from lakelog.core.alter.property_changes import set_properties, unset_properties
    from lakelog.core.alter.row_tracking import enable_row_tracking

__all__ = [
    "add_columns",
    "add_constraint",
    "change_column",
    "cluster_by",
    "drop_columns",
    "drop_constraint",
    "drop_feature",
    "enable_row_tracking",
    "rename_column",
    "replace_columns",
    "set_properties",
    "sync_identity",
    "unset_properties",
]

if not TYPE_CHECKING:  # else a type checker takes every name for one that is here
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "clustered_by": "cluster_by",
            "column_order": "replace_columns",
            "columns": "change_column drop_columns rename_column",
            "check_constraints": "add_constraint drop_constraint",
            "feature_removal.drop_feature": "drop_feature",
            "identity_numbers": "sync_identity",
            "new_columns": "add_columns",
            "property_changes": "set_properties unset_properties",
            "row_tracking": "enable_row_tracking",
        },
    )
