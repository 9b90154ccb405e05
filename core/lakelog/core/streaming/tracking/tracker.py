"""What a stream with `schemaTrackingLocation` knows of its columns, and when they change.

A stream reads with the columns of the version that its log of metadata names last. At a version
with other columns, properties or another protocol it ends a batch, writes the new metadata into
that log, and fails, once: started again it reads with them. Columns that were renamed, dropped or
retyped need the user's permission first.
"""

from __future__ import annotations

import posixpath
from typing import TYPE_CHECKING

from lakelog.core.errors import DeltaAnalysisError
from lakelog.core.schema import StructType
from lakelog.core.streaming.tracking.metadata_log import TrackedMetadata, TrackingLog
from lakelog.core.streaming.tracking.permission import check_allowed
from lakelog.logstores import log_store_for

if TYPE_CHECKING:
    from lakelog.core.actions import Metadata, Protocol
    from lakelog.core.delta_log import DeltaLog
    from lakelog.core.state.snapshot import Snapshot
    from lakelog.core.streaming.stream_options import StreamOptions

_MARK = "metadata"
"""The file of a checkpoint that exists before a query's first batch."""
_HIGHEST = 16
"""Folders between the location and the checkpoint's own, at most."""


def stream_snapshot(log: DeltaLog, options: StreamOptions) -> Snapshot:
    """The version whose columns a stream has: the newest, or the one that it has come to.

    Args:
        log: the table's.
        options: of the stream.

    Raises:
        DeltaAnalysisError: a log of metadata that can't be used, or a change of columns that is
            not allowed yet.
        VersionNotFoundError: the version that the stream has come to can't be rebuilt any more.
    """
    newest = log.update()
    tracker = Tracker.open(log, options)
    return newest if tracker is None else tracker.snapshot


class Tracker:
    """The metadata of one stream."""

    def __init__(self, log: DeltaLog, tracking: TrackingLog, options: StreamOptions) -> None:
        """Read the existing entries; see `stream_snapshot`."""
        self._log = log
        self._tracking = tracking
        entries = tracking.entries()
        self._number = max(entries, default=-1)
        self._current = entries.get(self._number)
        self.snapshot: Snapshot = log.snapshot
        """The version whose columns the stream has."""
        if self._current is None:
            return
        # An entry that stands for several changes says which one came before them.
        previous = self._current.previous
        before = entries.get(self._number - 1 if previous is None else previous)
        # Here and not where the change was noted: that query has ended with it, and the one that
        # goes on is the one that needs the permission.
        if before is not None:
            check_allowed(before, self._current, options.allowed, log.conf, log.table)
        if self._current.version != self.snapshot.version:
            self.snapshot = log.snapshot_at(self._current.version)

    @classmethod
    def open(cls, log: DeltaLog, options: StreamOptions) -> Tracker | None:
        """The tracker of a stream; `None` for one whose options ask for none."""
        if options.tracking_location is None:
            return None
        table_id = log.snapshot.metadata.id
        tracking = TrackingLog(options.tracking_location, table_id, options.tracking_id, log.conf)
        return cls(log, tracking, options)

    @property
    def is_new(self) -> bool:
        """Whether the stream has no metadata of its own yet."""
        return self._current is None

    def begin(self, there: Snapshot) -> None:
        """Note what the table was like where the stream begins.

        Raises:
            DeltaAnalysisError: it was not like the stream's columns are: started again, the stream
                has the right ones.
        """
        self._write(there.version, there.metadata, there.protocol)
        if self._differs(there.metadata, there.protocol):
            raise self._evolved(there.metadata, there.protocol)

    def stops_at(self, version: int, metadata: Metadata | None, protocol: Protocol | None) -> bool:
        """Whether a version changes what the stream reads with.

        Args:
            version: the version.
            metadata: its commit's, if it has any.
            protocol: its commit's, if it has one.
        """
        if self._current is not None and version <= self._current.version:
            return False
        return self._differs(metadata, protocol)

    def evolve(self, version: int, metadata: Metadata | None, protocol: Protocol | None) -> None:
        """Note a version's metadata as the stream's, and end the query.

        Raises:
            DeltaAnalysisError: always; a restart is all that is needed, or it says what else is.
        """
        now, by = metadata or self.snapshot.metadata, protocol or self.snapshot.protocol
        self._write(version, now, by)
        raise self._evolved(now, by)

    def _write(self, version: int, metadata: Metadata, protocol: Protocol) -> None:
        path = self._source_path() if self._current is None else self._current.source_path
        entry = TrackedMetadata.from_version(version, metadata, protocol, path)
        self._tracking.append(self._number + 1, entry)
        self._number, self._current = self._number + 1, entry

    def _differs(self, metadata: Metadata | None, protocol: Protocol | None) -> bool:
        mine = self.snapshot
        if protocol is not None and _demands(protocol) != _demands(mine.protocol):
            return True
        if metadata is None:
            return False
        then = StructType.from_json(metadata.schema_string)
        return (
            then != StructType.from_json(mine.metadata.schema_string)
            or [*metadata.partition_columns] != [*mine.metadata.partition_columns]
            or _delta_properties(metadata) != _delta_properties(mine.metadata)
        )

    def _evolved(self, metadata: Metadata, protocol: Protocol) -> DeltaAnalysisError:
        return DeltaAnalysisError(
            "[DELTA_STREAMING_METADATA_EVOLUTION] The schema, table configuration or protocol of "
            f"your Delta table has changed during streaming: {self._log.table}. The schema or "
            "metadata tracking log has been updated. Please restart the stream to continue "
            f"processing using the updated metadata. Updated schema: {metadata.schema_string}. "
            f"Updated table configurations: {dict(metadata.configuration)}. Updated table "
            f"protocol: {protocol.min_reader_version},{protocol.min_writer_version}",
            table=self._log.table,
        )

    def _source_path(self) -> str:
        """Where Spark keeps what belongs to the source: below the checkpoint's own folder."""
        location = self._tracking.location
        store = log_store_for(location, self._log.conf)
        at = location
        for _ in range(_HIGHEST):
            at = posixpath.dirname(at.rstrip("/"))
            if not at or at.endswith(":"):
                break
            path = store.filesystem_path(posixpath.join(at, _MARK))
            if store.filesystem.get_file_info(path).is_file:
                return f"{_qualified(at)}/sources/0"
        raise DeltaAnalysisError(
            "[DELTA_STREAMING_SCHEMA_LOCATION_NOT_UNDER_CHECKPOINT] Schema location "
            f"'{location}' must be placed under the checkpoint location of the query: no folder "
            "above it is one.",
            location=location,
        )


def _qualified(path: str) -> str:
    """As Hadoop spells a folder: local ones with their scheme."""
    if path.startswith("file:"):
        return "file:/" + path.removeprefix("file:").lstrip("/")
    return path if "://" in path else f"file:{path}"


def _delta_properties(metadata: Metadata) -> dict[str, str]:
    return {key: each for key, each in metadata.configuration.items() if key.startswith("delta.")}


def _demands(protocol: Protocol) -> tuple[int, int, frozenset[str], frozenset[str]]:
    """What a protocol asks of clients, in whatever order it names features."""
    return (
        protocol.min_reader_version,
        protocol.min_writer_version,
        frozenset(protocol.reader_features or ()),
        frozenset(protocol.writer_features or ()),
    )
