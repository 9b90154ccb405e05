"""`DeltaMergeBuilder`: the clauses of a MERGE, by the names that delta-spark's class has."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeAlias

from pyspark.sql import Column

from lakelog.core.engine.merge import MergeClause
from lakelog.core.errors import DeltaAnalysisError
from lakelog.spark.dml.merge.merge_command import run_merge
from lakelog.spark.dml.merge.request import Merge
from lakelog.spark.session.argument_checks import (
    check_expression,
    check_expressions_by_name,
    refuse_type,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import DataFrame, SparkSession

    from lakelog.core import DeltaLog
    from lakelog.core.engine.merge import When
    from lakelog.spark.dml.given_frames import GivenFrames

SqlOrColumn: TypeAlias = str | Column


def merge_builder(
    spark: SparkSession,
    log: DeltaLog,
    alias: str | None,
    source: DataFrame,
    condition: SqlOrColumn,
    frames: GivenFrames | None = None,
) -> DeltaMergeBuilder:
    """Begin a MERGE; see `DeltaTable.merge`."""
    if source is None:
        raise DeltaAnalysisError("'source' in merge cannot be None", argument="source")
    if not hasattr(source, "sparkSession") or not hasattr(source, "schema"):
        refuse_type("Type of 'source' in merge must be DataFrame.", source)
    if condition is None:
        raise DeltaAnalysisError("'condition' in merge cannot be None", argument="condition")
    check_expression(condition, "'condition'")
    return DeltaMergeBuilder(Merge(spark, log, alias, source, condition, frames=frames))


@dataclass(frozen=True, slots=True)
class DeltaMergeBuilder:
    """A MERGE that is put together clause by clause; nothing runs before `execute`.

    Each method gives a new builder. Of the clauses for a row the first whose condition is true
    applies, in the order in which they were added. A row of the table that several rows of the
    source match is refused, unless it is only deleted, by one clause without a condition.

    Conditions and values are SQL text or Columns. Those of matched rows see the columns of both
    sides, those of inserted rows the source's, those of rows that the source lacks the table's.
    """

    _merge: Merge

    def whenMatchedUpdate(  # noqa: N802  # delta-spark's name
        self,
        condition: SqlOrColumn | None = None,
        set: Mapping[str, SqlOrColumn] | None = None,  # noqa: A002  # delta-spark's name
    ) -> DeltaMergeBuilder:
        """Update a row of the table that a row of the source matches.

        Args:
            condition: on columns of both; default: always.
            set: column of the table, or a field within a struct, -> its new value.
        """
        check_expressions_by_name(set, "'set' in whenMatchedUpdate")
        return self._with("matched", "update", condition, set)

    def whenMatchedUpdateAll(  # noqa: N802  # delta-spark's name
        self, condition: SqlOrColumn | None = None
    ) -> DeltaMergeBuilder:
        """Give all columns the values of the source's columns of the same names."""
        return self._with("matched", "update", condition)

    def whenMatchedDelete(  # noqa: N802  # delta-spark's name
        self, condition: SqlOrColumn | None = None
    ) -> DeltaMergeBuilder:
        """Delete a row of the table that a row of the source matches."""
        return self._with("matched", "delete", condition)

    def whenNotMatchedInsert(  # noqa: N802  # delta-spark's name
        self,
        condition: SqlOrColumn | None = None,
        values: Mapping[str, SqlOrColumn] | None = None,
    ) -> DeltaMergeBuilder:
        """Insert a row for a row of the source that matches none of the table.

        Args:
            condition: on columns of the source; default: always.
            values: column of the table -> its value. A column that is left out is generated,
                numbered, its default or null.
        """
        check_expressions_by_name(values, "'values' in whenNotMatchedInsert")
        return self._with("not matched", "insert", condition, values)

    def whenNotMatchedInsertAll(  # noqa: N802  # delta-spark's name
        self, condition: SqlOrColumn | None = None
    ) -> DeltaMergeBuilder:
        """Insert such a row with the source's columns of the same names."""
        return self._with("not matched", "insert", condition)

    def whenNotMatchedBySourceUpdate(  # noqa: N802  # delta-spark's name
        self,
        condition: SqlOrColumn | None = None,
        set: Mapping[str, SqlOrColumn] | None = None,  # noqa: A002  # delta-spark's name
    ) -> DeltaMergeBuilder:
        """Update a row of the table that no row of the source matches.

        Args:
            condition: on columns of the table; default: always.
            set: column of the table -> its new value, from columns of the table.
        """
        check_expressions_by_name(set, "'set' in whenNotMatchedBySourceUpdate")
        return self._with("not matched by source", "update", condition, set)

    def whenNotMatchedBySourceDelete(  # noqa: N802  # delta-spark's name
        self, condition: SqlOrColumn | None = None
    ) -> DeltaMergeBuilder:
        """Delete a row of the table that no row of the source matches."""
        return self._with("not matched by source", "delete", condition)

    def withSchemaEvolution(self) -> DeltaMergeBuilder:  # noqa: N802  # delta-spark's name
        """Let the table get the columns and fields that only the source has and clauses assign.

        The conf `spark.databricks.delta.schema.autoMerge.enabled` does so for every MERGE.
        """
        return DeltaMergeBuilder(replace(self._merge, evolves=True))

    def execute(self) -> DataFrame:
        """Run the MERGE, as one commit; where no row changes there is none.

        Returns:
            One row: `num_affected_rows`, `num_updated_rows`, `num_deleted_rows` and
            `num_inserted_rows`.

        Raises:
            DeltaAnalysisError: clauses that can't be, unknown columns, types without a cast, a
                condition that is not deterministic or has a subquery or an aggregate.
            DeltaUnsupportedOperationError: a row of the table that several of the source match.
            ConstraintViolationError: a new row breaks a rule of the table.
            AppendOnlyError: `delta.appendOnly` is set, and a clause updates or deletes.
            DeltaConcurrentModificationException: another writer was faster; nothing was committed.
            CommitOutcomeUnknownError: the storage never confirmed the commit; the files are kept.
            UnsupportedFeatureError: the table has a feature that this version can't write.
        """
        return run_merge(self._merge)

    def _with(
        self,
        when: When,
        action: Any,
        condition: SqlOrColumn | None,
        values: Mapping[str, SqlOrColumn] | None = None,
    ) -> DeltaMergeBuilder:
        if condition is not None:
            check_expression(condition, "'condition'")
        clause = MergeClause(when, action, condition, None if values is None else dict(values))
        return DeltaMergeBuilder(replace(self._merge, clauses=(*self._merge.clauses, clause)))
