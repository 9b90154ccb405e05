"""One write from start to commit: the plan of `DeltaWriter.save`."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from lakelog.core.actions import SetTransaction
from lakelog.core.attempt_files import AttemptFiles
from lakelog.core.conf import DeltaConf
from lakelog.core.delta_log import DeltaLog
from lakelog.core.errors import TableExistsError
from lakelog.core.file_layout import FileLayout
from lakelog.core.identity_bounds import IdentityBounds
from lakelog.core.operations import Operation, write_metrics
from lakelog.core.properties import TableProperties
from lakelog.core.protocol import check_writable
from lakelog.core.row_tracking import preservation_tags
from lakelog.core.schema import StructType
from lakelog.core.schema_rules import check_holds_rows
from lakelog.spark._conform import projection
from lakelog.spark._constraints import RowRule, check_rule, enforced, table_rules
from lakelog.spark._data_write import TableFiles
from lakelog.spark._errors import job_errors
from lakelog.spark._filled import FilledColumns
from lakelog.spark._options import WriteOptions
from lakelog.spark._overwrite import replaced_before, replaced_by
from lakelog.spark._replaced_changes import Written, write_with_changes
from lakelog.spark._replay import replayer_for
from lakelog.spark._session import session_conf, with_storage
from lakelog.spark._table_schema import apply_schema
from lakelog.spark._types import to_delta_schema, without_void

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pyspark.sql import DataFrame

    from lakelog.core.actions import Action
    from lakelog.core.transaction import OptimisticTransaction
    from lakelog.spark._options import SaveMode

__all__ = ["save_frame"]

_MODE_NAMES = {
    "append": "Append",
    "overwrite": "Overwrite",
    "error": "ErrorIfExists",
    "ignore": "Ignore",
}


def save_frame(
    frame: DataFrame,
    path: str,
    mode: SaveMode,
    partition_by: Sequence[str] | None,
    options: Mapping[str, str],
) -> int | None:
    """Write a DataFrame as a commit of the table at `path`; `DeltaWriter.save` says the rest.

    Returns:
        The version that holds the rows, `None` where there was nothing to commit.
    """
    conf = DeltaConf.of(with_storage(session_conf(frame.sparkSession), options))
    wanted = WriteOptions.of(mode, partition_by, options, conf)
    log = DeltaLog.for_table(path, conf, replayer=replayer_for(frame.sparkSession, conf))
    return _Save(frame, log, wanted).run()


@dataclass(frozen=True, slots=True)
class _Save:
    frame: DataFrame
    log: DeltaLog
    options: WriteOptions

    def run(self) -> int | None:
        txn = self.log.start_transaction()
        if self._is_done(txn):
            return None
        given = to_delta_schema(self.frame.schema)
        data = without_void(given)
        check_holds_rows(data, data, self.log.table)
        # Spark's own writer would give a void column to the files, as a boolean.
        held = projection(given, data)
        frame = self.frame if held is None else self.frame.selectExpr(*held)
        apply_schema(txn, self.log.table, given, self.options)
        check_writable(txn.protocol, txn.metadata, self.log.table)
        if self.options.mode == "overwrite" and self.options.data_change:
            txn.assert_removable()
        with AttemptFiles(txn) as files:
            with job_errors(self.log.table, None if txn.snapshot is None else txn.read_version):
                written = self._write(txn, frame, data, files)
            return self._commit(txn, written)

    def _is_done(self, txn: OptimisticTransaction) -> bool:
        """Whether there is nothing to do: mode `ignore` met a table, or the batch is known."""
        options, table = self.options, self.log.table
        if txn.snapshot is not None and options.mode == "ignore":
            return True
        if txn.snapshot is not None and options.mode == "error":
            raise TableExistsError(
                f"a Delta table is at {table} already, at version {txn.read_version}. Choose "
                "another path, or say what to do with it: mode('append') adds to it, "
                "mode('overwrite') replaces its rows, mode('ignore') leaves it alone.",
                table=table,
                version=txn.read_version,
            )
        app_id = options.txn_app_id
        return app_id is not None and txn.txn_version(app_id) >= options.txn_version

    def _write(
        self, txn: OptimisticTransaction, frame: DataFrame, data: StructType, attempt: AttemptFiles
    ) -> Written:
        """Write the files of a frame's rows; give them, and what they replace."""
        target = without_void(StructType.from_json(txn.metadata.schema_string))
        replaced = replaced_before(txn, self.frame.sparkSession, target, self.options)
        filled = FilledColumns.of(data, target, txn.protocol, self.log.table, self.log.conf)
        rules = [*self._rules(txn, target), *filled.rules()]
        rows = enforced(filled.rows(frame), rules)
        bounds = IdentityBounds(target, filled.identities) if filled.identities else None
        layout = FileLayout.of_transaction(txn)
        files = TableFiles(self.log, layout, self.options, attempt, bounds)
        if replaced.kept_rows is None:
            few = enforced(filled.rows(frame, 1), rules) if bounds else None
            written = Written(files.write(rows, frame, few), replaced)
        elif TableProperties(txn.metadata.configuration).change_data_feed:
            written = write_with_changes(txn, rows, replaced, files, target)
        else:
            written = Written(files.write(rows.union(replaced.kept_rows)), replaced)
        txn.mark_written()
        if bounds is not None:
            txn.advance_identity_columns(bounds.marks())
        dynamic = replaced_by(txn, written.adds, self.options).files
        if not dynamic:
            return written
        return replace(written, replaced=replace(replaced, files=[*replaced.files, *dynamic]))

    def _rules(self, txn: OptimisticTransaction, target: StructType) -> list[RowRule]:
        rules = table_rules(txn.metadata)
        predicate = self.options.replace_where
        if predicate and self.log.conf.get_bool("replaceWhere.constraintCheck.enabled", True):
            rules.append(
                check_rule(
                    "[DELTA_REPLACE_WHERE_MISMATCH] Written data does not conform to partial table "
                    f"overwrite condition or constraint '{predicate}'",
                    predicate,
                    target.names,
                )
            )
        return rules

    def _commit(self, txn: OptimisticTransaction, written: Written) -> int | None:
        options, adds, replaced = self.options, written.adds, written.replaced
        now = self.log.clock.now_ms()
        actions: list[Action] = []
        if options.txn_app_id is not None:
            actions.append(
                SetTransaction(
                    app_id=options.txn_app_id, version=options.txn_version, last_updated=now
                )
            )
        actions += (each.remove(now, data_change=options.data_change) for each in replaced.files)
        actions += (*adds, *written.changes)
        return txn.commit_if_needed(actions, self._operation(txn, written))

    def _operation(self, txn: OptimisticTransaction, written: Written) -> Operation:
        options, adds, replaced = self.options, written.adds, written.replaced
        moves_rows = replaced.kept_rows is not None
        return Operation.write(
            _MODE_NAMES[options.mode],
            options.partition_by or (),
            predicate=options.replace_where,
            dynamic_overwrite=options.dynamic_overwrite,
            overwrite_schema=options.overwrite_schema,
            merge_schema=options.merge_schema,
            metrics={
                **write_metrics(
                    adds,
                    replaced.files if options.mode == "overwrite" else None,
                    whole_files_by_predicate=(options.replace_where is not None and not moves_rows),
                ),
                **({"numAddedChangeFiles": len(written.changes)} if written.changes else {}),
            },
            user_metadata=options.user_metadata,
            # They get new ids in their new files.
            tags=preservation_tags(txn.protocol, txn.metadata, preserved=False)
            if moves_rows
            else None,
        )
