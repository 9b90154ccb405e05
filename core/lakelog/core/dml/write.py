"""Writing Arrow data to a table, without Spark."""

from __future__ import annotations

import inspect
import uuid
from dataclasses import dataclass, replace
from itertools import chain
from typing import TYPE_CHECKING, Literal

from lakelog.core import keys
from lakelog.core.actions import Metadata, SetTransaction
from lakelog.core.actions.file_table import to_add_files
from lakelog.core.actions.operation import Operation, write_metrics
from lakelog.core.arguments import check_text, checked_progress, read_arguments
from lakelog.core.arrow.arrow_types import from_arrow_schema
from lakelog.core.data.file_writer import DataFileWriter
from lakelog.core.data.write_conf import overwrites_dynamically
from lakelog.core.delta_log import log_of
from lakelog.core.errors import (
    DeltaAnalysisError,
    ProtocolChangedException,
    TableExistsError,
)
from lakelog.core.features.numbered_rows import preservation_tags
from lakelog.core.input.given_rows import refuse_options
from lakelog.core.input.given_types import property_texts, schema_from
from lakelog.core.input.row_source import RowSource
from lakelog.core.maintain.optimize.auto_compaction import compact_after
from lakelog.core.metadata.column_mapping_changes import reused_mapping
from lakelog.core.progress import Progress, progress_callback
from lakelog.core.rows.checks import check_rows, ruled_rows
from lakelog.core.rows.filling import fill_rows
from lakelog.core.schema import StructType
from lakelog.core.schema.rules import as_list, check_holds_rows, resolve_columns
from lakelog.core.schema.schema_evolution import check_write_compatible, merge_schemas
from lakelog.core.transaction.attempt_files import AttemptFiles
from lakelog.core.transaction.matching_files import matching_files

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from typing import Never

    from lakelog.core.actions import Action, AddFile
    from lakelog.core.conf import DeltaConf
    from lakelog.core.delta_log import DeltaLog, TableOrLog
    from lakelog.core.dml.rewrite import RowRewrite
    from lakelog.core.expressions.filter import Filter
    from lakelog.core.expressions.tree import Expression
    from lakelog.core.input.given_rows import GivenRows
    from lakelog.core.input.given_types import GivenSchema
    from lakelog.core.progress import GivenProgress, ProgressCallback
    from lakelog.core.rows.filling import Filled
    from lakelog.core.transaction.optimistic import OptimisticTransaction

Mode = Literal["append", "overwrite", "error", "ignore"]
SchemaMode = Literal["merge", "overwrite"]
PartitionOverwriteMode = Literal["static", "dynamic"]

_MODES = {
    "append": "Append",
    "overwrite": "Overwrite",
    "error": "ErrorIfExists",
    "ignore": "Ignore",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Job:
    """What `write_arrow` was asked to do."""

    data: RowSource
    mode: Mode
    partition_by: Sequence[str] | None
    replace_where: Filter | None
    dynamic: bool
    """Whether an overwrite replaces only the partitions that the data has."""
    schema_mode: SchemaMode | None
    properties: Mapping[str, str]
    user_metadata: str | None
    batch: SetTransaction | None
    """What the application says it has done by this."""


@read_arguments
def write_arrow(
    uri: TableOrLog,
    data: GivenRows,
    *,
    schema: GivenSchema | None = None,
    mode: Mode = "error",
    partition_by: str | Sequence[str] | None = None,
    replace_where: Filter | None = None,
    partition_overwrite_mode: PartitionOverwriteMode | None = None,
    schema_mode: SchemaMode | None = None,
    conf: Mapping[str, str] | None = None,
    properties: Mapping[str, str | bool | int] | None = None,
    user_metadata: str | None = None,
    app_id: str | None = None,
    app_version: int | None = None,
    progress: GivenProgress = None,
    **unknown: Never,
) -> int:
    """Write Arrow data to a Delta table, which is created where there is none.

    The rules of the table hold as they do for Spark: schema, NOT NULL, CHECK constraints,
    append-only. If another writer creates the table at the same moment, an append goes on after
    it.

    Args:
        uri: where the table is, or its `DeltaLog`.
        data: rows; columns are matched by name, ignoring case. Arrow data, a DataFrame of pandas
            (without its index, where that has no name) or Polars, `{"id": [1, 2]}`, `[{"id": 1}]`,
            a dataset of pyarrow, a scan, batches, or what else has `__arrow_c_stream__` or
            `__arrow_c_array__`. Readers, generators of batches and datasets are never in memory as
            a whole.
        schema: the columns of a list of dicts or a dict of columns, whose types follow from their
            values otherwise: a `pyarrow.Schema`, `{"id": "bigint"}`, `"id bigint, name string"`.
        mode: what to do where the table exists: raise an `error`, as PySpark does, so that a cell
            that is run twice does not double the rows; `append`, `overwrite` all rows, or
            `ignore` the call.
        partition_by: partition columns of a new table; for an existing one they must be the same.
        replace_where: with `overwrite`, replace only the rows for which this condition is true,
            which every new row must match too: SQL text, or any other `Filter`. Of partition
            columns alone it takes out whole files; else files are rewritten as by `delete_rows`.
        partition_overwrite_mode: with `overwrite`, `dynamic` replaces only the partitions that
            the data has rows of, `static` the whole table; `None` does what
            `spark.sql.sources.partitionOverwriteMode` says, unless `replace_where` is given. A
            table without partitions is replaced as a whole.
        schema_mode: `merge` adds columns that only the data has; `overwrite` (with the mode of
            that name) gives the table the data's schema.
        conf: the user's whole Spark conf, which chooses the store and holds for writes as it does
            for Spark's; a `DeltaLog` has its own.
        properties: table properties of a new table.
        user_metadata: a note for the table's history.
        app_id: with `app_version`: write only if this application has not recorded this version
            or a later one yet, so that a job can be run again.
        app_version: see `app_id`.
        progress: called now and then with how many rows are written; or `auto` for a bar.
        unknown: none; an option of Spark or deltalake is refused, naming the one to use here.

    Returns:
        The version that holds the rows; the current version where nothing had to be done.

    Raises:
        TableExistsError: mode `error`, and there is a table.
        SchemaMismatchError: the data does not fit the table; shows the difference.
        ConstraintViolationError: rows break a rule of the table, or `replace_where`.
        DeltaConcurrentModificationException: another writer was faster; nothing was committed.
        CommitOutcomeUnknownError: the storage never confirmed the commit; the data files are kept.
        DeltaAnalysisError: arguments that contradict each other or the table.
        TypeError: an argument that does not exist.
    """
    refuse_options("write_arrow", unknown, _ARGUMENTS)
    batch = checked_progress(app_id, app_version)
    check_text(user_metadata, "user_metadata")
    log = log_of(uri, conf)
    done = None
    if batch is not None:
        now = log.clock.now_ms()
        done = SetTransaction(app_id=batch[0], version=batch[1], last_updated=now)
    job = _Job(
        data=RowSource(data, None if schema is None else schema_from(schema)),
        mode=mode,
        partition_by=None if partition_by is None else as_list(partition_by),
        replace_where=replace_where,
        dynamic=_is_dynamic(mode, partition_overwrite_mode, replace_where, log.conf),
        schema_mode=schema_mode,
        properties=property_texts(properties),
        user_metadata=user_metadata,
        batch=done,
    )
    _check_job(job)
    with progress_callback(progress) as report:
        return _attempted(log, job, report)


def _attempted(log: DeltaLog, job: _Job, report: ProgressCallback) -> int:
    try:
        return _write(log, job, report)
    except ProtocolChangedException as exc:
        # We wanted to create the table, but another writer created it a moment before.
        if exc.winning_version != 0:
            raise
        if job.data.is_spent:
            exc.add_note(
                "The rows were a stream, which can't be read again: write it again, now that there "
                "is a table."
            )
            raise
        return _write(log, job, report)


_ARGUMENTS = tuple(inspect.signature(write_arrow).parameters)[2:-1]


def _is_dynamic(
    mode: Mode,
    asked: PartitionOverwriteMode | None,
    replace_where: Filter | None,
    conf: DeltaConf,
) -> bool:
    if asked not in (None, "static", "dynamic"):
        raise DeltaAnalysisError(
            f"partition_overwrite_mode must be 'static' or 'dynamic', not {asked!r}"
        )
    if asked is not None and mode != "overwrite":
        raise DeltaAnalysisError("partition_overwrite_mode needs mode 'overwrite'")
    if asked == "dynamic" and replace_where is not None:
        raise DeltaAnalysisError(
            "replace_where and partition_overwrite_mode 'dynamic' both say what to overwrite: "
            "give only one of them"
        )
    if mode != "overwrite":
        return False
    of_conf = overwrites_dynamically(conf) and replace_where is None
    return of_conf if asked is None else asked == "dynamic"


def _check_job(job: _Job) -> None:
    if job.mode not in _MODES:
        raise DeltaAnalysisError(
            f"mode must be one of {', '.join(_MODES)}, not {job.mode!r}", mode=job.mode
        )
    if job.schema_mode not in (None, "merge", "overwrite"):
        raise DeltaAnalysisError(
            f"schema_mode must be 'merge' or 'overwrite', not {job.schema_mode!r}"
        )
    if job.schema_mode == "overwrite" and (
        job.mode != "overwrite" or job.replace_where is not None
    ):
        raise DeltaAnalysisError(
            "schema_mode 'overwrite' replaces the whole table: it needs mode 'overwrite' and no "
            "replace_where"
        )
    if job.schema_mode == "overwrite" and job.dynamic:
        raise DeltaAnalysisError(
            "schema_mode 'overwrite' replaces the schema of the whole table, and a dynamic "
            "partition overwrite keeps part of its rows: give only one of them "
            "(partition_overwrite_mode='static' replaces the whole table, whatever the conf says)"
        )
    if job.replace_where is not None and job.mode != "overwrite":
        raise DeltaAnalysisError("replace_where needs mode 'overwrite'")


def _write(log: DeltaLog, job: _Job, report: ProgressCallback) -> int:
    txn = log.start_transaction()
    if job.batch and txn.txn_version(job.batch.app_id) >= job.batch.version:
        return txn.reads.version
    if txn.snapshot is not None:
        if job.mode == "error":
            raise TableExistsError(
                f"there is already a Delta table at {log.table} (version {txn.reads.version}); "
                "write with mode='append' or mode='overwrite', or to another path",
                table=log.table,
            )
        if job.mode == "ignore":
            return txn.reads.version
    schema = _settle_schema(txn, job)
    check_holds_rows(from_arrow_schema(job.data.schema), schema, log.table)
    predicate = _predicate(txn, job, schema)
    filled = _filled(txn, job, schema, predicate)
    # Rows in memory are all checked before anything is written, and a stream's first ones.
    first = next(filled)
    removed = _replaced(txn, job, predicate)
    return _commit(txn, job, chain([first], filled), removed, predicate, report)


def _filled(
    txn: OptimisticTransaction, job: _Job, schema: StructType, predicate: Expression | None
) -> Iterator[Filled]:
    """The rows as the table has them, checked; each piece once, as it is needed."""
    log, written = txn.delta_log, 0
    zone, now = log.conf.session_tz, log.clock.now_ms()
    for data in job.data.tables():
        filled = fill_rows(
            data,
            schema,
            txn.changes.protocol,
            log.table,
            session_tz=zone,
            now_ms=now,
            before=written,
        )
        written += data.num_rows
        del data
        rows = ruled_rows(filled.rows, txn.metadata, schema, log.table, session_tz=zone)
        filled = filled._replace(rows=rows)
        del rows
        if predicate is not None:
            check_rows(
                filled.rows,
                predicate,
                schema,
                f"[DELTA_REPLACE_WHERE_MISMATCH] rows do not match replace_where "
                f"{_predicate_text(job, predicate)!r} of the write to {log.table}",
            )
        yield filled
        del filled


def _settle_schema(txn: OptimisticTransaction, job: _Job) -> StructType:
    """Update the table's metadata as the job needs; return the schema to write with."""
    data = from_arrow_schema(job.data.schema)
    if txn.snapshot is None:
        txn.update_metadata(_new_metadata(job, data, str(uuid.uuid4())))
        return StructType.from_json(txn.metadata.schema_string)
    if job.schema_mode == "overwrite":
        _overwrite_schema(txn, job, data)
        return StructType.from_json(txn.metadata.schema_string)
    _check_unchanged(txn, job)
    ours = txn.snapshot.schema
    merges = job.schema_mode == "merge" or txn.delta_log.conf.read(keys.MERGE_SCHEMA)
    if merges:
        widens = txn.snapshot.properties.type_widening
        merged = merge_schemas(ours, data, allow_type_widening=widens)
        if merged != ours:
            txn.update_metadata(replace(txn.metadata, schema_string=merged.to_json()))
        ours = merged
    check_write_compatible(ours, data)
    return ours


def _new_metadata(job: _Job, data: StructType, table_id: str) -> Metadata:
    return Metadata(
        id=table_id,
        schema_string=data.to_json(),
        partition_columns=resolve_columns(data, job.partition_by or (), "partition column"),
        configuration=job.properties,
    )


def _overwrite_schema(txn: OptimisticTransaction, job: _Job, data: StructType) -> None:
    assert txn.snapshot is not None
    old = txn.metadata
    data = reused_mapping(data, txn.snapshot.read_schema)
    columns = old.partition_columns if job.partition_by is None else job.partition_by
    changed = replace(
        old,
        schema_string=data.to_json(),
        partition_columns=resolve_columns(data, columns, "partition column"),
        configuration={**old.configuration, **job.properties},
    )
    if changed != old:
        txn.update_metadata(changed)


def _check_unchanged(txn: OptimisticTransaction, job: _Job) -> None:
    """Check that arguments which only a new table or schema can set agree with the table."""
    metadata, table = txn.metadata, txn.delta_log.table
    if job.partition_by is not None:
        given = [name.lower() for name in job.partition_by]
        if given != [name.lower() for name in metadata.partition_columns]:
            raise DeltaAnalysisError(
                f"{table} is partitioned by {list(metadata.partition_columns)}, not by "
                f"{list(job.partition_by)}. Leave partition_by out, or overwrite the table with "
                "schema_mode 'overwrite'.",
                table=table,
            )
    differing = {
        key: value
        for key, value in job.properties.items()
        if metadata.configuration.get(key) != value
    }
    if differing:
        raise DeltaAnalysisError(
            f"{table} exists with properties other than those given: "
            f"{', '.join(sorted(differing))}. A write sets properties only when it creates the "
            "table or uses schema_mode 'overwrite'.",
            table=table,
        )


def _replaced(txn: OptimisticTransaction, job: _Job, predicate: Expression | None) -> list[AddFile]:
    """The files that an overwrite removes, after checking that it may."""
    if job.mode != "overwrite" or txn.snapshot is None or _by_partitions(txn, job):
        return []
    if _is_of_rows(txn, predicate):
        txn.changes.assert_removable()
        return []
    found = (
        txn.filter_files() if predicate is None else to_add_files(matching_files(txn, predicate))
    )
    if found:
        txn.changes.assert_removable()
    return found


def _is_of_rows(txn: OptimisticTransaction, predicate: Expression | None) -> bool:
    """Whether an overwrite takes single rows out of files."""
    from lakelog.core.expressions.tree import is_partition_only

    if txn.snapshot is None or predicate is None:
        return False
    return not is_partition_only(predicate, txn.metadata.partition_columns)


def _without_rows(
    txn: OptimisticTransaction, predicate: Expression, files: AttemptFiles, report: ProgressCallback
) -> RowRewrite:
    """Take the rows for which a condition is true out of the table."""
    from lakelog.core.dml.rewrite import RowRewrite
    from lakelog.core.dml.touched_files import touched_files

    snapshot = txn.snapshot
    assert snapshot is not None
    schema = None if txn.metadata == snapshot.metadata else txn.changes.file_layout.schema
    now = txn.delta_log.clock.now_ms()
    found = files.own(RowRewrite(txn, now, command="delete", schema=schema))
    found.apply(
        list(touched_files(snapshot, txn.reads.filter_file_table(predicate), predicate, report)),
        report,
    )
    return found


def _by_partitions(txn: OptimisticTransaction, job: _Job) -> bool:
    """Whether the new files decide which ones they replace."""
    exists = txn.snapshot is not None
    return job.dynamic and exists and bool(txn.metadata.partition_columns)


def _predicate(txn: OptimisticTransaction, job: _Job, schema: StructType) -> Expression | None:
    """What `replace_where` says, bound to the schema; `None` where there is none."""
    if job.replace_where is None:
        return None
    from lakelog.core.expressions.filter import normalize_filter

    log = txn.delta_log
    found = normalize_filter(
        job.replace_where, schema, session_tz=log.conf.session_tz, now_ms=log.clock.now_ms()
    )
    assert found is not None
    return found


def _predicate_text(job: _Job, predicate: Expression | None) -> str | None:
    """The text that the history shows: what was given, where that is SQL."""
    if predicate is None or isinstance(job.replace_where, str):
        return job.replace_where if isinstance(job.replace_where, str) else None
    from lakelog.core.expressions.sql_text import to_sql

    return to_sql(predicate)


def _commit(
    txn: OptimisticTransaction,
    job: _Job,
    filled: Iterator[Filled],
    removed: list[AddFile],
    predicate: Expression | None,
    report: ProgressCallback,
) -> int:
    log = txn.delta_log
    log.store.create_folder(log.table)
    layout = txn.changes.file_layout
    plan = layout.plan(log.store, log.table)
    with AttemptFiles(txn) as files:
        rows_out = None
        if predicate is not None and _is_of_rows(txn, predicate):
            rows_out = _without_rows(txn, predicate, files, report)
        writer = files.own(
            DataFileWriter(plan, layout.schema, stats=layout.stats, checks_later=True)
        )
        txn.changes.check_before_commit(writer.check_arrived)
        marks: dict[str, int] = {}
        written = 0
        for each in filled:
            writer.write(each.rows)
            if rows_out is not None:
                rows_out.write_inserted(each.rows)
            written += each.rows.num_rows
            report(Progress(text="writing", done=written, total=job.data.count, unit="rows"))
            marks |= each.marks
            del each
        adds = writer.close()
        if _by_partitions(txn, job):
            removed = txn.reads.files_in_same_partitions(adds)
            if removed:
                txn.changes.assert_removable()
        txn.changes.mark_written()
        compact_after(txn)
        txn.changes.advance_identity_columns(marks)
        now = log.clock.now_ms()
        actions: list[Action] = [*adds, *(file.remove(now) for file in removed)]
        operation = _operation(job, adds, removed, predicate)
        if rows_out is not None:
            actions += rows_out.actions()
            operation = _of_rows(operation, txn, rows_out)
        if job.batch is not None:
            actions.insert(0, job.batch)
        return txn.commit(actions, operation)


def _of_rows(operation: Operation, txn: OptimisticTransaction, found: RowRewrite) -> Operation:
    """What the history says of an overwrite that took single rows out."""
    counts = found.metrics.operation_metrics("numDeletedRows")
    names = ("numRemovedFiles", "numRemovedBytes", "numDeletedRows", "numCopiedRows")
    metrics = {**operation.metrics, **{name: counts[name] for name in names}}
    metrics["numAddedChangeFiles"] = counts["numAddedChangeFiles"]
    for name, copied in (
        ("numFiles", "numAddedFiles"),
        ("numOutputBytes", "numAddedBytes"),
        ("numOutputRows", "numCopiedRows"),
    ):
        if name in metrics:
            metrics[name] = int(metrics[name]) + counts[copied]
    assert txn.snapshot is not None
    tags = preservation_tags(txn.snapshot.terms, preserved=found.keeps_row_ids)
    return replace(operation, metrics=metrics, tags=tags)


def _operation(
    job: _Job,
    adds: Sequence[AddFile],
    removed: Sequence[AddFile],
    predicate: Expression | None,
) -> Operation:
    return Operation.write(
        _MODES[job.mode],
        job.partition_by or (),
        predicate=_predicate_text(job, predicate),
        dynamic_overwrite=job.dynamic,
        overwrite_schema=job.schema_mode == "overwrite",
        merge_schema=job.schema_mode == "merge",
        metrics=write_metrics(
            adds,
            removed if job.mode == "overwrite" else None,
            whole_files_by_predicate=job.replace_where is not None,
        ),
        user_metadata=job.user_metadata,
    )
