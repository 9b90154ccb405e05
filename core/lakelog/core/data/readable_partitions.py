"""Files and their partition values, where a wrong value would be a wrong answer or a lost file."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lakelog.core.arrow.partitions import typed_partition_columns
from lakelog.core.compute import pc
from lakelog.core.errors import CorruptLogError
from lakelog.core.schema.column_mapping import physical_name

if TYPE_CHECKING:
    from collections.abc import Container

    import pyarrow as pa

    from lakelog.core.data.table_version import TableVersion


def check_partition_values(
    snapshot: TableVersion, files: pa.Table, names: Container[str] | None = None
) -> None:
    """Refuse files with a partition value that can't be read.

    Args:
        snapshot: the version, for the schema and messages.
        files: rows of `FILE_SCHEMA`.
        names: the partition columns that count; all if `None`.

    Raises:
        CorruptLogError: names the first such file, and its value.
    """
    readable_partitions(snapshot, files, names)


def readable_partitions(
    snapshot: TableVersion, files: pa.Table, names: Container[str] | None = None
) -> pa.Table:
    """The typed partition values of files, one row a file.

    Args:
        snapshot: the version.
        files: rows of `FILE_SCHEMA`.
        names: the partition columns whose values must be readable; all if `None`.

    Raises:
        CorruptLogError: as `check_partition_values`.
    """
    typed, unreadable = typed_partition_columns(
        files, snapshot.partition_schema, session_tz=snapshot.conf.session_tz
    )
    for each in snapshot.partition_schema:
        at = -1
        if names is None or each.name in names:
            at = pc.index(unreadable[each.name], True).as_py()
        if at >= 0:
            path = files["path"][at].as_py()
            text = dict(files["partition_values"][at].as_py() or ()).get(physical_name(each))
            raise CorruptLogError(
                f"[DELTA_PARTITION_COLUMN_CAST_FAILED] in version {snapshot.version} of "
                f"{snapshot.table} the file {path} has the value {text!r} of the partition column "
                f"{each.name}, which is not a valid {each.data_type}, so it is unknown which rows "
                "it holds. Nothing was read or removed. Remove the file from the log and add it "
                "with a value of that type, or overwrite the whole table.",
                table=snapshot.table,
                path=path,
                version=snapshot.version,
                column=each.name,
                value=text,
            )
    return typed
