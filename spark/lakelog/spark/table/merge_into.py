"""`df.mergeInto(table, condition)` into a Delta table, with the methods of `MergeIntoWriter`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lakelog.core.errors import DeltaAnalysisError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pyspark.sql import Column

    from lakelog.spark.dml.merge_builder import DeltaMergeBuilder


class TableMerge:
    """A MERGE whose source is the DataFrame that `mergeInto` was called on.

    Nothing runs before `merge`, which raises what `DeltaMergeBuilder.execute` raises.
    """

    def __init__(
        self, builder: DeltaMergeBuilder, then: Callable[[], object] | None = None
    ) -> None:
        """Begin with a MERGE that has no clauses.

        Args:
            builder: of the MERGE.
            then: called once it is done.
        """
        self._builder = builder
        self._then = then

    def whenMatched(self, condition: Column | None = None) -> WhenMatched:  # noqa: N802  # PySpark's
        """Say what happens to rows of the table that a row of the source matches."""
        return WhenMatched(self, condition)

    def whenNotMatched(self, condition: Column | None = None) -> WhenNotMatched:  # noqa: N802
        """Say what happens for rows of the source that match none of the table."""
        return WhenNotMatched(self, condition)

    def whenNotMatchedBySource(  # noqa: N802  # PySpark's
        self, condition: Column | None = None
    ) -> WhenNotMatchedBySource:
        """Say what happens to rows of the table that no row of the source matches."""
        return WhenNotMatchedBySource(self, condition)

    def withSchemaEvolution(self) -> TableMerge:  # noqa: N802  # PySpark's name
        """Let the table get columns that only the source has."""
        return self._next(self._builder.withSchemaEvolution())

    def merge(self) -> None:
        """Run it, as one commit."""
        self._builder.execute()
        if self._then is not None:
            self._then()

    def _next(self, builder: DeltaMergeBuilder) -> TableMerge:
        # PySpark's object changes with each call, and scripts may not use what a call returns.
        self._builder = builder
        return self


class _Clause:
    def __init__(self, writer: TableMerge, condition: Column | None) -> None:
        self._writer = writer
        self._condition = condition

    @property
    def _builder(self) -> DeltaMergeBuilder:
        return self._writer._builder

    def _done(self, builder: DeltaMergeBuilder) -> TableMerge:
        return self._writer._next(builder)


class WhenMatched(_Clause):
    """What happens to matched rows."""

    def updateAll(self) -> TableMerge:  # noqa: N802  # PySpark's name
        """Give all columns the values of the source's."""
        return self._done(self._builder.whenMatchedUpdateAll(self._condition))

    def update(self, assignments: Mapping[str, Column]) -> TableMerge:
        """Give columns of the table new values."""
        return self._done(self._builder.whenMatchedUpdate(self._condition, dict(assignments)))

    def delete(self) -> TableMerge:
        """Delete the row."""
        return self._done(self._builder.whenMatchedDelete(self._condition))


class WhenNotMatched(_Clause):
    """What happens for rows of the source alone."""

    def insertAll(self) -> TableMerge:  # noqa: N802  # PySpark's name
        """Insert the row of the source."""
        return self._done(self._builder.whenNotMatchedInsertAll(self._condition))

    def insert(self, assignments: Mapping[str, Column]) -> TableMerge:
        """Insert a row of these values."""
        return self._done(self._builder.whenNotMatchedInsert(self._condition, dict(assignments)))


class WhenNotMatchedBySource(_Clause):
    """What happens to rows of the table alone."""

    def updateAll(self) -> TableMerge:  # noqa: N802  # PySpark's name
        """Refuse: there is no row of the source whose values these would be.

        Raises:
            DeltaAnalysisError: always.
        """
        raise DeltaAnalysisError(
            "whenNotMatchedBySource().updateAll() has no row of the source to take values from: "
            "use update({column: value}) or delete()"
        )

    def update(self, assignments: Mapping[str, Column]) -> TableMerge:
        """Give columns new values."""
        made = self._builder.whenNotMatchedBySourceUpdate(self._condition, dict(assignments))
        return self._done(made)

    def delete(self) -> TableMerge:
        """Delete the row."""
        return self._done(self._builder.whenNotMatchedBySourceDelete(self._condition))
