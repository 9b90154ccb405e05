"""Lines of a Delta log as plain JSON values: what both sides of a comparison are given."""

from __future__ import annotations

import json
from typing import Any, Final, TypeAlias

Line: TypeAlias = dict[str, dict[str, Any]]
"""One action: its kind and its fields."""

MOMENT: Final = 1_700_000_000_000
"""The time of everything, epoch milliseconds."""

_READER_WRITER: Final = frozenset(
    {
        "columnMapping",
        "deletionVectors",
        "timestampNtz",
        "typeWidening",
        "v2Checkpoint",
        "vacuumProtocolCheck",
        "variantType",
    }
)


def add(
    path: str,
    *,
    ids: tuple[int, int] | None = (1, 9),
    data_change: bool = True,
    dv: str | None = None,
    fields: dict[str, Any] | None = None,
    **partition: Any,
) -> Line:
    """A file becomes part of the table.

    Args:
        path: as the log spells it.
        ids: bounds of the column `id`; the file has ten rows. None for no statistics.
        data_change: `dataChange`.
        dv: a deletion vector, by the text that tells it from others.
        fields: further fields, or other values of those above.
        partition: the partition values.
    """
    value = {
        "path": path,
        "partitionValues": partition,
        "size": 100,
        "modificationTime": MOMENT,
        "dataChange": data_change,
    }
    if ids is not None:
        bounds = {"minValues": {"id": ids[0]}, "maxValues": {"id": ids[1]}}
        stats = {"numRecords": 10, **bounds, "nullCount": {"id": 0}}
        if dv:
            stats["tightBounds"] = False
        value["stats"] = json.dumps(stats)
    if dv:
        value["deletionVector"] = vector(dv)
    return {"add": {**value, **(fields or {})}}


def remove(
    path: str,
    *,
    data_change: bool = True,
    dv: str | None = None,
    fields: dict[str, Any] | None = None,
    **partition: Any,
) -> Line:
    """A file leaves the table."""
    value: dict[str, Any] = {
        "path": path,
        "deletionTimestamp": MOMENT,
        "dataChange": data_change,
        "extendedFileMetadata": True,
        "partitionValues": partition,
        "size": 100,
    }
    if dv:
        value["deletionVector"] = vector(dv)
    return {"remove": {**value, **(fields or {})}}


def vector(name: str) -> dict[str, Any]:
    """A deletion vector that nobody reads; the name is its place on the disk."""
    return {
        "storageType": "u",
        "pathOrInlineDv": f"{name:v<20}",
        "offset": 1,
        "sizeInBytes": 40,
        "cardinality": 2,
    }


def change_file(path: str, **partition: Any) -> Line:
    """A file of change data."""
    return {
        "cdc": {"path": path, "partitionValues": partition, "size": 100, "dataChange": False},
    }


def txn(app_id: str, version: int = 1) -> Line:
    """The progress of an application."""
    return {"txn": {"appId": app_id, "version": version, "lastUpdated": MOMENT}}


def domain(name: str, configuration: str = "{}", *, removed: bool = False) -> Line:
    """Metadata of a domain."""
    return {
        "domainMetadata": {"domain": name, "configuration": configuration, "removed": removed},
    }


def row_ids(high_water_mark: int) -> Line:
    """How many row ids are taken, as row tracking records it."""
    text = json.dumps({"rowIdHighWaterMark": high_water_mark}, separators=(",", ":"))
    return domain("delta.rowTracking", text)


def protocol(*features: str, reader: int = 1, writer: int = 2) -> Line:
    """What a client must know; with features, versions 3 and 7 or 1 and 7 as these need."""
    if not features:
        return {"protocol": {"minReaderVersion": reader, "minWriterVersion": writer}}
    for_readers = sorted(_READER_WRITER.intersection(features))
    body: dict[str, Any] = {"minReaderVersion": 3 if for_readers else 1, "minWriterVersion": 7}
    if for_readers:
        body["readerFeatures"] = for_readers
    return {"protocol": {**body, "writerFeatures": sorted(features)}}


def schema(**columns: str) -> str:
    """A schema of nullable columns, by name and type, as JSON text."""
    fields = [
        {"name": name, "type": kind, "nullable": True, "metadata": {}}
        for name, kind in columns.items()
    ]
    return json.dumps({"type": "struct", "fields": fields})


def info(operation: str = "WRITE", *, blind: bool | None = False, **fields: Any) -> Line:
    """Provenance; `blind=None` leaves out whether it is a blind append."""
    value = {"timestamp": MOMENT, "operation": operation, "operationParameters": {}}
    if blind is not None:
        value["isBlindAppend"] = blind
    return {"commitInfo": {**value, "engineInfo": "another", "txnId": "another", **fields}}
