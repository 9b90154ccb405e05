"""What a user writes without Spark, for type checkers alone: it is checked, and never run."""

from __future__ import annotations

import sys
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import duckdb
import pandas as pd
import polars as pl

from lakelog.core import (
    AttemptFiles,
    Clock,
    CommitStats,
    DeltaConf,
    DeltaLog,
    Expression,
    Filter,
    IsolationLevel,
    MergeBuilder,
    Operation,
    OptimisticTransaction,
    OptimizeProgress,
    Progress,
    RowsChanged,
    Scan,
    Snapshot,
    SystemClock,
    __version__,
    clone,
    convert_to_delta,
    create_table,
    delete_rows,
    lit,
    merge,
    optimize,
    purge,
    repair,
    restore,
    retry_on_conflict,
    scan,
    undo_repair,
    update_rows,
    vacuum,
    write_arrow,
    write_events_to,
)
from lakelog.core.actions import Action, AddFile, Metadata, action_from_json
from lakelog.core.alter import (
    add_columns,
    add_constraint,
    change_column,
    cluster_by,
    drop_columns,
    drop_constraint,
    drop_feature,
    enable_row_tracking,
    rename_column,
    replace_columns,
    set_properties,
    sync_identity,
    unset_properties,
)
from lakelog.core.errors import (
    CommitOutcomeUnknownError,
    DeltaConcurrentModificationException,
    DeltaError,
    TableNotFoundError,
)
from lakelog.core.events import CommitOutcome
from lakelog.core.hooks import CommittedTransaction, PostCommitHook
from lakelog.core.schema import (
    ArrayType,
    DecimalType,
    MapType,
    PrimitiveType,
    StructField,
    StructType,
    column_with_default,
    generated_column,
    identity_column,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

TABLE = "s3://lake/flights"
CONF = {"spark.delta.logStore.s3.impl": "s3-conditional"}


def make(path: Path) -> int:
    schema = StructType(
        (
            StructField("day", PrimitiveType("date"), nullable=False),
            StructField("delay", DecimalType(10, 2)),
            StructField("stops", ArrayType(PrimitiveType("string"))),
            StructField("seats", MapType(PrimitiveType("string"), PrimitiveType("integer"))),
            identity_column("id"),
            generated_column("year", PrimitiveType("integer"), "year(day)"),
            column_with_default("origin", PrimitiveType("string"), "'unknown'"),
        )
    )
    names: list[str] = schema.names
    field = schema.get("day")
    if field is not None:
        print(field.data_type, field.nullable, field.metadata, names)
    create_table(path, schema, partition_by="year", properties={"delta.appendOnly": True})
    create_table(path, {"day": "date", "delay": "double"}, mode="create_or_replace", conf=CONF)
    convert_to_delta("/lake/parquet", "year int", collect_stats=False)
    return create_table("/lake/names", "id bigint, name string", cluster_by=["id"])


def write() -> None:
    rows = [{"day": "2013-01-01", "delay": 2.0}]
    changed: RowsChanged | int | None = write_arrow(TABLE, rows, mode="append", conf=CONF)
    write_arrow(TABLE, {"day": ["2013-01-01"], "delay": [2.0]}, schema_mode="merge")
    write_arrow(TABLE, [{"delay": 2.0}, {"day": "2013-01-01"}])
    write_arrow(
        TABLE, pd.DataFrame({"delay": [2.0]}), mode="overwrite", replace_where="year = 2013"
    )
    write_arrow(TABLE, pl.DataFrame({"delay": [2.0]}), partition_overwrite_mode="dynamic")
    write_arrow(TABLE, pl.LazyFrame({"delay": [2.0]}), app_id="nightly", app_version=7)
    write_arrow(TABLE, duckdb.values([1]), schema="delay int", user_metadata="why")
    write_arrow(TABLE, scan("/lake/other"), properties={"delta.enableChangeDataFeed": "true"})
    print(changed)


def report(progress: Progress) -> None:
    print(progress.text, progress.done, progress.total, progress.unit)


def report_optimize(progress: OptimizeProgress) -> None:
    print(progress.bins, progress.bins_done, progress.version)


def read() -> None:
    rows: Scan = scan(TABLE, ["day", "delay"], "delay > 5", version=3, conf=CONF, progress=report)
    frame = rows.to_pandas()
    print(frame.columns, frame.head(), frame["delay"].mean())
    arrow_backed: pd.DataFrame = rows.to_pandas(types_mapper=pd.ArrowDtype)
    polars = rows.to_polars()
    print(polars.height, polars.filter(pl.col("delay") > 5), arrow_backed)
    lazy = rows.to_polars(lazy=True)
    print(lazy.filter(pl.col("delay") > 5).collect())
    relation = rows.to_duckdb()
    print(relation.filter("delay > 5").fetchall())
    with duckdb.connect() as connection:
        print(rows.to_duckdb(connection).filter("delay > 5").fetchall())
    count: int = rows.limit(10).count()
    least: Any = rows.min("delay")
    print(count, least, rows.max("delay"), rows.narrowed(["day"], ("delay", ">", 5)))


def filters() -> list[Filter]:
    late: Expression = lit(True)
    return ["delay > 5", ("delay", ">", 5), [("day", "=", "2013-01-01"), ("delay", ">", 5)], late]


def versions() -> None:
    log = DeltaLog.for_table(TABLE, CONF)
    snapshot: Snapshot = log.snapshot
    print(snapshot.version, snapshot.time, snapshot.timestamp, snapshot.num_files)
    print(snapshot.size_in_bytes, snapshot.partition_columns, snapshot.schema.to_json())
    print(snapshot.metadata.configuration, snapshot.protocol.reader_features)
    print(snapshot.properties.get("delta.appendOnly"), snapshot.domain_metadata)
    print(snapshot.txn_version("nightly"), snapshot.transactions, snapshot.commit_info)
    for file in snapshot.files("year = 2013"):
        print(file.path, file.size, file.partition_values, file.stats)
    print(log.snapshot_at(3).scan("day").to_pandas(), log.snapshot_at(timestamp="2013-01-01"))
    for entry in log.history(limit=10):
        print(entry.version, entry.time, entry.operation, entry.parameters, entry.metrics)
    print(log.update().version, log.known_version, log.table_exists(), log.table, log.conf)
    log.checkpoint()
    log.upgrade_protocol(features=["deletionVectors"])
    print(log.generate_symlink_manifest())


def change() -> None:
    deleted = delete_rows(TABLE, "delay IS NULL", conf=CONF)
    updated = update_rows(TABLE, {"delay": "delay + 1", "origin": lit("JFK")}, ("delay", "<", 0))
    print(deleted.version, deleted.metrics["numDeletedRows"], updated.metrics)
    builder: MergeBuilder = merge(
        TABLE, [{"id": 1, "delay": 2.0}], "target.id = source.id", with_schema_evolution=True
    )
    merged = (
        builder.when_matched_update({"delay": "source.delay"}, where="source.delay > 0")
        .when_matched_update_all()
        .when_matched_delete("source.delay IS NULL")
        .when_not_matched_insert({"id": "source.id", "delay": lit(0)})
        .when_not_matched_insert_all()
        .when_not_matched_by_source_update({"delay": lit(None)}, "target.delay < 0")
        .when_not_matched_by_source_delete()
        .execute()
    )
    print(merged.version, merged.metrics)


def alter() -> None:
    print(
        add_columns(TABLE, "carrier string", after="day"),
        add_columns(TABLE, {"seat": "int"}, parent="plane"),
        change_column(TABLE, "carrier", nullable=True, comment="IATA"),
        rename_column(TABLE, ("plane", "seat"), "seats"),
        drop_columns(TABLE, ["carrier"]),
        replace_columns(TABLE, "day date, delay double"),
        add_constraint(TABLE, "positive", "delay > 0"),
        drop_constraint(TABLE, "positive", if_exists=True),
        set_properties(TABLE, {"delta.logRetentionDuration": "30 days"}),
        unset_properties(TABLE, ["delta.logRetentionDuration"]),
        cluster_by(TABLE, ["day"]),
        sync_identity(TABLE, "id"),
        enable_row_tracking(TABLE),
        drop_feature(TABLE, "deletionVectors"),
    )


def maintain() -> None:
    optimized = optimize(TABLE, z_order_by=["day"], progress=report_optimize)
    print(optimized.version, optimized.metrics.files_added.total_size, purge(TABLE).versions)
    print(optimized.metrics.z_order_stats, optimized.metrics.as_delta())
    vacuumed = vacuum(TABLE, 168, dry_run=True, progress="auto")
    print(vacuumed.num_files, vacuumed.size_in_bytes, vacuumed.cutoff)
    restored = restore(TABLE, timestamp=datetime(2013, 1, 1, tzinfo=UTC))
    print(restored.restored_version, restored.metrics, restored.missing)
    cloned = clone(TABLE, "/lake/copy", 3, shallow=True)
    print(cloned.version, cloned.source_version, cloned.metrics)
    repaired = repair(TABLE, dry_run=False)
    for defect in repaired.defects:
        print(defect.kind, defect.path, defect.problem, defect.mend)
    if repaired.backup is not None:
        undo_repair(TABLE, repaired.backup)


class Notify(PostCommitHook):
    @property
    def name(self) -> str:
        return "notify"

    def __call__(self, committed: CommittedTransaction) -> None:
        print(committed.version, committed.actions, committed.delta_log.table)


class Fixed:
    def now_ms(self) -> int:
        return 0

    def monotonic(self) -> float:
        return 0.0

    def sleep(self, seconds: float) -> None:
        print(seconds)


def transact() -> None:
    clock: Clock = SystemClock() if len(sys.argv) > 1 else Fixed()
    log = DeltaLog.for_table(TABLE, CONF, clock)
    txn: OptimisticTransaction = log.start_transaction()
    txn.register_post_commit_hook(Notify())
    read: list[AddFile] = txn.filter_files("year = 2013")
    removed: list[Action] = [each.remove(deletion_timestamp=0) for each in read]
    files = AttemptFiles(txn)
    files.at(["part-0.parquet"])
    version: int = txn.commit(removed, Operation("DELETE", {"predicate": "year = 2013"}))
    print(version, [stats.to_json() for stats in txn.attempts])
    metadata: Metadata = txn.metadata
    print(metadata.partition_columns, IsolationLevel("Serializable"), action_from_json("{}"))
    print(log.with_new_transaction(lambda each: each.txn_version("nightly")))


def handle() -> int:
    def work() -> int | None:
        return delete_rows(TABLE, "delay < 0").version

    def again(error: DeltaConcurrentModificationException, attempt: int) -> None:
        print(error.winning_version, attempt)

    try:
        retry_on_conflict(work, attempts=3, on_conflict=again)
    except CommitOutcomeUnknownError as error:
        print(error)
    except TableNotFoundError as error:
        print(error.fields["table"], error.filename)
    except DeltaError as error:
        print(error.fields)
    return 0


def settings() -> Mapping[str, str]:
    conf = DeltaConf.from_mapping(CONF)
    is_on: bool = conf.get_bool("x.enabled", True)
    most: int | None = conf.get_int("x.most")
    print(is_on, most, conf.session_tz, __version__)
    return conf


def events(stats: CommitStats) -> bool:
    handler = write_events_to("/var/log/commits.jsonl")
    handler.close()
    return stats.outcome is CommitOutcome.COMMITTED and stats.version > 0


def arrow() -> Iterator[int]:
    import pyarrow as pa
    import pyarrow.dataset as ds

    from lakelog.core import read_arrow, table_changes

    create_table(TABLE, pa.schema([("day", pa.date32())]))
    create_table(TABLE, [pa.field("day", pa.date32())])
    create_table(TABLE, {"day": pa.date32()})
    write_arrow(TABLE, pa.table({"day": []}))
    write_arrow(TABLE, pa.RecordBatch.from_pylist([{"day": None}]))
    write_arrow(TABLE, ds.dataset("/lake/parquet"))
    write_arrow(TABLE, iter([pa.table({"day": []})]))
    write_arrow(TABLE, scan(TABLE, where=ds.field("day") > 5).to_reader())
    table = read_arrow(TABLE, ["day"], "delay > 5", version=3)
    print(table.num_rows, table.column("day"), table.schema.names)
    for batch in scan(TABLE).to_batches(1000, ordered=False):
        yield batch.num_rows
    for batch in scan(TABLE):
        yield batch.num_rows
    print(scan(TABLE).schema.names, scan(TABLE).head(3).num_rows, scan(TABLE).to_reader().schema)
    print(scan(TABLE).to_pyarrow_dataset().count_rows())
    print(table_changes(TABLE, 3, 5).read_all().num_rows)
    snapshot = DeltaLog.for_table(TABLE).snapshot
    print(snapshot.to_arrow("day").num_rows, snapshot.file_table.num_rows)
    yield sum(batch.num_rows for batch in snapshot.to_batches(["day"]))
    print(vacuum(TABLE, dry_run=True).files.num_rows)
