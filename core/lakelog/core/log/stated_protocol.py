"""The protocol of a table whose log can't be read as a whole: it may say why."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lakelog.core.actions import Protocol
from lakelog.core.errors import DeltaError
from lakelog.core.log.budget import LogBudget, read_log_file
from lakelog.core.log.checkpoint_parts import plain
from lakelog.core.log.checkpoint_reader import CheckpointReader
from lakelog.core.log.commit_file import protocol_in

if TYPE_CHECKING:
    from lakelog.core.log.segment import LogSegment
    from lakelog.logstores.contract import LogStore


def stated_protocol(store: LogStore, segment: LogSegment) -> Protocol | None:
    """The newest protocol action of a segment that can be read; `None` if there is none.

    Args:
        store: of the log.
        segment: the checkpoint and the commits, some of which are malformed.
    """
    budget = LogBudget.from_store(store)
    for file in reversed(segment.commits):
        try:
            found = protocol_in(read_log_file(store, file.path, budget))
        except (OSError, DeltaError):
            continue
        if found is not None:
            return found
    checkpoint = segment.checkpoint
    if checkpoint is None:
        return None
    try:
        if checkpoint.is_json:
            return protocol_in(read_log_file(store, checkpoint.files[0].path, budget))
        return _protocol_column(CheckpointReader(store, segment))
    except (OSError, DeltaError, ValueError):
        return None


def _protocol_column(reader: CheckpointReader) -> Protocol | None:
    parts = reader.part_reader()
    for file in reader.top_parts():
        for batch in parts.columns(file, ["protocol"]):
            column = batch.column("protocol")
            for value in column.drop_null().to_pylist():
                return Protocol.from_json_value(plain(value, column.type))
    return None
