"""Data files written by Spark's own Parquet writer: the executors need nothing but Spark.

The job writes into a folder of its own below the table's root, because concurrent jobs in one
folder share (and delete) its `_temporary`. Where moving a file is cheap the files then move to
where Delta's own writer would have put them.
"""

from __future__ import annotations

import uuid
from dataclasses import replace
from datetime import datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from lakelog.core.engine.tables import data_path, encode_path
from lakelog.core.engine.values import has_variants
from lakelog.core.engine.write import (
    PartitionValueError,
    check_arrived,
    delete_made,
    drop_folder,
    interval_text,
    interval_value,
    make_folder,
    partition_folder,
    partition_texts,
    random_folder,
    refuse_link,
    sync_files,
)
from lakelog.spark.session.session import spark_version
from lakelog.spark.session.temporary_confs import temporary_confs
from lakelog.spark.types.path_forms import hadoop_path, quoted, scheme_of
from lakelog.spark.writing.counted_rows import CountedRows

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import pyarrow as pa
    from pyarrow.fs import FileSystem
    from pyspark.sql import DataFrame

    from lakelog.core.actions import AddFile
    from lakelog.core.engine.write import WritePlan

_PARQUET = {
    # INT96, Spark's default, has no statistics, and clients read it in different ways.
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    "spark.sql.parquet.datetimeRebaseModeInWrite": "CORRECTED",
    "spark.sql.parquet.writeLegacyFormat": "false",
}
_VARIANTS = {
    # Only tables with the feature variantShredding may have shredded files, and none require them.
    "spark.sql.variant.writeShredding.enabled": "false",
}
_OPTIONS_READ_SINCE = (4, 3)
"""Older versions read the settings above only from the session's conf."""
_COMMITTER = {
    "mapreduce.fileoutputcommitter.marksuccessfuljobs": "false",
    # Tasks move their own files into place, instead of the driver moving all of them. A
    # failed job may leave some behind; nothing refers to them.
    "mapreduce.fileoutputcommitter.algorithm.version": "2",
}
_SPARKS_NAMES = {"lz4": "lz4_raw"}
"""Spark's `lz4` is Hadoop's own variant of it."""
_CHEAP_MOVES = ("file", "hdfs")
"""Schemes where moving a file only renames it; an object store copies it."""
_NULL = "__HIVE_DEFAULT_PARTITION__"


def write_natively(
    frame: DataFrame,
    plan: WritePlan,
    table: str,
    actions_of: Callable[[list[tuple[str, dict[str, str | None]]]], list[AddFile]],
    plain: Sequence[str] = (),
) -> list[AddFile]:
    """Write the rows of a DataFrame with `DataFrameWriter.parquet`.

    Args:
        frame: with the columns of `plan.schema`.
        plan: what to write where.
        table: the table's URI, as Hadoop can resolve it.
        actions_of: makes the actions of files, given as paths relative to the table's root and
            partition values as the log spells them.
        plain: leaf columns, as dotted paths, to write without a dictionary.

    Returns:
        The actions of the files that have rows.

    Raises:
        OSError: a file that was written is not there, or an object store has other rows than Spark
            wrote; nothing is kept.
    """
    filesystem = plan.filesystem or _local()
    # A folder for each job: Spark's writer refuses one that exists, and what a failed job left
    # behind goes with its folder, which no version names.
    folder = "/".join(filter(None, (plan.folder, f"write-{uuid.uuid4()}")))
    stays = False
    if filesystem.type_name == "local":
        refuse_link(plan.root, plan.folder)
    is_cheap = scheme_of(table) in _CHEAP_MOVES
    try:
        rows = _with_folder_columns(frame, plan)
        # An object store's client believes any answer of success, whoever gave it.
        sent = None if is_cheap else CountedRows(rows)
        rows = rows if sent is None else sent.frame
        _run(rows, plan, f"{hadoop_path(table)}/{folder}", plain)
        paths = _parquet_files(filesystem, plan.root, folder)
        values = [_partition_values(plan, path.removeprefix(folder)) for path in paths]
        adds = actions_of(list(zip(paths, values, strict=True)))
        if sent is not None:
            sent.check(adds, table)
        # Delta asks for no layout: on an object store, where a move is a copy, files stay where the
        # job put them.
        if plan.prefix_length or is_cheap:
            moved = [_moved(filesystem, plan, each) for each in adds]
            full = [data_path(plan.root, each.path) for each in moved]
            if plan.fsync and filesystem.type_name == "local":
                # Hadoop's local file system closes files and flushes none of them.
                sync_files(plan.root, [each.removeprefix(f"{plan.root}/") for each in full])
            sizes = (each.size for each in moved)
            check_arrived(filesystem, list(zip(full, sizes, strict=True)))
            return moved
        _drop_unnamed(filesystem, plan.root, paths, adds)
        stays = bool(adds)
        return adds
    finally:
        if not stays:
            drop_folder(filesystem, plan.root, folder)


def _drop_unnamed(filesystem: FileSystem, root: str, paths: list[str], adds: list[AddFile]) -> None:
    """Delete the files without rows, which Spark writes but no version will name."""
    named = {data_path(root, each.path) for each in adds}
    delete_made(filesystem, root, [path for path in paths if f"{root}/{path}" not in named])


def _run(frame: DataFrame, plan: WritePlan, target: str, plain: Sequence[str]) -> None:
    codec = _SPARKS_NAMES.get(plan.compression, plan.compression)
    writer = frame.write.options(**_PARQUET, **_COMMITTER, compression=codec)
    writer = writer.options(**{f"parquet.enable.dictionary#{each}": "false" for each in plain})
    if plan.max_rows_per_file:
        writer = writer.option("maxRecordsPerFile", plan.max_rows_per_file)
    if plan.partition_columns:
        writer = writer.partitionBy(*_folder_names(plan))
    spark = frame.sparkSession
    confs = {} if spark_version(spark) >= _OPTIONS_READ_SINCE else _PARQUET
    if has_variants(plan.schema):
        confs = {**confs, **_VARIANTS}
    with temporary_confs(spark, confs):
        writer.parquet(target)


def _folder_names(plan: WritePlan) -> list[str]:
    """Names for the partition columns that no other column has."""
    taken = {name.lower() for name in plan.schema.names}
    names = []
    for index in range(len(plan.partition_columns)):
        name = f"p{index}"
        while name in taken:
            name += "_"
        names.append(name)
    return names


def _with_folder_columns(frame: DataFrame, plan: WritePlan) -> DataFrame:
    """Replace the partition columns by strings that survive as folder names.

    Spark would format a timestamp in the session's zone, and other types differently from Delta.
    """
    if not plan.partition_columns:
        return frame
    data = [quoted(name) for name in plan.schema.names if name not in plan.partition_columns]
    texts = [
        f"{_text_sql(quoted(name), plan.schema.field(name).type)} AS {alias}"
        for name, alias in zip(plan.partition_columns, _folder_names(plan), strict=True)
    ]
    return frame.selectExpr(*data, *texts)


def _text_sql(column: str, kind: pa.DataType) -> str:
    import pyarrow as pa

    if pa.types.is_timestamp(kind) and kind.tz:
        return f"CAST(unix_micros({column}) AS STRING)"
    if pa.types.is_date32(kind):
        return f"CAST(unix_date({column}) AS STRING)"
    if pa.types.is_binary(kind):
        return f"hex({column})"
    return f"CAST({column} AS STRING)"


def _value(text: str, kind: pa.DataType) -> Any:
    """The value that `_text_sql` made a string of, in a form that Arrow takes."""
    import pyarrow as pa

    types = pa.types
    if types.is_timestamp(kind):
        return int(text) if kind.tz else datetime.fromisoformat(text)
    if types.is_integer(kind) or types.is_date32(kind):
        return int(text)
    if types.is_boolean(kind):
        return text == "true"
    if types.is_decimal(kind):
        return Decimal(text)
    if types.is_floating(kind):
        return float(text)
    return bytes.fromhex(text) if types.is_binary(kind) else text


def _partition_values(plan: WritePlan, path: str) -> dict[str, str | None]:
    """The partition values of a file as the log spells them.

    Args:
        plan: names the partition columns.
        path: below the job's folder; each of its folders names one.
    """
    import pyarrow as pa

    values: dict[str, str | None] = {}
    folders = path.split("/")[1:-1]
    for name, folder in zip(plan.partition_columns, folders, strict=True):
        text = unquote(folder.partition("=")[2])
        kind = plan.schema.field(name).type
        months = name in plan.month_columns
        if months or pa.types.is_duration(kind):
            # A narrower type of Spark's leaves fields out.
            value = None if text == _NULL else interval_value(text, months=months)
            values[name] = None if value is None else interval_text(value, months=months)
            continue
        try:
            value = None if text == _NULL else _value(text, kind)
            array = pa.array([value], kind)
        except (ValueError, OverflowError):
            raise PartitionValueError(name, text, "is outside what Python can represent") from None
        values[name] = partition_texts(array, name)[0]
    return values


def _parquet_files(filesystem: FileSystem, root: str, folder: str) -> list[str]:
    """The data files of a job, relative to the root. Spark's own files begin with `_` or `.`."""
    from pyarrow.fs import FileSelector

    selector = FileSelector(f"{root}/{folder}", recursive=True, allow_not_found=True)
    return sorted(
        info.path.removeprefix(f"{root}/")
        for info in filesystem.get_file_info(selector)
        if info.is_file and info.base_name.endswith(".parquet") and info.base_name[0] not in "._"
    )


def _moved(filesystem: FileSystem, plan: WritePlan, add: AddFile) -> AddFile:
    """Move a file out of the job's folder, to where Delta's own layout has it."""
    values = [add.partition_values[name] for name in plan.partition_columns]
    before = data_path(plan.root, add.path)
    name = before.rpartition("/")[2]
    inner = (
        random_folder(plan.prefix_length)
        if plan.prefix_length
        else partition_folder(plan.partition_columns, values)
    )
    folder = "/".join(filter(None, (plan.folder, inner)))
    if folder:
        make_folder(filesystem, plan.root, folder)
        name = f"{folder}/{name}"
    filesystem.move(before, f"{plan.root}/{name}")
    return replace(add, path=encode_path(name))


def _local() -> FileSystem:
    from pyarrow.fs import LocalFileSystem

    return LocalFileSystem()
