"""MERGE, and what an UPDATE shares with it: clauses analysed to the values of new rows.

`analyse_merge` and `analyse_update` resolve clauses against the schemas, and say for each column of
a new row where its value comes from (`Kept`, `Given`, `Default`, `Generated`, …), for an engine to
compute; what can't be resolved is a `DeltaAnalysisError`. `run_small_merge` does all of a MERGE in
this process, or gives `None` where that is the engine's.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from lakelog.core.lazy_names import lazy_names

if TYPE_CHECKING:
    from lakelog.core.dml.merge.alignment import aligned, can_store
    from lakelog.core.dml.merge.analysis import MergePlan, NewRow, plan_merge
    from lakelog.core.dml.merge.clauses import (
        MergeClause,
        When,
        merge_parameters,
        takes_many_matches,
    )
    from lakelog.core.dml.merge.merge_job import MergeJob, run_small_merge
    from lakelog.core.dml.merge.metrics import MergeMetrics
    from lakelog.core.dml.merge.new_rows import (
        Built,
        Default,
        Generated,
        Given,
        Kept,
        NewColumn,
        Nothing,
        Numbered,
        Taken,
        Value,
    )
    from lakelog.core.dml.merge.read_predicate import MergeReads
    from lakelog.core.dml.merge.search_condition import column_of
    from lakelog.core.dml.merge.source import MergeSource
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "dml.merge.alignment": "aligned can_store",
            "dml.merge.analysis": "MergePlan NewRow plan_merge",
            "dml.merge.clauses": ("MergeClause When merge_parameters takes_many_matches"),
            "dml.merge.metrics": "MergeMetrics",
            "dml.merge.new_rows": (
                "Built Default Generated Given Kept NewColumn Nothing Numbered Taken Value"
            ),
            "dml.merge.read_predicate": "MergeReads",
            "dml.merge.merge_job": "MergeJob run_small_merge",
            "dml.merge.search_condition": "column_of",
            "dml.merge.source": "MergeSource",
        },
        below="lakelog.core",
    )
