"""Writing Arrow data to a table, without Spark."""

from __future__ import annotations

import inspect
from dataclasses import dataclass, replace
from itertools import chain
from typing import TYPE_CHECKING, Literal, NamedTuple

from lakelog.core.arguments import check_text, checked_progress, read_arguments
from lakelog.core.arrow.arrow_types import from_arrow_schema
from lakelog.core.data.file_writer import DataFileWriter
from lakelog.core.data.write_conf import overwrites_dynamically
from lakelog.core.delta_log import making
from lakelog.core.dml.table_write import MODES, TableWrite, WriteRequest
from lakelog.core.errors import (
    ConstraintViolationError,
    DeltaAnalysisError,
    ProtocolChangedException,
    SchemaMismatchError,
)
from lakelog.core.expressions.context import EvalContext
from lakelog.core.input.given_rows import refuse_options
from lakelog.core.input.given_types import property_texts, schema_from
from lakelog.core.input.row_source import RowSource
from lakelog.core.maintain.after_command import end_command
from lakelog.core.progress import Progress, progress_callback
from lakelog.core.rows.checks import check_rows, ruled_rows
from lakelog.core.rows.constraints import table_constraints
from lakelog.core.rows.filling import fill_rows
from lakelog.core.schema.rules import as_list, check_holds_rows
from lakelog.core.telemetry.switch import command
from lakelog.core.transaction.attempt_files import AttemptFiles

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from typing import Never

    import pyarrow as pa

    from lakelog.core.actions import Action, AddFile
    from lakelog.core.actions.operation import Operation
    from lakelog.core.delta_log import DeltaLog, TableOrLog
    from lakelog.core.dml.rewrite import RowRewrite
    from lakelog.core.dml.table_write import SaveMode
    from lakelog.core.expressions.filter import Filter
    from lakelog.core.expressions.tree import Expression
    from lakelog.core.input.given_rows import GivenRows
    from lakelog.core.input.given_types import GivenSchema
    from lakelog.core.progress import GivenProgress, ProgressCallback
    from lakelog.core.rows.filling import Filled
    from lakelog.core.schema import StructType
    from lakelog.core.transaction.optimistic import OptimisticTransaction

SchemaMode = Literal["merge", "overwrite"]
PartitionOverwriteMode = Literal["static", "dynamic"]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Job:
    """What `write_arrow` was asked to do."""

    data: RowSource
    request: WriteRequest
    replace_where: Filter | None


@read_arguments
@command("write")
def write_arrow(
    uri: TableOrLog,
    data: GivenRows,
    *,
    schema: GivenSchema | None = None,
    mode: SaveMode = "error",
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
        uri: where the table is, its name in a catalog, or its `DeltaLog`.
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
    _check_modes(mode, schema_mode, replace_where, partition_overwrite_mode)
    texts = property_texts(properties)
    rows = RowSource(data, None if schema is None else schema_from(schema))

    def write(log: DeltaLog) -> int:
        dynamic = mode == "overwrite" and overwrites_dynamically(log.conf) and replace_where is None
        if partition_overwrite_mode is not None:
            dynamic = partition_overwrite_mode == "dynamic"
        request = WriteRequest(
            mode=mode,
            partition_by=None if partition_by is None else as_list(partition_by),
            merge_schema=True if schema_mode == "merge" else None,
            overwrite_schema=schema_mode == "overwrite",
            dynamic_overwrite=dynamic,
            properties=texts,
            user_metadata=user_metadata,
            batch=batch,
        )
        job = _Job(data=rows, request=request, replace_where=replace_where)
        with progress_callback(progress) as report:
            return _attempted(log, job, report)

    return making(uri, conf, write, may_repeat=lambda: not rows.is_spent)


def _attempted(log: DeltaLog, job: _Job, report: ProgressCallback) -> int:
    try:
        return _write(log.start_transaction(), job, report).version
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
        return _write(log.start_transaction(), job, report).version


class Written(NamedTuple):
    """What a write did."""

    version: int
    """That holds the rows."""
    adds: Sequence[AddFile]
    """As they were written, which is before the commit numbered their rows."""


def append_rows(txn: OptimisticTransaction, rows: pa.Table, request: WriteRequest) -> Written:
    """Append rows by a transaction that has begun; what it has read counts as read.

    Args:
        txn: of a table that exists.
        rows: columns are matched by name, ignoring case.
        request: of mode `append`.

    Returns:
        The version and the files. No rows are a commit too.

    Raises:
        DeltaError: what `write_arrow` raises.
    """
    return _write(txn, _Job(data=RowSource(rows), request=request, replace_where=None), _silent)


def unfit_rows(
    txn: OptimisticTransaction, rows: pa.Table, request: WriteRequest
) -> dict[int, DeltaAnalysisError]:
    """Which rows a table refuses, by their place, and why: found by halves, nothing is written.

    Args:
        txn: will not be committed.
        rows: as for `append_rows`.
        request: as for `append_rows`.

    Raises:
        SchemaMismatchError: columns that the table refuses whatever the rows hold.
    """
    write = TableWrite(txn, request)
    write.settle_schema(from_arrow_schema(rows.schema), keeps=True)
    schema, found = write.schema, dict[int, DeltaAnalysisError]()
    parts = [(0, rows.num_rows)]
    while parts:
        start, count = parts.pop()
        part = RowSource(rows.slice(start, count))
        try:
            for _ in _filled(txn, _Job(data=part, request=request, replace_where=None), schema):
                pass
        except (ConstraintViolationError, SchemaMismatchError) as exc:
            if count <= 1:
                found[start] = exc
                continue
            half = count // 2
            parts += [(start, half), (start + half, count - half)]
    return dict(sorted(found.items()))


def _silent(_: Progress) -> None:
    pass


_ARGUMENTS = tuple(inspect.signature(write_arrow).parameters)[2:-1]


def _check_modes(
    mode: SaveMode,
    schema_mode: SchemaMode | None,
    replace_where: Filter | None,
    asked: PartitionOverwriteMode | None,
) -> None:
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
    if mode not in MODES:
        raise DeltaAnalysisError(f"mode must be one of {', '.join(MODES)}, not {mode!r}", mode=mode)
    if schema_mode not in (None, "merge", "overwrite"):
        raise DeltaAnalysisError(f"schema_mode must be 'merge' or 'overwrite', not {schema_mode!r}")
    if schema_mode == "overwrite" and (mode != "overwrite" or replace_where is not None):
        raise DeltaAnalysisError(
            "schema_mode 'overwrite' replaces the whole table: it needs mode 'overwrite' and no "
            "replace_where"
        )
    if replace_where is not None and mode != "overwrite":
        raise DeltaAnalysisError("replace_where needs mode 'overwrite'")


def _write(txn: OptimisticTransaction, job: _Job, report: ProgressCallback) -> Written:
    log, write = txn.delta_log, TableWrite(txn, job.request)
    if write.is_done():
        return Written(txn.reads.version, ())
    data = from_arrow_schema(job.data.schema)
    if txn.snapshot is not None and not job.request.overwrite_schema:
        _check_properties(txn, job.request)
    write.settle_schema(data, keeps=True)
    check_holds_rows(data, write.schema, log.table)
    predicate = _predicate(txn, job, write.schema)
    filled = _filled(txn, job, write.schema, predicate)
    # Rows in memory are all checked before anything is written, and a stream's first ones.
    first = next(filled)
    if predicate is not None and _is_of_rows(txn, predicate):
        txn.changes.assert_removable()
        removed: list[AddFile] = []
    else:
        removed = write.replaced_before(predicate)
    return _commit(write, job, chain([first], filled), removed, predicate, report)


def _filled(
    txn: OptimisticTransaction,
    job: _Job,
    schema: StructType,
    predicate: Expression | None = None,
) -> Iterator[Filled]:
    """The rows as the table has them, checked; each piece once, as it is needed."""
    log, written = txn.delta_log, 0
    context = EvalContext.of(log.conf, log.clock.now_ms())
    rules = table_constraints(txn.metadata, schema)
    for data in job.data.tables():
        protocol = txn.changes.protocol
        filled = fill_rows(data, schema, protocol, log.table, context, before=written)
        written += data.num_rows
        del data
        rows = ruled_rows(filled.rows, rules, schema, log.table, context)
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


def _check_properties(txn: OptimisticTransaction, request: WriteRequest) -> None:
    """Check that properties which only a new table or schema can set agree with the table."""
    configuration, table = txn.metadata.configuration, txn.delta_log.table
    differing = {k: v for k, v in request.properties.items() if configuration.get(k) != v}
    if differing:
        raise DeltaAnalysisError(
            f"{table} exists with properties other than those given: "
            f"{', '.join(sorted(differing))}. A write sets properties only when it creates the "
            "table or uses schema_mode 'overwrite'.",
            table=table,
        )


def _is_of_rows(txn: OptimisticTransaction, predicate: Expression) -> bool:
    """Whether an overwrite takes single rows out of files."""
    from lakelog.core.expressions.tree import is_partition_only

    if txn.snapshot is None:
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


def _predicate(txn: OptimisticTransaction, job: _Job, schema: StructType) -> Expression | None:
    """What `replace_where` says, bound to the schema; `None` where there is none."""
    if job.replace_where is None:
        return None
    from lakelog.core.expressions.filter import normalize_filter

    log = txn.delta_log
    context = EvalContext.of(log.conf, log.clock.now_ms())
    found = normalize_filter(job.replace_where, schema, context)
    assert found is not None
    return found


def _predicate_text(job: _Job, predicate: Expression | None) -> str | None:
    """The text that the history shows: what was given, where that is SQL."""
    if predicate is None or isinstance(job.replace_where, str):
        return job.replace_where if isinstance(job.replace_where, str) else None
    from lakelog.core.expressions.sql_text import to_sql

    return to_sql(predicate)


def _commit(
    write: TableWrite,
    job: _Job,
    filled: Iterator[Filled],
    removed: list[AddFile],
    predicate: Expression | None,
    report: ProgressCallback,
) -> Written:
    txn, log = write.txn, write.txn.delta_log
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
        if job.request.file_tags:
            tags = job.request.file_tags
            adds = [replace(each, tags={**(each.tags or {}), **tags}) for each in adds]
        # Of a dynamic overwrite: only now is it known which partitions the rows are in.
        removed = [*removed, *write.replaced_by(adds)]
        # In the commit of the rows: another writer that took the same numbers changes the same
        # mark, and conflicts.
        txn.changes.advance_identity_columns(marks)
        now = log.clock.now_ms()
        actions: list[Action] = [*adds, *(file.remove(now) for file in removed)]
        shown = _predicate_text(job, predicate)
        operation, kept = write.operation(adds, removed, predicate=shown), None
        if rows_out is not None:
            actions += rows_out.actions()
            operation, kept = _row_operation(operation, rows_out), rows_out.keeps_row_ids
        done = end_command(
            txn, actions, operation, batch=job.request.batch, keeps_row_ids=kept, skips_empty=False
        )
        assert done.version is not None
        return Written(done.version, adds)


def _row_operation(operation: Operation, found: RowRewrite) -> Operation:
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
    return replace(operation, metrics=metrics)
