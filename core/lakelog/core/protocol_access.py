"""What a table asks of its clients: the part of `DeltaLog` about protocols."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from lakelog.core.protocol import check_readable, check_writable

if TYPE_CHECKING:
    from collections.abc import Iterable

    from lakelog.core.actions import Protocol
    from lakelog.core.delta_log import DeltaLog

__all__ = ["ProtocolAccess"]


class ProtocolAccess:
    """Whether we may read and write the table, and how it asks for more."""

    @property
    def _log(self) -> DeltaLog:
        return cast("DeltaLog", self)

    def protocol_read(self, protocol: Protocol | None = None) -> None:
        """Check that this client may read the table. Opening a snapshot does it by itself.

        Args:
            protocol: one to check instead of the table's; with the table's metadata all the same.

        Raises:
            TableNotFoundError: there is no table.
            UnsupportedFeatureError: a reader version or feature that we do not have; names it,
                and says what to do.
            CorruptLogError: versions and lists of features that do not go together.
        """
        snapshot = self._log.snapshot
        check_readable(protocol or snapshot.protocol, self._log.table, snapshot.metadata)

    def protocol_write(self, protocol: Protocol | None = None) -> None:
        """Check that this client may write the table. A commit does it by itself, and first.

        Args:
            protocol: one to check instead of the table's; with the table's metadata all the same.

        Raises:
            TableNotFoundError: there is no table.
            UnsupportedFeatureError: a version or feature that we do not have, or that the
                metadata has switched on; names it, and says what to do.
            CorruptLogError: versions and lists of features that do not go together.
        """
        snapshot = self._log.snapshot
        check_writable(protocol or snapshot.protocol, snapshot.metadata, self._log.table)

    def upgrade_protocol(
        self,
        reader_version: int | None = None,
        writer_version: int | None = None,
        *,
        features: Iterable[str] = (),
    ) -> int:
        """Ask more of the table's clients, so that it may use more. It can't be taken back.

        Nothing is taken from the table: lower versions change nothing. What it has is told in the
        lowest form, so that reader 3 and writer 7 without features add nothing, and lists of
        features that a version number implies become that number.

        Args:
            reader_version: the version of the protocol that readers must have, 1 to 3.
            writer_version: that of writers, 1 to 7.
            features: names of table features, such as `domainMetadata`.

        Returns:
            The version that holds the change; the table's present one where there was none.

        Raises:
            TableNotFoundError: there is no table.
            DeltaAnalysisError: there is no such version or feature.
            UnsupportedFeatureError: we could not write the table any more.
            ProtocolChangedException: another writer changed the protocol at the same time.
        """
        from lakelog.core.protocol_upgrade import upgrade_protocol

        return upgrade_protocol(self._log, reader_version, writer_version, features)
