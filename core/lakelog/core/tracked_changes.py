"""What a transaction changes of a table's metadata and protocol."""

from __future__ import annotations

import uuid
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING

from lakelog.core.actions import Metadata, Protocol
from lakelog.core.conf import DeltaConf
from lakelog.core.errors import DeltaAnalysisError
from lakelog.core.identity_columns import with_marks
from lakelog.core.kept_promises import check_promises
from lakelog.core.metadata_updates import changed_metadata, new_table_metadata
from lakelog.core.prepare import append_only_error
from lakelog.core.properties import TableProperties
from lakelog.core.protocol import supported_features
from lakelog.core.row_tracking_names import check_may_enable
from lakelog.core.schema import StructType
from lakelog.core.symlink_manifest import refuse_deletion_vectors
from lakelog.core.tracked_reads import TrackedReads

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from lakelog.core.actions import Action
    from lakelog.core.clock import Clock
    from lakelog.core.delta_log import DeltaLog
    from lakelog.core.snapshot import Snapshot

__all__ = ["TrackedChanges"]


class TrackedChanges(TrackedReads):
    """The reading half of `OptimisticTransaction`, and its changes of metadata and protocol."""

    def __init__(self, delta_log: DeltaLog, snapshot: Snapshot | None) -> None:
        """Start with nothing changed.

        Args:
            delta_log: the table.
            snapshot: what is read; None where no table exists yet.
        """
        super().__init__(snapshot)
        self._log = delta_log
        self._conf = DeltaConf.of(delta_log.conf)
        self._new_metadata: Metadata | None = None
        self._new_protocol: Protocol | None = None
        self._has_written = False
        self._only_marks = False

    @property
    def delta_log(self) -> DeltaLog:
        """The table that it changes."""
        return self._log

    @property
    def clock(self) -> Clock:
        """The table's: it dates the commit, and times its waits."""
        return self._log.clock

    @cached_property
    def _blank(self) -> Metadata:
        """What stands in for the metadata of a table that does not exist."""
        return Metadata(id=str(uuid.uuid4()), schema_string=StructType().to_json())

    @property
    def metadata(self) -> Metadata:
        """As it will be after the commit; empty for a new table without `update_metadata`."""
        if self._new_metadata is not None:
            return self._new_metadata
        return self._blank if self._snapshot is None else self._snapshot.metadata

    @property
    def protocol(self) -> Protocol:
        """As it will be after the commit."""
        if self._new_protocol is not None:
            return self._new_protocol
        if self._snapshot is None:
            return Protocol(min_reader_version=1, min_writer_version=2)
        return self._snapshot.protocol

    @property
    def new_metadata(self) -> Metadata | None:
        """What the commit changes the metadata to; None where it does not."""
        return self._new_metadata

    @property
    def new_protocol(self) -> Protocol | None:
        """What the commit changes the protocol to; None where it does not.

        New metadata brings it: the features that it makes use of, and those that it asks for by
        `delta.feature.*`, `delta.minReaderVersion`, `delta.minWriterVersion`.
        """
        return self._new_protocol

    def update_metadata(self, metadata: Metadata) -> None:
        """Set schema, partitioning and properties as of this commit.

        Raises:
            DeltaAnalysisError: a second change, a change after `mark_written`, or a bad schema,
                partitioning or property.
        """
        if self._snapshot is None:
            self.update_metadata_for_new_table(metadata)
            return
        self._check_may_update()
        final, protocol = changed_metadata(
            self._snapshot.metadata, metadata, self._snapshot.protocol, self._conf
        )
        check_may_enable(self._snapshot, final, self._log.table)
        refuse_deletion_vectors(self._snapshot, final, self._log.table)
        check_promises(self._snapshot, final, protocol or self._snapshot.protocol)
        self._new_metadata = final
        self._new_protocol = protocol

    def update_metadata_for_new_table(self, metadata: Metadata) -> None:
        """Set the metadata as for a new table: defaults of the session, a protocol of its own.

        For an existing table this replaces schema and properties; its protocol only grows.

        Raises:
            DeltaAnalysisError: as `update_metadata`.
        """
        self._check_may_update()
        now = self._log.clock.now_ms()
        replaced = None if self._snapshot is None else self._snapshot.metadata
        final, protocol = new_table_metadata(metadata, self._conf, now, replaced)
        check_promises(self._snapshot, final, protocol, replaces=True)
        needed: Protocol | None = protocol
        if self._snapshot is not None:
            final = replace(final, id=self._snapshot.metadata.id)
            check_may_enable(self._snapshot, final, self._log.table)
            final, needed = changed_metadata(
                self._snapshot.metadata, final, self._snapshot.protocol, self._conf, replaces=True
            )
        # Last, so that what is refused leaves nothing for a later commit to write.
        self._new_metadata, self._new_protocol = final, needed

    def _check_may_update(self) -> None:
        if self._new_metadata is not None:
            raise DeltaAnalysisError(
                "Cannot change the metadata more than once in a transaction.",
                table=self._log.table,
            )
        if self._has_written:
            raise DeltaAnalysisError(
                "Cannot update the metadata in a transaction that has already written data.",
                table=self._log.table,
            )

    @property
    def has_written(self) -> bool:
        """Whether data files were written for this transaction; blocks metadata changes."""
        return self._has_written

    def mark_written(self) -> None:
        """Say that data files were written, for the metadata as it is now."""
        self._has_written = True

    def advance_identity_columns(self, marks: Mapping[str, int]) -> None:
        """Set the high-water marks of identity columns, once, after their rows were written.

        The commit then changes the metadata, so that two writers which give out numbers
        conflict; where that is its only change it is tagged as such, and conflicts with no other.

        Args:
            marks: column -> its last number.
        """
        if marks:
            changed = with_marks(self.metadata, marks)
            self._only_marks = self._new_metadata is None
            self._new_metadata = changed

    def assert_removable(self) -> None:
        """Check that rows may be removed, before work is spent on it.

        Raises:
            AppendOnlyError: `delta.appendOnly` is set.
        """
        if self._snapshot is None:
            return
        if TableProperties(self._snapshot.metadata.configuration).append_only:
            raise append_only_error(self._log.table)

    def _pending_changes(self) -> tuple[Metadata | None, Protocol | None, bool, bool]:
        """What a commit that fails is to leave as it found it."""
        return self._new_metadata, self._new_protocol, self._has_written, self._only_marks

    def _restore(self, before: tuple[Metadata | None, Protocol | None, bool, bool]) -> None:
        """Forget the metadata and the protocol that came among the actions of such a commit."""
        self._new_metadata, self._new_protocol, self._has_written, self._only_marks = before

    def _take_heads(self, actions: Sequence[Action]) -> Protocol | None:
        """Apply a Metadata among the actions; give the Protocol among them."""
        metadata = [action for action in actions if isinstance(action, Metadata)]
        protocols = [action for action in actions if isinstance(action, Protocol)]
        for each in metadata:
            # Data that is in the same list was written for it.
            written, self._has_written = self._has_written, False
            self.update_metadata(each)
            self._has_written = written
        if self._snapshot is None and metadata and self._new_protocol and protocols:
            # The protocol of a new table comes with its metadata, unless one that has what the
            # metadata needs is given.
            needed = supported_features(self._new_protocol)
            if needed <= supported_features(protocols[0]):
                self._new_protocol = None
        if len(protocols) + (self._new_protocol is not None) > 1:
            raise DeltaAnalysisError(
                "Cannot change the protocol more than once in a transaction.",
                table=self._log.table,
            )
        return protocols[0] if protocols else None
