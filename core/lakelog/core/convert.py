"""Making a table of Parquet files that are there already (`CONVERT TO DELTA`)."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING

from lakelog.core.actions import Metadata
from lakelog.core.convert_files import find_files, merged_schema, with_partition_columns
from lakelog.core.data_files import add_files_at
from lakelog.core.delta_log import DeltaLog
from lakelog.core.given_types import property_texts, schema_from
from lakelog.core.log_values import check_text
from lakelog.core.operations import Operation, json_text
from lakelog.core.properties import TableProperties
from lakelog.core.stats import StatsConfig

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from lakelog.core.actions import AddFile
    from lakelog.core.convert_files import ParquetFile
    from lakelog.core.given_types import GivenSchema
    from lakelog.core.schema import StructType
    from lakelog.core.transaction import OptimisticTransaction

__all__ = ["convert_to_delta"]

_STEP = 1000


def convert_to_delta(
    uri: str | os.PathLike[str],
    partition_schema: GivenSchema | None = None,
    *,
    collect_stats: bool = True,
    conf: Mapping[str, str] | None = None,
    properties: Mapping[str, str | bool | int] | None = None,
    user_metadata: str | None = None,
    progress: Callable[[str, int, int], None] | None = None,
) -> int:
    """Make a Delta table of a folder of Parquet files, which stay where they are.

    The files become version 0, in one commit that is streamed: a million of them need no more
    memory than their names. Nobody may write to the folder meanwhile: files that come after the
    listing are not in the table.

    Args:
        uri: the folder.
        partition_schema: the columns that Hive folders (`day=2024-01-01`) give, in their order:
            `{"day": "date"}`, or any form that `create_table` takes. Nothing is guessed from
            folders.
        collect_stats: whether to take statistics from the footers; without them no file is
            skipped by a filter. Columns of floating point and of INT96 timestamps are read where
            a footer lacks their bounds.
        conf: the user's whole Spark conf; it chooses the store.
        properties: table properties.
        user_metadata: a note for the table's history.
        progress: told what is being done (`schema` or `files`), how many files are done, and of
            how many.

    Returns:
        0; of a folder that is a table already its version, and nothing was done.

    Raises:
        DeltaAnalysisError: no files, one that is not Parquet, folders that are not those of
            `partition_schema`, a schema that a table can't have, or columns that its readers can't
            read (nanosecond timestamps, half floats). Nothing was committed.
        SchemaMismatchError: files whose types have nothing in common. Nothing was committed.
        ConcurrentWriteException: another writer made a table there. Nothing was committed.
        CommitOutcomeUnknownError: the storage never said.
        OSError: the storage refused.
    """
    check_text(user_metadata, "user_metadata")
    log = DeltaLog.for_table(uri, conf)
    txn = log.start_transaction()
    if txn.snapshot is not None:
        return txn.read_version
    partitions = schema_from(partition_schema, "partition_schema")
    filesystem, root = log.store.filesystem, log.store.filesystem_path(log.table)
    found = find_files(filesystem, root, partitions, session_tz=log.conf.session_tz)
    tell = progress or _nobody

    def read(done: int) -> None:
        tell("schema", done, len(found))

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
    stats = StatsConfig.of(TableProperties(txn.metadata.configuration), log.conf)
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
        _actions(txn, files, schema, stats if collect_stats else None, tell), operation
    )


def _nobody(*_: object) -> None:
    pass


def _actions(
    txn: OptimisticTransaction,
    files: Sequence[ParquetFile],
    schema: StructType,
    stats: StatsConfig | None,
    tell: Callable[[str, int, int], None],
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
        )
        tell("files", start + len(some), len(files))
