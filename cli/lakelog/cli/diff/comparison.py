"""Everything that `lakelog diff` shows of two versions of a table, as one JSON value."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from lakelog.cli.diff.column_differences import column_changes
from lakelog.cli.files.live_numbers import row_counts, total
from lakelog.core.engine.commit import supported_features
from lakelog.core.engine.log import canonical_paths, file_keys, list_log, read_file_changes
from lakelog.core.engine.shown import time_text
from lakelog.core.engine.values import pc

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pyarrow as pa

    from lakelog.core import Snapshot
    from lakelog.core.actions import Protocol
    from lakelog.logstores import FileStatus


_COMMITS: Final = 1000
_BYTES: Final = 32 << 20
"""Up to so many commits between two versions, and bytes of them, are read rather than all files
compared."""


class _Sums(NamedTuple):
    """Numbers of some files, which can be added up and taken away."""

    files: int
    bytes: int
    rows: int
    unknown: int
    """Files without a row count."""

    @classmethod
    def of(cls, files: pa.Table) -> _Sums:
        rows, unknown = total(row_counts(files))
        return cls(files.num_rows, pc.sum(files["size"]).as_py() or 0, rows or 0, unknown)

    def changed(self, gone: _Sums, come: _Sums) -> _Sums:
        return _Sums(*(a - b + c for a, b, c in zip(self, gone, come, strict=True)))

    def shown(self) -> dict[str, Any]:
        none_known = self.unknown == self.files > 0
        return {
            "files": self.files,
            "bytes": self.bytes,
            "rows": None if none_known else self.rows,
            "files_without_row_count": self.unknown,
        }


def comparison(before: Snapshot, after: Snapshot) -> dict[str, Any]:
    """Compare two versions of one table; the second may be the older one.

    What they are is taken from the log alone: no data file is opened.
    """
    old, new = before.metadata, after.metadata
    had, has, files = _files(before, after)
    return {
        "table": after.table,
        "from": _summary(before, had),
        "to": _summary(after, has),
        "files": files,
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


def _summary(snapshot: Snapshot, sums: _Sums) -> dict[str, Any]:
    return {
        "version": snapshot.version,
        "timestamp": time_text(snapshot.timestamp),
        **sums.shown(),
    }


def _files(before: Snapshot, after: Snapshot) -> tuple[_Sums, _Sums, dict[str, Any]]:
    """What either version has, and what one has alone.

    A file with another deletion vector is in neither group.
    """
    old, new = _touched(before, after) or (before.file_table, after.file_table)
    were, are = file_keys(before.table, old), file_keys(after.table, new)
    removed = old.filter(pc.invert(pc.is_in(were, value_set=are.combine_chunks())))
    added = new.filter(pc.invert(pc.is_in(are, value_set=were.combine_chunks())))
    came, went = (canonical_paths(after.table, each["path"]) for each in (added, removed))
    masked = pc.is_in(came, value_set=went.combine_chunks())
    kept = pc.is_in(went, value_set=came.combine_chunks())
    had = _Sums.of(before.file_table)
    has = had.changed(_Sums.of(old), _Sums.of(new))
    return (
        had,
        has,
        {
            "added": _Sums.of(added.filter(pc.invert(masked))).shown(),
            "removed": _Sums.of(removed.filter(pc.invert(kept))).shown(),
            "with_other_deletion_vector": _Sums.of(added.filter(masked)).shown(),
            "in_both": has.files - added.num_rows,
        },
    )


def _touched(before: Snapshot, after: Snapshot) -> tuple[pa.Table, pa.Table] | None:
    """The files of both versions that a commit between them names.

    All others are the same in both. `None` where the commits are many, can't be read, or are not
    those of these versions: then all files have to be compared.
    """
    earlier, later = sorted((before.version, after.version))
    commits = list_log(after.store, after.table, earlier + 1, later).commits
    if not _are_few(commits, later - earlier):
        return None
    paths = {version: file.path for version, file in commits.items()}
    changes = read_file_changes(after.store, after.table, paths)
    if changes.unread:
        return None
    keys = file_keys(after.table, changes.files).combine_chunks()
    old, new = (_among(snapshot, keys) for snapshot in (before, after))
    is_rest_alike = before.num_files - old.num_rows == after.num_files - new.num_rows
    return (old, new) if is_rest_alike else None


def _among(snapshot: Snapshot, keys: pa.Array[Any]) -> pa.Table:
    files = snapshot.file_table
    return files.filter(pc.is_in(file_keys(snapshot.table, files), value_set=keys))


def _are_few(commits: Mapping[int, FileStatus], count: int) -> bool:
    size = sum(each.length for each in commits.values())
    return len(commits) == count <= _COMMITS and size <= _BYTES


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
