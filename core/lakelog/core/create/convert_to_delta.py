"""Creating a table from existing Parquet files (`CONVERT TO DELTA`)."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING, Literal

from lakelog.core.actions import Metadata
from lakelog.core.actions.operation import Operation, json_text
from lakelog.core.arguments import check_text, read_arguments
from lakelog.core.create.found_files import find_files, merged_schema, with_partition_columns
from lakelog.core.create.path_spelling import spelling_for
from lakelog.core.data.file_writer import add_files_at
from lakelog.core.delta_log import log_of
from lakelog.core.input.given_types import property_texts, schema_from
from lakelog.core.progress import Progress, progress_callback
from lakelog.core.stats.collect import StatsConfig
from lakelog.core.telemetry.switch import command

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from lakelog.core.actions import AddFile
    from lakelog.core.create.found_files import ParquetFile
    from lakelog.core.delta_log import TableOrLog
    from lakelog.core.input.given_types import GivenSchema
    from lakelog.core.progress import GivenProgress, ProgressCallback
    from lakelog.core.schema import StructType
    from lakelog.core.transaction.optimistic import OptimisticTransaction

_STEP = 1000


@read_arguments
@command("convert to delta")
def convert_to_delta(
    uri: TableOrLog,
    partition_schema: GivenSchema | None = None,
    *,
    collect_stats: bool = True,
    non_ascii_paths: Literal["refuse", "bare", "encoded"] = "refuse",
    conf: Mapping[str, str] | None = None,
    properties: Mapping[str, str | bool | int] | None = None,
    user_metadata: str | None = None,
    progress: GivenProgress = None,
) -> int:
    """Turn a folder of Parquet files into a Delta table; the files stay where they are.

    The files become version 0, in one commit that is streamed: a million of them need no more
    memory than their names. Nothing else may write to the folder meanwhile: files that come after
    the listing are not in the table.

    Args:
        uri: the folder.
        partition_schema: the columns that Hive folders (`day=2024-01-01`) give, in their order:
            `{"day": "date"}`, or any form that `create_table` takes. Nothing is guessed from
            folders.
        collect_stats: whether to take statistics from the footers; without them no file is
            skipped by a filter. Columns of floating point and of INT96 timestamps are read where
            a footer lacks their bounds.
        non_ascii_paths: what is done where files or folders have letters beyond ASCII in their
            names, of which no spelling in the log is safe with all clients. They are refused; or
            converted with a warning that names them, `bare` as delta-spark spells them, for tables
            that deltalake does not change, or `encoded` as deltalake does, for tables on which
            delta-spark's VACUUM never runs: it would delete these files.
        conf: the user's whole Spark conf, which chooses the store; a `DeltaLog` has its own.
        properties: table properties.
        user_metadata: a note for the table's history.
        progress: called now and then with how many files' schemas are read, and then with how many
            files are in the log; or `auto` for a bar.

    Returns:
        0, or the current version of a folder that is already a table: nothing is done then.

    Raises:
        DeltaAnalysisError: no files, one that is not Parquet, folders that are not those of
            `partition_schema`, letters beyond ASCII in paths (`paths` has them), a schema that a
            table can't have, or columns that its readers can't read (nanosecond timestamps, half
            floats). Nothing was committed.
        SchemaMismatchError: files whose types have nothing in common. Nothing was committed.
        ConcurrentWriteException: another writer made a table there. Nothing was committed.
        CommitOutcomeUnknownError: the storage never confirmed the commit.
        OSError: the storage failed.
    """
    check_text(user_metadata, "user_metadata")
    log = log_of(uri, conf)
    txn = log.start_transaction()
    if txn.snapshot is not None:
        return txn.reads.version
    partitions = schema_from(partition_schema, "partition_schema")
    with progress_callback(progress) as report:
        return _convert(
            txn,
            partitions,
            report,
            collect_stats=collect_stats,
            non_ascii_paths=non_ascii_paths,
            properties=properties,
            user_metadata=user_metadata,
        )


def _convert(
    txn: OptimisticTransaction,
    partitions: StructType,
    report: ProgressCallback,
    *,
    collect_stats: bool,
    non_ascii_paths: Literal["refuse", "bare", "encoded"],
    properties: Mapping[str, str | bool | int] | None,
    user_metadata: str | None,
) -> int:
    log = txn.delta_log
    filesystem, root = log.store.filesystem, log.store.filesystem_path(log.table)
    found = find_files(filesystem, root, partitions, session_tz=log.conf.session_tz)
    spell = spelling_for(non_ascii_paths, log.table, [each.path for each in found])

    def read(done: int) -> None:
        report(Progress(text="schema", done=done, total=len(found), unit="files"))

    data, files = merged_schema(filesystem, root, found, read)
    schema = with_partition_columns(data, partitions)
    txn.update_metadata(
        Metadata(
            id=str(uuid.uuid4()),
            schema_string=schema.to_json(),
            partition_columns=partitions.names,
            configuration=property_texts(properties),
        )
    )
    stats = StatsConfig.from_properties(txn.changes.terms.properties, log.conf)
    operation = Operation(
        name="CONVERT",
        parameters={
            "numFiles": len(files),
            "partitionedBy": json_text(partitions.names),
            "collectStats": collect_stats and stats is not None,
            "sourceFormat": "parquet",
        },
        metrics={"numConvertedFiles": len(files)},
        user_metadata=user_metadata,
    )
    return txn.commit_large(
        _actions(txn, files, schema, stats if collect_stats else None, spell, report), operation
    )


def _actions(
    txn: OptimisticTransaction,
    files: Sequence[ParquetFile],
    schema: StructType,
    stats: StatsConfig | None,
    spell: Callable[[str], str],
    report: ProgressCallback,
) -> Iterator[AddFile]:
    store, table = txn.delta_log.store, txn.delta_log.table
    for start in range(0, len(files), _STEP):
        some = files[start : start + _STEP]
        yield from add_files_at(
            store.filesystem,
            store.filesystem_path(table),
            [(each.path, each.partition_values) for each in some],
            schema,
            txn.metadata.partition_columns,
            stats=stats,
            spell=spell,
        )
        done = start + len(some)
        report(Progress(text="files", done=done, total=len(files), unit="files"))
