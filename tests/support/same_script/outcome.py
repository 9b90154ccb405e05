"""What a step left of the tables in its folder, as their logs and files say."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import unquote

import pyarrow.parquet as pq

from lakelog.core import DeltaLog, table_changes
from support.same_script.script import plain

if TYPE_CHECKING:
    from collections.abc import Mapping

    from lakelog.core import Snapshot

_SAID: Final = ("operation", "readVersion", "isolationLevel", "isBlindAppend", "userMetadata")
_ROW_IDS: Final = "delta.rowTracking.materialized{}ColumnName"


def left_in(folder: Path, before: Mapping[str, Any]) -> dict[str, Any]:
    """What is different, of each table by its name.

    Args:
        folder: the step's.
        before: what `state_of` said of its table `t`.
    """
    found = {}
    # A folder without a commit is no table.
    for log in sorted({each.parent for each in folder.glob("**/_delta_log/*.json")}):
        name = str(log.parent.relative_to(folder))
        since = before if name == "t" else {"version": -1}
        if now := _different(log.parent, folder, since):
            found[name] = now
    return found


def state_of(path: Path) -> dict[str, Any]:
    """The state of a table: version, definition and rows."""
    return _state(DeltaLog.for_table(str(path)).snapshot, path.parent)


def _different(path: Path, folder: Path, before: Mapping[str, Any]) -> dict[str, Any]:
    log = DeltaLog.for_table(str(path))
    version = before["version"]
    if log.snapshot.version == version:
        return {}
    state = _state(log.snapshot, folder)
    now: dict[str, Any] = {k: v for k, v in state.items() if v != before.get(k)}
    new = list(log.history(log.snapshot.version - version))[::-1]
    now["commits"] = [_commit(each.commit_info, folder) for each in new]
    if log.snapshot.properties.change_data_feed:
        changes = table_changes(log, max(version + 1, 0)).read_all()
        now["changes"] = _texts(changes.drop_columns(["_commit_timestamp"]).to_pylist(), folder)
    return now


def _state(snapshot: Snapshot, folder: Path) -> dict[str, Any]:
    metadata, protocol = snapshot.metadata, snapshot.protocol
    domains = snapshot.domain_metadata.values()
    state = {
        "version": snapshot.version,
        "schema": json.loads(metadata.schema_string)["fields"],
        "protocol": [protocol.min_reader_version, protocol.min_writer_version],
        "features": sorted({*(protocol.reader_features or ()), *(protocol.writer_features or ())}),
        "properties": dict(metadata.configuration),
        "partitioned by": list(metadata.partition_columns),
        "comment": metadata.description,
        "domains": {each.domain: json.loads(each.configuration) for each in domains},
        "files": snapshot.num_files,
    }
    state = dict(plain(state, str(folder)))
    state["rows"] = _texts(snapshot.to_arrow().to_pylist(), folder)
    if _ROW_IDS.format("RowId") in snapshot.metadata.configuration:
        state["row ids"] = _row_ids(snapshot)
    return state


def _commit(info: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    said = {name: info.get(name) for name in _SAID}
    metrics = {k: str(v) for k, v in info.get("operationMetrics", {}).items()}
    parameters = {k: _parameter(k, v) for k, v in info.get("operationParameters", {}).items()}
    return dict(plain({**said, "metrics": metrics, "parameters": parameters}, str(folder)))


def _parameter(name: str, value: Any) -> Any:
    """One of an operation; how an engine spells an expression in it is its own."""
    try:
        found = json.loads(value)
    except (TypeError, ValueError):
        return value
    if name == "predicate":
        return len(found)
    if name.endswith("Predicates"):
        return [[each["actionType"], "predicate" in each] for each in found]
    if name == "newProtocol":
        return {k: sorted(v) if isinstance(v, list) else v for k, v in found.items()}
    return found


def _row_ids(snapshot: Snapshot) -> list[list[Any]]:
    """Of each row its own id, its row id, and the version that it comes from, if it has them."""
    row_id, version = (
        snapshot.metadata.configuration[_ROW_IDS.format(each)]
        for each in ("RowId", "RowCommitVersion")
    )
    found = []
    for file in snapshot.files():
        # A clone names the files of its source by their whole URIs.
        at = unquote(file.path).removeprefix("file://").removeprefix("file:")
        rows = pq.read_table(Path(snapshot.table.removeprefix("file://")) / at).to_pylist()
        for position, row in enumerate(rows):
            base, since = file.base_row_id, file.default_row_commit_version
            own, own_version = row.get(row_id), row.get(version)
            if own is None and base is not None:
                own = base + position
            found.append([row["id"], own, since if own_version is None else own_version])
    return sorted(found)


def _texts(rows: list[dict[str, Any]], folder: Path) -> list[str]:
    return sorted(json.dumps(list(plain(row, str(folder)).values())) for row in rows)
