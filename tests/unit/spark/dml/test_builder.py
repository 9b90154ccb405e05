from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from lakelog.core.errors import DeltaAnalysisError
from lakelog.spark.dml.merge_builder import DeltaMergeBuilder, merge_builder


def begun(condition: Any = "t.id = s.id", source: Any = None) -> DeltaMergeBuilder:
    frame = SimpleNamespace(sparkSession=None, schema=None) if source is None else source
    return merge_builder(cast("Any", None), cast("Any", None), "t", cast("Any", frame), condition)


def test_a_clause_that_sets_nothing_is_refused() -> None:
    with pytest.raises(DeltaAnalysisError, match="names no column"):
        begun().whenMatchedUpdate(set={})


def test_each_method_adds_a_clause_and_leaves_the_builder_as_it_was() -> None:
    start = begun()
    made = (
        start.whenMatchedUpdate("a", {"n": "1"})
        .whenMatchedUpdateAll("b")
        .whenMatchedDelete()
        .whenNotMatchedInsert(values={"n": "2"})
        .whenNotMatchedInsertAll("c")
        .whenNotMatchedBySourceUpdate(set={"n": "3"})
        .whenNotMatchedBySourceDelete("d")
        .withSchemaEvolution()
    )
    shown = [(c.when, c.action, c.condition, c.values) for c in made._merge.clauses]
    assert shown == [
        ("matched", "update", "a", {"n": "1"}),
        ("matched", "update", "b", None),
        ("matched", "delete", None, None),
        ("not matched", "insert", None, {"n": "2"}),
        ("not matched", "insert", "c", None),
        ("not matched by source", "update", None, {"n": "3"}),
        ("not matched by source", "delete", "d", None),
    ]
    assert made._merge.evolves
    assert not start._merge.evolves
    assert not start._merge.clauses
