"""What `delta.tables` refuses for its type is refused here too, and before anything is run."""

from __future__ import annotations

import inspect
import re
from typing import Any, cast

import pytest
from pyspark.sql.types import IntegerType, StructField

from lakelog.core.errors import DeltaAnalysisError
from lakelog.spark import DeltaTable, IdentityGenerator
from lakelog.spark.dml.merge_builder import DeltaMergeBuilder, merge_builder
from lakelog.spark.session.argument_checks import WrongTypeError
from lakelog.spark.table.optimization import DeltaOptimizeBuilder
from lakelog.spark.table.table_builder import DeltaTableBuilder, builder


class _Untouched:
    """A session, log or frame that nothing may be asked of."""

    createDataFrame = schema = sparkSession = None  # noqa: N815  # what tells a session or frame

    def __getattr__(self, name: str) -> Any:
        raise AssertionError(f"{name} was used before the arguments were checked")


ANYTHING: Any = _Untouched()
EXTRA = """
    addColumns addConstraint alterColumn clusterBy dropColumns dropConstraint renameColumn
    replaceColumns setProperties syncIdentity unsetProperties
"""
"""Methods that delta-spark lacks; the core checks what they take."""
FITTING: dict[str, Any] = {
    "str": "a",
    "int": 1,
    "bool": True,
    "float": 1.0,
    "Mapping[str, str | Column]": {"a": "1"},
    "Mapping[str, SqlOrColumn]": {"a": "1"},
    "Mapping[str, str]": {"a": "b"},
    "SparkSession": ANYTHING,
    "DataFrame": ANYTHING,
    "SparkDataType": "int",
    "SparkStructType": [],
    "IdentityGenerator": IdentityGenerator(),
}
UNFIT: dict[str, tuple[Any, ...]] = {
    "str": (12, ["a"], {}, b"a"),
    "int": ("0", "abc", [1], {}, 1.5, True),
    "bool": (1, "true", [], {}),
    "Mapping[str, str | Column]": (1, "a", ["a"], {1: "a"}, {"a": 1}, {"a": None}),
    "Mapping[str, SqlOrColumn]": (1, "a", ["a"], {1: "a"}, {"a": 1}, {"a": None}),
    "Mapping[str, str]": (10, ["a"], {1: "a"}, {"key": 10}),
    "Column": (1, ["a"], {"a": "b"}, True),
    "SparkSession": (None, "spark", 1),
}


def opened() -> DeltaTable:
    return DeltaTable(ANYTHING, ANYTHING)


def made() -> DeltaTableBuilder[Any]:
    return builder(ANYTHING, "create", ANYTHING)


def merged() -> DeltaMergeBuilder:
    return merge_builder(ANYTHING, ANYTHING, None, ANYTHING, "a = b")


def optimized() -> DeltaOptimizeBuilder:
    return DeltaOptimizeBuilder(ANYTHING, ANYTHING)


def _cases() -> list[Any]:
    """A method, and arguments of which one has another type than its annotation says."""
    found = []
    for make in (opened, made, merged, optimized):
        owner = type(make())
        for name, member in inspect.getmembers(owner, callable):
            if name.startswith("_") or (owner is DeltaTable and name in EXTRA.split()):
                continue
            parameters = inspect.signature(member).parameters
            for wrong, parameter in parameters.items():
                kinds = set(str(parameter.annotation).split(" | ")) | {str(parameter.annotation)}
                if "SqlOrColumn" in kinds or {"str", "Column"} <= kinds:
                    kinds = {"Column"}
                unfit = [each for kind in kinds for each in UNFIT.get(kind, ())]
                if parameter.kind is not parameter.POSITIONAL_OR_KEYWORD or wrong == "self":
                    continue
                unfit = [each for each in unfit if each is not parameter.default]
                found += [
                    pytest.param(make, name, wrong, each, id=f"{name}-{wrong}-{each!r}")
                    for each in unfit
                ]
    return found


def _fitting(parameter: inspect.Parameter) -> Any:
    kinds = [str(parameter.annotation), *str(parameter.annotation).split(" | ")]
    return next(FITTING[each] for each in kinds if each in FITTING)


@pytest.mark.parametrize(("make", "name", "wrong", "value"), _cases())
def test_a_wrong_type_is_a_type_error_before_anything_runs(
    make: Any, name: str, wrong: str, value: Any
) -> None:
    method = getattr(make(), name)
    given = {}
    for each, parameter in inspect.signature(method).parameters.items():
        if each == wrong:
            given[each] = value
        elif (
            parameter.default is parameter.empty and parameter.kind is not parameter.VAR_POSITIONAL
        ):
            given[each] = _fitting(parameter)
    if name.startswith("when") and wrong == "condition":
        given |= {k: {"a": "1"} for k in ("set", "values") if k in _names(method)}
    if name == "update" and wrong == "condition":
        given["set"] = {"a": "1"}
    with pytest.raises(TypeError) as caught:
        method(**given)
    # As delta-spark, which says ValueError of some of them.
    assert isinstance(caught.value, WrongTypeError)
    assert isinstance(caught.value, ValueError)


def _names(method: Any) -> set[str]:
    return {*inspect.signature(method).parameters}


def test_the_walk_meets_every_method_of_delta_sparks() -> None:
    met = {each.values[1] for each in _cases()}
    there = """
        forPath forName convertToDelta isDeltaTable delete update merge history generate alias
        restoreToVersion restoreToTimestamp clone cloneAtVersion cloneAtTimestamp
        upgradeTableProtocol addFeatureSupport dropFeatureSupport tableName location comment
        addColumn property where whenMatchedUpdate whenMatchedUpdateAll whenMatchedDelete
        whenNotMatchedInsert whenNotMatchedInsertAll whenNotMatchedBySourceUpdate
        whenNotMatchedBySourceDelete
    """
    assert met >= {*there.split()}


@pytest.mark.parametrize("given", [(1,), (1, "1"), ([1],), ("a", ["b", None])])
@pytest.mark.parametrize("name", ["partitionedBy", "clusterBy", "executeZOrderBy"])
def test_names_of_columns_are_strings(name: str, given: tuple[Any, ...]) -> None:
    begun: Any = optimized() if name == "executeZOrderBy" else made()
    with pytest.raises(TypeError, match=r"column must be str\. Found (1|None) with type"):
        getattr(begun, name)(*given)


def test_names_of_columns_come_one_by_one_or_in_a_list() -> None:
    begun = made().partitionedBy("a", "b").clusterBy(["c", "d"])
    assert (begun._partition_by, begun._cluster_by) == (["a", "b"], ["c", "d"])
    assert made().partitionedBy(("a", "b"))._partition_by == ["a", "b"]


@pytest.mark.parametrize(
    "call",
    [
        lambda: made().addColumns(cast("Any", 1)),
        lambda: made().addColumns(cast("Any", [StructField("a", IntegerType()), 1])),
        lambda: made().addColumns(cast("Any", "a INT")),
        lambda: made().addColumn("a", cast("Any", 1)),
        lambda: made().addColumn("a", "int", generatedAlwaysAs=cast("Any", 1)),
        lambda: made().addColumn("a", "int", generatedByDefaultAs=cast("Any", "")),
        lambda: made().property("a", cast("Any", True)),
    ],
    ids=map(str, range(7)),
)
def test_a_column_or_property_of_another_type_is_a_type_error(call: Any) -> None:
    with pytest.raises(TypeError, match="must be"):
        call()


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: opened().update(cast("Any", {"value": "200"})), "'set' cannot be None"),
        (lambda: opened().update(condition="a"), "'set' cannot be None"),
        (lambda: merged().whenMatchedUpdate(cast("Any", 1)), "'set' in whenMatchedUpdate cannot"),
        (lambda: merged().whenNotMatchedInsert("a"), "'values' in whenNotMatchedInsert cannot"),
        (lambda: opened().merge(cast("Any", None), "a"), "'source' in merge cannot be None"),
        (lambda: opened().merge(ANYTHING, cast("Any", None)), "'condition' in merge cannot be"),
    ],
    ids=map(str, range(6)),
)
def test_what_is_missing_is_a_value_error_and_no_type_error(call: Any, said: str) -> None:
    with pytest.raises(ValueError, match=said) as caught:
        call()
    assert isinstance(caught.value, DeltaAnalysisError)
    assert not isinstance(caught.value, TypeError)


SAID = {
    "version needs to be an int but got '<class 'str'>'": lambda: opened().restoreToVersion(
        cast("Any", "0")
    ),
    "timestamp needs to be a string but got '<class 'int'>'": lambda: opened().restoreToTimestamp(
        cast("Any", 1)
    ),
    "featureName needs to be a string": lambda: opened().addFeatureSupport(cast("Any", [])),
    "truncateHistory needs to be a boolean": lambda: opened().dropFeatureSupport(
        "a", cast("Any", 0)
    ),
    "properties needs to be a dict": lambda: opened().clone("a", properties=cast("Any", 3)),
    "All property values including 10 needs": lambda: opened().clone(
        "a", properties=cast("Any", {"a": 10})
    ),
    "Values of dict in 'set' must contain only": lambda: opened().update(set=cast("Any", {"a": 1})),
    "Keys of dict in 'set' must contain only": lambda: opened().update(set=cast("Any", {1: "a"})),
    "must be a Spark SQL Column or a string": lambda: opened().update(cast("Any", 1), {}),
    "Type of 'source' in merge must be DataFrame": lambda: opened().merge(cast("Any", 1), "a"),
}


@pytest.mark.parametrize("said", SAID)
def test_the_words_are_those_of_delta_spark(said: str) -> None:
    with pytest.raises(WrongTypeError, match=re.escape(said)):
        SAID[said]()
