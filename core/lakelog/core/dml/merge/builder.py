"""MERGE: updating, deleting and inserting rows by those of a source, without an engine."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, TypeAlias

from lakelog.core.arguments import check_text, checked_progress, is_text, read_arguments, refusal
from lakelog.core.delta_log import log_of
from lakelog.core.dml.merge.clauses import MergeClause, check_clauses
from lakelog.core.dml.merge.merge_job import MergeJob, run_merge
from lakelog.core.dml.merge.search_condition import condition_of_columns
from lakelog.core.dml.merge.source import MergeSource
from lakelog.core.errors import DeltaAnalysisError
from lakelog.core.expressions.arrow.given import is_arrow_expression
from lakelog.core.progress import check_progress, progress_callback

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from lakelog.core.delta_log import DeltaLog, TableOrLog
    from lakelog.core.dml.merge.clauses import When
    from lakelog.core.expressions.filter import ArrowCondition
    from lakelog.core.input.given_rows import GivenRows
    from lakelog.core.progress import GivenProgress
    from lakelog.core.transaction.command_commit import RowsChanged

MergeCondition: TypeAlias = "str | ArrowCondition"
"""SQL text, or an expression of `pyarrow.compute`."""


@read_arguments
def merge(
    uri: TableOrLog,
    source: GivenRows,
    on: str | Sequence[str],
    *,
    target_alias: str = "target",
    source_alias: str = "source",
    with_schema_evolution: bool = False,
    conf: Mapping[str, str] | None = None,
    user_metadata: str | None = None,
    app_id: str | None = None,
    app_version: int | None = None,
    progress: GivenProgress = None,
) -> MergeBuilder:
    """Begin a MERGE: name the rows that belong together, then say what becomes of them.

        (
            merge("/lake/people", rows, "target.id = source.id")
            .when_matched_delete("source.gone")
            .when_matched_update({"name": "source.name", "seen": "source.seen"})
            .when_not_matched_insert_all()
            .execute()
        )

    Nothing happens before `MergeBuilder.execute`. Expressions are Spark's SQL, as in delta-spark
    and deltalake; they name columns by the aliases, or bare where only one of the tables has them.
    Conditions of clauses, and values, may also be expressions of `pyarrow.compute`, which mean what
    pyarrow means by them and call columns `pc.field("source.id")`, or bare likewise. A row for
    which a condition is null is not one for which it is true.

    Args:
        uri: where the table is, or its `DeltaLog`.
        source: the rows to merge; a stream is read once, when the merge is executed, and held in
            memory up to `spark.lakelog.merge.maxSourceBytes` (256 MiB), else in a temporary file
            without a name, in the folder of `TMPDIR`. Arrow data, a generator of batches, a dataset
            of pyarrow, a DataFrame of pandas or Polars, a relation of DuckDB, `{"id": [1, 2]}`,
            `[{"id": 1}]`.
        on: when a row of the target and one of the source match: SQL, or the names of columns that
            must be equal in both.
        target_alias: what expressions call the table.
        source_alias: what they call the source.
        with_schema_evolution: whether columns that only the source has are added, where a clause
            sets them; so it is in any case with `spark.databricks.delta.schema.autoMerge.enabled`.
        conf: the user's whole Spark conf, which chooses the store; a `DeltaLog` has its own.
        user_metadata: a note for the table's history.
        app_id: with `app_version`: merge only if this application has not recorded this version or
            a later one yet, so that a job can be run again.
        app_version: see `app_id`.
        progress: called now and then with how many files are searched, how many of them are
            rewritten, and how many rows are inserted; or `auto` for a bar.

    Raises:
        DeltaAnalysisError: arguments of other types, or aliases that are the same.
    """
    check_text(user_metadata, "user_metadata")
    for name, alias in (("target_alias", target_alias), ("source_alias", source_alias)):
        check_text(alias, name, needed=True)
        if not alias or "." in alias:
            raise refusal(alias, name, "a name without dots")
    if target_alias.lower() == source_alias.lower():
        raise DeltaAnalysisError(
            f"target_alias and source_alias are both {target_alias!r}: no expression could tell "
            "the tables apart"
        )
    if isinstance(on, str):
        condition = on
    else:
        given = _listed(on)
        columns: list[str] = [each for each in given if is_text(each)]
        if not columns or len(columns) < len(given):
            raise refusal(on, "on", "SQL text, or the names of columns")
        condition = condition_of_columns(columns, target_alias, source_alias)
    options = {
        "target_alias": target_alias,
        "source_alias": source_alias,
        "evolves": with_schema_evolution,
        "user_metadata": user_metadata,
        "progress": checked_progress(app_id, app_version),
    }
    check_progress(progress)
    return MergeBuilder(log_of(uri, conf), MergeSource(source), condition, options, (), progress)


def _listed(names: object) -> list[Any]:
    return list(names) if isinstance(names, Iterable) else []


class MergeBuilder:
    """A MERGE that is being put together; each method returns a new one, with one more clause.

    Of the clauses for the same rows the first one that applies counts. A row that matches but to
    which no clause applies stays as it is, and its source row is not inserted.
    """

    def __init__(
        self,
        log: DeltaLog,
        source: MergeSource,
        condition: str,
        options: Mapping[str, Any],
        clauses: tuple[MergeClause, ...],
        progress: GivenProgress = None,
    ) -> None:
        """Begin with `merge` instead."""
        self._log = log
        self._source = source
        self._condition = condition
        self._options = options
        self._clauses = clauses
        self._progress: GivenProgress = progress

    def _with(
        self,
        when: When,
        action: Any,
        where: MergeCondition | None,
        values: Mapping[str, Any] | None = None,
    ) -> MergeBuilder:
        if not is_arrow_expression(where):
            check_text(where, "where")
        if values is not None:
            for key in values:
                check_text(key, "a column to set", needed=True)
        clause = MergeClause(when, action, where, values)
        clauses = (*self._clauses, clause)
        return MergeBuilder(
            self._log, self._source, self._condition, self._options, clauses, self._progress
        )

    def when_matched_update(
        self,
        set: Mapping[str, Any],  # noqa: A002  # SQL's word
        where: MergeCondition | None = None,
    ) -> MergeBuilder:
        """Update the rows that match.

        Args:
            set: column of the target, or field of a struct (`address.city`) -> its new value: SQL
                or an expression of pyarrow over the columns of both tables, `DEFAULT`, or a value
                that is not text; `lakelog.core.lit` for one that is.
            where: only those for which this SQL, or expression of pyarrow, is true.

        Raises:
            DeltaAnalysisError: no column, a key that is not text, or a condition that is not
                boolean.
        """
        return self._with("matched", "update", where, dict(set))

    def when_matched_update_all(self, where: MergeCondition | None = None) -> MergeBuilder:
        """Update all columns of the rows that match, by name: `UPDATE SET *`.

        Args:
            where: only those for which this SQL, or expression of pyarrow, is true.
        """
        return self._with("matched", "update", where)

    def when_matched_delete(self, where: MergeCondition | None = None) -> MergeBuilder:
        """Delete the rows that match.

        Args:
            where: only those for which this SQL, or expression of pyarrow, is true.
        """
        return self._with("matched", "delete", where)

    def when_not_matched_insert(
        self, values: Mapping[str, Any], where: MergeCondition | None = None
    ) -> MergeBuilder:
        """Insert the source rows that match nothing.

        Args:
            values: column of the target -> its value: SQL over the columns of the source, or as
                for `when_matched_update`. A column that is left out gets its default, its next
                number, what it is generated by, or null.
            where: only those for which this condition, over the columns of the source, is true.

        Raises:
            DeltaAnalysisError: no column, or a key or condition that is not text.
        """
        return self._with("not matched", "insert", where, dict(values))

    def when_not_matched_insert_all(self, where: MergeCondition | None = None) -> MergeBuilder:
        """Insert all columns of the source rows that match nothing, by name: `INSERT *`.

        Args:
            where: only those for which this condition, over the columns of the source, is true.
        """
        return self._with("not matched", "insert", where)

    def when_not_matched_by_source_update(
        self,
        set: Mapping[str, Any],  # noqa: A002  # SQL's word
        where: MergeCondition | None = None,
    ) -> MergeBuilder:
        """Update the rows of the target that no source row matches.

        Args:
            set: as for `when_matched_update`, over the columns of the target alone.
            where: only those for which this condition, over the columns of the target, is
                true.

        Raises:
            DeltaAnalysisError: no column, or a key or condition that is not text.
        """
        return self._with("not matched by source", "update", where, dict(set))

    def when_not_matched_by_source_delete(
        self, where: MergeCondition | None = None
    ) -> MergeBuilder:
        """Delete the rows of the target that no source row matches.

        Args:
            where: only those for which this condition, over the columns of the target, is
                true.
        """
        return self._with("not matched by source", "delete", where)

    def execute(self) -> RowsChanged:
        """Merge, in one commit; may be called again after a conflict.

            retry_on_conflict(merge(…).when_matched_update_all().execute)

        Only files that can hold matching rows are read, by the keys that the source has, unless
        there is a clause for rows that match nothing. Rows are changed as by `delete_rows` and
        `update_rows`: by deletion vectors where the table has them, with change files, row ids and
        the table's rules. Memory holds the source, or of a large stream the columns that rows
        match by and no more; of the target a few rows at a time, and the positions of the rows
        that change.

        Returns:
            The version of the commit, and its metrics by Delta's names. The version is `None` where
            nothing was committed: no clause applies to any row, or the application has recorded
            the batch.

        Raises:
            TableNotFoundError: there is no table.
            DeltaAnalysisError: clauses in a wrong order, unknown or ambiguous names, values that
                their columns can't hold, or several source rows that match one row: shows its keys.
            InvalidPredicateError: SQL that can't be parsed, or that only Spark evaluates.
            SchemaMismatchError: the schema can't evolve to hold the source's columns.
            ConstraintViolationError: new rows break a rule of the table. Nothing was committed.
            AppendOnlyError: `delta.appendOnly` is set, and there is more than inserts.
            DataFileMissingError: the log lists a file that the storage does not have.
            OSError: no room for the temporary file of a large source, or the storage failed.
            DeltaConcurrentModificationException: another writer was faster; nothing was committed.
            CommitOutcomeUnknownError: the storage never confirmed the commit; the files are kept.
            UnsupportedFeatureError: the table has a feature that this version can't write.
        """
        check_clauses(self._clauses)
        with progress_callback(self._progress) as report:
            job = MergeJob(
                self._source, self._condition, self._clauses, report=report, **self._options
            )
            return run_merge(self._log, job)
