"""What this process does by itself, because a Spark job would take longer than the work."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as sf

from lakelog.core.engine.conditions import names, parse_sql
from lakelog.core.engine.merge import MergeJob, MergeSource, run_small_merge
from lakelog.core.engine.schemas import column_path, same_type
from lakelog.core.engine.values import from_arrow_schema
from lakelog.core.errors import DeltaAnalysisError
from lakelog.spark.session.unlogged import analyse
from lakelog.spark.types.path_forms import quoted
from lakelog.spark.types.spark_types import to_delta_schema

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

    from lakelog.core import OptimisticTransaction, RowsChanged
    from lakelog.core.engine.merge import MergePlan
    from lakelog.core.schema import StructType
    from lakelog.spark.dml.merge.request import Merge

HERE_BYTES = 256 << 20
"""Up to so much of the data files, read by this process, is faster than a Spark job."""
HERE_ROWS = 100_000
"""Up to so many rows of a source are fetched."""
_TARGET, _SOURCE = "__lakelog_target", "__lakelog_source"
"""Names of tables that have none."""


_RULES = {
    "spark.sql.ansi.enabled": "true",
    "spark.sql.caseSensitive": "false",
    "spark.sql.legacy.followThreeValuedLogicInArrayExists": "true",
    "spark.sql.legacy.literal.pickMinimumPrecision": "true",
    "spark.sql.legacy.timeParserPolicy": "corrected",
    "spark.sql.timestampType": "timestamp_ltz",
}
"""What a session says of how expressions are evaluated, as lakelog does it."""


def evaluates_as_spark(spark: SparkSession) -> bool:
    """Whether the session evaluates expressions by the rules that lakelog knows."""
    return all(
        str(spark.conf.get(key, default)).lower() == default for key, default in _RULES.items()
    )


def aliases_here(merge: Merge) -> tuple[str, str] | None:
    """What the expressions of a MERGE call its tables.

    Returns:
        The names of the table and of the source; `None` where the MERGE is Spark's because an
        expression has no text, or because the names are not that clear.
    """
    if not evaluates_as_spark(merge.spark):
        return None
    try:
        used = _qualifiers(merge)
    except DeltaAnalysisError:
        return None
    if used is None:
        return None
    target = merge.alias or _TARGET
    names = {name.lower() for name in merge.source.columns}
    if target.lower() in names or (used - {target.lower()}) & names:
        return None  # a struct of the source, or its alias
    others = [name for name in sorted(used - {target.lower()}) if _is_alias(name, merge.source)]
    if len(others) > 1 or "." in target:
        return None
    return target, others[0] if others else _SOURCE


def alias_in_targets(merge: Merge, target: StructType) -> str | None:
    """The source's alias where a clause sets a new column by it: `{"s.more": "s.more"}`.

    Args:
        merge: the MERGE.
        target: the table's schema.
    """
    known = {name.lower() for name in (*target.names, *merge.source.columns, merge.alias or "")}
    for each in merge.clauses:
        for key in each.values or {}:
            path = column_path(key)
            if len(path) > 1 and path[0].lower() not in known and _is_alias(path[0], merge.source):
                return path[0]
    return None


def merged_here(
    txn: OptimisticTransaction,
    merge: Merge,
    plan: MergePlan,
    rows: pa.Table,
    aliases: tuple[str, str],
) -> RowsChanged | None:
    """Carry out a MERGE in this process.

    Args:
        txn: with which Spark goes on where this is not done here.
        merge: the MERGE.
        plan: what its clauses do.
        rows: of its source, all of them.
        aliases: see `aliases_here`.

    Returns:
        `None` where it is Spark's after all; nothing was committed.
    """
    try:
        known = to_delta_schema(merge.source.schema)
        if not same_type(from_arrow_schema(rows.schema), known):
            return None
    except DeltaAnalysisError:
        return None
    job = MergeJob(
        MergeSource(rows),
        str(merge.condition),
        merge.clauses,
        target_alias=aliases[0],
        source_alias=aliases[1],
        evolves=merge.evolves,
        most_bytes=HERE_BYTES,
        plan=plan,
    )
    return run_small_merge(txn, job)


def expressions_of(merge: Merge) -> Iterator[Any]:
    """The conditions and values of a MERGE, as they were given."""
    yield merge.condition
    for each in merge.clauses:
        if each.condition is not None:
            yield each.condition
        yield from (each.values or {}).values()


def _qualifiers(merge: Merge) -> set[str] | None:
    """The names before the first dot of columns, in lower case; `None` beside a Column."""
    found: set[str] = set()
    for each in expressions_of(merge):
        if not isinstance(each, str):
            return None
        found |= {name.path[0].lower() for name in names(parse_sql(each)) if len(name.path) > 1}
    return found


def _is_alias(name: str, source: DataFrame) -> bool:
    """Whether the source's columns can be named after this."""
    from pyspark.errors import AnalysisException

    if not source.columns:
        return False
    try:
        analyse(source.select(sf.col(f"{quoted(name)}.{quoted(source.columns[0])}")))
    except AnalysisException:
        return False
    return True
