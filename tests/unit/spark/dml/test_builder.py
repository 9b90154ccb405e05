from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from lakelog.core.errors import DeltaAnalysisError
from lakelog.spark.dml.builder import DeltaMergeBuilder, merge_builder


def begun(condition: Any = "t.id = s.id", source: Any = None) -> DeltaMergeBuilder:
    frame = SimpleNamespace(sparkSession=None, schema=None) if source is None else source
    return merge_builder(cast("Any", None), cast("Any", None), "t", cast("Any", frame), condition)


def test_arguments_are_checked_as_delta_spark_checks_them() -> None:
    nothing: Any = None
    with pytest.raises(ValueError, match="'source' in merge cannot be None"):
        merge_builder(nothing, nothing, None, nothing, "a")
    with pytest.raises(TypeError, match="must be DataFrame"):
        begun(source=[1])
    with pytest.raises(ValueError, match="'condition' in merge cannot be None"):
        begun(nothing)
    with pytest.raises(TypeError, match="condition must be a Spark SQL Column or a string"):
        begun(3)
    with pytest.raises(ValueError, match="'set' cannot be None"):
        begun().whenMatchedUpdate("true")
    with pytest.raises(TypeError, match="'values' must be a dict"):
        begun().whenNotMatchedInsert(values=nothing or cast("Any", ["a"]))
    with pytest.raises(TypeError, match="Keys of the dict in 'set'"):
        begun().whenNotMatchedBySourceUpdate(set=cast("Any", {1: "a"}))
    with pytest.raises(TypeError, match="the value of 'a' in 'set'"):
        begun().whenMatchedUpdate(set=cast("Any", {"a": 1}))
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
