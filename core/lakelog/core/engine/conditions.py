"""Conditions: what a filter says, which files it leaves, what the log answers by itself.

`normalize_filter` takes SQL text, pyarrow's tuples or a tree, and gives the tree that is bound to a
schema; it raises `InvalidPredicateError` for text with a part that only Spark evaluates.
`keep_files` never leaves out a file that may hold a row for which the condition is true;
`matching_files`, for writers, never takes one whose partition value it does not understand.
`known_count` and `known_extreme` answer by statistics alone, or give `None`. `text_limit` is how
much text a function may make.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from lakelog.core.lazy_names import lazy_names

if TYPE_CHECKING:
    from lakelog.core.data.answers import known_count, known_extreme
    from lakelog.core.expressions.context import EvalContext
    from lakelog.core.expressions.filter import normalize_filter
    from lakelog.core.expressions.parse.sql import parse_sql
    from lakelog.core.expressions.prune import keep_files
    from lakelog.core.expressions.sql_text import to_sql
    from lakelog.core.expressions.stored_sql import check_stored
    from lakelog.core.expressions.tree import (
        Column,
        Compare,
        Comparison,
        In,
        IsNull,
        Literal,
        Name,
        Not,
        StartsWith,
        columns,
        conjuncts,
        is_partition_only,
        join_and,
        names,
        renamed,
        walk,
    )
    from lakelog.core.expressions.values.by_rows import text_limit
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "data.answers": "known_count known_extreme",
            "expressions.context": "EvalContext",
            "expressions.filter": "normalize_filter",
            "expressions.parse.sql": "parse_sql",
            "expressions.prune": "keep_files",
            "expressions.sql_text": "to_sql",
            "expressions.stored_sql": "check_stored",
            "expressions.tree": (
                "Column Compare Comparison In IsNull Literal Name Not StartsWith columns conjuncts "
                "is_partition_only join_and names renamed walk"
            ),
            "expressions.values.by_rows": "text_limit",
        },
        below="lakelog.core",
    )
