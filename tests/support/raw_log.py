"""A Delta log written by hand, line by line: the log that a test needs, and no other."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

from lakelog.core.log.file_names import LOG_FOLDER, commit_name
from lakelog.core.schema import PrimitiveType, StructField, StructType

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from lakelog.core.schema import DataType

SCHEMA = StructType(
    (StructField("a", PrimitiveType("long")), StructField("p", PrimitiveType("string")))
)

PROTOCOL = {"protocol": {"minReaderVersion": 1, "minWriterVersion": 2}}


def metadata(
    *,
    partition_columns: tuple[str, ...] = (),
    schema: StructType = SCHEMA,
    table_id: str = "table-1",
    configuration: Mapping[str, str] | None = None,
) -> dict[str, Any]:
    """A metaData line."""
    return {
        "metaData": {
            "id": table_id,
            "format": {"provider": "parquet", "options": {}},
            "schemaString": schema.to_json(),
            "partitionColumns": list(partition_columns),
            "configuration": dict(configuration or {}),
            "createdTime": 1_700_000_000_000,
        }
    }


def add(path: str, **fields: Any) -> dict[str, Any]:
    """An add line."""
    value = {"path": path, "partitionValues": {}, "size": 1, "modificationTime": 2}
    return {"add": {**value, "dataChange": True, **fields}}


def remove(path: str, deletion_timestamp: int = 1_700_000_000_000, **fields: Any) -> dict[str, Any]:
    """A remove line."""
    value = {"path": path, "deletionTimestamp": deletion_timestamp, "dataChange": True}
    return {"remove": {**value, **fields}}


class RawLog:
    """The log folder of one table on the local disk."""

    def __init__(self, table: Path) -> None:
        self.table = str(table)
        self.folder = table / LOG_FOLDER
        self.folder.mkdir(parents=True, exist_ok=True)
        self.next = 0

    def create(
        self, *actions: dict[str, Any], configuration: Mapping[str, str] | None = None
    ) -> RawLog:
        """Version 0: protocol, metadata, and what else is given."""
        return self.commit(PROTOCOL, metadata(configuration=configuration), *actions)

    def commit(self, *actions: dict[str, Any], version: int | None = None) -> RawLog:
        """The next version, or the given one."""
        return self.write("".join(json.dumps(a) + "\n" for a in actions), version=version)

    def write(self, text: str | bytes, *, version: int | None = None) -> RawLog:
        """A commit of any bytes."""
        version = self.next if version is None else version
        data = text.encode() if isinstance(text, str) else text
        self.path(version).write_bytes(data)
        self.next = version + 1
        return self

    def path(self, version: int) -> Path:
        """The file of a commit."""
        return self.folder / commit_name(version)

    def touch(self, version: int, milliseconds: int) -> None:
        """Set the time of a commit."""
        os.utime(self.path(version), ns=(milliseconds * 1_000_000, milliseconds * 1_000_000))


def partitioned(root: Path, data_type: DataType, *texts: str | None) -> str:
    """A table partitioned by `p`, with a file for each text of it; its one row's `a` counts them.

    Returns:
        The table's path.
    """
    schema = StructType((StructField("a", PrimitiveType("long")), StructField("p", data_type)))
    adds = []
    for number, text in enumerate(texts):
        file = root / f"f{number}.parquet"
        pq.write_table(pa.table({"a": pa.array([number], pa.int64())}), file)
        fields = {"size": file.stat().st_size, "stats": '{"numRecords":1}'}
        adds.append(add(file.name, partitionValues={"p": text}, **fields))
    RawLog(root).commit(PROTOCOL, metadata(partition_columns=("p",), schema=schema), *adds)
    return str(root)
