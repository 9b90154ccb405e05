"""Raising a table's protocol on request (delta: `upgradeTableProtocol`, `addFeatureSupport`)."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from lakelog.core.operations import Operation, json_text
from lakelog.core.properties import FEATURE_PREFIX, validate_properties
from lakelog.core.protocol import upgraded_for

if TYPE_CHECKING:
    from collections.abc import Iterable

    from lakelog.core.delta_log import DeltaLog

__all__ = ["upgrade_protocol"]


def upgrade_protocol(
    log: DeltaLog,
    reader_version: int | None,
    writer_version: int | None,
    features: Iterable[str],
) -> int:
    """See `DeltaLog.upgrade_protocol`."""
    txn = log.start_transaction()
    if txn.snapshot is None:
        _ = log.snapshot  # raises, and says what is there instead
    words = {f"{FEATURE_PREFIX}{name}": "supported" for name in features}
    if reader_version is not None:
        words["delta.minReaderVersion"] = str(reader_version)
    if writer_version is not None:
        words["delta.minWriterVersion"] = str(writer_version)
    asked = {**txn.metadata.configuration, **validate_properties(words, log.conf)}
    protocol = upgraded_for(txn.protocol, replace(txn.metadata, configuration=asked))
    if protocol is None:
        return txn.read_version
    text = json_text(protocol.to_json_value())
    return txn.commit([protocol], Operation("UPGRADE PROTOCOL", {"newProtocol": text}))
