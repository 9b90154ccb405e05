"""Everything that `lakelog diff` shows of two versions of a table, as one JSON value."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lakelog.cli.diff.column_differences import column_changes
from lakelog.cli.files.live_numbers import row_counts, total
from lakelog.core.engine.commit import supported_features
from lakelog.core.engine.log import file_keys
from lakelog.core.engine.shown import time_text
from lakelog.core.engine.values import pc

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pyarrow as pa

    from lakelog.core import Snapshot
    from lakelog.core.actions import Protocol


def comparison(before: Snapshot, after: Snapshot) -> dict[str, Any]:
    """Compare two versions of one table; the second may be the older one.

    What they are is taken from the log alone: no data file is opened.
    """
    old, new = before.metadata, after.metadata
    return {
        "table": after.table,
        "from": _summary(before),
        "to": _summary(after),
        "files": _files(before, after),
        "columns": column_changes(before.schema, after.schema),
        "partition_columns": _pair(old.partition_columns, new.partition_columns),
        "properties": _mapping(old.configuration, new.configuration),
        "name": _pair(old.name, new.name),
        "description": _pair(old.description, new.description),
        "protocol": _protocol(before.protocol, after.protocol),
        "domains": _mapping(
            *({k: d.configuration for k, d in s.domain_metadata.items()} for s in (before, after))
        ),
        "transactions": _mapping(before.transactions, after.transactions),
    }


def _summary(snapshot: Snapshot) -> dict[str, Any]:
    return {
        "version": snapshot.version,
        "timestamp": time_text(snapshot.timestamp),
        **_sums(snapshot.file_table),
    }


def _sums(files: pa.Table) -> dict[str, Any]:
    rows, unknown = total(row_counts(files))
    return {
        "files": files.num_rows,
        "bytes": int(pc.sum(files["size"]).as_py() or 0),
        "rows": rows,
        "files_without_row_count": unknown,
    }


def _files(before: Snapshot, after: Snapshot) -> dict[str, Any]:
    """Files of one version alone; a file with another deletion vector is in neither group."""
    old, new = before.file_table, after.file_table
    were, are = file_keys(before.table, old), file_keys(after.table, new)
    removed = old.filter(pc.invert(pc.is_in(were, value_set=are.combine_chunks())))
    added = new.filter(pc.invert(pc.is_in(are, value_set=were.combine_chunks())))
    masked = pc.is_in(added["path"], value_set=removed["path"].combine_chunks())
    kept = pc.is_in(removed["path"], value_set=added["path"].combine_chunks())
    return {
        "added": _sums(added.filter(pc.invert(masked))),
        "removed": _sums(removed.filter(pc.invert(kept))),
        "with_other_deletion_vector": _sums(added.filter(masked)),
        "in_both": new.num_rows - added.num_rows,
    }


def _pair(before: Any, after: Any) -> dict[str, Any] | None:
    """Both values where they differ."""
    return None if before == after else {"before": before, "after": after}


def _mapping(before: Mapping[str, Any], after: Mapping[str, Any]) -> dict[str, Any]:
    return {
        name: {"before": before.get(name), "after": after.get(name)}
        for name in sorted(before.keys() | after.keys())
        if before.get(name) != after.get(name)
    }


def _protocol(before: Protocol, after: Protocol) -> dict[str, Any] | None:
    if before == after:
        return None
    had, has = supported_features(before), supported_features(after)
    versions = {
        name: {
            "min_reader_version": each.min_reader_version,
            "min_writer_version": each.min_writer_version,
        }
        for name, each in (("before", before), ("after", after))
    }
    added, dropped = sorted(has - had), sorted(had - has)
    return {**versions, "features_added": added, "features_dropped": dropped}
