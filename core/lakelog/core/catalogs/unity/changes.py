"""A commit's metadata as the API has it: of a new table, or the updates that ride with it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

    from lakelog.core.catalogs.contract import MetadataChange, StagedTable

_OF_THE_CATALOG: Final = ("delta.feature.", "io.unitycatalog.")
_ALSO: Final = frozenset(
    ("delta.minReaderVersion", "delta.minWriterVersion", "delta.lastUpdateVersion")
) | {"delta.lastCommitTimestamp"}
"""Properties that the server makes of other things; no commit sets or removes them."""
_KEPT_DOMAINS: Final = frozenset(("delta.clustering", "delta.rowTracking"))
"""The domains that the server keeps."""


def updates_for(change: MetadataChange, known: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The updates, each at most once; what is the same as before is not sent.

    Args:
        change: the actions of the commit.
        known: the `metadata` of the server's last reply.
    """
    found: list[dict[str, Any]] = []
    if change.protocol is not None:
        found.append({"action": "set-protocol", "protocol": _protocol(change.protocol)})
    if change.metadata is not None:
        found += _metadata(change.metadata, known)
    if kept := _domains(change):
        found.append({"action": "set-domain-metadata", "updates": kept})
    removed = [
        each["domain"]
        for each in change.domains
        if each.get("removed") and each.get("domain") in _KEPT_DOMAINS
    ]
    if removed:
        found.append({"action": "remove-domain-metadata", "domains": removed})
    return found


def new_table(staged: StagedTable, first: MetadataChange, timestamp: int) -> dict[str, Any]:
    """The body of the request that makes a table.

    Args:
        staged: its place.
        first: the actions of its first commit.
        timestamp: the inCommitTimestamp of that.
    """
    metadata, protocol = first.metadata or {}, first.protocol or {}
    found: dict[str, Any] = {
        "name": staged.name.table,
        "location": staged.location,
        "table-type": "MANAGED",
        "columns": json.loads(metadata["schemaString"]),
        "partition-columns": list(metadata.get("partitionColumns") or ()),
        "protocol": _protocol(protocol),
        "properties": dict(metadata.get("configuration") or {}),
        "last-commit-timestamp-ms": timestamp,
    }
    if kept := _domains(first):
        found["domain-metadata"] = kept
    if (comment := metadata.get("description")) is not None:
        found["comment"] = comment
    return found


def _domains(change: MetadataChange) -> dict[str, Any]:
    """Domain -> what it holds, of those that the server keeps."""
    return {
        each["domain"]: _value(each)
        for each in change.domains
        if each.get("domain") in _KEPT_DOMAINS and not each.get("removed")
    }


def _metadata(metadata: Mapping[str, Any], known: Mapping[str, Any]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    columns = json.loads(metadata["schemaString"])
    if columns != known.get("columns"):
        found.append({"action": "set-columns", "columns": columns})
    partitions = list(metadata.get("partitionColumns") or ())
    if partitions != list(known.get("partition-columns") or ()):
        found.append({"action": "set-partition-columns", "partition-columns": partitions})
    before = dict(known.get("properties") or {})
    wanted = dict(metadata.get("configuration") or {})
    changed = {k: v for k, v in wanted.items() if before.get(k) != v and not _is_made(k)}
    gone = sorted(key for key in before if key not in wanted and not _is_made(key))
    if changed:
        found.append({"action": "set-properties", "updates": changed})
    if gone:
        found.append({"action": "remove-properties", "removals": gone})
    comment = metadata.get("description")
    if comment is not None and comment != known.get("comment"):
        found.append({"action": "set-table-comment", "comment": comment})
    return found


def _is_made(key: str) -> bool:
    return key.startswith(_OF_THE_CATALOG) or key in _ALSO


def _protocol(protocol: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "min-reader-version": protocol["minReaderVersion"],
        "min-writer-version": protocol["minWriterVersion"],
        "reader-features": list(protocol.get("readerFeatures") or ()),
        "writer-features": list(protocol.get("writerFeatures") or ()),
    }


def _value(domain: Mapping[str, Any]) -> Any:
    found = json.loads(domain.get("configuration") or "{}")
    # The log repeats the name there, and the API does not.
    return {key: value for key, value in found.items() if key != "domainName"}
