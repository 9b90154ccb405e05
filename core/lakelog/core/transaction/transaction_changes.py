"""What a transaction changes of a table's metadata and protocol."""

from __future__ import annotations

import uuid
from contextlib import contextmanager
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING

from lakelog.core.actions import Metadata, Protocol
from lakelog.core.catalogs.new_tables import with_required
from lakelog.core.commit.prepare import append_only_error
from lakelog.core.conf import DeltaConf
from lakelog.core.data.file_layout import FileLayout
from lakelog.core.errors import DeltaAnalysisError
from lakelog.core.features.identity_columns import with_marks
from lakelog.core.features.protocol import supported_features
from lakelog.core.features.table_properties import FEATURE_PREFIX
from lakelog.core.features.terms import TableTerms
from lakelog.core.metadata.invariants import check_promises, refuse_deletion_vectors
from lakelog.core.metadata.metadata_changes import changed_metadata, new_table_metadata
from lakelog.core.metadata.row_tracking_rules import check_may_enable
from lakelog.core.schema import StructType

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from lakelog.core.actions import Action, DomainMetadata
    from lakelog.core.state.snapshot import Snapshot
    from lakelog.core.table_log import TableLog


class Changes:
    """The metadata and the protocol that a table will have once a transaction has committed.

    Data files are written for them: what is changed after `mark_written` would not fit the files.
    """

    def __init__(self, delta_log: TableLog, snapshot: Snapshot | None) -> None:
        """Start with nothing changed.

        Args:
            delta_log: the table.
            snapshot: what is read; None where no table exists yet.
        """
        self._table, self._clock, self._store = delta_log.table, delta_log.clock, delta_log.store
        self._snapshot = snapshot
        self._conf = DeltaConf.from_mapping(delta_log.conf)
        self._new_metadata: Metadata | None = None
        self._new_protocol: Protocol | None = None
        self._new_terms: TableTerms | None = None
        self.has_written: bool = False
        """Whether data files were written."""
        self.only_marks: bool = False
        """Whether the marks of identity columns are all that changes."""
        self._checks: list[Callable[[], object]] = []

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
    def terms(self) -> TableTerms:
        """What metadata and protocol will require of a writer after the commit."""
        if self._snapshot is not None and self._new_metadata is None and self._new_protocol is None:
            return self._snapshot.terms
        metadata, protocol, known = self.metadata, self.protocol, self._new_terms
        if known is None or known.metadata is not metadata or known.protocol != protocol:
            known = self._new_terms = TableTerms(metadata, protocol)
        return known

    @property
    def protocol(self) -> Protocol:
        """As it will be after the commit."""
        if self._new_protocol is not None:
            return self._new_protocol
        if self._snapshot is None:
            return Protocol(min_reader_version=1, min_writer_version=2)
        return self._snapshot.protocol

    @property
    def file_layout(self) -> FileLayout:
        """What a writer of files for this transaction must know about the metadata."""
        domains = self._snapshot.domain_metadata if self._snapshot is not None else None
        return FileLayout.from_terms(self.terms, self._conf, domains)

    @property
    def new_metadata(self) -> Metadata | None:
        """What the commit changes the metadata to; None where it does not."""
        return self._new_metadata

    @property
    def new_protocol(self) -> Protocol | None:
        """What the commit changes the protocol to; None where it does not.

        New metadata implies it: the features that it uses, and those that it asks for by
        `delta.feature.*`, `delta.minReaderVersion`, `delta.minWriterVersion`.
        """
        return self._new_protocol

    def update_metadata(
        self, metadata: Metadata, *, domains: Mapping[str, DomainMetadata] | None = None
    ) -> None:
        """See `OptimisticTransaction.update_metadata`."""
        if self._snapshot is None:
            self.update_metadata_for_new_table(metadata)
            return
        self._check_may_update()
        final, protocol = changed_metadata(
            self._snapshot.metadata, metadata, self._snapshot.protocol, self._conf
        )
        terms = TableTerms(final, protocol or self._snapshot.protocol)
        check_may_enable(self._snapshot, terms, self._table)
        refuse_deletion_vectors(self._snapshot, terms, self._table)
        check_promises(self._snapshot, terms, domains=domains)
        self._new_metadata = final
        self._new_protocol = protocol

    def update_metadata_for_new_table(
        self, metadata: Metadata, *, domains: Mapping[str, DomainMetadata] | None = None
    ) -> None:
        """Set the metadata as for a new table: defaults of the session, a protocol of its own.

        For an existing table this replaces schema and properties; its protocol only grows.

        Args:
            metadata: as it will be.
            domains: those that the table will have, where the commit changes them.

        Raises:
            DeltaAnalysisError: as `update_metadata`.
        """
        self._check_may_update()
        now = self._clock.now_ms()
        replaced = None if self._snapshot is None else self._snapshot.metadata
        metadata = with_required(self._store, metadata, replaced)
        final, protocol = new_table_metadata(metadata, self._conf, now, replaced)
        terms = TableTerms(final, protocol)
        check_promises(self._snapshot, terms, replaces=True, domains=domains)
        needed: Protocol | None = protocol
        if self._snapshot is not None:
            # Features that are asked for by name are in the new table's protocol by now.
            named = {
                k: v for k, v in metadata.configuration.items() if k.startswith(FEATURE_PREFIX)
            }
            configuration = {**final.configuration, **named}
            final = replace(final, id=self._snapshot.metadata.id, configuration=configuration)
            check_may_enable(self._snapshot, TableTerms(final, protocol), self._table)
            final, needed = changed_metadata(
                self._snapshot.metadata, final, self._snapshot.protocol, self._conf, replaces=True
            )
        # Last, so that refused metadata leaves nothing behind for a later commit to write.
        self._new_metadata, self._new_protocol = final, needed

    def update_metadata_for_restore(self, metadata: Metadata, protocol: Protocol) -> None:
        """Set the metadata of an older version, or of another table, and the protocol with it.

        Nothing is added to either, and what was valid there is not checked again. The commit
        must leave none of the files that this metadata does not describe.

        Raises:
            DeltaAnalysisError: a second change, or a change after `mark_written`.
        """
        self._check_may_update()
        self._new_metadata = metadata
        changes = self._snapshot is None or protocol != self._snapshot.protocol
        self._new_protocol = protocol if changes else None

    def _check_may_update(self) -> None:
        # Each change is checked against the snapshot: a second one would not know of the first.
        if self._new_metadata is not None:
            raise DeltaAnalysisError(
                "Cannot change the metadata more than once in a transaction.",
                table=self._table,
            )
        if self.has_written:
            raise DeltaAnalysisError(
                "Cannot update the metadata in a transaction that has already written data.",
                table=self._table,
            )

    def mark_written(self) -> None:
        """Note that data files were written for the metadata as it is now."""
        self.has_written = True

    def check_before_commit(self, check: Callable[[], object]) -> None:
        """Let something be checked before the commit is sent, beside what else is asked then.

        Args:
            check: raises what ends the commit; called once, perhaps while another thread looks at
                the log. Of files: `DataFileWriter.check_arrived`.
        """
        self._checks.append(check)

    @property
    def has_checks(self) -> bool:
        """Whether there is something left for `check_now`."""
        return bool(self._checks)

    def check_now(self) -> None:
        """Check what `check_before_commit` was given, each once; raise what one raises."""
        while self._checks:
            self._checks.pop()()

    def advance_identity_columns(self, marks: Mapping[str, int]) -> None:
        """Set the high-water marks of identity columns, once, after their rows were written.

        The commit then changes the metadata, so that two writers which assign numbers conflict;
        where that is its only change it is tagged as such, and conflicts with no other writer.

        Args:
            marks: column -> its last number.
        """
        if marks:
            changed = with_marks(self.metadata, marks)
            self.only_marks = self._new_metadata is None
            self._new_metadata = changed

    def assert_removable(self) -> None:
        """Check that rows may be removed, before work is spent on it.

        Raises:
            AppendOnlyError: `delta.appendOnly` is set.
        """
        if self._snapshot is None:
            return
        if self._snapshot.terms.is_append_only:
            raise append_only_error(self._table)

    def pending(self) -> tuple[Metadata | None, Protocol | None, bool, bool]:
        """What a failed commit must leave as it found it."""
        return self._new_metadata, self._new_protocol, self.has_written, self.only_marks

    def restore(self, before: tuple[Metadata | None, Protocol | None, bool, bool]) -> None:
        """Forget the metadata and the protocol that came among the actions of such a commit."""
        self._new_metadata, self._new_protocol, self.has_written, self.only_marks = before

    @contextmanager
    def undone_on_error(self) -> Iterator[None]:
        """See the function of that name in `optimistic`."""
        before, checks = self.pending(), [*self._checks]
        try:
            yield
        except BaseException:
            self.restore(before)
            self._checks = checks
            raise

    def take(self, actions: Sequence[Action]) -> Protocol | None:
        """Apply a Metadata among the actions; give the Protocol among them."""
        metadata = [action for action in actions if isinstance(action, Metadata)]
        protocols = [action for action in actions if isinstance(action, Protocol)]
        for each in metadata:
            # Data that is in the same list was written for it.
            written, self.has_written = self.has_written, False
            self.update_metadata(each)
            self.has_written = written
        if self._snapshot is None and metadata and self._new_protocol and protocols:
            # The protocol of a new table follows from its metadata, unless the caller gives one
            # that has all the metadata needs.
            needed = supported_features(self._new_protocol)
            if needed <= supported_features(protocols[0]):
                self._new_protocol = None
        if len(protocols) + (self._new_protocol is not None) > 1:
            raise DeltaAnalysisError(
                "Cannot change the protocol more than once in a transaction.",
                table=self._table,
            )
        return protocols[0] if protocols else None
