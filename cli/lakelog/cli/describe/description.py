"""Everything that `lakelog describe` shows of one version of a table, as one JSON value.

Tables that need features which lakelog does not have are described as well: that is when one needs
it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from lakelog.cli.files.live_numbers import row_counts, total
from lakelog.core import DeltaConf
from lakelog.core.engine.commit import (
    FEATURES,
    KNOWN,
    Support,
    active_features,
    check_readable,
    check_writable,
    lock_for,
    supported_features,
)
from lakelog.core.engine.log import list_log
from lakelog.core.engine.shown import time_text
from lakelog.core.errors import CorruptLogError, UnsupportedFeatureError
from lakelog.logstores import resolve
from lakelog.logstores.errors import UnsafeLogStoreError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from lakelog.core import DeltaLog, Snapshot
    from lakelog.core.actions import Metadata
    from lakelog.core.engine.log import State
    from lakelog.logstores import LogStore

YES: Final = "yes"
UNTIL_USED: Final = "yes, while it is not in use"
REFUSED: Final = "refused"
NOT_NEEDED: Final = "not needed"


def description(log: DeltaLog, snapshot: Snapshot, tell: Callable[[str], None]) -> dict[str, Any]:
    """Describe a version of a table.

    Args:
        log: the table.
        snapshot: its version.
        tell: called with what is being done.

    Raises:
        DeltaError: its log is damaged.
    """
    state, metadata = snapshot.state, snapshot.metadata
    tell("reading the list of files")
    rows, unknown = total(row_counts(snapshot.file_table))
    tell("looking for the oldest version")
    earliest = list_log(log.store, log.table).earliest()
    return {
        "table": log.table,
        "name": metadata.name,
        "description": metadata.description,
        "id": metadata.id,
        "version": snapshot.version,
        "timestamp": time_text(snapshot.timestamp),
        "created": time_text(metadata.created_time),
        "earliest_version": earliest,
        "schema": snapshot.schema.json_value(),
        "partition_columns": snapshot.partition_columns,
        "properties": shown_properties(metadata),
        "protocol": _protocol(snapshot),
        "files": snapshot.num_files,
        "bytes": snapshot.size_in_bytes,
        "rows": rows,
        "files_without_row_count": unknown,
        "last_checkpoint": _last_checkpoint(state),
        "transactions": _transactions(snapshot),
        "domains": {
            name: domain.configuration for name, domain in sorted(snapshot.domain_metadata.items())
        },
        "store": _store(log.table, log.store, log.conf),
    }


def shown_properties(metadata: Metadata) -> dict[str, dict[str, Any]]:
    """Property -> its value, and the default of those that Delta knows."""
    return {
        name: {"value": value, "default": KNOWN[name].default if name in KNOWN else None}
        for name, value in sorted(metadata.configuration.items())
    }


def _protocol(snapshot: Snapshot) -> dict[str, Any]:
    protocol, metadata = snapshot.protocol, snapshot.metadata
    supported, active = supported_features(protocol), active_features(metadata)
    return {
        "min_reader_version": protocol.min_reader_version,
        "min_writer_version": protocol.min_writer_version,
        "features": [
            {
                "name": name,
                "in_use": name in active,
                "read": feature_support(name, active, write=False),
                "write": feature_support(name, active, write=True),
            }
            for name in sorted(supported | active)
        ],
        "cannot_read": _refusal(lambda: check_readable(protocol, snapshot.table, metadata)),
        "cannot_write": _refusal(lambda: check_writable(protocol, metadata, snapshot.table)),
    }


def feature_support(name: str, active: frozenset[str], *, write: bool) -> str:
    """What lakelog can do with a feature of a table: `yes`, `refused`, …

    Args:
        name: the feature.
        active: the features that the table's metadata makes use of.
        write: whether to write, else to read.
    """
    feature = FEATURES.get(name)
    if feature is None:
        return REFUSED
    support = feature.write if write else feature.read
    if support is None:
        return NOT_NEEDED
    if support is Support.INACTIVE:
        return REFUSED if name in active else UNTIL_USED
    return YES if support is Support.YES else REFUSED


def _refusal(check: Callable[[], None]) -> str | None:
    try:
        check()
    except (UnsupportedFeatureError, CorruptLogError) as error:
        return str(error)
    return None


def _last_checkpoint(state: State) -> dict[str, Any] | None:
    found = state.segment.checkpoint
    if found is None:
        return None
    return {
        "version": found.version,
        "files": [each.name for each in found.files],
        "bytes": found.size_in_bytes,
        "commits_since": state.version - found.version,
    }


def _transactions(snapshot: Snapshot) -> list[dict[str, Any]]:
    recorded = snapshot.state.transactions
    return [
        {
            "app_id": app,
            "version": version,
            "last_updated": time_text(recorded[app].last_updated),
        }
        for app, version in sorted(snapshot.transactions.items())
    ]


def _store(table: str, store: LogStore, conf: Mapping[str, str]) -> dict[str, Any]:
    chosen = resolve(table, conf)
    try:
        lock = lock_for(store, table, DeltaConf.from_mapping(conf))
        kind, reason = lock.kind.value, lock.reason
    except UnsafeLogStoreError as error:
        kind, reason = REFUSED, str(error)
    return {
        "class": chosen.class_path,
        "reason": chosen.reason,
        "commit_lock": kind,
        "commit_lock_reason": reason,
    }
