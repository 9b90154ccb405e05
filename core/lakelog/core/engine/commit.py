"""Commits: what a table asks of its writers, and what history says of a commit.

`check_readable` and `check_writable` raise `UnsupportedFeatureError` for a table that this version
can't read or write; call them before any work. `lock_for` says which lock a commit takes, and why.
`write_metrics` and `streaming_metrics` count the files of a commit for its `Operation`,
`preservation_tags` says whether rows kept their ids. `compact_after` has a commit followed by auto
compaction where the table wants it. The commit itself, its conflicts and its outcome are
`OptimisticTransaction`'s.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from lakelog.core.engine import offers

if TYPE_CHECKING:
    from lakelog.core.actions.operation import json_text, streaming_metrics, write_metrics
    from lakelog.core.commit.lock import LockChoice, lock_for
    from lakelog.core.features.clustering import clustering_columns
    from lakelog.core.features.numbered_rows import preservation_tags
    from lakelog.core.features.property_table import KNOWN
    from lakelog.core.features.protocol import check_readable, check_writable, supported_features
    from lakelog.core.features.registry import FEATURES, Support, active_features
    from lakelog.core.maintain.optimize.auto_compaction import compact_after
else:
    __getattr__ = offers(
        __name__,
        {
            "lakelog.core.actions.operation": "json_text streaming_metrics write_metrics",
            "lakelog.core.commit.lock": "LockChoice lock_for",
            "lakelog.core.features.clustering": "clustering_columns",
            "lakelog.core.features.property_table": "KNOWN",
            "lakelog.core.features.protocol": "check_readable check_writable supported_features",
            "lakelog.core.features.registry": "FEATURES Support active_features",
            "lakelog.core.features.numbered_rows": "preservation_tags",
            "lakelog.core.maintain.optimize.auto_compaction": "compact_after",
        },
    )
