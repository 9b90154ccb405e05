"""Data so small that a Spark job of its own to write it costs more than the data.

Rows that the driver gets cheaply are fetched as Arrow and written by pyarrow: for one
row that is three times faster than Spark's Parquet writer. Only cheap plans are run (no file, no
shuffle, no Python function), and only for a bounded number of rows: if there are more the answer is
dropped and the job runs as usual.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from lakelog.core.engine.schemas import as_nullable
from lakelog.core.schema import StructType
from lakelog.spark.session.session import is_connect
from lakelog.spark.types.spark_types import to_spark_schema

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa
    from pyspark.sql import DataFrame

_MOST_LOCAL_ROWS = 100_000
"""For a relation that the driver already holds."""
_MOST_COMPUTED_ROWS = 1_000
"""For one that tasks must compute first, and would compute again if there are more rows."""
_MOST_RDD_ROWS = 100
"""For one that may come from a Python function, whose rows may be expensive."""
_MOST_BATCHES = 4
"""In which the driver sent its rows, 1,024 in each at most: so few need no limit, which costs half
of the job."""
_MOST_TASKS = 4
"""More tasks than this, most of them without a row, take longer than a limit."""
_RESULT_SIZE = "spark.driver.maxResultSize"
_CHEAP_NODES = frozenset(
    [
        "Filter",
        "GlobalLimit",
        "LocalLimit",
        "LocalRelation",
        "LogicalRDD",
        "OneRowRelation",
        "Project",
        "Range",
        "Union",
    ]
)
_SAME_ROWS = frozenset(["Filter", "LogicalRDD", "Project"])
"""Nodes that make no more rows of those below."""
_CHEAP_CONNECT_NODES = frozenset(
    [
        "CachedLocalRelation",
        "Limit",
        "LocalRelation",
        "Project",
        "Range",
        "SubqueryAlias",
        "ToDF",
    ]
)
_NODE = re.compile(r"^[\s:|+\-]*(?:~\s*)?(\w+)", re.MULTILINE)


def fetched_if_small(
    frame: DataFrame, source: DataFrame | None = None, few: DataFrame | None = None
) -> pa.Table | None:
    """The rows as an Arrow table if they are few and cheap to fetch, else `None`.

    Args:
        frame: what to fetch.
        source: the frame that it is a projection of.
        few: what to fetch instead; the same rows, as cheap where there are few.
    """
    source = frame if source is None else source
    wanted = frame if few is None else few
    if source.isLocal():
        return _fetched(wanted, _MOST_LOCAL_ROWS)
    # One task's rows need a node of their own, which alone says nothing about their cost.
    nodes = _cheap_nodes(frame if few is None else source)
    if not nodes:
        return None
    if "LogicalRDD" not in nodes:
        return _fetched(wanted, _MOST_COMPUTED_ROWS)
    if few is None and nodes <= _SAME_ROWS and _is_sent_in_few_batches(source):
        return arrow_of(frame)
    # A limit over several partitions needs a shuffle, over one it doesn't; and of rows that the
    # driver itself sent, one task's share is small, however many there are.
    return _fetched(wanted if few is not None else wanted.coalesce(1), _MOST_RDD_ROWS)


def fetched_if_held(frame: DataFrame) -> pa.Table | None:
    """All of the rows; `None` if they are more than `spark.driver.maxResultSize` lets through.

    They are computed as a whole: a query with state would lose some of it otherwise.
    """
    try:
        return arrow_of(frame)
    except Exception as exc:  # Spark has no class of its own for it
        if _RESULT_SIZE not in str(exc):
            raise
        return None


def _fetched(frame: DataFrame, most: int) -> pa.Table | None:
    table = arrow_of(frame.limit(most + 1))
    return table if table.num_rows <= most else None


def arrow_of(frame: DataFrame) -> pa.Table:
    """The rows, fetched.

    A struct that is null in a row, and whose fields never are, is more than PySpark's own
    conversion takes: then the fields are declared nullable first.
    """
    import pyarrow as pa

    try:
        return frame.toArrow()
    except pa.ArrowInvalid:
        loose = as_nullable(StructType.from_json(frame.schema.json()))
        return frame.to(to_spark_schema(loose)).toArrow()


def _cheap_nodes(frame: Any) -> set[str]:
    """The optimised plan's nodes, if they only project and filter rows from the driver.

    PySpark has no public name for the plan. Where it is not available the result is empty and the
    ordinary write follows: only speed depends on it.
    """
    try:
        if is_connect(frame):
            nodes = {type(each).__name__ for each in _connect_plans(frame._plan)}
            return nodes if nodes <= _CHEAP_CONNECT_NODES else set()
        plan = frame._jdf.queryExecution().optimizedPlan()
        nodes = set(_NODE.findall(plan.toString()))
        cheap = nodes <= _CHEAP_NODES and ("LogicalRDD" not in nodes or _from_driver(plan))
    except Exception:  # anything that a JVM object may raise: the plan stays unknown
        return set()
    return nodes if cheap else set()


def _connect_plans(plan: Any) -> Iterator[Any]:
    """A Connect client's plan and those below it; it does not show what the server makes of it."""
    while plan is not None:
        yield plan
        plan = plan._child


def _from_driver(plan: Any) -> bool:
    """Whether every RDD below is a collection that the driver sent, as `createDataFrame` makes.

    Anything else, above all the batch of a stateful stream, may not be run in part.
    """
    leaves = plan.collectLeaves()
    for index in range(leaves.size()):
        leaf = leaves.apply(index)
        if leaf.nodeName() != "LogicalRDD":
            continue
        lineage = leaf.rdd().toDebugString().strip().splitlines()
        if any("StateStore" in line for line in lineage):
            return False
        if "ParallelCollectionRDD" not in lineage[-1] or any("+-" in line for line in lineage):
            return False
    return True


def _is_sent_in_few_batches(frame: Any) -> bool:
    """Whether the driver sent so few rows, by `createDataFrame`, that all may be fetched."""
    try:
        leaves = frame._jdf.queryExecution().optimizedPlan().collectLeaves()
        if leaves.size() != 1:
            return False
        rdd = leaves.apply(0).rdd()
        while (below := rdd.dependencies()).size():
            rdd = below.apply(0).rdd()
        tasks = rdd.partitions()
        return (
            len(tasks) <= _MOST_TASKS
            and sum(each.values().size() for each in tasks) <= _MOST_BATCHES
        )
    except Exception:  # anything that a JVM object may raise: the number stays unknown
        return False
