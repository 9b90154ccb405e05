"""V2 checkpoints made by hand, out of a classic one: as the protocol describes them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Literal

import pyarrow as pa
import pyarrow.parquet as pq

from lakelog.core.log.file_names import checkpoint_name

if TYPE_CHECKING:
    from pathlib import Path

    from support.raw_log import RawLog

UUID = "80a083e8-7026-4e79-81be-64bd76c43a11"
Form = Literal["json", "parquet", "classic"]

_SIDECAR = pa.struct(
    [("path", pa.string()), ("sizeInBytes", pa.int64()), ("modificationTime", pa.int64())]
)
_ABOUT = pa.struct([("version", pa.int64()), ("tags", pa.map_(pa.string(), pa.string()))])


def top_level(log: RawLog, version: int, form: Form) -> Path:
    """Where the top level of that form lies."""
    if form == "classic":
        return log.folder / checkpoint_name(version)
    return log.folder / f"{version:020d}.checkpoint.{UUID}.{form}"


def sidecars_of(log: RawLog) -> list[Path]:
    """All sidecars, by name."""
    return sorted((log.folder / "_sidecars").glob("*.parquet"))


def convert(log: RawLog, version: int, form: Form, *, sidecars: int | None) -> Path:
    """Make a V2 checkpoint of the classic one of a version, which goes, as does the hint.

    Args:
        log: has the checkpoint.
        version: of the checkpoint.
        form: of the top level.
        sidecars: over how many files the file actions are spread; `None` leaves them inline.

    Returns:
        The top level.
    """
    classic = log.folder / checkpoint_name(version)
    rows = pq.read_table(classic)
    classic.unlink()
    (log.folder / "_last_checkpoint").unlink(missing_ok=True)
    of_files = [row["add"] is not None or row["remove"] is not None for row in rows.to_pylist()]
    mask = pa.array(of_files)
    small, files = rows.filter(pa.array([not each for each in of_files])), rows.filter(mask)
    entries = []
    if sidecars is not None:
        entries = [_sidecar(log, version, files, i, sidecars) for i in range(sidecars)]
        small_or_all = small
    else:
        small_or_all = pa.concat_tables([small, files])
    adds = files.num_rows - files["add"].null_count
    tags = {"numOfAddFiles": str(adds)}
    about = {"version": version, "tags": tags}
    path = top_level(log, version, form)
    if form == "json":
        lines: list[dict[str, Any]] = [{"checkpointMetadata": about}]
        lines += [{"sidecar": each} for each in entries]
        lines += [_without_nulls(row, small_or_all.schema) for row in small_or_all.to_pylist()]
        path.write_text("".join(json.dumps(line) + "\n" for line in lines))
        return path
    extra = pa.table(
        {
            "checkpointMetadata": pa.array(
                [{**about, "tags": list(tags.items())}] + [None] * len(entries), _ABOUT
            ),
            "sidecar": pa.array([None, *entries], _SIDECAR),
        }
    )
    pq.write_table(pa.concat_tables([small_or_all, extra], promote_options="default"), path)
    return path


def _sidecar(log: RawLog, version: int, rows: pa.Table, index: int, of: int) -> dict[str, Any]:
    folder = log.folder / "_sidecars"
    folder.mkdir(exist_ok=True)
    path = folder / f"{version:020d}.checkpoint.{index + 1:010d}.{of:010d}.{UUID}.parquet"
    start, end = index * rows.num_rows // of, (index + 1) * rows.num_rows // of
    pq.write_table(rows.slice(start, end - start).select(["add", "remove"]), path)
    return {"path": path.name, "sizeInBytes": path.stat().st_size, "modificationTime": 1}


def _without_nulls(value: Any, of: pa.DataType | pa.Schema) -> Any:
    """A row as the JSON of an action: maps as objects, absent fields absent."""
    if isinstance(of, pa.Schema) or pa.types.is_struct(of):
        fields = ((each.name, each.type) for each in of)
        return {n: _without_nulls(value[n], kind) for n, kind in fields if value[n] is not None}
    if pa.types.is_map(of):
        return dict(value)
    return value
