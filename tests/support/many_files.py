"""A table of as many files as a test wants, made in seconds: Arrow writes their checkpoint."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from lakelog.core.log.file_names import LAST_CHECKPOINT, checkpoint_name
from support.raw_log import PROTOCOL, RawLog, add, metadata, remove

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

__all__ = ["FEWEST", "table_of_files"]

FEWEST = 3
"""Files that the commits after the checkpoint add."""
ROWS = 1000
"""Of each file."""
_CHECKPOINT = 10
_ADD = pa.struct(
    [
        ("path", pa.string()),
        ("partitionValues", pa.map_(pa.string(), pa.string())),
        ("size", pa.int64()),
        ("modificationTime", pa.int64()),
        ("dataChange", pa.bool_()),
        ("stats", pa.string()),
    ]
)


def table_of_files(folder: Path, count: int, partitions: int = 1000) -> str:
    """Make it, in version 12; the checkpoint is of version 10, and none before it is left.

    Args:
        folder: of the table.
        count: files that it has; `FEWEST` at least.
        partitions: values of `p`; the files of each hold a range of `a` that others reach into.

    Returns:
        The table's path.
    """
    log = RawLog(folder)
    adds = _adds(count - FEWEST + 1, partitions)  # one of them is removed later
    first = pa.table({"add": pa.nulls(2, _ADD), **_table_itself()})
    files = pa.table(
        {"add": adds, **{n: pa.nulls(len(adds), first[n].type) for n in ("protocol", "metaData")}}
    )
    with pq.ParquetWriter(log.folder / checkpoint_name(_CHECKPOINT), first.schema) as writer:
        writer.write_table(first)
        writer.write_table(files, row_group_size=100_000)
    pointer = {"version": _CHECKPOINT, "size": len(adds) + 2}
    (log.folder / LAST_CHECKPOINT).write_text(json.dumps(pointer))
    stats = json.dumps({"numRecords": ROWS})
    new = [add(f"p=0/new-{n}", partitionValues={"p": "0"}, stats=stats) for n in range(FEWEST)]
    log.commit(_info("WRITE", 11), *new[:2], version=_CHECKPOINT + 1)
    gone = remove(adds[0]["path"].as_py(), partitionValues={"p": "0"})
    log.commit(_info("OPTIMIZE", 12), gone, new[2])
    return log.table


def _info(operation: str, minute: int) -> dict[str, object]:
    time = 1_700_000_000_000 + minute * 60_000
    info = {"timestamp": time, "operation": operation, "operationParameters": {}}
    return {"commitInfo": info}


def _table_itself() -> dict[str, pa.Array]:
    text = pa.map_(pa.string(), pa.string())
    format_of_files = pa.struct([("provider", pa.string()), ("options", text)])
    kind = pa.struct(
        [
            ("id", pa.string()),
            ("format", format_of_files),
            ("schemaString", pa.string()),
            ("partitionColumns", pa.list_(pa.string())),
            ("configuration", text),
            ("createdTime", pa.int64()),
        ]
    )
    said = metadata(partition_columns=("p",))["metaData"]
    return {
        "protocol": pa.array([PROTOCOL["protocol"], None]),
        "metaData": pa.array([None, said], kind),
    }


def _adds(count: int, partitions: int) -> pa.Array:
    numbers, lows = range(count), range(0, 600 * count, 600)
    values = _texts(n % partitions for n in numbers)
    ends = [f'{{"numRecords":{ROWS},"minValues":{{"a":', '},"maxValues":{"a":', '},"nullCount":']
    columns = [
        _joined("p=", values, "/part-", _texts(numbers), ".parquet"),
        pa.MapArray.from_arrays(
            pa.array(range(count + 1), pa.int32()), pa.array(["p"] * count), values
        ),
        pa.array(range(10_000, 10_000 + 7 * count, 7), pa.int64()),
        pa.array([1_700_000_000_000] * count, pa.int64()),
        pa.array([True] * count),
        _joined(
            ends[0],
            _texts(lows),
            ends[1],
            _texts(low + ROWS - 1 for low in lows),
            f'{ends[2]}{{"a":1}}}}',
        ),
    ]
    return pa.StructArray.from_arrays(columns, fields=list(_ADD))


def _texts(numbers: Iterable[int]) -> pa.Array:
    return pc.cast(pa.array(list(numbers), pa.int64()), pa.string())


def _joined(*parts: str | pa.Array) -> pa.Array:
    return pc.call_function("binary_join_element_wise", [*map(_scalar, parts), pa.scalar("")])


def _scalar(part: str | pa.Array) -> pa.Array | pa.Scalar:
    return pa.scalar(part) if isinstance(part, str) else part
